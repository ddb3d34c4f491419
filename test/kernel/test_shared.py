#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bb_hca with doorbells of the guest's programs in shared memory (--doorbell shared), and trapped.

usage: test_shared.py BB_HCA CONFORM [--suite NAME] [--vf] [--link ib|eth] [--flood PROGRAM] [--only NAME]

The same programs run in both modes. The counters of bb_hca show how many doorbells were messages of QEMU. The
kernel must not print a warning.
"""

import argparse
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'conform'))

import card  # noqa: E402
import carry  # noqa: E402
import test_life  # noqa: E402

TIMES = 200
# Doorbells of the kernel's own queues while a program runs.
KERNEL = 20
# Programs, both ends of which are in the guest, and the doorbells that they ring at least.
PROGRAMS = {
    'ibv_rc_pingpong -n %d': TIMES,
    'ibv_uc_pingpong -n %d': TIMES,
    'ibv_ud_pingpong -n %d': TIMES,
    'ibv_srq_pingpong -n %d': TIMES,
    'ibv_rc_pingpong -e -n %d': TIMES,
    'ib_write_lat -F -n %d': TIMES,
    'ib_send_lat -F -n %d': TIMES,
    'ib_read_lat -F -n %d': TIMES,
    'ib_atomic_lat -F -n %d': TIMES,
    'ib_write_bw -F -n %d': TIMES // 10,
    'ib_send_bw -F -e -n %d': TIMES // 10,
}
SKIPS = [os.path.join(card.HERE, '..', part, 'allowed-skips') for part in ('conform', 'uverbs', 'kernel')]
ROWS = 'data/*,completion/*,event/*'
CONFORM_SECONDS = 900
ARGS = None


class Doorbell(unittest.TestCase):
    maxDiff = None

    def boot(self, mode):
        options = ['--doorbell', mode, '--link', ARGS.link] + ['--vf'] * ARGS.vf
        self.there = card.Card(ARGS.bb_hca, options, ARGS.suite, telemetry=True)
        self.addCleanup(self.there.stop)
        self.there.boot()
        self.load()
        self.look()

    def load(self):
        self.seen = len(self.there.kernel_lines())
        self.there.load()
        # At the first use of an Ethernet port, Linux 6.12 writes 255 NOPs to a queue of its own, to see whether
        # writes combine (mlx5_wc_support_get()). Linux 6.1 does so when it finds the card.
        self.there.run('ibv_devinfo')

    def look(self):
        """Fails if the kernel has printed a warning since the last look."""
        lines = self.there.kernel_lines(self.seen)
        self.seen += len(lines)
        self.assertEqual(card.warnings(lines, card.EXPECTED), [], 'warnings of the kernel')

    def run_program(self, command):
        """Runs a program at both ends. Returns how many doorbells were messages, and how many polls found some."""
        gid = self.there.gid()
        if not command.startswith('ibv_'):
            gid = gid.replace('-g', '-x')
        before = self.there.counters()
        text = self.there.pair(command % TIMES + ' -d mlx5_0' + gid)
        after = self.there.counters()
        line = [line for line in text.strip().split('\n') if re.search(r'\d\.\d', line)][-1]
        found = [after[name] - before[name] for name in ('doorbells', 'shared_stores')]
        print('%s: %d messages, %d polls with stores; %s' % (command % TIMES, *found, ' '.join(line.split())), flush=True)
        return found

    def test_trapped(self):
        self.boot('trap')
        for command, least in PROGRAMS.items():
            with self.subTest(command):
                messages, polls = self.run_program(command)
                self.assertGreaterEqual(messages, least)
                self.assertEqual(polls, 0)
        self.look()

    def test_shared(self):
        self.boot('shared')
        for command in PROGRAMS:
            with self.subTest(command):
                messages, polls = self.run_program(command)
                self.assertLessEqual(messages, KERNEL)
                # Stores between two polls count once, so their number depends on the host.
                self.assertGreater(polls, 0)
        if ARGS.flood:
            self.there.flood(ARGS.flood)
        self.look()
        before = self.there.counters()
        rows = carry.conform(self.there, ARGS.conform, 'mlx5_0,cq_resize', "-t 30 -f '%s'" % ROWS, CONFORM_SECONDS,
                             SKIPS)
        self.assertEqual(['%s: %s' % (r['name'], r.get('why', '')) for r in rows if r['result'] == 'fail'], [])
        passed = len([r for r in rows if r['result'] == 'pass'])
        after = self.there.counters()
        print('conform: %d rows, %d messages, %d polls with stores' % (
            passed, after['doorbells'] - before['doorbells'], after['shared_stores'] - before['shared_stores']))
        self.assertGreater(passed, 500)
        self.look()
        # The next QEMU maps the same pages.
        self.there.stop_guest()
        self.there.start()
        self.there.wait_ready()
        self.load()
        messages, polls = self.run_program('ibv_rc_pingpong -n %d')
        self.assertLessEqual(messages, KERNEL)
        self.assertGreater(polls, 0)
        self.there.unload()
        self.look()
        self.there.stop_guest()
        self.assertEqual(self.there.stop_server(), 0)


def main():
    global ARGS
    p = argparse.ArgumentParser(usage=__doc__.split('usage: ')[1].split('\n\n')[0])
    p.add_argument('bb_hca')
    p.add_argument('conform')
    p.add_argument('--suite', default='bookworm', help='whose kernel (see test/interop/vm/build)')
    p.add_argument('--vf', action='store_true', help='the card is a virtual function')
    p.add_argument('--link', default='ib', choices=['ib', 'eth'], help='of its port')
    p.add_argument('--flood', help='the program doorbell_flood')
    p.add_argument('--only', default='', help='tests with this in the name')
    ARGS = p.parse_args()
    card.enter_or_skip(ARGS.bb_hca, ARGS.suite)
    names = [name for name in vars(Doorbell) if name.startswith('test_') and ARGS.only in name]
    done = unittest.TextTestRunner(verbosity=2, resultclass=test_life.Result).run(
        unittest.TestSuite(map(Doorbell, names)))
    return 0 if done.wasSuccessful() else 1


if __name__ == '__main__':
    sys.exit(main())
