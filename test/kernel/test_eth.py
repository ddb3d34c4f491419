#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two Ethernet ports of bb_hca in one guest, each in a network namespace: frames, RoCE, rdma_cm.

usage: test_eth.py BB_HCA [--suite NAME] [--vf] [--port memif|bridge] [--cm-peer CM_PEER] [--bb-perf BB_PERF]
           [--bb-verbs BB_VERBS] [--odp-access PROGRAM] [--only NAME]

One boot serves all tests, which run in the order of this file. Both namespaces have their own netdev, so each
frame between them leaves the guest. The kernel must not print a warning.

Without --port one process serves both functions, and frames stay in it. With --port each function has a process
and a port= of DPDK. memif: the two are connected directly. bridge: both are on a bridge of the host, together
with a software device in a process of the host and a guest with Linux's rxe. The process runs CM_PEER of the interop
suite, BB_PERF, or unchanged programs on BB_VERBS. The guide on interoperation has a table of these.
"""

import argparse
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True

import card  # noqa: E402
import carry  # noqa: E402
import guest  # noqa: E402
import namespace  # noqa: E402
import paths  # noqa: E402
import cm_cases  # noqa: E402
import test_cm_ib  # noqa: E402
import test_cm_verbs  # noqa: E402

ADDRESSES = ['10.9.0.1', '10.9.0.2']
# On the bridge: of the host's software device, and of the guest with rxe.
HOST, RXE = '10.9.0.9', '10.9.0.3'
HERE = {4: HOST, 6: test_cm_ib.HERE[6]}
GUEST = {4: ADDRESSES[0], 6: '2001:db8::1'}
ROUNDS = 10
RPING_SERVE = 'rping -s -v -C 10 -S 4000 -a %s'
RPING_CALL = 'rping -c -V -v -C 10 -S 4000 -a %s'
MIB = 4
RELOADS = 3
# Tests that the other forms make, too.
COMMON = ['test_mtu', 'test_tcp_ipv6', 'test_down_and_up', 'test_unload_and_reload']
ARGS = None
THERE = None


def within(i, command):
    """Returns the command that runs @command in namespace @i, 0 or 1."""
    return 'ip netns exec n%d %s' % (i, command)


def in_0(command):
    return within(0, command)


def only_on(port):
    """Marks a test that needs --port @port."""
    def mark(test):
        test.port = port
        return test
    return mark


def memif(i):
    """Returns the further options of function @i: of EAL, and of bb_hca."""
    # An abstract socket leaves no file.
    return ['--vdev=net_memif0,role=%s,socket=@bb_eth%d,socket-abstract=yes,bsize=4224' % (
        ('server', 'client')[i], os.getpid())], ['--device', 'soft0,port=net_memif0,framesz=4198']


def bridge(i):
    """Does what memif() does, and puts the port on the bridge."""
    port('hca%d' % i)
    return ['--vdev=net_af_packet0,iface=hca%d' % i], ['--device', 'soft0,port=net_af_packet0']


def port(name, *index):
    """Makes interface @name for a port=, whose other end is on the bridge."""
    namespace.ip('link', 'add', name, *index, 'type', 'veth', 'peer', 'name', 'br-' + name)
    namespace.ip('link', 'set', 'br-' + name, 'master', 'br0', 'up')
    namespace.ip('link', 'set', name, 'up')


class Eth(unittest.TestCase):
    maxDiff = None
    seen = 0            # lines of the kernel's log that a test has looked at
    ready = False

    def setUp(self):
        self.assertTrue(self.ready or self._testMethodName == 'test_probe', 'the ports are not up')

    def look(self):
        """Fails if the kernel has printed a warning since the last look."""
        lines = THERE.kernel_lines(Eth.seen)
        Eth.seen += len(lines)
        self.assertEqual(card.warnings(lines, card.EXPECTED), [], 'warnings of the kernel')

    def load(self):
        """Loads the driver and moves each netdev to its namespace, as netdev "port"."""
        THERE.run('modprobe mlx5_ib && modprobe ib_uverbs && modprobe rdma_ucm', card.SECONDS)
        for i, address in enumerate(ADDRESSES):
            net = '/sys/bus/pci/devices/0000:00:0%d.0/net' % (i + 1)
            THERE.wait_for('ls %s/*/address' % net, card.SECONDS)
            THERE.run('ip netns add n%d; ip link set $(ls %s) netns n%d name port' % (i, net, i), card.SECONDS)
            # Without the detection of duplicate addresses, which takes a second, IPv6 works at once.
            THERE.run(within(i, 'sh -c "echo 0 >/proc/sys/net/ipv6/conf/all/accept_dad; '
                                'echo 0 >/proc/sys/net/ipv6/conf/port/accept_dad; ip link set lo up; '
                                'ip addr add %s/24 dev port; ip link set port up"' % address), card.SECONDS)
        for i in range(2):
            THERE.wait_for('grep -q ACTIVE /sys/class/infiniband/mlx5_%d/ports/1/state' % i, card.SECONDS)

    def unload(self):
        """Removes the driver. Deleting a namespace moves its netdev back, so the netdevs go down first."""
        for i in range(2):
            THERE.run(within(i, 'ip link set port down'))
        THERE.run('rmmod mlx5_ib && rmmod mlx5_core && ip netns del n0 && ip netns del n1', card.SECONDS)

    def ping(self, more=''):
        text = THERE.run(within(0, 'ping -c 3 -w 60 %s %s' % (more, ADDRESSES[1])), card.SECONDS)
        self.assertRegex(text, ' 3 packets received')

    def copy(self, source, address):
        """Sends a file from namespace @source to the other one by TCP, and compares it."""
        THERE.run('head -c %d /dev/urandom >/tmp/sent; [ -e /tmp/fifo ] || mkfifo /tmp/fifo' % (MIB << 20),
                  card.SECONDS)
        # nc ends at the end of its input, which a FIFO that is open for writing does not have.
        server = THERE.begin(within(1 - source, 'sh -c "nc -l -p 5000 <>/tmp/fifo >/tmp/received"'), card.SECONDS)
        THERE.wait_for(within(1 - source, 'grep -q ":1388 .* 0A " /proc/net/tcp /proc/net/tcp6'), card.SECONDS)
        THERE.run(within(source, 'sh -c "nc %s 5000 </tmp/sent"' % address), card.SECONDS)
        server.check()
        THERE.run('cmp /tmp/sent /tmp/received')

    def counts(self, i):
        """Returns the counters of TCP in a namespace."""
        names, values = re.findall('^Tcp: (.*)$', THERE.run(within(i, 'cat /proc/net/snmp')), re.M)
        return dict(zip(names.split(), map(int, values.split())))

    # In this order.

    def test_probe(self):
        Eth.seen = len(THERE.kernel_lines())
        self.load()
        for i in range(2):
            text = THERE.run('ibv_devinfo -v -d mlx5_%d' % i)
            self.assertRegex(text, r'state:\s+PORT_ACTIVE')
            self.assertRegex(text, r'link_layer:\s+Ethernet')
            self.assertRegex(text, r'GID\[.*::ffff:%s, RoCE v2' % ADDRESSES[i])
        self.look()
        Eth.ready = True

    def test_ping(self):
        self.ping()
        mac = THERE.run(within(1, 'cat /sys/class/net/port/address')).strip()
        self.assertIn(mac, THERE.run(within(0, 'ip neigh')))
        # Longer than the MTU: IP fragments. DPDK's net_af_packet asks Linux to reassemble them.
        if ARGS.port != 'bridge':
            self.ping('-s 4000')
        self.look()

    def test_ping_ipv6(self):
        text = THERE.run(within(1, 'ip addr show dev port'))
        address = re.search(r'inet6 (fe80:\S+)/', text)[1]
        text = THERE.run(within(0, 'ping -6 -c 3 -w 60 -I port %s' % address), card.SECONDS)
        self.assertRegex(text, ' 3 packets received')
        self.look()

    def test_tcp(self):
        for source in 0, 1:
            before = self.counts(source), self.counts(1 - source)
            self.copy(source, ADDRESSES[1 - source])
            after = self.counts(source), self.counts(1 - source)
            self.assertEqual(after[1]['InCsumErrors'], 0)
            self.assertGreater(after[0]['OutSegs'] - before[0]['OutSegs'], (MIB << 20) // 1460)
        self.look()

    def test_tcp_ipv6(self):
        for i in range(2):
            THERE.run(within(i, 'ip addr add fd09::%d/64 dev port' % (i + 1)))
        self.copy(0, 'fd09::2')
        self.look()

    def test_mtu(self):
        """The largest MTU of a port= follows from its framesz=."""
        mtu = 4000 if ARGS.port else 9000
        for i in range(2):
            THERE.run(within(i, 'ip link set port mtu %d' % mtu), card.SECONDS)
        self.ping('-s %d' % (mtu - 100))
        self.copy(0, ADDRESSES[1])
        for i in range(2):
            THERE.run(within(i, 'ip link set port mtu 1500'), card.SECONDS)
        self.ping()
        self.look()

    def test_down_and_up(self):
        for _ in range(3):
            THERE.run(within(1, 'ip link set port down'), card.SECONDS)
            THERE.run(within(1, 'ip link set port up'), card.SECONDS)
            self.ping()
        self.look()

    def test_pingpong(self):
        for kind in 'rc', 'uc', 'ud', 'srq':
            command = 'ibv_%s_pingpong -n 100 -g %%s -d mlx5_%%d' % kind
            with self.subTest(command):
                server = THERE.serve_tcp(command % (self.gid_index(1), 1), seconds=card.SECONDS)
                text = THERE.run(command % (self.gid_index(0), 0) + ' 127.0.0.1', card.SECONDS)
                server.check()
                self.assertRegex(text, r'\d+ iters in')
        self.look()

    def test_odp(self):
        command, _ = carry.carry(THERE, ARGS.odp_access)
        for ends in (0, 0), (0, 1), (1, 0):
            print(THERE.run(command + ''.join(' mlx5_%d %s' % (i, self.gid_index(i)) for i in ends), card.SECONDS))
        self.look()

    def gid_index(self, i):
        """Returns the index of the RoCE v2 GID with the IPv4 address of port @i."""
        text = THERE.run('cd /sys/class/infiniband/mlx5_%d/ports/1; for n in $(ls gids); do '
                         'echo "$n $(cat gids/$n) $(cat gid_attrs/types/$n 2>/dev/null)"; done' % i)
        return re.search(r'^(\d+) \S*ffff:0a09:000%d RoCE v2$' % (i + 1), text, re.M)[1]

    def test_rping(self):
        """rdma_cm of the kernel: its datagrams go by QP1, its addresses by ARP on the netdev."""
        server = THERE.begin(within(1, 'timeout %d rping -s -a %s -C 10 -V -v' % (card.SECONDS, ADDRESSES[1])),
                             card.SECONDS)
        # rping does not say when it listens, so a client that comes too early is rejected and tries again.
        text = THERE.run(within(0, 'sh -c "for i in 1 2 3 4 5 6 7 8; do rping -c -a %s -C 10 -V -v && exit 0; sleep 1; '
                                   'done; exit 1"' % ADDRESSES[1]), card.SECONDS)
        self.assertEqual(len(re.findall('ping data: rdma-ping-', text)), 10, text)
        server.wait()
        self.look()

    def test_vlan(self):
        for i in range(2):
            THERE.run(within(i, 'ip link add link port name port.7 type vlan id 7'))
            THERE.run(within(i, 'ip addr add 10.7.0.%d/24 dev port.7' % (i + 1)))
            THERE.run(within(i, 'ip link set port.7 up'))
        text = THERE.run(within(0, 'ping -c 3 -w 60 10.7.0.2'), card.SECONDS)
        self.assertRegex(text, ' 3 packets received')
        for i in range(2):
            THERE.run(within(i, 'ip link del port.7'))
        self.look()

    def add_ipv6(self):
        """Gives the port of namespace 0 its address in the host's IPv6 network."""
        THERE.run(within(0, 'ip addr replace %s/64 dev port' % GUEST[6]), card.SECONDS)
        THERE.wait_for('grep -qs 2001:0db8: /sys/class/infiniband/mlx5_0/ports/1/gids/*', card.SECONDS)

    @only_on('bridge')
    def test_host_device(self):
        """A software device of the host: the kernel's rping and Bluebell's own, in both roles."""
        self.add_ipv6()
        for ip in 4, 6:
            with self.subTest('IPv%d, the host serves' % ip):
                peer = test_cm_ib.Peer(ARGS.cm_peer, 'host0', HERE[ip], 7480, 'rping-server %d' % ROUNDS, HOST)
                client = THERE.begin(within(0, 'rping -c -V -v -C %d -S 1000 -a %s -p 7480' % (ROUNDS, HERE[ip])),
                                     card.SECONDS)
                client.wait()
                self.assertEqual(client.output.count('ping data: rdma-ping-'), ROUNDS, client.output)
                peer.check()
            with self.subTest('IPv%d, the host calls' % ip):
                server = THERE.serve_cm(within(0, 'rping -s -v -C %d -S 4000 -a %s -p 7481' % (ROUNDS, GUEST[ip])),
                                        card.SECONDS)
                test_cm_ib.Peer(ARGS.cm_peer, 'host0', GUEST[ip], 7481, 'rping-client %d' % ROUNDS, HOST).check()
                server.wait()
                self.assertEqual(server.output.count('server ping data: rdma-ping-'), ROUNDS, server.output)
        self.look()

    def run_cases(self, hosts, cases):
        for case in cases:
            for role in cm_cases.ROLES:
                with self.subTest('%s, the client: %s' % (case.title, role)):
                    print('%s, the client: %s, attempt %d' % (case.title, role, hosts.run(case, role)), flush=True)
        self.look()

    @only_on('bridge')
    def test_bb_perf(self):
        """bb_perf on a software device of the host, and perftest in the guest, in both roles."""
        self.run_cases(test_cm_verbs.PerfHosts(ARGS.bb_perf, 'host0', HERE, THERE, GUEST, in_0), cm_cases.API_PERF)

    @only_on('bridge')
    def test_bb_verbs(self):
        """Programs of the host on bb_verbs, and the same ones in the guest, in both roles, by IPv4 and IPv6."""
        self.add_ipv6()
        self.run_cases(test_cm_verbs.Hosts(ARGS.bb_verbs, 'host0', HERE, THERE, GUEST, in_0), cm_cases.HCA_CASES)

    def rping(self, server, serve, client, call):
        """Runs rping between two guests."""
        server = server.serve_cm(serve, card.SECONDS)
        client = client.begin(call, card.SECONDS)
        client.wait()
        self.assertEqual(client.output.count('ping data: rdma-ping-'), ROUNDS, client.output)
        server.wait()

    @only_on('bridge')
    def test_rxe(self):
        """Linux's rxe in another guest: ping, TCP, rping in both roles."""
        with guest.Guest(3, bridge='br0', suite=ARGS.suite) as rxe:
            rxe.run('ip addr add %s/24 dev eth0' % RXE)
            text = THERE.run(within(0, 'ping -c 3 -w 60 ' + RXE), card.SECONDS)
            self.assertRegex(text, ' 3 packets received')
            THERE.run('head -c %d /dev/urandom >/tmp/sent' % (MIB << 20), card.SECONDS)
            # The end of the data ends nc; the FIFO keeps its input open until then.
            server = rxe.begin('mkfifo /tmp/fifo; nc -l -p 5000 <>/tmp/fifo | md5sum', card.SECONDS)
            rxe.wait_for('grep -q ":1388 .* 0A " /proc/net/tcp /proc/net/tcp6', card.SECONDS)
            THERE.run(within(0, 'sh -c "nc %s 5000 </tmp/sent"' % RXE), card.SECONDS)
            self.assertEqual(server.check().split()[0], THERE.run('md5sum </tmp/sent').split()[0])
            with self.subTest('rxe serves'):
                self.rping(rxe, RPING_SERVE % RXE, THERE, within(0, RPING_CALL % RXE))
            with self.subTest('rxe calls'):
                self.rping(THERE, within(0, RPING_SERVE % ADDRESSES[0]), rxe, RPING_CALL % ADDRESSES[0])
        self.look()

    @only_on('memif')
    def test_qemu_killed_under_traffic(self):
        """The same processes serve the next guest, whose ports have new addresses."""
        THERE.run('[ -e /tmp/fifo ] || mkfifo /tmp/fifo')
        THERE.begin(within(1, 'sh -c "nc -l -p 5001 <>/tmp/fifo >/dev/null"'), card.SECONDS)
        THERE.wait_for(within(1, 'grep -q ":1389 .* 0A " /proc/net/tcp /proc/net/tcp6'), card.SECONDS)
        THERE.begin(within(0, 'sh -c "nc %s 5001 </dev/zero"' % ADDRESSES[1]), card.SECONDS)
        # The traffic is under way after a number of four digits.
        THERE.wait_for(within(0, 'grep -q .... /sys/class/net/port/statistics/tx_packets'), card.SECONDS)
        THERE.stop_guest()
        THERE.start()
        THERE.wait_ready()
        Eth.seen = len(THERE.kernel_lines())
        self.load()
        self.ping()
        self.copy(0, ADDRESSES[1])
        self.test_pingpong()
        self.assertEqual(THERE.server_text().count('client disconnected'), 2)

    def test_unload_and_reload(self):
        pages = THERE.run('cat /sys/kernel/debug/mlx5/*/pages/fw_pages_total').split()
        self.assertEqual(len(pages), 2)
        self.unload()
        for _ in range(RELOADS):
            self.load()
            self.ping()
            self.unload()
            self.look()

    def test_server_ends(self):
        THERE.stop_guest()
        self.assertEqual(THERE.stop_server(), 0, 'exit status of bb_hca after SIGTERM')


class Result(unittest.TextTestResult):
    """Shows both logs with each failure."""

    def addFailure(self, test, err):
        super().addFailure(test, err)
        print(THERE.context(), flush=True)

    def addError(self, test, err):
        super().addError(test, err)
        print(THERE.context(), flush=True)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            print(THERE.context(), flush=True)


def main():
    global ARGS, THERE
    p = argparse.ArgumentParser(usage=__doc__.split('usage: ')[1].split('\n\n')[0])
    p.add_argument('bb_hca')
    p.add_argument('--suite', default='bookworm', help='whose kernel (see test/interop/vm/build)')
    p.add_argument('--vf', action='store_true', help='the functions are virtual functions')
    p.add_argument('--port', choices=['memif', 'bridge'], help='of each function; without, frames stay in the process')
    p.add_argument('--cm-peer', help='program of the interop suite, for the bridge')
    p.add_argument('--bb-perf', help='the same')
    p.add_argument('--bb-verbs', help='the same; without it its test is left out')
    p.add_argument('--odp-access', help='the program odp_access: the guest may register memory on demand')
    p.add_argument('--only', default='', help='tests with this in the name, and test_probe')
    ARGS = p.parse_args()
    card.enter_or_skip(ARGS.bb_hca, ARGS.suite, tap=ARGS.port == 'bridge')
    processes = None
    if ARGS.port == 'bridge':
        guest.Guest.QEMU = paths.qemu()
        guest.make_bridge()
        # net_af_packet fails if its fanout group, the exclusive or of process ID and interface index, exists on another
        # interface. Process IDs of this namespace are less than 4096.
        port('host0', 'index', '4096')
    if ARGS.port:
        processes = list(map({'memif': memif, 'bridge': bridge}[ARGS.port], range(2)))
    options = ['--link', 'eth'] + ['--vf'] * ARGS.vf + ['--odp'] * (ARGS.odp_access is not None)
    THERE = card.Card(ARGS.bb_hca, options, ARGS.suite, functions=2, processes=processes)
    names = [name for name, test in vars(Eth).items() if name.startswith('test_') and
             getattr(test, 'port', ARGS.port) == ARGS.port and (ARGS.only in name or name == 'test_probe') and
             not (ARGS.port == 'bridge' and name in COMMON) and (ARGS.bb_verbs or name != 'test_bb_verbs') and
             (ARGS.odp_access or name != 'test_odp')]
    assert all(hasattr(Eth, name) for name in cm_cases.HCA_API_CASES), 'the table has other cases'
    try:
        THERE.boot()
        done = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(unittest.TestSuite(map(Eth, names)))
    finally:
        THERE.stop()
    return 0 if done.wasSuccessful() else 1


if __name__ == '__main__':
    sys.exit(main())
