#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hw-check as a card's owner runs it, with the installed libibverbs and libmlx5, whose calls to the
kernel end in the software device. Each difference from that device must have a reason.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

# "meson test libmlx5 libmlx5-verbs" runs all of conform.
ROWS = 'device/*,data/rc/*,atomic/*,memory/*,umem/*,key/*,cq/*,srq/*,async/fault/*'
# Areas of conform that a driver skips, with the reason, or that may pass instead.
FAULTS = ('async/fault/',)      # faults of the software device on command; the driver takes it for a card
# must be pinned unless the device is software, which may exceed the limit
MACHINE = ('memory/mr/over-4GiB/',)
NO_CALL = ('atomic/rc/masked', 'atomic/rc/no-masked', 'atomic/uc/masked', 'cq/compression/',
           'cq/no-compression/', 'device/counters/', 'device/no-counters/', 'key/', 'umem/')
ATTR_VERBS = {
    # libibverbs has no call for these
    'bf_size', 'counters', 'cqe_compression', 'masked_atomics', 'masked_atomics_be',
    'max_mkey_pieces', 'max_umem', 'mkey_atomic_align', 'mkey_interleaved', 'mkey_layout',
    # reported by the provider, or derived from the attributes of a QP
    'max_cqe', 'max_inline', 'max_recv_sge', 'max_sge',
    'driver', 'software'}


class HwCheck(unittest.TestCase):
    maxDiff = None

    def check(self, *args):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'report.json')
            done = subprocess.run([sys.executable, SCRIPT, '--build', BUILD, '--suffix', '_libmlx5',
                                   '--report', path, *args], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=500)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn('right: every row that ran holds', done.stdout)
            with open(path) as f:
                return json.load(f)

    def rows(self, found, *areas):
        others = [line for line in found if not line.startswith(areas)]
        self.assertEqual(others, [])
        self.assertEqual([line for line in found if 'fail' in line], [])

    def test_card(self):
        report = self.check('--filter', ROWS, 'mlx5_0')
        found = report['differences']
        # It is not the software device under another name.
        self.assertEqual(report['device']['attr']['software'], 0)
        self.assertTrue(report['complete'])
        self.assertEqual(report['findings'], [])
        self.assertEqual({report['rings'][r] for r in ('no_bf', 'bf_copy=none', 'bf_copy=plain')}, {'works'})
        self.assertLessEqual(set(report['rings'].values()), {'works', 'not on this CPU'})
        tests = report['traffic']['rows']
        self.assertEqual((len(tests), {t['ok'] for t in tests}), (9, {True}))
        # The peer's GID and MAC address are not in the report.
        moved = [bytes.fromhex(c['in']) for c in report['device']['commands'] if c.get('in', '').startswith('0503')]
        self.assertEqual(len(moved), 2)
        for mailbox in moved:
            self.assertEqual((set(mailbox[0x40:0x50]), set(mailbox[0x56:0x5c])), ({0}, {0}))
        self.assertEqual(found['attr'], ['software: 0, software 1'])
        self.assertGreater(len(report['device']['commands']), 15)
        self.assertEqual(found['commands'], [])
        self.assertGreaterEqual(len(report['device']['ops']), 16)
        self.assertEqual(found['ops'], [])
        self.rows(found['mlx5'], *FAULTS, *MACHINE)
        self.rows(found['verbs'], *FAULTS, *MACHINE, *NO_CALL)
        for way in ('mlx5', 'verbs'):
            passed = [row for row, how in report['conform'][way].items() if how == 'pass']
            self.assertGreater(len(passed), 300)

    def test_verbs_alone(self):
        report = self.check('--filter', 'data/rc/write/64*', 'verbs:mlx5_0')
        self.assertEqual(report['device']['attr']['driver'], 'verbs')
        self.assertIsNone(report['conform']['mlx5'])
        differ = {line.split(':')[0] for line in report['differences']['attr']}
        self.assertEqual(differ, ATTR_VERBS)
        self.assertEqual(report['differences']['verbs'], [])


if __name__ == '__main__':
    SCRIPT, BUILD = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
