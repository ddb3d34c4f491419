#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two guests on one wire, each with a card of bb_hca: Linux's mlx5 driver at both ends.

usage: test_pair.py BB_HCA [--one] [--suite NAME] [--vf] [--doorbell trap|shared] [--only NAME]

The wire is a memif between two processes of bb_hca. With --one, one process has a function for each guest. The
netdevs, RoCE and rdma_cm of the guests use the wire. One boot of each guest serves all tests, which run in the order
of this file. The kernels must not print a warning.
"""

import argparse
import sys
import unittest

sys.dont_write_bytecode = True

import card  # noqa: E402
import test_eth  # noqa: E402

ADDRESSES = test_eth.ADDRESSES
TIMES = 200
ROUNDS = 10
# Writes that the death of the peer's QEMU ends.
ENDLESS = 10000000
UNDER_WAY = 500
# Prints the file of the RoCE v2 GID of an address.
FIND_GID = ('cd /sys/class/infiniband/mlx5_0/ports/1 && grep -ls v2 gid_attrs/types/* | sed s/gid_attrs.types/gids/ | '
            'xargs grep -ls ffff:0a09:000%d')
ARGS = None
THERE = []


class Pair(unittest.TestCase):
    maxDiff = None
    seen = [0, 0]       # lines of each kernel's log that a test has looked at
    ready = False

    def setUp(self):
        self.assertTrue(self.ready or self._testMethodName == 'test_probe', 'the ports are not up')

    def look(self):
        """Fails if a kernel has printed a warning since the last look."""
        for i, there in enumerate(THERE):
            lines = there.kernel_lines(Pair.seen[i])
            Pair.seen[i] += len(lines)
            self.assertEqual(card.warnings(lines, card.EXPECTED), [], 'warnings of kernel %d' % i)

    def load(self, i):
        """Loads the driver of guest @i, and gives its netdev, "port", an address."""
        there = THERE[i]
        Pair.seen[i] = len(there.kernel_lines())
        there.run('modprobe mlx5_ib && modprobe ib_uverbs && modprobe rdma_ucm', card.SECONDS)
        net = '/sys/bus/pci/devices/0000:00:01.0/net'
        there.wait_for('ls %s/*/address' % net, card.SECONDS)
        there.run('ip link set $(ls %s) name port; ip addr add %s/24 dev port; ip link set port up' % (
            net, ADDRESSES[i]), card.SECONDS)
        there.wait_active()
        # The kernel adds the GIDs later than the address.
        there.wait_for(FIND_GID % (i + 1), card.SECONDS)

    def gid_index(self, i):
        """Returns the index of the RoCE v2 GID with the IPv4 address of guest @i."""
        return THERE[i].run('basename $(%s)' % FIND_GID % (i + 1)).strip()

    def pingpong(self, i, kind, times):
        return 'ibv_%s_pingpong -d mlx5_0 -n %d -g %s' % (kind, times, self.gid_index(i))

    def rping(self, server):
        """Runs rping. @server: the guest that listens."""
        address = ADDRESSES[server]
        listener = THERE[server].serve_cm('rping -s -v -C %d -S 4000 -a %s' % (ROUNDS, address), card.SECONDS)
        # A thread of rping may report an error of its closed channel at the end, so the status says little.
        client = THERE[1 - server].begin('rping -c -V -v -C %d -S 4000 -a %s' % (ROUNDS, address), card.SECONDS)
        client.wait()
        self.assertEqual(client.output.count('ping data: rdma-ping-'), ROUNDS, client.output)
        listener.wait()
        self.assertEqual(listener.output.count('ping data: rdma-ping-'), ROUNDS, listener.output)

    # In this order.

    def test_probe(self):
        for i in range(2):
            self.load(i)
        self.look()
        Pair.ready = True

    def test_ping(self):
        text = THERE[0].run('ping -c 3 -w 60 ' + ADDRESSES[1], card.SECONDS)
        self.assertRegex(text, ' 3 packets received')
        self.look()

    def test_pingpong(self):
        for kind in 'rc', 'uc', 'ud', 'srq':
            for server in 0, 1:
                with self.subTest('%s, guest %d serves' % (kind, server)):
                    # A datagram is as long as the MTU at most.
                    size = ' -s 1000'
                    listener = THERE[server].serve_tcp(self.pingpong(server, kind, TIMES) + size, seconds=card.SECONDS)
                    text = THERE[1 - server].run('%s %s' % (self.pingpong(1 - server, kind, TIMES) + size,
                                                            ADDRESSES[server]), card.SECONDS)
                    listener.check()
                    print('%s: %s' % (kind, text.strip().split('\n')[-1]), flush=True)
                    self.assertRegex(text, r'%d iters in' % TIMES)
        self.look()

    def test_rping(self):
        for server in 0, 1:
            with self.subTest('guest %d serves' % server):
                self.rping(server)
        self.look()

    def test_ucmatose_and_udaddy(self):
        for program in 'ucmatose', 'udaddy':
            for server in 0, 1:
                with self.subTest('%s, guest %d serves' % (program, server)):
                    options = '-c 5 -C %d -S 500' % ROUNDS
                    listener = THERE[server].serve_cm('%s -b %s %s' % (program, ADDRESSES[server], options),
                                                      card.SECONDS)
                    text = THERE[1 - server].run('%s -s %s %s' % (program, ADDRESSES[server], options), card.SECONDS)
                    self.assertIn('return status 0', text)
                    self.assertIn('return status 0', listener.check())
        self.look()

    def test_qemu_killed_under_traffic(self):
        """The other guest's queue pair fails. The next QEMU uses the same process and wire."""
        # A queue pair finds out only by a send that it has posted. A pingpong may be waiting for a message.
        command = ['ib_write_bw -d mlx5_0 -F -N -s 1000 -n %d -x %s' % (ENDLESS, self.gid_index(i)) for i in range(2)]
        server = THERE[0].serve_tcp(command[0], seconds=card.SECONDS)
        client = THERE[1].begin(command[1] + ' ' + ADDRESSES[0], card.SECONDS)
        THERE[0].wait_for('[ $(cat /sys/class/infiniband/mlx5_0/ports/1/hw_counters/rx_write_requests) -gt %d ]' %
                          UNDER_WAY, card.SECONDS)
        self.assertIsNone(server.poll(), server.output)
        THERE[0].stop_guest()
        self.assertNotEqual(client.wait(), 0, client.output)
        # 12: IBV_WC_RETRY_EXC_ERR
        self.assertIn('Failed status 12', client.output)
        THERE[0].start()
        THERE[0].wait_ready()
        self.load(0)
        self.test_ping()
        self.rping(1)
        self.look()

    def test_unload(self):
        for there in THERE:
            there.unload()
        self.look()
        for there in THERE:
            there.stop_guest()
        for there in THERE[:1] if ARGS.one else THERE:
            self.assertEqual(there.stop_server(), 0, 'exit status of bb_hca after SIGTERM')


class Result(unittest.TextTestResult):
    """Shows the logs of both guests with each failure."""

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.show()

    def addError(self, test, err):
        super().addError(test, err)
        self.show()

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.show()

    def show(self):
        for there in THERE:
            print(there.context(), flush=True)


def main():
    global ARGS
    p = argparse.ArgumentParser(usage=__doc__.split('usage: ')[1].split('\n\n')[0])
    p.add_argument('bb_hca')
    p.add_argument('--suite', default='bookworm', help='whose kernel (see test/interop/vm/build)')
    p.add_argument('--vf', action='store_true', help='the functions are virtual functions')
    p.add_argument('--doorbell', default='trap', choices=['trap', 'shared'], help='of both functions')
    p.add_argument('--one', action='store_true', help='one process of bb_hca serves both guests, each by a function')
    p.add_argument('--only', default='', help='tests with this in the name, and test_probe')
    ARGS = p.parse_args()
    card.enter_or_skip(ARGS.bb_hca, ARGS.suite)
    options = ['--link', 'eth', '--doorbell', ARGS.doorbell] + ['--vf'] * ARGS.vf
    names = [name for name in vars(Pair) if name.startswith('test_') and (ARGS.only in name or name == 'test_probe')]
    try:
        for i in range(2):
            how = {'processes': [test_eth.memif(i)]} if not ARGS.one else {'beside': THERE[0]} if i else {'spare': 1}
            THERE.append(card.Card(ARGS.bb_hca, options, ARGS.suite, number=2 + i, **how))
            THERE[i].memory = 768  # MiB
            THERE[i].boot()
        done = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(unittest.TestSuite(map(Pair, names)))
    finally:
        for there in reversed(THERE):
            there.stop()
    return 0 if done.wasSuccessful() else 1


if __name__ == '__main__':
    sys.exit(main())
