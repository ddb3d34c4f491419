#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Verbs programs on net_af_packet, in two network namespaces with a veth pair for RoCEv2 and another one for TCP."""

import os
import subprocess
import sys

from test_port import FORKED, SERVER, Base, Programs
from verbstest import main

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import netns  # noqa: E402


class Hosts(Programs, Base):
    port, tcp = 'net_af_packet0', '198.51.100.1'
    hosts, why = None, ''

    @classmethod
    def setUpClass(cls):
        try:
            cls.hosts = netns.Hosts('roce')
            cls.enter = cls.hosts.enter
            cls.net = '/proc/%d/net' % cls.hosts.sides[0].pid
        except netns.NetnsError as err:
            cls.why = str(err)

    @classmethod
    def tearDownClass(cls):
        if cls.hosts:
            cls.hosts.close()

    def setUp(self):
        super().setUp()
        if self.why:
            self.skipTest('no network namespaces: ' + self.why)

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
        self.addCleanup(self.hosts.sides[0].ip, 'link', 'set', 'roce', 'xdp', 'off')    # the PMD leaves its XDP program there
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
