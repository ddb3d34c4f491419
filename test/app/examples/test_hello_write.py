#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The first example for newcomers."""

import os
import subprocess
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import CPUS, EAL, LIMIT, AppTest, lcores, main  # noqa: E402

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..', 'examples',
                      'hello_write', 'main.c')


class HelloWrite(AppTest):
    def test_greets(self):
        for args in ([], ['soft0'], ['soft0,progress=inline']):
            res = self.run_program(args)
            self.assertEqual(res.rc, 0, str(res))
            self.assertIn('hello from the other queue pair', res.out)

    def test_device_on_its_own_lcore(self):
        if len(CPUS) < 2:
            self.skipTest('needs two processors')
        res = self.run_program(['soft0,progress=lcore,lcore=%d' % CPUS[1]], lcores(2) + EAL)
        self.assertEqual(res.rc, 0, str(res))
        self.assertIn('hello from', res.out)

    def test_unknown_device(self):
        res = self.run_program(['hard0'])
        self.assertEqual(res.rc, 1, str(res))
        self.assertIn('bb_dev_open', res.err)
        self.assertNotIn('hello from', res.out)

    def test_help(self):
        for args in (['--help'], lcores() + EAL + ['--', '--help']):
            res = subprocess.run([self.program] + args, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, timeout=LIMIT)
            self.assertEqual((res.returncode, res.stderr), (0, ''))
            self.assertTrue(res.stdout.startswith('usage: hello_write'), res.stdout)

    def test_is_short(self):
        with open(SOURCE) as f:
            self.assertLessEqual(len(f.readlines()), 150)


if __name__ == '__main__':
    main()
