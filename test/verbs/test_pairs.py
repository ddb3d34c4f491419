#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Debian's ibverbs-utils and perftest, unchanged, between two processes, as this user and without rights.

No verdict depends on speed.
"""

import re
import sys

from verbstest import NOBODY, VerbsTest, main

UTILS, PERFTEST = 'ibverbs-utils', 'perftest'
PINGPONG = ('-g', '1', '-n', '50')
PERF = ('-x', '1', '-n', '50')


class Pairs(VerbsTest):
    uid = None

    def utils(self, program, *args):
        self.need(program, UTILS)
        text = self.pair(program, *PINGPONG, *args, uid=self.uid)
        self.assertEqual(len(re.findall(r'^50 iters in ', text, re.M)), 2, text)

    def perf(self, program, *args):
        self.need(program, PERFTEST)
        text = self.pair(program, *PERF, *args, uid=self.uid)
        self.assertRegex(text, re.compile(r'^ *\d+ +50 +\d', re.M))

    def test_devices(self):
        self.need('ibv_devices', UTILS)
        rc, out = self.run_one(self.command('ibv_devices'), self.uid)
        self.assertEqual((rc, out.count('mlx5_0 ')), (0, 2), out)
        rc, out = self.run_one(self.command('ibv_devinfo', '-v'), self.uid)
        self.assertEqual(rc, 0, out)
        for line in ('state:\t\t\tPORT_ACTIVE', 'link_layer:\t\tEthernet', r'GID\[  1\]:\t+::ffff:10\.88\.\d+\.\d+, RoCE v2'):
            self.assertRegex(out, line)
        self.until_removed()

    def test_rc_pingpong(self):
        self.utils('ibv_rc_pingpong')

    def test_rc_pingpong_with_events(self):
        self.utils('ibv_rc_pingpong', '-e')

    def test_uc_pingpong(self):
        self.utils('ibv_uc_pingpong')

    def test_uc_pingpong_with_events(self):
        self.utils('ibv_uc_pingpong', '-e')

    def test_ud_pingpong(self):
        self.utils('ibv_ud_pingpong')

    def test_ud_pingpong_with_events(self):
        self.utils('ibv_ud_pingpong', '-e')

    def test_srq_pingpong(self):
        self.utils('ibv_srq_pingpong')

    def test_srq_pingpong_with_events(self):
        self.utils('ibv_srq_pingpong', '-e')

    def test_write_bw(self):
        self.perf('ib_write_bw', '-s', '4096')

    def test_read_lat(self):
        self.perf('ib_read_lat')

    def test_send_bw(self):
        self.perf('ib_send_bw', '-s', '4096')

    def test_atomic_lat(self):
        self.perf('ib_atomic_lat')


class PairsOfNobody(Pairs):
    uid = NOBODY

    def setUp(self):
        super().setUp()
        self.usable_by_nobody()


if __name__ == '__main__':
    main(sys.argv)
