#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Verbs programs on net_af_packet, in two network namespaces with a veth pair for RoCEv2 and another one for TCP."""

import subprocess
import sys

from test_port import FORKED, SERVER, Base, Programs
from verbstest import WAIT, main


class Hosts(Programs, Base):
    port, tcp = 'net_af_packet0', '198.51.100.1'
    holders = []

    @classmethod
    def setUpClass(cls):
        cls.why = cls.make()

    @classmethod
    def make(cls):
        """Makes the namespaces. Returns why that is not possible, '' on success."""
        cls.holders, cls.enter = [], []
        try:
            for _ in range(2):
                # The namespace exists once it prints a line.
                p = subprocess.Popen(['unshare', '--net', 'sh', '-c', 'echo up; exec sleep 3600'],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                cls.holders.append(p)
                if p.stdout.readline() != 'up\n':
                    return p.stderr.read()
                cls.enter.append(['nsenter', '--net', '--target', str(p.pid)])
            for kind in 'roce', 'tcp':
                cls.ip(0, 'link', 'add', kind, 'type', 'veth', 'peer', 'name', kind, 'netns', str(cls.holders[1].pid))
            for side in range(2):
                cls.ip(side, 'link', 'set', 'roce', 'addrgenmode', 'none')     # only the port may answer there
                cls.ip(side, 'addr', 'add', '198.51.100.%d/24' % (side + 1), 'dev', 'tcp')
                for name in 'lo', 'roce', 'tcp':
                    cls.ip(side, 'link', 'set', name, 'up')
        except (OSError, subprocess.CalledProcessError) as e:
            return str(getattr(e, 'stderr', None) or e)
        cls.net = '/proc/%d/net' % cls.holders[0].pid
        return ''

    @classmethod
    def ip(cls, side, *args):
        subprocess.run(cls.enter[side] + ['ip', *args], check=True, stderr=subprocess.PIPE, text=True, timeout=WAIT)

    @classmethod
    def tearDownClass(cls):
        for p in cls.holders:
            p.kill()
            p.communicate()

    def setUp(self):
        super().setUp()
        if self.why:
            self.skipTest('no network namespaces: ' + self.why.strip())

    def vdev(self, role):
        return 'net_af_packet0,iface=roce'

    def at(self, end, *args):
        return self.enter[0 if end[0] == 'server' else 1] + super().at(end, *args)

    def test_interface_of_the_namespace_is_found(self):
        rc, out = self.run_one(self.at(SERVER, 'sh', '-c', 'cat /sys/class/infiniband/mlx5_0/node_guid'))
        self.assertEqual(rc, 0, out)
        mac = subprocess.run(self.enter[0] + ['ip', '-o', 'link', 'show', 'roce'], check=True, text=True,
                             stdout=subprocess.PIPE).stdout.split('link/ether ')[1].split()[0]
        b = [int(x, 16) for x in mac.split(':')]
        self.assertIn('%02x%02x:%02xff:fe%02x:%02x%02x' % (b[0] ^ 2, *b[1:]), out)

    def refuses_children(self):
        rc, out = self.run_one(self.at(SERVER, self.hostile, 'forked_port'))
        self.assertEqual(rc, 0, out)
        self.assertRegex(out, FORKED)

    def test_children_get_no_sockets(self):
        self.refuses_children()

    def test_children_get_no_sockets_of_af_xdp(self):
        """Its PMD opens the socket when the device sets up the queues."""
        self.port = 'net_af_xdp0'
        self.vdev = lambda role: 'net_af_xdp0,iface=roce'
        self.addCleanup(self.ip, 0, 'link', 'set', 'roce', 'xdp', 'off')    # the PMD leaves its XDP program there
        rc, out = self.run_one(self.at(SERVER, self.hostile, 'closed'))
        if rc != 0:
            self.skipTest('no AF_XDP: ' + out)
        self.refuses_children()

    def test_mac_that_has_changed_is_reported(self):
        rc, out = self.run_one(self.at(SERVER, 'sh', '-c', 'ip link set roce address 02:00:00:00:00:77 && exec "$0" closed',
                                       self.hostile))
        self.assertEqual(rc, 1, out)
        self.assertIn('the MAC of the port is not the one that bb_verbs found', out)


if __name__ == '__main__':
    main(sys.argv)
