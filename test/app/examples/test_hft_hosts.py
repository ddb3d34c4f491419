#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/hft_pipeline with a port for each side, which exchange RoCEv2 packets."""

import os
import sys

APP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path += [APP, os.path.dirname(APP)]
import netns  # noqa: E402
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
    MORE_EAL = [['--vdev=net_af_packet0,iface=roce0']] * 2

    @classmethod
    def setUpClass(cls):
        try:
            cls.hosts = netns.Hosts('roce0')
        except netns.NetnsError as err:
            # Skips the whole program, so that meson counts it.
            print('skipped: %s' % err, flush=True)
            os._exit(SKIP)
        cls.ENTER = cls.hosts.enter

    @classmethod
    def tearDownClass(cls):
        cls.hosts.close()

    def device(self, side):
        return 'soft0,port=net_af_packet0,ip=192.0.2.%d/24%s' % (side + 1, self.FAULTS)


del Wire  # not a test by itself

if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit('usage: %s PROGRAM Memif|Hosts' % sys.argv[0])
    main()
