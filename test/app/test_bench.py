#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The bench runs every case, its output can be read, and posts stay within a number of
instructions. What a machine under load measures is not judged here."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from apptest import CPUS, EAL, AppTest, lcores, main

INSTRUCTIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'devtools',
                            'instructions')
CASES = ['post', 'post_poll', 'poll', 'inline', 'lcore', 'lkey', 'bandwidth', 'qps']
# Per posted write and per polled completion, measured with gcc 12 -O2, and a tenth on top.
MOST = {
    'inline8/batch1/all': {'post': 140, 'poll': 120},
    'inline8/batch16/all': {'post': 80, 'poll': 68},
    'inline8/batch16/last': {'post': 78, 'poll': 120},
    'inline8/batch32/all': {'post': 78, 'poll': 66},
    'sge64/batch1/all': {'post': 124, 'poll': 120},
    'sge64/batch32/all': {'post': 65, 'poll': 66},
}


class Bench(AppTest):
    def test_help_and_lists(self):
        res = self.run_program(['--help'])
        self.assertEqual(res.rc, 0, str(res))
        for word in ('--case', '--repeat', '--quick', '--csv', '--json', '--list', 'L is the'):
            self.assertIn(word, res.out)
        res = self.run_program(['--list'])
        self.assertEqual([line.split()[0] for line in res.out.splitlines()], CASES, str(res))
        res = self.run_program(['--list-kernels'])
        self.assertEqual(res.rc, 0, str(res))
        self.assertLessEqual(set(MOST), set(res.out.split()))

    def test_usage(self):
        self.usage_error(['--case', 'post,nothing'], 'nothing', '--list')
        self.usage_error(['--repeat', '0'], '--repeat', '1001')
        self.usage_error(['--repeat', 'often'], '--repeat', 'often')
        self.usage_error(['--colour'], '--help')
        self.usage_error(['post'], '"post"', '--help')
        self.usage_error(['--instructions', '32'], '--kernel', '--side')

    def test_without_eal_options(self):
        """The three cases that need no EAL; their options need no "--"."""
        proc = subprocess.run([self.program, '--quick', '--case', 'post,post_poll,poll'],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(proc.returncode, 0, proc.stderr)
        self.assertNotIn('EAL', proc.stdout + proc.stderr)
        self.assertIn('post/inline8/batch32', proc.stdout)

    def test_every_case(self):
        cpus = min(2, len(CPUS))
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            res = self.run_program(['--quick', '--csv', '--json', f.name], lcores(cpus) + EAL)
            self.assertEqual(res.rc, 0, str(res))
            with open(f.name) as again:
                result = json.load(again)
        self.assertGreater(result['core_ghz'], 0.1)
        rows = {row['case']: row for row in result['rows']}
        for case in CASES:
            self.assertTrue([r for r in rows if r.split('/')[0] == case], case + ' has no row')
        for name, row in rows.items():
            if row['verdict'] == 'skipped':
                continue
            self.assertIn(row['verdict'], ('reached', 'missed', 'not judged', ''), name)
            self.assertGreater(row['ours'], 0, name)
            # A floor out of bounds gives no ratio, and then a reason.
            if row['ratio'] is None and row['floor'] > 0:
                self.assertIn('recorded', row['why'], name)
        if cpus == 2:
            for name in ('lcore/latency', 'lcore/batch32/all', 'poll/cqe'):
                self.assertGreater(rows[name]['l_before'], 0, name)
                self.assertGreater(rows[name]['l_after'], 0, name)
        csv = [line for line in res.out.splitlines() if line.startswith('post/')
               and line.count(',') == 10]
        self.assertEqual(len(csv), 6, res.out)

    def test_json_not_writable(self):
        res = self.run_program(['--quick', '--case', 'post', '--json', '/nonexistent/x.json'])
        self.assertEqual(res.rc, 1, str(res))
        self.assertIn('/nonexistent/x.json', res.err)


@unittest.skipIf(shutil.which('valgrind') is None, 'valgrind is not installed')
class Instructions(AppTest):
    def instructions(self, limits, kernels):
        with tempfile.NamedTemporaryFile('w', suffix='.json') as f:
            json.dump(limits, f)
            f.flush()
            return subprocess.run([sys.executable, INSTRUCTIONS, '--bench', self.program, '--max',
                                   f.name, '--kernel', ','.join(kernels)],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_bounds(self):
        proc = self.instructions(MOST, MOST)
        self.assertEqual(proc.returncode, 0, proc.stdout + proc.stderr)
        for name in MOST:
            self.assertIn(name, proc.stdout)

    def test_bound_that_is_missed(self):
        name = 'inline8/batch32/all'
        proc = self.instructions({name: {'post': 20, 'poll': 1000}}, [name])
        self.assertEqual(proc.returncode, 1, proc.stdout + proc.stderr)
        self.assertIn(name, proc.stderr)
        self.assertNotIn('poll', proc.stderr)


if __name__ == '__main__':
    main()
