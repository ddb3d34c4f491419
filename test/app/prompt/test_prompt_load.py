#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""testrdma's prompt: files of commands, and the lists that TAB and ? print."""

import os
import re
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import EAL, lcores, main  # noqa: E402
from prompttest import Scripted, Terminal  # noqa: E402


class Load(Scripted):
    def files(self, **texts):
        """Creates files of commands in a folder. Returns the folder."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, text in texts.items():
            with open(os.path.join(folder.name, name), 'w') as f:
                f.write(text.replace('HERE', folder.name))
        return folder.name

    def test_load_executes_nested_files_and_waits_in_their_order(self):
        here = self.files(
            outer='set op write\nset duration 0.02\nload HERE/inner\nset size 256\nstart\nwait\n',
            inner='set size 64  # a comment\nstart\nwait')
        res = self.script(['load %s/outer' % here, 'set size 512', 'start', 'wait'])
        self.assertEqual([r['size'] for r in res.json['rows']], [64, 256, 512])

    def test_load_names_file_and_line_of_an_error(self):
        here = self.files(outer='set op read\n\nfrob\nload HERE/inner\nshow me\nload HERE/none\nload\nload HERE\n',
                          inner='set size 64\nset colour blue\n')
        for args, lines in (([], ['load %s/outer' % here, 'frob']),
                            (['--cmdline-file', here + '/outer'], ['frob'])):
            res = self.script(lines + ['set duration 0.02', 'start', 'wait'], rc=1, args=args)
            self.assertEqual(self.rows(res), [('read', 64, 1, 1)])
            outer, inner = here + '/outer', here + '/inner'
            said = [line for line in res.err.splitlines() if line.startswith('testrdma: ')]
            for want in ('testrdma: %s:3: "frob" is not a command' % outer,
                         'testrdma: %s:2: set: unknown setting "colour"' % inner,
                         'testrdma: %s:5: show: give one of' % outer,
                         'testrdma: %s:6: load %s/none: No such file' % (outer, here),
                         'testrdma: %s:7: load: give one file' % outer,
                         'testrdma: %s:8: load %s: Is a directory' % (outer, here),
                         'testrdma: "frob" is not a command'):
                self.assertEqual(sum(line.startswith(want) for line in said), 1, want + '\n' + res.err)

    def test_load_of_a_file_that_loads_itself_ends(self):
        here = self.files(loop='load HERE/loop\nset op write\n')
        res = self.script(['load %s/loop' % here, 'set size 64', 'set duration 0.02', 'start', 'wait'], rc=1)
        self.assertEqual(self.rows(res), [('write', 64, 1, 1)])
        self.assertEqual(res.err.count('8 files are open already; does a file load itself?'), 1)
        self.assertEqual(res.out.count('set op write'), 8)

    def test_log_level_acts_at_once(self):
        # A fault opens the device again, which logs one line at the level info.
        line = 'BlueFlame copies'
        res = self.script(['set op write', 'set size 64', 'set duration 0.02', 'fault drop 1', 'start', 'wait',
                           'show config'])
        self.assertNotIn(line, res.err)
        self.assertIn('log-level ', res.out)
        res = self.script(['set log-level info', 'show config', 'fault drop 1', 'set op write', 'set size 64',
                           'set duration 0.02', 'start', 'wait'])
        self.assertIn(line, res.err)
        self.assertIn('\nlog-level info\n', res.out)
        res = self.script(['set log-level bluebell*:error', 'set log-level loud', 'set log-level :info',
                           'set log-level lib.eal:loud', 'show config'], rc=1)
        self.assertEqual(res.err.count('is neither a level nor TYPE:LEVEL'), 3)
        self.assertIn('\nlog-level error\n', res.out)

    def test_quit_in_a_loaded_file_ends_the_program(self):
        here = self.files(outer='load HERE/inner\nfrob\n', inner='quit\nfrob\n')
        res = self.script(['load %s/outer' % here, 'frob'])
        self.assertNotIn('frob', res.out + res.err)

    def test_control_c_ends_the_files_and_not_the_program(self):
        here = self.files(outer='load HERE/inner\nfrob\n',
                          inner='set op write\nset size 64\nset duration 600\nstart\nwait\nfrob\n')
        t = Terminal([self.program] + lcores() + EAL + ['--', '-i'])
        t.until(r'testrdma> ')
        t.type('load %s/outer\n' % here)
        t.until(r'testrdma> wait')
        t.type('\x03')
        t.until(r'of 1 tests ran')
        t.until(r'testrdma> ')
        t.type('set size 128\nshow config\nquit\n')
        self.assertNotIn('frob', t.until(r'size 128\r\n'))
        self.assertEqual(t.status(), 0)

    def test_completion_lists_the_syntax_and_the_help_of_each_choice(self):
        t = Terminal([self.program] + lcores() + EAL + ['--', '-i'])
        t.until(r'testrdma> ')
        for keys, lines in (
                ('?', ['show [show WHAT]: print a state', 'start [start]: run every operation',
                       'set [set WHAT VALUE]: change a setting', 'wait [wait [SECONDS]]: wait for',
                       'fault [fault KIND VALUE]: set a fault', 'load [load FILE]: execute']),
                ('show ?', ['qp [show qp]: each queue pair']),
                ('set ?', ['size [set size VALUE]: bytes', 'interval [set interval VALUE]: seconds']),
                ('set size ?', ['[set size VALUE]: bytes of a message']),
                ('set verify ?', ['on [set verify VALUE]: compare', 'off [set verify VALUE]: compare']),
                ('set verify on ?', ['[RETURN]']),
                ('fault ?', ['drop [fault drop PERCENT]: ', 'none [fault none]: no faults',
                             'full [fault full PACKETS[:MILLISECONDS]]: ']),
                ('fault rx drop ?', ['[fault rx KIND VALUE]: ']),
                ('start ?', ['[RETURN]']),
                ('load \t', ['[load FILE]: execute the commands of a file; it may load other files'])):
            t.type(keys)
            # rte_cmdline prints the prompt again after the list.
            shown = t.until(r'(?s)\r\n \S.*\r\n.*testrdma> ')
            for line in lines:
                self.assertIn('\r\n ' + line, shown)
            for line in re.sub(r'\r+', '', shown).split('\n')[1:-1]:
                self.assertRegex(line, r'\A (\w[\w-]* )?\[(RETURN\]|.+\]: \S.*\w)\)?\Z')
            self.assertNotIn('(null)', shown)
            self.assertNotIn('No help', shown)
            t.type('\x03')
            t.until(r'testrdma> ')
        t.type('quit\n')
        self.assertEqual(t.status(), 0)


if __name__ == '__main__':
    main()
