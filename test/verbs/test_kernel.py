#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Calls of libibverbs whose outcome the kernel decides: a case of verbs_kernel for each."""

import sys

from verbstest import VerbsTest, main

CASES = ('no_reads', 'depths', 'srq_limit', 'pd_of_ah', 'stale_async', 'reused', 'many_events', 'stale_comp',
         'cancelled')


class Kernel(VerbsTest):
    pass


def add(name):
    def test(self):
        rc, out = self.run_one(self.command(self.hostile, name, options=('--quiet',)))
        self.assertEqual(rc, 0, out)
        self.assertIn(name + ': right', out)
    setattr(Kernel, 'test_' + name, test)


for case in CASES:
    add(case)

if __name__ == '__main__':
    main(sys.argv)
