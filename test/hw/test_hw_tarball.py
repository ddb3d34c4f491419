#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The archive of hw-check: its programs need no library of DPDK or Bluebell, and the check runs from it.

usage: test_hw_tarball.py TARBALL_SH BUILD
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

# Libraries of glibc and rdma-core. Those of the archive itself are in its folder lib.
ALLOWED = re.compile(r'(linux-vdso|ld-linux|lib(c|m|ibverbs|mlx5|rdmacm|nl-3|nl-route-3)\.so)')


class Tarball(unittest.TestCase):
    def test_runs_without_dpdk(self):
        with tempfile.TemporaryDirectory() as folder:
            archive = os.path.join(folder, 'a.tar.gz')
            done = subprocess.run([SCRIPT, BUILD, archive], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)
            subprocess.run(['tar', '-C', folder, '-xf', archive], check=True)
            top = os.path.join(folder, 'bluebell-hw-check')
            for name in ('hw_report', 'conform', 'testrdma', 'bb_perf'):
                text = subprocess.check_output(['ldd', os.path.join(top, 'bin', name)], text=True)
                for line in text.splitlines():
                    if top + '/bin/lib/' not in line:
                        self.assertRegex(line.strip(), ALLOWED)
                    self.assertNotIn('librte', line)
                    self.assertNotIn(BUILD, line)
            path = os.path.join(folder, 'report.json')
            done = subprocess.run([os.path.join(top, 'hw-check'), 'soft0', '--filter',
                                   'data/rc/write/64*,memory/mbuf/*', '--report', path], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False, timeout=240)
            self.assertEqual(done.returncode, 0, done.stdout)
            with open(path) as f:
                report = json.load(f)
            self.assertTrue(report['complete'])
            self.assertEqual(report['findings'], [])
            self.assertEqual({t['ok'] for t in report['traffic']['rows']}, {True})
            self.assertGreater(len(report['unproven']), 30)
            self.assertRegex(report['machine']['libdpdk'], r'^\d+\.\d+')
            self.assertTrue(report['machine']['bluebell'])


if __name__ == '__main__':
    SCRIPT, BUILD = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
