#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs without an option for EAL's memory: hugepages if enough are free, otherwise plain pages
and a line that says so.

usage: test_memory.py PROGRAM...
"""

import glob
import os
import re
import subprocess
import sys
import unittest

from apptest import CPUS, LIMIT, free_ports, lcores

PROGRAMS = {os.path.basename(path): path for path in sys.argv[1:]}
LINE = re.compile(r'^(\w+): (\d+) of (\d+) MB of hugepages are free, so EAL gets plain pages '
                  r'\(--no-huge -m (\d+)\), which costs TLB misses\. To reserve', re.M)
SHORT = {'testrdma': ['--op', 'write', '--size', '8', '--duration', '0.01'],
         'hft_pipeline': ['--messages', '2000', '--rate', '0', '--stages', 'feed+gateway,book+strategy+risk']}
if len(CPUS) < 2:
    del SHORT['hft_pipeline']
MB = {'testrdma': 512, 'hft_pipeline': 256, 'bb_perf': 256, 'nvmf_target': 512, 'nvmf_client': 256,
      'connect': 256}


def free_mb():
    mb = 0
    for path in glob.glob('/sys/kernel/mm/hugepages/hugepages-*kB/free_hugepages'):
        with open(path) as f:
            mb += int(f.read()) * int(re.search(r'-(\d+)kB', path).group(1)) // 1024
    return mb


class Memory(unittest.TestCase):
    def start(self, name, args, eal=()):
        free = free_mb()
        proc = subprocess.Popen([PROGRAMS[name], *lcores(2 if name == 'hft_pipeline' else 1), '--no-telemetry', *eal, '--', *args],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        proc.free_mb = free
        self.addCleanup(proc.kill)
        return proc

    def end(self, name, proc, rc=0):
        """Expects the line exactly if fewer hugepages are free than the program needs."""
        out, err = proc.communicate(timeout=LIMIT)
        self.assertEqual(proc.returncode, rc, out + err)
        self.assertNotIn('Requested device', err)  # no PCI device of EAL was probed
        lines = LINE.findall(err)
        mb = str(MB[name])
        if proc.free_mb >= MB[name]:
            self.assertEqual(lines, [], err)
            self.assertNotIn('without hugepages', err)
        else:
            self.assertEqual([(line[0], *line[2:]) for line in lines], [(name, mb, mb)], err)
            self.assertNotIn('without hugepages', err)  # the library does not repeat the program's line
        return out

    def test_program_runs_without_option(self):
        for name, args in SHORT.items():
            with self.subTest(name):
                self.end(name, self.start(name, args))

    def test_option_for_memory_is_obeyed_without_the_line(self):
        for name, args in SHORT.items():
            with self.subTest(name):
                proc = self.start(name, args, ['--no-huge', '-m', '300', '--no-pci'])
                out, err = proc.communicate(timeout=LIMIT)
                self.assertEqual((proc.returncode, LINE.findall(err)), (0, []), out + err)
                self.assertEqual(err.count('runs without hugepages'), 1, err)

    def test_two_programs_run_at_the_same_time(self):
        if 'nvmf_target' not in PROGRAMS:
            self.skipTest('the build has no nvmf_target')
        at = ['--subsystem', 'nqn.2026-01.org.example:disk']
        fabric = 'mem%d' % os.getpid()
        target = self.start('nvmf_target', at + ['--namespace', 'malloc:1M', '--listen', '192.0.2.1:4420',
                                                 '--device', 'soft0,shm=%s,ip=192.0.2.1/24' % fabric])
        while ' port ' not in target.stdout.readline():
            self.assertIsNone(target.poll(), 'nvmf_target has not started')
        client = self.start('nvmf_client', at + ['--ios', '10', '--connect', '192.0.2.1:4420',
                                                 '--device', 'soft0,shm=%s,ip=192.0.2.2/24' % fabric])
        self.end('nvmf_client', client)
        target.terminate()
        self.end('nvmf_target', target)

    def test_connect(self):
        listener = self.start('connect', ['soft0,shm=con%d,ip=192.0.2.1/24' % os.getpid(), 'listen', '127.0.0.1:0'])
        port = re.search(r'at port (\d+)', listener.stdout.readline()).group(1)
        self.end('connect', self.start('connect', ['soft0,shm=con%d,ip=192.0.2.2/24' % os.getpid(), 'connect',
                                                   '127.0.0.1:' + port]))
        self.assertIn('hello from the other process', self.end('connect', listener))

    def test_bb_perf(self):
        """A client without a server: the connection fails after EAL has started."""
        self.end('bb_perf', self.start('bb_perf', ['-P', 'write_lat', '-p', str(free_ports()), '127.0.0.1',
                                                   '--silence', '1']), 1)

    def test_hello_runs_without_any_argument(self):
        for name in {'hello_write', 'hello_cpp'} & PROGRAMS.keys():
            for args, device in ([], 'soft0'), (['--', 'soft3'], 'soft3'):
                with self.subTest(name, args=args):
                    res = subprocess.run([PROGRAMS[name], *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                         text=True, timeout=LIMIT)
                    self.assertEqual(res.returncode, 0, res.stderr)
                    self.assertIn('%s: write 1 completed' % device, res.stdout)
            res = subprocess.run([PROGRAMS[name], '-l', '1023'], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, timeout=LIMIT)
            self.assertIn(res.returncode, (1, 2))
            self.assertNotEqual(res.stderr, '')


if __name__ == '__main__':
    if not PROGRAMS:
        sys.exit(__doc__)
    unittest.main(argv=sys.argv[:1], verbosity=2)
