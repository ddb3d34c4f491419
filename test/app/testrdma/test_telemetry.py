#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's own client, dpdk-telemetry.py, queries a running testrdma: the answers are JSON, are consistent
with each other and the program, and advance with the traffic.
"""

import json
import os
import shutil
import subprocess
import sys
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import LIMIT, SKIP, AppTest, lcores, main  # noqa: E402

CLIENT = shutil.which('dpdk-telemetry.py')
QPS = 3  # pairs


class Telemetry(AppTest):
    def setUp(self):
        self.prefix = 'bb_telemetry_%d' % os.getpid()
        cmd = [self.program, *lcores(), '--no-huge', '-m', '256', '--no-pci',
               '--file-prefix=' + self.prefix, '--', '-i', '--op', 'write', '--size', '64',
               '--qps', str(QPS), '--signal-every', '16', '--burst', '32']
        self.proc = subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end)

    def end(self):
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.communicate()

    def ask(self, *requests):
        """Returns {request: answer} of one run of the client, which prints a line for each."""
        proc = subprocess.run([CLIENT, '-f', self.prefix], input='\n'.join(requests) + '\nquit\n',
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=LIMIT)
        answers = [json.loads(line) for line in proc.stdout.splitlines() if line.startswith('{')]
        self.assertEqual(proc.returncode, 0, proc.stdout + proc.stderr)
        self.assertEqual(len(answers), len(requests), proc.stdout + proc.stderr)
        out = {}
        for request, answer in zip(requests, answers):
            # The key is the endpoint without its parameters.
            self.assertEqual(list(answer), [request.split(',')[0]])
            out[request] = answer[request.split(',')[0]]
        return out

    def until(self, request, true):
        """Asks until the answer is as expected; the program may be slow to start."""
        end = time.monotonic() + LIMIT
        path = None
        while True:
            self.assertIsNone(self.proc.poll(), 'testrdma ended')
            proc = subprocess.run([CLIENT, '-f', self.prefix], input=request + '\nquit\n',
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  timeout=LIMIT)
            for line in proc.stdout.splitlines():
                if line.startswith('{'):
                    path = json.loads(line)[request.split(',')[0]]
            if path is not None and true(path):
                return path
            self.assertLess(time.monotonic(), end, '%s: %s %s' % (request, proc.stdout, path))
            time.sleep(0.05)

    def test_every_endpoint(self):
        self.until('/bluebell/device/list', lambda a: a == ['soft0'])
        self.proc.stdin.write('start\n')
        self.proc.stdin.flush()
        first = self.until('/bluebell/qp/list,soft0', lambda a: a.get('total') == 2 * QPS)
        cqs = ['/bluebell/cq/info,soft0,%d' % n
               for n in self.ask('/bluebell/cq/list,soft0')['/bluebell/cq/list,soft0']['cqs']]
        mr = self.ask('/bluebell/mr/list,soft0')['/bluebell/mr/list,soft0']['mrs'][0]
        qps = ['/bluebell/qp/info,soft0,%d' % n for n in first['qps']]
        # Every pair has a QP that writes.
        self.until('/bluebell/roce/counters,soft0', lambda a: a['rx_write'] > 10000)
        fixed = [*cqs, '/bluebell/device/info,soft0', '/bluebell/mr/info,soft0,%d' % mr,
                 '/bluebell/mr/stats,soft0', '/bluebell/loop/list', '/bluebell/roce/counters,soft0',
                 '/bluebell/roce/drops,soft0']
        before = self.ask(*fixed, *qps)
        writers = [q for q in qps if before[q]['posted'] > 0]
        self.assertEqual(len(writers), QPS)
        # Traffic continues while the client asks.
        for q in writers:
            self.until(q, lambda a, q=q: a['posted'] > before[q]['posted'] + 1000 and
                       a['doorbells'] > before[q]['doorbells'] and
                       a['send_cqes'] > before[q]['send_cqes'])
        after = self.ask(*fixed, *qps)
        self.check(before, after, writers)
        for bad in ('/bluebell/qp/info,soft0,x', '/bluebell/qp/list,soft7', '/bluebell/mr/info'):
            self.assertIn('error', self.ask(bad)[bad])
        out, err = self.proc.communicate('stop\nquit\n', timeout=LIMIT)
        self.assertEqual(self.proc.returncode, 0, out + err)
        self.assertNotIn('Sanitizer', err)

    def check(self, before, after, writers):
        info = after['/bluebell/device/info,soft0']
        self.assertEqual((info['name'], info['driver'], info['software']), ('soft0', 'mlx5', 1))
        self.assertEqual(info['qps'], 2 * QPS)
        self.assertEqual(info['port1_state'], 'ACTIVE')
        stats = after['/bluebell/mr/stats,soft0']
        self.assertEqual(stats['mrs'], info['mrs'])
        self.assertGreaterEqual(stats['bytes'], 64)
        counters, old = (a['/bluebell/roce/counters,soft0'] for a in (after, before))
        self.assertGreater(counters['rx_write'], old['rx_write'])
        self.assertEqual((counters['rx_read'], counters['ack_timeout']), (0, 0))
        self.assertEqual(set(after['/bluebell/roce/drops,soft0'].values()), {0})
        self.assertIn('loops', after['/bluebell/loop/list'])
        for q in writers:
            a = after[q]
            self.assertEqual((a['state'], a['errors']), ('RTS', 0))
            self.assertLessEqual(a['sq_outstanding'], a['sq_depth'])
            cq = '/bluebell/cq/info,soft0,%d' % a['send_cqn']
            self.assertGreater(after[cq]['cqes'], before[cq]['cqes'])
            self.assertEqual(after[cq]['errors'], 0)
            self.assertIn(a['doorbells_per_1000_ops'], range(1, 1001))
            self.assertIn(a['signalled_per_1000_ops'], range(1, 1001))


if __name__ == '__main__':
    if CLIENT is None:
        print('skipped: dpdk-telemetry.py is not installed (Debian: dpdk-dev)')
        sys.exit(SKIP)
    main()
