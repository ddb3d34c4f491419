#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The checks of libraries and programs detect violations."""

import os
import subprocess
import sys
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'api'))
import hardening  # noqa: E402
import libraries  # noqa: E402
import symbols  # noqa: E402
from selftest import Fixture, write  # noqa: E402


class Symbols(Fixture):
    def build(self, text, *flags):
        write(self.top, {'a.c': text})
        dpdk = subprocess.check_output(['pkg-config', '--cflags', '--libs', 'libdpdk'],
                                       text=True).split()
        out = self.path('a.so')
        subprocess.check_call(['gcc', '-w', '-fPIC', '-shared', self.path('a.c'), '-o', out,
                               *flags, *dpdk])
        return out

    def test_good(self):
        lib = self.build('#include <rte_eal.h>\nint a(void) {return rte_eal_cleanup();}\n')
        self.assertEqual(symbols.check_needed(lib, {}), [])

    def test_internal(self):
        lib = self.build('#include <rte_mempool.h>\n'
                         'void *a(void) {return rte_mempool_event_callback_register;}\n',
                         '-DALLOW_INTERNAL_API')
        self.assertTrue(symbols.check_needed(lib, {}))

    def test_experimental(self):
        lib = self.build('#include <rte_thread.h>\n'
                         'void *a(void) {return rte_thread_create;}\n',
                         '-DALLOW_EXPERIMENTAL_API')
        self.assertTrue(symbols.check_needed(lib, {}))
        self.assertEqual(symbols.check_needed(lib, {'rte_thread_create': 'a test'}), [])

    def test_exports(self):
        write(self.top, {'bb_a.h': 'int bb_a(void);\nstatic inline int bb_i(void) {return 1;}\n'})
        header = [self.path('bb_a.h')]
        code = 'int bb_a(void) {return 0;}\n'

        def errors(text, unexported=()):
            return symbols.check_exports(self.build(text), header, unexported)[0]

        self.assertEqual(errors(code), [])
        self.assertTrue(errors('int b;\n'))
        self.assertEqual(errors('static int b;\n', ['bb_a']), [])
        self.assertTrue(errors(code, ['bb_a']))
        self.assertTrue(errors(code, ['bb_b']))
        self.assertTrue(errors(code + 'int bb_x(void) {return 0;}\n'))


class Libraries(Fixture):
    MAP = 'BLUEBELL_0 { global: bb_a; local: *; }; BLUEBELL_PRIVATE_7 { global: p; };'
    SOFT = 'extern int p(void); int (*keep)(void) = p; static int f(void) {return p();} int (*g)(void) = f;'

    def build(self, name, text, version_map, *flags):
        write(self.top, {name + '.c': text, name + '.map': version_map})
        out = self.path('lib%s.so' % name)
        subprocess.check_call(['gcc', '-w', '-fPIC', '-shared', self.path(name + '.c'), '-o', out,
                               '-Wl,--version-script=' + self.path(name + '.map'), *flags])
        return out

    def errors(self, lib='int bb_a(void) {return 0;} int p(void) {return 0;}', lib_map=MAP, soft=SOFT,
               soft_map='{ local: *; };'):
        lib = self.build('a', lib, lib_map)
        soft = self.build('b', soft, soft_map, lib)
        return libraries.check_private(lib, soft, '7')

    def test_good(self):
        self.assertEqual(self.errors(), [])

    def test_public_symbol_taken(self):
        self.assertIn('needs bb_a', ' '.join(self.errors(soft=self.SOFT + 'int bb_a(void); int (*h)(void) = bb_a;')))

    def test_private_symbol_not_taken(self):
        self.assertIn('does not need', ' '.join(self.errors(soft='int a;')))

    def test_nothing_private(self):
        self.assertIn('needs nothing', ' '.join(self.errors(soft='int a;')))

    def test_other_release(self):
        self.assertTrue(self.errors(lib_map=self.MAP.replace('_7', '_8')))

    def test_export(self):
        self.assertIn('exports keep', ' '.join(self.errors(soft_map='{ global: keep; local: *; };')))

    def test_environment(self):
        def errors(name):
            return libraries.check_environment(self.build(
                'c', 'char *%s(const char *); char *f(void) {return %s("A");}' % (name, name), '{ global: *; };'))
        self.assertEqual(errors('secure_getenv'), [])
        self.assertTrue(errors('getenv'))

    def test_cards(self):
        dpdk = subprocess.check_output(['pkg-config', '--cflags', '--libs', 'libdpdk'], text=True).split()

        def errors(text):
            return libraries.check_cards(self.build('d', text, '{ global: *; };', *dpdk))
        self.assertEqual(errors('#include <rte_eal.h>\nint a(void) {return rte_eal_cleanup();}\n'), [])
        self.assertTrue(errors('#include <rte_ethdev.h>\nint a(void) {return rte_eth_dev_count_avail();}\n'))


class Hardening(Fixture):
    CODE = ('#include <stdio.h>\n'
            'int main(int n, char **v) {char a[64]; sprintf(a, "%s %d", v[0], n); return puts(a) < 0;}\n')
    FLAGS = ['-O2', '-fPIE', '-fstack-protector-strong', '-D_FORTIFY_SOURCE=2', '-pie', '-Wl,-z,relro',
             '-Wl,-z,now', '-Wl,-z,noexecstack']

    def faults(self, without=None, *more, **how):
        write(self.top, {'a.c': self.CODE})
        subprocess.check_call(['gcc', '-w', *[f for f in self.FLAGS if f != without], *more,
                               self.path('a.c'), '-o', self.path('a')])
        return hardening.check(self.path('a'), **how)

    def test_good(self):
        self.assertEqual(self.faults(), [])

    def test_each_flag_that_is_missing_is_found(self):
        for without, more, word in (
                ('-fstack-protector-strong', ['-fno-stack-protector'], 'stack protector'),
                ('-D_FORTIFY_SOURCE=2', ['-U_FORTIFY_SOURCE'], 'unchecked'),
                ('-pie', ['-no-pie'], 'position-independent'),
                ('-Wl,-z,relro', ['-Wl,-z,norelro'], 'no RELRO'),
                ('-Wl,-z,now', ['-Wl,-z,lazy'], 'bound late'),
                ('-Wl,-z,noexecstack', ['-Wl,-z,execstack'], 'executable')):
            faults = self.faults(without, *more)
            self.assertTrue(any(word in f for f in faults), (without, faults))

    def archive(self, *flags):
        write(self.top, {'a.c': self.CODE})
        subprocess.check_call(['gcc', '-w', '-c', '-O2', *flags, self.path('a.c'), '-o', self.path('a.o')])
        subprocess.check_call(['ar', 'crs', self.path('a.a'), self.path('a.o')])
        return hardening.check(self.path('a.a'))

    def test_archives(self):
        good = ['-fstack-protector-strong', '-D_FORTIFY_SOURCE=2']
        self.assertEqual(self.archive(*good), [])
        self.assertIn('stack protector', str(self.archive('-fno-stack-protector', good[1])))
        self.assertIn('unchecked', str(self.archive(good[0], '-U_FORTIFY_SOURCE')))
        self.assertIn('executable', str(self.archive(*good, '-Wa,--execstack')))

    def test_a_build_without_optimisation(self):
        self.assertEqual(self.faults('-D_FORTIFY_SOURCE=2', '-U_FORTIFY_SOURCE', fortify=False), [])


if __name__ == '__main__':
    unittest.main(verbosity=2)
