#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/hft_pipeline with a port for each side, which exchange RoCEv2 packets."""

import os
import subprocess
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import SKIP, main  # noqa: E402
from hfttest import HftTest  # noqa: E402


class Wire(HftTest):
    """The same checks with packets: no loss, no duplicates, books and orders as replayed."""
    FAULTS = ''

    def test_in_order(self):
        r = self.run_pair('--rate', '0', ticks=5000)
        self.assertGreater(r['orders'], 50)
        self.assertEqual(r['orders'], r['orders_replayed'])

    def test_kill_switch(self):
        r = self.run_pair('--rate', '0', '--kill-after', '20', '--slots', '16', ticks=2000)
        self.assertTrue(r['killed'])

    def test_packets_lost(self):
        self.FAULTS = ',tx_drop=2,rx_reorder=2,seed=3'
        r = self.run_pair('--rate', '0', ticks=2000)
        self.assertEqual(r['orders'], r['orders_replayed'])


class Memif(Wire):
    """Two processes connected by net_memif, which needs no privileges."""
    def device(self, side):
        return 'soft0,port=net_memif0,ip=192.0.2.%d/24%s' % (side + 1, self.FAULTS)

    @property
    def MORE_EAL(self):
        # The listening one starts first.
        return [['--vdev=net_memif0,role=%s,socket=@hft%d,socket-abstract=yes' % (role, os.getpid())]
                for role in ('client', 'server')]


class Hosts(Wire):
    """Two network namespaces with one link for RoCEv2 and another one for the kernel's TCP."""
    LISTEN = '198.51.100.2'
    MORE_EAL = [['--vdev=net_af_packet0,iface=roce%d' % side] for side in (0, 1)]
    holders = []

    @classmethod
    def setUpClass(cls):
        cls.holders = []
        try:
            for _ in (0, 1):
                # The namespace exists once it prints a line.
                p = subprocess.Popen(['unshare', '--net', 'sh', '-c', 'echo up; exec sleep 3600'],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                cls.holders.append(p)
                if p.stdout.readline() != 'up\n':
                    cls.give_up(p.stderr.read())
            cls.ENTER = [['nsenter', '--net', '--target', str(p.pid)] for p in cls.holders]
            there = str(cls.holders[1].pid)
            for kind in ('roce', 'tcp'):
                cls.ip(0, 'link', 'add', kind + '0', 'type', 'veth', 'peer', 'name', kind + '1',
                       'netns', there)
            for side in (0, 1):
                # Only the port may answer there.
                cls.ip(side, 'link', 'set', 'roce%d' % side, 'addrgenmode', 'none')
                cls.ip(side, 'addr', 'add', '198.51.100.%d/24' % (side + 1), 'dev', 'tcp%d' % side)
                for kind in ('lo', 'roce%d' % side, 'tcp%d' % side):
                    cls.ip(side, 'link', 'set', kind, 'up')
        except FileNotFoundError as err:
            cls.give_up(str(err))

    @classmethod
    def tearDownClass(cls):
        for p in cls.holders:
            p.kill()
            p.communicate()

    @classmethod
    def ip(cls, side, *args):
        res = subprocess.run(cls.ENTER[side] + ['ip'] + list(args), stderr=subprocess.PIPE, text=True)
        if res.returncode != 0:
            cls.give_up('ip %s: %s' % (' '.join(args), res.stderr))

    @classmethod
    def give_up(cls, why):
        """Skips the whole program, so that meson counts it."""
        print('skipped: ' + why.strip(), flush=True)
        cls.tearDownClass()
        os._exit(SKIP)

    def device(self, side):
        return 'soft0,port=net_af_packet0,ip=192.0.2.%d/24%s' % (side + 1, self.FAULTS)


del Wire  # not a test by itself

if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit('usage: %s PROGRAM Memif|Hosts' % sys.argv[0])
    main()
