#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The checks of documents detect violations."""

import os
import shutil
import sys
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'docs'))
import commands  # noqa: E402
import manpages  # noqa: E402
import porting  # noqa: E402
import prose  # noqa: E402
import snippets  # noqa: E402
import telemetry  # noqa: E402
import texts  # noqa: E402
from selftest import Fixture, write  # noqa: E402


class Snippets(Fixture):
    def errors(self, name, text):
        write(self.top, {name: text})
        errors, count = snippets.check([self.path(name)], [])
        self.assertEqual(count, 1)
        return errors

    def test_markdown(self):
        self.assertEqual(self.errors('a.md', 'Text\n```c\nint a(void);\n```\n'), [])
        self.assertTrue(self.errors('a.md', 'Text\n```c\nint a(void) {return b;}\n```\n'))

    def test_rst(self):
        block = 'Text\n\n.. code-block:: c\n\n   int a(void)\n\n   {return %s;}\n\nMore text.\n'
        self.assertEqual(self.errors('a.rst', block % '1'), [])
        self.assertTrue(self.errors('a.rst', block % 'b'))


class Texts(unittest.TestCase):
    SOURCE = 'LOG("%s: no room " /* x */ , a);\nLOG("%s: no memory: give "\n    "EAL more", a);\n'
    STATUS = '\tBB_WC_A_ERR,\n'

    def errors(self, guide, statuses=STATUS):
        return texts.findings(guide, [self.SOURCE], statuses)

    def test_texts(self):
        guide = '``no memory: give EAL more``\n    Do so.\n\n``BB_WC_A_ERR``\n'
        self.assertEqual(self.errors(guide), [])
        self.assertTrue(self.errors(guide.replace('no memory', 'no such memory')))
        self.assertTrue(self.errors(guide, self.STATUS + '\tBB_WC_B_ERR,\n'))
        self.assertTrue(self.errors(guide, ''))
        self.assertTrue(self.errors('no message\n'))

    def test_logged_line_must_be_one_of_the_sources(self):
        guide = 'So:\n\n.. code-block:: console\n\n   $ run\n   soft: x: no memory: give EAL more\n   soft: x: no...\n'
        patterns = list(texts.formats(texts.strings(self.SOURCE)))
        self.assertEqual(texts.logged(guide), ['x: no memory: give EAL more', 'x: no...'])
        self.assertEqual(texts.unprinted(texts.logged(guide), patterns), [])
        for was, becomes in (('EAL more', 'EAL less'), ('more', 'more of it'), ('give ', '')):
            self.assertEqual(len(texts.unprinted(texts.logged(guide.replace(was, becomes)), patterns)), 1, becomes)


class Prose(unittest.TestCase):
    def found(self, path, text, excepted=()):
        return prose.check({path: text}, prose.exceptions(excepted))

    def test_each_rule_finds_its_words(self):
        for rule, words in ((1, 'Nobody reads it.'), (1, 'Whoever comes finds room.'), (1, 'Read. Who waits is late.'),
                            (1, 'What a umem is like.'), (1, 'The list is ours.'), (1, 'Takes the same one.'),
                            (1, 'Waits so long.'), (5, 'The caller is told.'), (5, 'It carries it out.'),
                            (5, 'Looks at the other side.'), (5, 'The peer greets.'), (5, 'The dice fall.'),
                            (5, 'It strikes once.'), (5, 'Beside a floor.'), (5, 'The one behind it.'),
                            (7, 'The ' + 'very ' * 30 + 'end.')):
            for path, text in (('lib/a.c', '/* %s */' % words), ('lib/a.h', 'int a; // %s' % words),
                               ('lib/b.c', 'log("%s" "");' % words), ('test/a.py', '"""%s"""' % words),
                               ('doc/guides/a.rst', '%s\n' % words), ('README.md', '%s\n' % words)):
                bad = self.found(path, text)
                self.assertEqual(len(bad), 1, (path, words, bad))
                self.assertIn('%s:1: rule %d' % (path, rule), bad[0])

    def test_sentences_that_keep_the_rules(self):
        for words in ('Returns what to do.', 'What is it?', 'As so many as there are', 'Behind a switch.',
                      'The caller asks who it is.'):
            self.assertEqual(self.found('lib/a.c', '/* %s */' % words), [])
        self.assertEqual(self.found('lib/a.c', 'int ours, told; a("told"); b = \'"\';'), [])
        self.assertEqual(self.found('test/a.c', 'log("nobody came");'), [])
        self.assertEqual(self.found('doc/a.rst', 'A word\n\n    ours\n\n``ours`` is code\n'), [])
        self.assertEqual(self.found('README.md', 'A\n\n```\nours\n\nours\n```\n\nB\n'), [])

    def test_exceptions(self):
        text = '/* Nobody. */ /* Nobody else. */'
        self.assertEqual(len(self.found('lib/a.c', text, ['lib/* | else | a reason'])), 1)
        self.assertEqual(self.found('lib/a.c', text, ['# why', 'lib/* | * | a reason']), [])
        self.assertIn('excuses nothing', self.found('lib/a.c', '/* A. */', ['lib/* | * | a reason'])[0])
        self.assertRaises(ValueError, prose.exceptions, ['lib/* | no reason'])


class Commands(Fixture):
    HELPS = {'tool': 'usage: tool\n  -P, --port N  which\n      --many-ports\n', 'bench': '  --quick\n'}
    TEXT = ('    $ build/app/tool/tool -l 0 --no-huge -- \\\n        -P 5 --port=7 # ours\n'
            'See ``bench --quick`` and devtools/run, app/tool/main.c.\n')

    def errors(self, text):
        write(self.top, {'devtools/run': '', 'app/tool/main.c': '',
                         'app/tool/meson.build': "executable('tool', 'main.c')\n"})
        return commands.check(text, self.HELPS, self.top)

    def test_commands(self):
        self.assertEqual(self.errors(self.TEXT), ([], 2))
        for was, becomes in (('-P 5', '-Q 5'), ('--port=7', '--ports=7'), ('--port=7', '--many=7'),
                             ('--quick', '--quicker'), ('devtools/run', 'devtools/runs'),
                             ('app/tool/main.c', 'app/tool/other'), ('build/app/tool/', 'build/app/tools/')):
            self.assertEqual(len(self.errors(self.TEXT.replace(was, becomes))[0]), 1, becomes)

    def test_path_without_the_folder_of_a_program_is_an_error(self):
        text = '   $ for p in app/one \\\n       app/two; do PATH=$PWD/build/$p:$PATH; done\n'
        self.assertEqual(list(commands.outside_path(text, ['/b/app/one/one', '/b/app/two/2'])), [])
        self.assertEqual(list(commands.outside_path(text, ['/b/app/one/one', '/b/app/three/3'])), ['3'])
        self.assertEqual(list(commands.outside_path('', ['/b/app/three/3'])), [])

    def test_block_of_commands_without_prompt_is_an_error(self):
        for block in ('.. code-block:: console\n\n   tool -P 5\n', '.. code-block:: text\n\n   tool -P 5\n',
                      'so::\n\n   build/app/tool/tool\n', '.. code-block:: text\n\n   $ ls\n'):
            self.assertEqual(len(list(commands.unprompted(block, self.HELPS))), 1, block)
        for block in ('.. code-block:: console\n\n   $ tool -P 5\n', '.. code-block:: console\n\n   one# ls\n',
                      '.. code-block:: text\n\n   tool> start\n', 'so::\n\n   a --> b\n',
                      '.. code-block:: c\n\n   tool - 1;\n'):
            self.assertEqual(list(commands.unprompted(block, self.HELPS)), [], block)


@unittest.skipIf(shutil.which('groff') is None, 'no groff')
class Manpages(unittest.TestCase):
    HELP = ('usage: tool [options]\n\nDoes it.\n\nWhat it does\n  --a    .begins with a dot\n\n'
            'Exit status: 0 done; 1 not done.\n')
    PAGE = ('.TH TOOL 1\n.SH NAME\ntool \\- a tool\n.SH SYNOPSIS\n.nf\ntool [options]\n.fi\n.SH DESCRIPTION\nDoes it.\n'
            '.SH OPTIONS\n.SS "What it does"\n.TP\n.B \\-\\-a\n\\&.begins with a dot\n'
            '.SH EXIT STATUS\n.TP\n.B 0\ndone\n.TP\n.B 1\nnot done\n'
            '.SH ENVIRONMENT\nnone\n.SH FILES\nnone\n.SH SEE ALSO\nnone\n')

    def test_manpages(self):
        self.assertEqual(manpages.check(self.HELP, self.PAGE), [])
        for was, becomes in (('tool \\- a tool', 'tool'), ('.B \\-\\-a', '.B \\-\\-b'), ('[options]', '[]'),
                             ('.fi', '.nosuchmacro'), ('not done', 'undone'), ('.SH FILES', '.SH FILE'),
                             ('tool [options]', 'tool [options] ' + 'x' * 70)):
            self.assertTrue(manpages.check(self.HELP, self.PAGE.replace(was, becomes)), becomes)


class Porting(unittest.TestCase):
    def test_missing(self):
        header = 'static inline int\nrdma_post_a(struct x *x)\n{\n\trdma_other(x);\n}\nvoid rdma_b(void);\n'
        self.assertEqual(porting.missing(header, 'rdma_post_a, rdma_b   c()'),
                         ({'rdma_post_a', 'rdma_b'}, []))
        self.assertEqual(porting.missing(header, 'rdma_post_a, rdma_bc')[1], ['rdma_b'])


class Telemetry(unittest.TestCase):
    SOURCE = ('rte_telemetry_register_cmd("/bluebell/qp/list", qp_list,\n\t"QP numbers. "\n'
              '\t"Parameters: device[,first]");\nbb_tel_dict_uint(d, "qpn", qp->qpn);\n'
              '#define ADD(field) x(d, #field)\n\tADD(flushed);\n[LOST] = "drop_icrc",\n'
              '[SOFT_DROP_NONE] = "none",\n[SOFT_DROP_ARP] = "arp",\n')
    GUIDE = ('   * - ``/bluebell/qp/list``\n     - device[,first]\n     - its ``qpn``, '
             '``flushed``, ``drop_icrc``, ``arp``\n')

    def test_telemetry(self):
        self.assertEqual(telemetry.findings(self.GUIDE, self.SOURCE), [])
        for was, becomes in (('qp/list', 'cq/list'), ('[,first]', ''), ('``qpn``', '``cqn``'),
                             ('``flushed``', ''), ('``drop_icrc``', '``drop_crc``'),
                             ('``arp``', '``none``')):
            self.assertTrue(telemetry.findings(self.GUIDE.replace(was, becomes), self.SOURCE), was)
        self.assertTrue(telemetry.findings(self.GUIDE, self.SOURCE.replace('Parameters', 'With')))
        self.assertTrue(telemetry.findings(self.GUIDE, ''))


if __name__ == '__main__':
    unittest.main(verbosity=2)
