#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The checks detect violations: trees and programs that break each rule."""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path += [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder)
             for folder in ('api', 'layout', '../../devtools/suite')]
import circles  # noqa: E402
import headers  # noqa: E402
import includes  # noqa: E402
import length  # noqa: E402
import names  # noqa: E402
import rooms  # noqa: E402
import structs  # noqa: E402
import syndromes  # noqa: E402
import tally  # noqa: E402
import threads  # noqa: E402
import turn  # noqa: E402

# A small tree that follows all rules. Every case below breaks one.
GOOD = {
    'lib/include/bluebell.h': '#include "bb_dev.h"\n#include "bb_sq.h"\n',
    'lib/format/include/bb_wqe.h': '#include <stdint.h>\n',
    'lib/format/bb_prm.h': '#include <stdint.h>\n',
    'lib/format/bb_wqe.c': '#include "bb_wqe.h"\n',
    'lib/queue/include/bb_barrier.h': '#include <stdint.h>\n',
    'lib/queue/include/bb_sq.h': '#include "bb_barrier.h"\n#include "bb_wqe.h"\n',
    'lib/dev/include/bb_dev.h': '#include <stdint.h>\n',
    'lib/dev/bb_driver.h': '#include "bb_dev.h"\n#include "bb_sq.h"\n',
    'lib/dev/bb_dev.c': '#include <rte_malloc.h>\n#include "bb_driver.h"\n',
    'lib/loop/bb_loop.c': '#include "bb_dev.h"\n',
    'drivers/mlx5/mlx5_cmd.h': '#include "bb_dev.h"\n',
    'drivers/mlx5/mlx5_dev.c': '#include "bb_driver.h"\n#include "mlx5_cmd.h"\n',
    'drivers/mlx5/dv/mlx5_cmd_dv.c': '#include <infiniband/mlx5dv.h>\n#include "mlx5_cmd.h"\n',
    'drivers/soft/core/soft.h': '#include "bb_prm.h"\n#include "mlx5_cmd.h"\n',
    'drivers/soft/soft.c': '#include "bb_barrier.h"\n#include "soft.h"\n',
    'app/tool/tool.h': '#include <bluebell.h>\n',
    'app/tool/main.c': '#include "bb_dev.h"\n#include "tool.h"\n',
    'examples/hello/hello.c': '#include <bluebell.h>\n',
}
PUBLIC = ['lib/include/bluebell.h', 'lib/format/include/bb_wqe.h', 'lib/queue/include/bb_barrier.h',
          'lib/queue/include/bb_sq.h', 'lib/dev/include/bb_dev.h']

BAD_INCLUDES = {
    'format includes queue': ('lib/format/include/bb_wqe.h', '"bb_sq.h"'),
    'queue includes dev': ('lib/queue/include/bb_sq.h', '"bb_dev.h"'),
    'dev includes a driver': ('lib/dev/bb_dev.c', '"mlx5_cmd.h"'),
    'dev includes a driver by path': ('lib/dev/bb_dev.c', '"../../drivers/soft/core/soft.h"'),
    'dev includes ethdev': ('lib/dev/bb_dev.c', '<rte_ethdev.h>'),
    'dev includes verbs': ('lib/dev/bb_dev.c', '<infiniband/verbs.h>'),
    'dev includes librdmacm': ('lib/dev/bb_dev.c', '<rdma/rdma_cma.h>'),
    'loop includes a driver': ('lib/loop/bb_loop.c', '"mlx5_cmd.h"'),
    'loop includes verbs': ('lib/loop/bb_loop.c', '<infiniband/verbs.h>'),
    'mlx5 includes soft': ('drivers/mlx5/mlx5_dev.c', '"soft.h"'),
    'mlx5 outside the command interface includes verbs':
        ('drivers/mlx5/mlx5_dev.c', '<infiniband/mlx5dv.h>'),
    'a driver header of DPDK': ('drivers/mlx5/mlx5_dev.c', '<bus_pci_driver.h>'),
    'soft includes the send queue': ('drivers/soft/soft.c', '"bb_sq.h"'),
    'soft includes the driver interface': ('drivers/soft/core/soft.h', '"bb_driver.h"'),
    'soft includes verbs': ('drivers/soft/soft.c', '<infiniband/verbs.h>'),
    'soft gets the send queue through the command interface':
        ('drivers/mlx5/mlx5_cmd.h', '"bb_sq.h"'),
    'an app includes a private header': ('app/tool/main.c', '"bb_driver.h"'),
    'an app includes a driver': ('app/tool/tool.h', '"mlx5_cmd.h"'),
    'an example includes a private header': ('examples/hello/hello.c', '<bb_prm.h>'),
    'a public header includes a private one': ('lib/dev/include/bb_dev.h', '"bb_driver.h"'),
    'an unknown header in quotes': ('lib/dev/bb_dev.c', '"nowhere.h"'),
}


def write(top, files):
    for path, text in files.items():
        full = os.path.join(top, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, 'w') as f:
            f.write(text)


class Fixture(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.top)

    def path(self, name):
        return os.path.join(self.top, name)


FENCES = ['__atomic_thread_fence(__ATOMIC_SEQ_CST)', 'rte_wmb()', 'rte_smp_mb()', 'rte_io_rmb()',
          '__sync_synchronize()', '_mm_sfence()', '__asm__ volatile("dmb ishst" ::: "memory")',
          '__asm__ volatile("mfence" ::: "memory")']


class Includes(Fixture):
    def test_good_tree(self):
        write(self.top, GOOD)
        self.assertEqual(includes.check(self.top, PUBLIC), ([], len(GOOD)))

    def test_places_of_public_headers(self):
        for path, public, words in (('lib/dev/include/bb_own.h', PUBLIC, 'is not installed'),
                                    ('lib/dev/bb_own.h', PUBLIC + ['lib/dev/bb_own.h'], 'is the folder include/'),
                                    ('lib/dev/bb_own.h', PUBLIC + PUBLIC[-1:], 'is listed twice')):
            with self.subTest(words):
                shutil.rmtree(self.top)
                write(self.top, dict(GOOD, **{path: ''}))
                errors, _ = includes.check(self.top, public)
                self.assertEqual(len(errors), 1, errors)
                self.assertIn(words, errors[0])

    def test_fences(self):
        """Fences are in one header only."""
        for fence in FENCES:
            code = 'static inline void f(void) {%s;}\n' % fence
            for path, bad in (('lib/queue/include/bb_barrier.h', 0), ('lib/dev/bb_dev.c', 1), ('drivers/soft/soft.c', 1)):
                with self.subTest(fence=fence, path=path):
                    write(self.top, GOOD)
                    write(self.top, {path: GOOD[path] + code})
                    self.assertEqual(len(includes.check(self.top, PUBLIC)[0]), bad)

    def test_each_violation(self):
        for what, (path, name) in BAD_INCLUDES.items():
            with self.subTest(what):
                write(self.top, GOOD)
                write(self.top, {path: GOOD[path] + '#  include ' + name + '\n'})
                errors, _ = includes.check(self.top, PUBLIC)
                self.assertTrue(errors)


ROOMS = {
    'drivers/soft/meson.build': "# Top first.\nsubdir('cmd')\nsubdir('mem')\nsubdir('core')\n",
    'drivers/soft/cmd/meson.build': '# Commands.\n# May call: mem, core.\nsources += 1\n',
    'drivers/soft/mem/meson.build': '# Memory.\n# May call: core.\n'
                                     "soft_sources += files(\n  'mem.c')\n"
                                     "if option\n  soft_sources += files('lost.c')\n",
    'drivers/soft/core/meson.build': '# State. May call: nothing.\n',
    'drivers/soft/cmd/cmd.c': 'int mem(void);\nint cmd(void);\nint cmd(void) {return mem();}\n'
                              '#include "core.h"\n',
    'drivers/soft/mem/mem.h': '',
    'drivers/soft/mem/mem.c': 'int core(void);\nint mem(void) {return core();}\n',
    'drivers/soft/core/core.h': '',
    'drivers/soft/core/core.c': 'int core(void) {return 1;}\n',
}


class Rooms(Fixture):
    def errors(self, change=()):
        files = dict(ROOMS, **dict(change))
        write(self.top, files)
        objects = os.path.join(self.top, 'objects')
        shutil.rmtree(objects, ignore_errors=True)
        os.mkdir(objects)
        for name in files:
            if name.endswith('.c') and not name.endswith('lost.c'):
                folders = [f for f in glob.glob(self.path('drivers/soft/*')) if os.path.isdir(f)]
                subprocess.check_call(['gcc', '-w', '-c', self.path(name), '-o',
                                       os.path.join(objects, name.replace('/', '_') + '.o'),
                                       *('-I' + f for f in folders)])
        return rooms.check(self.top, [objects])[0]

    def test_good(self):
        self.assertEqual(self.errors(), [])

    def test_call_upward(self):
        code = {'drivers/soft/core/core.c': 'int mem(void);\nint core(void) {return mem();}\n'}
        self.assertTrue(self.errors(code))

    def test_header_upward(self):
        self.assertTrue(self.errors({'drivers/soft/core/core.h': '#include "mem.h"\n'}))

    def test_heads(self):
        """The head names exactly the rooms that are called, all of them below."""
        for text in ('# Memory.\n', '# Memory. May call: nothing.\n', '# Memory. May call: core, cmd.\n',
                     '# Memory. May call: core, kitchen.\n'):
            with self.subTest(text):
                self.assertTrue(self.errors({'drivers/soft/mem/meson.build': text}))
        self.assertTrue(self.errors({'drivers/soft/cmd/cmd.c': 'int cmd(void) {return 1;}\n'}))

    def test_source_without_object(self):
        self.assertEqual(self.errors({'drivers/soft/mem/lost.c': ''}), [])
        self.assertTrue(self.errors({'drivers/soft/mem/lost.c': '', 'drivers/soft/mem/meson.build':
                                     "# Memory. May call: core.\nsoft_sources += files(\n  'mem.c',\n  'lost.c')\n"}))


class Circles(Fixture):
    def errors(self, sources, prefix=None):
        info = {'directories': {'source': self.top}}
        commands_of = [{'file': os.path.join('..', name), 'output': 'tool.p/%s.o' % name.replace('/', '_')}
                       for name in sources]
        write(self.top, dict(sources, **{'build/meson-info/meson-info.json': json.dumps(info),
                                         'build/compile_commands.json': json.dumps(commands_of)}))
        os.makedirs(self.path('build/tool.p'), exist_ok=True)
        for command in commands_of:
            subprocess.check_call(['gcc', '-w', '-c', os.path.join(self.path('build'), command['file']),
                                   '-o', os.path.join(self.path('build'), command['output'])])
        return circles.check(self.path('build'), [self.path('build/tool')], prefix)[0]

    MAIN = 'int parse(void);\nint verbose;\nint main(void) {return parse();}\n'

    def test_good(self):
        self.assertEqual(self.errors({'main.c': self.MAIN, 'parse.c': 'int parse(void) {return 0;}\n'}), [])

    def test_variable_of_the_caller(self):
        self.assertTrue(self.errors({'main.c': self.MAIN,
                                     'parse.c': 'extern int verbose;\nint parse(void) {return verbose;}\n'}))

    def test_circle_of_three(self):
        sources = {name + '.c': 'int %s(void);\nint %s(void) {return %s();}\n' % (after, name, after)
                   for name, after in (('a', 'b'), ('b', 'c'), ('c', 'a'))}
        self.assertTrue(self.errors(dict(sources, **{'d.c': 'int a(void);\nint main(void) {return a();}\n'})))

    def test_folders(self):
        sources = {'lib/mem/a.c': 'int q(void);\nint a(void) {return q();}\nint b;\n',
                   'lib/dev/b.c': 'extern int b;\nint c(void) {return b;}\n',
                   'lib/dev/c.c': 'int q(void) {return 0;}\n'}
        self.assertEqual(self.errors(sources), [])
        self.assertTrue(self.errors(sources, 'lib/'))
        self.assertEqual(self.errors(sources, 'drivers/'), [])


TURN = '''
One turn of the engine
----------------------

1. ``engine/a.c``: ``soft_engine_progress()``, ``run()``. The poll.
2. ``lib/b.h``:
   ``helper()``. Helps.

Folders of the software device
------------------------------

   * - ``cmd``
     - Commands
     - mem, core
   * - ``mem``
     - Memory
     - core
   * - ``core``
     - State
     - nothing

Another heading
---------------

3. ``none.c``: ``none()``. Of another list.
'''
PROFILE = '''
fl=(1) ../drivers/soft/engine/a.c
fn=(1) soft_engine_progress
12 4
cfi=(2) ../drivers/soft/core/never.c
cfn=(2) never
calls=1 5
13 100
fi=(3) /build/lib/queue/b.h
+2 1
fe=(1)
* 1
fl=(4) /usr/include/string.h
7 1
'''


class Turn(Fixture):
    def errors(self, text=TURN, change=()):
        write(self.top, ROOMS)
        write(self.top, dict({
            'drivers/soft/engine/a.c': 'static void\nrun(void)\n{\n\thelper();\n}\n\n'
                                       'void\nsoft_engine_progress(void *e)\n{\n\trun();\n}\n',
            'lib/b.h': 'static inline int\nhelper(void)\n{\n\treturn 1;\n}\n'}, **dict(change)))
        return turn.check_path(self.top, turn.read_path(text)) + turn.check_rooms(self.top, text)

    def test_good(self):
        self.assertEqual(self.errors(), [])
        self.assertEqual(turn.read_path(TURN),
                         [('engine/a.c', ['soft_engine_progress', 'run']), ('lib/b.h', ['helper'])])

    def test_each_difference(self):
        for old, new in (('engine/a.c', 'engine/b.c'), ('``run()``', '``walk()``'),
                         ('``soft_engine_progress()``, ', ''),
                         ('``lib/b.h``:\n   ``helper', '``engine/a.c``: ``soft_engine_progress'),
                         ('- Memory', '- Memories'),
                         ('mem, core', 'core'), ('   * - ``core``\n     - State\n     - nothing\n', '')):
            with self.subTest(old):
                self.assertTrue(self.errors(TURN.replace(old, new, 1)))

    def test_function_that_is_not_called(self):
        self.assertTrue(self.errors(change={
            'drivers/soft/engine/a.c':
                'void\nrun(void)\n{\n}\n\nvoid\nsoft_engine_progress(void *e)\n{\n\trun();\n}\n'}))

    def test_too_many_sources(self):
        items = ''.join('%d. ``engine/f%d.c``: ``run()``. More.\n' % (i, i) for i in range(3, 20))
        text = TURN.replace('\nFolders', items + '\nFolders', 1)
        more = {'drivers/soft/engine/f%d.c' % i: 'void\nrun(void)\n{\n}\n' for i in range(3, 20)}
        self.assertEqual(len(self.errors(text, more)), 1)

    def test_sources_of_a_profile(self):
        self.assertEqual(turn.sources_of(PROFILE), {'engine/a.c', 'lib/queue/b.h'})


class Headers(Fixture):
    def errors(self, text):
        write(self.top, {'a.h': text})
        return headers.check([self.path('a.h')])[0]

    def test_good(self):
        self.assertEqual(self.errors('#ifndef A\n#define A\nstruct a { int x; };\n#endif\n'), [])

    def test_needs_another_header(self):
        self.assertTrue(self.errors('#pragma once\nstatic inline uint32_t a(void) {return 1;}\n'))

    def test_no_include_guard(self):
        self.assertTrue(self.errors('struct a { int x; };\n'))

    def test_c_only(self):
        self.assertTrue(self.errors('#pragma once\n#include <stdlib.h>\n'
                                    'static inline int *a(void) {return malloc(4);}\n'))

    def test_warning(self):
        self.assertTrue(self.errors('#pragma once\nstatic inline void a(int unused) {}\n'))

    def test_private_header(self):
        write(self.top, {'b.h': ''})
        self.assertTrue(self.errors('#pragma once\n#include "b.h"\n'))


class Length(Fixture):
    def errors(self, lines, reasons):
        write(self.top, {'lib/a.c': '\n' * lines, 'test/check/layout/long-files': reasons})
        return length.check(self.top)[0]

    def test_lengths(self):
        self.assertEqual(self.errors(600, ''), [])
        self.assertTrue(self.errors(601, ''))
        self.assertTrue(self.errors(601, 'lib/a.c:\n'))
        self.assertEqual(self.errors(601, 'lib/a.c: a table\n'), [])
        self.assertTrue(self.errors(600, 'lib/a.c: a table\n'))
        self.assertTrue(self.errors(600, 'lib/b.c: a table\n'))


class Syndromes(Fixture):
    def test_bases(self):
        for base in ('0xbb020000u', '0xbb010000u', '0xbb020001u', '0xbb02u'):
            write(self.top, {'drivers/a.c': '#define SOFT_SYNDROME 0xbb010000u\n',
                             'drivers/b.c': '#define FRONT_SYNDROME %s\n' % base})
            self.assertEqual(not syndromes.check(self.top)[0], base == '0xbb020000u', base)


class Threads(unittest.TestCase):
    def found(self, suite, text, *args, env=None):
        tests = [{'name': 't', 'suite': ['bluebell:' + s for s in suite], 'cmd': ['/b/t', *args],
                  'env': env or {}}]
        targets = [{'type': 'executable', 'filename': ['/b/t'], 'target_sources': [
            {'sources': ['/src/test/unit/t.c']}]}]
        return threads.tests_without(tests, targets, lambda path: text)

    def test_starts(self):
        for text in ('pthread_create(&t, NULL, f, NULL);', '"soft0,progress=thread"', '"progress=lcore,lcore=1"'):
            self.assertEqual(self.found(['unit'], text), ['t'])
            self.assertEqual(self.found(['unit', 'threads'], text), [])
            self.assertEqual(self.found(['app'], text), [])
        self.assertEqual(self.found(['model'], ''), [])
        self.assertEqual(self.found(['model'], '', '--device', 'soft0,progress=thread'), ['t'])
        self.assertEqual(self.found(['model'], '', env={'BB_VARIANT': 'thread'}), ['t'])


class Names(unittest.TestCase):
    CODE = 'int bb_x_open(int a);\n#define BB_X_MAX 3\n'

    def test_names(self):
        good = 'bb_x_open() of bb_x.h takes BB_X_MAX or any BB_X_, and bb_other is no call'
        self.assertEqual(names.findings(good, {'bb_x.h'}, self.CODE), [])
        for bad, name in (('see bb_y.h', 'bb_y.h'), ('bb_x_shut() ends it', 'bb_x_shut'),
                          ('BB_X_MIN', 'BB_X_MIN'), ('all of BB_Y_', 'BB_Y_')):
            self.assertEqual(names.findings(good + ': ' + bad, {'bb_x.h'}, self.CODE), [name])

    def test_guides(self):
        exports = '{\nglobal:\n\tbb_a;\n\tbb_b_v;\n\tbb_x_slow;\n};\n'
        self.assertEqual(names.unmentioned(exports, 'bb_a() and bb_b', {'bb_x_*': 'inside'}), ([], []))
        self.assertEqual(names.unmentioned(exports, 'bb_aa() and bb_b', {}), (['bb_a', 'bb_x_slow'], []))
        self.assertEqual(names.unmentioned(exports, 'bb_a, bb_b, bb_x_slow', {'bb_x_*': 'inside'}),
                         ([], ['bb_x_*']))


class Structs(unittest.TestCase):
    CODE = 'struct bb_a {\n\tuint32_t size;\n\tint n;\n};\nstruct bb_b {\n\tint n;\n};\nint bb_a_query(struct bb_a *a);\n'

    def test_struct_without_size_needs_a_reason(self):
        for call, found in (('int bb_b_query(int x, struct bb_b *b);', ['bb_b']),
                            ('int bb_b_use(const struct bb_b *b);', []),
                            ('int bb_b_query(struct bb_b *b);\nint bb_b_create(struct bb_b **b);', [])):
            code = self.CODE + call
            self.assertEqual(structs.unsized(code), found)
            self.assertEqual(len(structs.check_sizes(code, {})), len(found))
            self.assertEqual(len(structs.check_sizes(code, {'bb_b': 'why'})), 1 - len(found))


class SuiteTest(unittest.TestCase):
    """Counts of devtools/test for a test that meson ran."""

    def counts(self, result, err, out=''):
        t = tally.Tally()
        t.meson_test('gcc', {'name': 'bluebell:app / disk', 'result': result, 'stdout': out, 'stderr': err})
        return t, (t.passed, t.failed, t.skipped)

    def test_function_skipped(self):
        """Output of unittest, of a program that runs another one in between."""
        class Tests(unittest.TestCase):
            def test_good(self):
                pass

            def test_noisy(self):
                """With a line of other text."""
                f.write('EAL: (noise)\nskipped: by the program\n')
                self.skipTest("it isn't here")

            @unittest.skip('needs "root"')
            def test_root(self):
                pass

        with tempfile.TemporaryFile('w+') as f:
            tests = unittest.defaultTestLoader.loadTestsFromTestCase(Tests)
            unittest.TextTestRunner(f, verbosity=2).run(tests)
            f.seek(0)
            text = f.read()
        t, counts = self.counts('OK', text)
        self.assertEqual(counts, (1, 0, 2), text)
        self.assertEqual(t.reasons, {'gcc/app/disk/test_noisy': "it isn't here",
                                     'gcc/app/disk/test_root': 'needs "root"'})

    def test_counts(self):
        for result, text, counts in (
                ('OK', 'Ran 3 tests in 1s\n\nOK\n', (3, 0, 0)),
                ('OK', 'Ran 3 tests in 1s\n\nOK (skipped=2)\n', (1, 0, 2)),
                ('FAIL', 'Ran 4 tests in 1s\n\nFAILED (failures=1, errors=1, skipped=1)\n', (1, 2, 1)),
                ('OK', 'Ran 0 tests in 1s\n\nOK\n', (0, 1, 0)),
                ('TIMEOUT', 'test_a (x.T.test_a) ... ok\n', (0, 1, 0)),
                ('OK', 'whatever\n', (1, 0, 0)),
                ('OK', '[ SKIPPED  ] one\n[  PASSED  ] 3 test(s).\n', (3, 0, 1)),
                ('FAIL', '[  PASSED  ] 3 test(s).\n[  FAILED  ] 2 test(s)\n', (3, 2, 0))):
            self.assertEqual(self.counts(result, text)[1], counts, text)
        t, counts = self.counts('SKIP', '', 'skipped: no disk\n')
        self.assertEqual((counts, t.reasons), ((0, 0, 1), {'gcc/app/disk': 'no disk'}))


if __name__ == '__main__':
    unittest.main(verbosity=2)
