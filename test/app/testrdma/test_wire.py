#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""testrdma with RoCEv2 packets for every message, on a network without and with faults."""

import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import OPS, AppTest, long, main  # noqa: E402

RUN = ['--op', ','.join(OPS), '--size', '8,1025,65536', '--depth', '16', '--verify',
       '--duration', '0.02']


class Wire(AppTest):
    def check(self, device):
        res = self.run_json(['--device', device] + RUN)
        for row in res.json['rows']:
            where = '%s %d' % (row['op'], row['size'])
            self.assertTrue(row['ok'] and row['complete'], where)
            self.assertEqual(row['errors'], 0, where)
            self.assertGreater(row['verified']['bytes'], 0, where)

    def test_packets(self):
        self.check('soft0,wire=1')

    def test_thread(self):
        self.check('soft0,wire=1,progress=thread')

    def test_faults(self):
        self.check('soft0,wire=1,seed=3,tx_drop=0.3,tx_dup=0.5,tx_reorder=0.5,rx_corrupt=0.1')
        self.check('soft0,wire=1,seed=4,rx_drop=0.2,rx_dup=1,rx_reorder=1,tx_delay=20')

    @long
    def test_loss(self):
        """Default retries: only a lack of progress uses them up."""
        for percent, seed in ((1, 5), (10, 6)):
            res = self.run_json(['--device', 'soft0,wire=1,seed=%d,tx_drop=%d' % (seed, percent),
                                 '--op', 'write,send,read,fetch_add', '--size', '8,1025,65536',
                                 '--depth', '16', '--verify', '--duration', '0.1'])
            for row in res.json['rows']:
                where = '%d %%: %s %d' % (percent, row['op'], row['size'])
                self.assertTrue(row['ok'] and row['complete'], where)
                self.assertEqual(row['errors'], 0, where)

    @long
    def test_faults_strike(self):
        for fault in ('tx_drop=100', 'rx_corrupt=100'):
            res = self.run_program(['--device', 'soft0,wire=1,' + fault, '--op', 'write',
                                    '--size', '8', '--duration', '0.01'])
            self.assertEqual(res.rc, 1, str(res))
            self.assertIn('retry', res.out + res.err, str(res))

    def test_options(self):
        for bad, word in (('wire=2', 'wire'), ('wire=1,link=ib', 'link=ib'),
                          ('wire=1,tx_drop=101', 'tx_drop'), ('wire=1,rx_delay=1s', 'rx_delay'),
                          ('wire=1,tx_dup=-1', 'tx_dup'), ('wire=1,rx_corrupt=1.2.3', 'rx_corrupt'),
                          ('tx_drop=1', 'wire=1')):
            res = self.run_program(['--device', 'soft0,' + bad, '--op', 'write'])
            self.assertNotEqual(res.rc, 0, str(res))
            self.assertIn(word, res.err, str(res))


if __name__ == '__main__':
    main()
