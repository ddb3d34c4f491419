#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hw-check on software devices: its findings, and that it finds differences."""

import functools
import json
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROWS = 'device/query*,data/rc/write/64*,data/rc/send_imm/*'


@functools.lru_cache(maxsize=None)
def run_check(device):
    """Returns hw-check's exit status, its output and the text of its report."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'report.json')
        done = subprocess.run([sys.executable, SCRIPT, '--build', BUILD, '--filter', ROWS, '--report', path, device],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        if not os.path.exists(path):
            return done.returncode, done.stdout, None
        with open(path) as f:
            return done.returncode, done.stdout, f.read()


class HwCheck(unittest.TestCase):
    def check(self, device, rc):
        status, out, report = run_check(device)
        self.assertEqual(status, rc, out)
        return json.loads(report), out

    def test_same(self):
        report, text = self.check('soft0', 0)
        self.assertEqual({k: v for k, v in report['differences'].items() if v}, {}, text)
        self.assertIn('right: every row that ran holds', text)
        self.assertGreater(len(report['device']['commands']), 15)
        ops = {op['name']: op for op in report['device']['ops']}
        self.assertGreaterEqual(len(ops), 16)
        # Computed by hand: opcode 0x08 RDMA_WRITE of block 0, three segments, signalled; a data
        # segment of 48 bytes.
        wqe = bytes.fromhex(ops['write']['wqe'])
        self.assertEqual(wqe[:4], b'\0\0\0\x08')
        self.assertEqual(wqe[7], 3)
        self.assertEqual(wqe[11], 0x08)
        self.assertEqual(len(wqe), 48)
        self.assertEqual(wqe[32:36], b'\0\0\0\x30')
        self.assertEqual(ops['wrong_rkey']['sender']['status'], 'remote access error')
        self.assertEqual(ops['send_imm']['receiver']['status'], 'success')
        passed = [r for r in report['conform']['mlx5'].values() if r == 'pass']
        self.assertGreater(len(passed), 10)

    def test_other_capabilities(self):
        report, text = self.check('soft0,no_atomic', 0)
        self.assertIn('atomics: 0, software 1', report['differences']['attr'], text)
        self.assertEqual(report['differences']['ops'], [], text)

    def test_wrong_rows(self):
        """A device with a seeded defect that some immediates show."""
        with open(os.path.join(BUILD, 'meson-info', 'intro-buildoptions.json')) as f:
            if not any(o['name'] == 'defects' and o['value'] for o in json.load(f)):
                self.skipTest('the build has no seeded defects: configure it with -Ddefects=true')
        report, text = self.check('soft0,defect=imm_swap', 1)
        self.assertIn('FAILED: conform on mlx5', text)
        self.assertTrue(report['differences']['mlx5'], text)

    def test_wrong_bytes(self):
        report, _ = self.check('soft0', 0)
        ours = report['device']
        soft = json.loads(json.dumps(ours))
        op = next(o for o in ours['ops'] if o['name'] == 'send_imm')
        for part, key, byte, where in ((op, 'wqe', 15, 'send_imm, WQE at 0x0c'),
                                       (op['receiver'], 'cqe', 36,
                                        'send_imm, CQE of the receiver at 0x24'),
                                       (op['sender'], 'cqe', 47,
                                        'send_imm, CQE of the sender at 0x2c')):
            was = part[key]
            part[key] = was[:2 * byte] + '%02x' % (int(was[2 * byte:2 * byte + 2], 16) ^ 1) + \
                was[2 * byte + 2:]
            found = list(compare.compare_ops(ours, soft))
            self.assertEqual(len(found), 1, found)
            self.assertTrue(found[0].startswith(where), found)
            part[key] = was
        # Object numbers of a run do not count as differences.
        op['wqe'] = op['wqe'][:8] + '00abcd' + op['wqe'][14:]
        self.assertEqual(list(compare.compare_ops(ours, soft)), [])

    def test_no_such_device(self):
        done = subprocess.run([sys.executable, SCRIPT, '--build', BUILD, 'mlx5_99'],
                              stdout=subprocess.PIPE, text=True, timeout=300)
        self.assertEqual(done.returncode, 1)
        self.assertIn('mlx5_99 cannot be used: there is no mlx5_99', done.stdout)
        self.assertNotIn('conform', done.stdout)

    def test_look(self):
        """Queries of devtools/hw-check before it builds: names in /sys, or bus addresses."""
        self.enterContext(mock.patch.object(host, 'bus', lambda name: '0000:3b:00.0' if name == 'mlx5_0' else None))
        self.enterContext(mock.patch.object(host, 'devices', lambda: ['mlx5_0', 'rxe0']))
        for name in ('mlx5_0', 'verbs:mlx5_0', 'verbs:rxe0', '0000:3b:00.0', 'soft0,no_dm',
                     'verbs:soft0'):
            self.assertIsNone(host.missing(name), name)
        self.assertEqual(host.missing('verbs:mlx5_1'), 'there is no mlx5_1 here, but mlx5_0, '
                         'rxe0')
        self.assertIsNotNone(host.missing('0000:3b:00.1'))
        host.devices = lambda: []
        self.assertIn('load mlx5_ib', host.missing('mlx5_0'))

    def test_resizing_is_asked_of_cards_by_devx_only(self):
        drivers = {'rocep59s0': 'mlx5_core', '0000:3b:00.0': 'mlx5_core', 'rxe0': None}
        self.enterContext(mock.patch.object(host, 'kernel_driver', drivers.get))
        for name in ('mlx5_0', 'rocep59s0', '0000:3b:00.0'):
            self.assertEqual(host.with_resize(name), name + ',cq_resize')
        self.assertEqual(host.with_resize('mlx5_0,no_bf'), 'mlx5_0,no_bf,cq_resize')
        for name in ('rxe0', 'soft0', 'soft0,no_dm', 'verbs:mlx5_0', 'mlx5_0,cq_resize'):
            self.assertEqual(host.with_resize(name), name)

    def test_brief(self):
        """Rows that lack a capability are counted; all others are listed."""
        ours = {'data/a': 'skip', 'data/b': 'skip', 'data/c': 'fail', 'mw/a': 'skip', 'mw/b': 'pass'}
        soft = {'data/a': 'pass', 'data/b': 'pass', 'data/c': 'pass', 'mw/a': 'fail', 'mw/b': 'skip'}
        self.assertEqual(list(compare.brief(compare.compare_rows(ours, soft, 'verbs'))), [
            'data/c: verbs fail, software pass', 'mw/a: verbs skip, software fail',
            'mw/b: verbs pass, software skip',
            'data/*: 2 skip for want of an ability that software has'])

    def test_commands(self):
        """A command that the device refuses is listed."""
        ours = {'commands': [{'call': 'general', 'in': '0a00', 'out': '03', 'ret': -121}]}
        soft = {'commands': [{'call': 'general', 'in': '0a00', 'out': '00', 'ret': 0}]}
        self.assertEqual(list(compare.compare_commands(soft, soft)), [])
        self.assertEqual(len(list(compare.compare_commands(ours, soft))), 1)


if __name__ == '__main__':
    SCRIPT, BUILD = sys.argv[1:3]
    sys.path.insert(0, os.path.dirname(SCRIPT))
    import compare  # pylint: disable=import-error
    import host     # pylint: disable=import-error
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
