# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the tests of examples/hft_pipeline: pairs of processes, and checks of results."""

import json
import os
import re
import subprocess
import tempfile

from apptest import CPUS, AppTest, Result, free_ports

EAL = ['--no-huge', '-m', '256', '--no-pci', '--no-shconf', '--no-telemetry',
       '--log-level=lib.eal:error']
WAIT = 150  # seconds; sanitizers are slow
TICKS = 20000
POINTS = ['min', 'p50', 'p90', 'p99', 'p99_9', 'p99_99', 'max']


def lcores(n):
    """Returns EAL's option for @n lcores on the available processors."""
    return ['--lcores', ','.join('%d@%d' % (i, CPUS[i % len(CPUS)]) for i in range(n))]


class HftTest(AppTest):
    # For the connecting and the listening side: a command prefix and additional EAL options.
    ENTER = ([], [], [])
    MORE_EAL = ([], [], [])
    LISTEN = '127.0.0.1'

    def check(self, res, ticks=TICKS):
        r = res.json
        self.assertEqual(r['ticks'], ticks)
        self.assertEqual(r['wrong'], 0)
        self.assertEqual(r['book_digest'], r['replay_digest'])
        self.assertEqual(r['orders'] + sum(r['stopped'].values()), r['decisions'])
        self.assertEqual(r['tick_to_trade_ns']['samples'], r['orders'])
        values = [r['tick_to_trade_ns'][p] for p in POINTS]
        self.assertEqual(values, sorted(values))
        self.assertGreater(values[0], 0)
        seconds = re.search(r' symbols in ([\d.]+) s, ', res.out)
        self.assertTrue(seconds and float(seconds[1]) < 3600, res.out)
        self.assertIn('all %d ticks arrived once and in order' % ticks, res.out)
        # Each stage reports its pauses; their lengths depend on the machine.
        self.assertEqual(sorted('+'.join(p['stages'] for p in r['pauses']).split('+')),
                         ['book', 'feed', 'gateway', 'risk', 'strategy'])
        for p in r['pauses']:
            self.assertEqual(p['count'] == 0, p['longest_us'] == 0)
            self.assertGreaterEqual(p['total_us'], p['longest_us'])
            self.assertTrue(p['count'] == 0 or p['longest_us'] >= 5, p)
        # The samples outside pauses are some of all.
        quiet = r['quiet_ns']
        self.assertLessEqual(quiet['samples'], r['orders'])
        self.assertTrue(quiet['samples'] == 0 or (r['tick_to_trade_ns']['min'] <= quiet['min'] and
                                                  quiet['max'] <= r['tick_to_trade_ns']['max']), r)
        # The bars of the histogram add up to the orders.
        bars = re.findall(r'^ +[0-9.]+ [num]?s to +[0-9.]+ [num]?s +(\d+)', res.out, re.M)
        self.assertEqual(sum(map(int, bars)), r['orders'])
        self.assertNotIn('0', bars)
        return r

    def device(self, side):
        return 'soft0,shm=hft%d,ip=192.0.2.%d/24' % (os.getpid(), side + 1)

    def start(self, side, args, port):
        # A second lcore for a side with two stages; without one it sleeps.
        cmd = self.ENTER[side] + [self.program, '--lcores', '0@%d,1@%d' % (
            CPUS[side % len(CPUS)], CPUS[(side + 1) % len(CPUS)])] + EAL + \
            self.MORE_EAL[side] + ['--', '--device', self.device(side), '--wait', '120',
                                   '--connect' if side == 0 else '--listen',
                                   '%s:%d' % (self.LISTEN, port)]
        proc = subprocess.Popen(cmd + args, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        self.addCleanup(self.end, proc)
        return proc

    def end(self, proc):
        if proc.poll() is None:
            proc.kill()
        proc.communicate()

    def pair(self, args, other=(), *more):
        """Starts the connecting side, the listening side and further ones, with their own options."""
        port = free_ports(4)
        there = []
        for side, own in enumerate((other, *more), 1):
            there.append(self.start(side, list(own), port))
            self.assertIn('listening', there[-1].stdout.readline())
        return self.start(0, args, port), *there

    def until_connected(self, proc):
        self.assertIn('connecting to', proc.stdout.readline())
        self.assertIn('connected', proc.stdout.readline())

    def connected_pair(self, args, other):
        """Starts a pair until it is connected. On a busy machine this can take longer than a side's --wait."""
        for _ in range(10):
            here, there = self.pair(args, other)
            self.assertIn('connecting to', here.stdout.readline())
            if 'connected' in here.stdout.readline():
                return here, there
            self.end(here)
            self.end(there)
        self.fail('the pair was not connected')

    def run_pair(self, *args, ticks=TICKS, others=((),)):
        """Runs a pair, or more processes, to the end without an error. Returns the checked result."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'result')
            procs = self.pair(list(args) + ['--messages', str(ticks), '--json', path], *others)
            sides = [subprocess.CompletedProcess(proc.args, proc.returncode, *said) for proc, said in
                     [(proc, proc.communicate(timeout=WAIT)) for proc in procs]]
            both = ''.join(side.stdout + side.stderr for side in sides)
            self.assertEqual([side.returncode for side in sides], [0] * len(sides), both)
            self.assertNotIn('Sanitizer', both)
            self.assertNotIn('runtime error', both)
            return self.check(Result(sides[0], path), ticks)
