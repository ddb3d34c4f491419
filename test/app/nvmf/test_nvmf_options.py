#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/nvmf: its options and its configuration file, files, start and stop. The interop test has the hosts.

usage: test_nvmf_options.py NVMF_TARGET
"""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import LIMIT, lcores  # noqa: E402

TARGET = os.path.abspath(sys.argv[1])
EAL = ['--no-huge', '-m', '128', '--no-pci', '--no-telemetry', '--no-shconf', '--log-level=lib.eal:4']
SMALL = ['--queues', '4', '--depth', '8']
NQN = ['--subsystem', 'nqn.2026-01.org.example:disk']


class Options(unittest.TestCase):
    def start(self, args, folder=None, eal=EAL):
        proc = subprocess.Popen([TARGET, *lcores(1), *eal, '--', *SMALL, *args], cwd=folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(proc.stdout.close)
        self.addCleanup(proc.kill)
        return proc

    def refused(self, args, *texts, status=2, folder=None, eal=EAL):
        proc = self.start(args, folder, eal)
        out, _ = proc.communicate(timeout=LIMIT)
        self.assertEqual(proc.returncode, status, out)
        for text in texts:
            self.assertIn(text, out)

    def serving(self, args, folder=None, eal=EAL):
        proc = self.start(args, folder, eal)
        out = ''
        while ' port ' not in out:
            line = proc.stdout.readline()
            self.assertNotEqual(line, '', out)
            out += line
        return proc, out

    def test_wrong_options_are_refused(self):
        space = ['--namespace', 'null:1M']
        for args, text in (([], '--subsystem NQN is missing'),
                           (NQN, 'give it a namespace'),
                           (space, '--namespace null:1M: give --subsystem first'),
                           (['--host', 'nqn.2026-01.org.example:a'], '--host nqn.2026-01.org.example:a: give --subsystem first'),
                           (NQN + NQN, 'the name occurs twice'),
                           (['--subsystem', 'disk'], 'give a qualified name'),
                           (['--subsystem', 'nqn.2014-08.org.nvmexpress.discovery'], 'give a qualified name'),
                           (NQN + ['--namespace', 'disk'], 'give file:PATH, malloc:SIZE or null:SIZE'),
                           (NQN + ['--namespace', 'null:0'], '--namespace'),
                           (NQN + ['--namespace', 'null:1M,size=1M'], '"size=1M" is unknown'),
                           (NQN + ['--namespace', 'null:1M,nsid=33'], '"33" is out of range; give a number from 1 to 32'),
                           (NQN + ['--namespace', 'null:1M,nsid=2', '--namespace', 'null:1M,nsid=2'], 'nsid 2 occurs twice'),
                           (NQN + ['--namespace', 'malloc:1M,'], '"" is unknown'),
                           (NQN + ['--namespace', 'file:'], 'give file:PATH'),
                           (NQN + ['--namespace', 'null:5000'], 'no multiple of block, 4096'),
                           (NQN + space + ['--max-io', '4K'], '--max-io'),
                           (NQN + space + ['--max-io', '12288'], 'give a power of two'),
                           (NQN + space + ['--in-capsule', '16K', '--max-io', '8K'], 'give at most max-io, 8192'),
                           (NQN + space + ['--depth', 'x'], '--depth x: the value is not a number'),
                           (NQN + space + ['--in-capsule', '24'], 'give a multiple of 16'),
                           (NQN + space + ['--queues', '4097', '--depth', '1024'], 'give a number from 1 to 4096'),
                           (NQN + space + ['--serial', 'x' * 21], 'give 1 to 20 characters'),
                           (NQN + space + ['--io', 'aio'], 'give uring or sync'),
                           (NQN + space + ['--sleep', '1000001'], 'give a number from 0 to 1000000'),
                           (NQN + space + ['--listen', 'there'], 'give an address and a port'),
                           (NQN + space + ['--listen', ':4420'] * 9, 'at most 8 listeners'),
                           (NQN + space + ['rest'], '"rest" is not an option')):
            with self.subTest(args):
                self.refused(args, text)

    def config(self, text):
        file = tempfile.NamedTemporaryFile('w', suffix='.ini')
        self.addCleanup(file.close)
        file.write(text)
        file.flush()
        return file.name

    def test_errors_of_a_configuration_file_name_the_line_and_what_is_allowed(self):
        a = '[subsystem nqn.2026-01.org.example:a]\n'
        for text, line, words in (('x\n', 1, 'the line is neither [SECTION] nor NAME = VALUE'),
                                  ('[target\n', 1, 'the section has no ]'),
                                  ('\n; comment\n[]\n', 3, 'the section has no name'),
                                  ('[other]\n', 1, '[other]: the section is neither [target] nor [subsystem NQN]'),
                                  ('depth = 8\n', 1, 'depth = 8: put it into the section [target]'),
                                  (a + 'depth = 8\n', 2, 'depth = 8: put it into the section [target]'),
                                  ('[target]\nhost = nqn.x\n', 2, 'put it into a section [subsystem NQN]'),
                                  ('[target]\n= 8\n', 2, 'there is no name before the ='),
                                  ('[target]\ndepth = 1025 # too deep\n', 2,
                                   'depth = 1025: the value is out of range; give a number from 2 to 1024'),
                                  ('[target]\ndepht = 8\n', 2, 'depht = 8: unknown; known are serial, host'),
                                  ('[target]\nconfig = x\n', 2, 'config = x: unknown'),
                                  ('[target]\nsubsystem = nqn.abc\n', 2, 'subsystem = nqn.abc: unknown'),
                                  ('[subsystem disk]\n', 1, 'subsystem = disk: give a qualified name'),
                                  (a + 'namespace = null:1M\n' + a, 3, 'the name occurs twice'),
                                  (a + 'serial = 1\n', 1, 'give it a namespace'),
                                  (a + 'namespace = null:1M, ro\n', 2, '" ro" is unknown'),
                                  (a + 'namespace = null:5000\n', 2, 'the size is no multiple of block, 4096')):
            with self.subTest(text):
                path = self.config(text)
                self.refused(['--config', path], 'nvmf_target: %s:%u: ' % (path, line), words)
        self.refused(['--config', '/none.ini'], '/none.ini: the configuration cannot be read: No such file')
        self.refused(['--config', self.config('')], '--subsystem NQN is missing')
        path = self.config(a + 'namespace = null:1M\n')
        self.refused(['--config', path, '--config', path], 'give it once')
        self.refused(['--config', self.config(a + '\0')], 'the file contains a NUL character')

    def test_configuration_file_serves_and_options_after_it_override(self):
        path = self.config('; two subsystems\n[target]\nlisten = :4420\nlisten = :4421\nmax-io = 12288x\n')
        self.refused(['--config', path], ':5: max-io = 12288x: the value is not a number')
        path = self.config('[target]\nlisten = :4420\nlisten = :4421\nmax-io = 1M ; large\nqueues = 4096\n'
                           '[subsystem nqn.2026-01.org.example:a]\nserial = A # 1\nhost = nqn.2026-01.org.example:h\n'
                           'namespace = malloc:1M\nnamespace = null:1G,nsid=7,ro\n'
                           '[subsystem nqn.2026-01.org.example:b]\nnamespace = null:1G\n')
        proc, out = self.serving(['--config', path, '--max-io', '64K', '--queues', '4'])
        self.assertIn('port 4420', out)
        self.assertIn('port 4421', proc.stdout.readline())
        proc.send_signal(signal.SIGTERM)
        self.assertEqual(proc.wait(LIMIT), 0)

    def test_listen_after_the_file_replaces_its_addresses(self):
        path = self.config('[target]\nlisten = :4420\nlisten = :4421\n'
                           '[subsystem nqn.2026-01.org.example:a]\nnamespace = null:1M\n')
        proc, out = self.serving(['--config', path, '--listen', ':4422', '--listen', ':4423'])
        self.assertIn('port 4422', out)
        proc.send_signal(signal.SIGTERM)
        self.assertEqual(proc.wait(LIMIT), 0)
        self.assertEqual(proc.stdout.read().count(' port '), 1)

    def test_only_io_uring_limits_the_product_of_queues_and_depth(self):
        eal = [word if word != '128' else '560' for word in EAL]
        many = ['--queues', '1025', '--depth', '2', '--max-io', '8K', '--in-capsule', '0']
        with tempfile.TemporaryDirectory() as folder:
            file = ['--namespace', 'file:disk,size=1M']
            self.refused(NQN + many + file, 'at most 32768 requests, not 32800', status=1, folder=folder, eal=eal)
            for args in (file + ['--io', 'sync'], ['--namespace', 'malloc:1M']):
                proc, _ = self.serving(NQN + many + args, folder, eal)
                proc.send_signal(signal.SIGTERM)
                self.assertEqual(proc.wait(LIMIT), 0)

    def test_target_ends_by_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            proc, _ = self.serving(NQN + ['--namespace', 'malloc:1M', '--namespace', 'null:1T,ro'])
            proc.send_signal(number)
            self.assertEqual(proc.wait(LIMIT), 0)
            self.assertIn('0 reads, 0 writes', proc.stdout.read())

    def test_file_is_created_and_locked(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refused(NQN + ['--namespace', 'file:disk', '--io', 'sync'], 'give its size to create it', status=1,
                         folder=folder)
            proc, _ = self.serving(NQN + ['--namespace', 'file:disk,size=1M', '--io', 'sync'], folder)
            state = os.stat(os.path.join(folder, 'disk'))
            self.assertEqual((state.st_size, state.st_mode & 0o777), (1 << 20, 0o600))
            self.refused(NQN + ['--namespace', 'file:disk', '--io', 'sync'], 'another target serves it', status=1,
                         folder=folder)
            proc.send_signal(signal.SIGTERM)
            self.assertEqual(proc.wait(LIMIT), 0)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
