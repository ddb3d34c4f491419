#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What conform reports beside the results: the kinds of GIDs, and which rows are assumptions.

usage: report.py CONFORM
"""

import json
import subprocess
import sys
import tempfile
import unittest

CONFORM = ''
ASSUMED = 'window/rc/region-is-held/type-1/not-taken-back'


def conform(*args):
    done = subprocess.run([CONFORM, '--timeout', '30', *args], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError(done.stdout)
    return done.stdout


def kinds(device, row):
    """The kinds of GID that a row has run over, in order."""
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

    def test_assumption_is_named_in_list_and_json(self):
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            conform('--filter', 'window/rc/region-is-held/*', '--json', f.name)
            rows = json.load(f)['devices'][0]['rows']
        self.assertEqual([row['name'] for row in rows if row['assumption']], [ASSUMED])
        self.assertEqual({row['man'] for row in rows if row['assumption']},
                         {'assumption, no public source'})
        self.assertRegex(conform('--list', '--filter', ASSUMED), ASSUMED + r' +assumption, no public source')


if __name__ == '__main__':
    CONFORM = sys.argv.pop(1)
    unittest.main()
