#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Output of conform besides the results: the kinds of GIDs, and which rows are assumptions.

usage: report.py CONFORM
"""

import fnmatch
import json
import subprocess
import sys
import tempfile
import unittest

CONFORM = ''
ASSUMED = 'window/rc/region-is-held/type-1/not-taken-back'
# Rows that assume the behaviour of a card, and beside each a row with a source.
ASSUMED_ROWS = {
    'window/rc/region-is-held/*': [
        'type-1/not-taken-back', 'type-2/not-taken-back', 'type-2/qp-destroyed', 'type-2/qp-reset'],
    'error/rc/lkey/unknown/*': [
        'cmp_swap/signaled', 'cmp_swap/unsignaled', 'fetch_add/signaled', 'fetch_add/unsignaled'],
    'error/rc/rkey/unknown/*': [],
    'unreliable/uc/error/*/send': ['send'],
    'unreliable/uc/lost/*/send': [],
    'unreliable/ud/error/over-mtu': ['over-mtu'],
    'memory/mr/on-demand/*': ['unmapped'],
    'cq/timestamps/*': ['in-order'],
    'order/rc/aligned-8-bytes-whole/*': ['read', 'write'],
}


def conform(*args):
    done = subprocess.run([CONFORM, '--timeout', '30', *args], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError(done.stdout)
    return done.stdout


def kinds(device, row):
    """Returns the kinds of GID over which a row ran, in order."""
    lines = conform('--device', device, '--filter', row, '-v').split('\n')
    return [line.split(' over ')[1] for line in lines if line.startswith('pass ')]


class Report(unittest.TestCase):
    def test_roce_port_runs_rows_of_data_over_v2_and_then_v1(self):
        self.assertEqual(kinds('soft0', 'data/rc/send/8/signaled/1'), ['RoCE v2', 'RoCE v1'])
        self.assertEqual(kinds('soft0', 'unreliable/ud/datagrams/send/33'), ['RoCE v2', 'RoCE v1'])

    def test_other_rows_run_over_v2_alone(self):
        self.assertEqual(kinds('soft0', 'umem/refused/empty'), ['RoCE v2'])

    def test_infiniband_port_runs_rows_over_its_only_kind(self):
        self.assertEqual(kinds('soft0,link=ib', 'data/rc/send/8/signaled/1'), ['InfiniBand'])

    def test_assumptions_are_named_in_list_and_json(self):
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            conform('--filter', ','.join(ASSUMED_ROWS), '--json', f.name)
            rows = json.load(f)['devices'][0]['rows']
        for pattern, cells in ASSUMED_ROWS.items():
            found = [row for row in rows if fnmatch.fnmatchcase(row['name'], pattern)]
            self.assertTrue(found, pattern)
            assumed = [row['name'] for row in found if row['assumption']]
            self.assertEqual(len(assumed), len(cells), assumed)
            for cell in cells:
                self.assertTrue(any(name.endswith('/' + cell) for name in assumed), cell)
        self.assertEqual({row['man'] for row in rows if row['assumption']},
                         {'assumption, no public source'})
        self.assertRegex(conform('--list', '--filter', ASSUMED), ASSUMED + r' +assumption, no public source')


if __name__ == '__main__':
    CONFORM = sys.argv.pop(1)
    unittest.main()
