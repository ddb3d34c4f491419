# SPDX-License-Identifier: BSD-3-Clause
"""A guest with Linux's rdma_rxe, behind a tap in the network namespace of this process."""

import os
import shutil

import machine
import namespace
import paths
from machine import GuestError  # noqa: F401


def missing(suite='bookworm'):
    """Returns why no guest can run here, or None."""
    if shutil.which(machine.QEMU) is None:
        return '%s is not installed (package qemu-system-x86)' % machine.QEMU
    return machine.missing_image(suite)


def missing_siw(suite='bookworm'):
    """Returns why no guest can have a siw0, or None."""
    if missing(suite) or paths.siw(suite):
        return missing(suite)
    why = paths.read_text(os.path.join(paths.CACHE, suite, 'siw-missing'))
    return 'no module siw for the guest: %s' % (why or 'run test/interop/vm/build')


class Guest(machine.Machine):
    """One guest: eth0 at the end of `tap`, rxe0 on it.

    number: 2 to 254, last byte of its addresses (192.0.2.N, 2001:db8::N) and part of its MAC
    and tap name. mtu: of eth0 and tap; RoCE's is the largest of 256 ... 4096 that fits with
    its headers (1500: 1024, 4200: 4096). bridge: the tap becomes a port of it.
    """

    def __init__(self, number=2, mtu=1500, bridge=None, suite='bookworm', echo=print):
        super().__init__(number, suite, echo)
        self.mtu = mtu
        self.bridge = bridge
        self.tap = 'tap-' + self.name
        self.ipv4 = '192.0.2.%d' % number
        self.ipv6 = '2001:db8::%x' % number
        self.mac = '52:54:00:00:02:%02x' % number

    def make_tap(self):
        namespace.ip('tuntap', 'add', 'dev', self.tap, 'mode', 'tap')
        namespace.ip('link', 'set', self.tap, 'mtu', str(self.mtu))
        if self.bridge:
            namespace.ip('link', 'set', self.tap, 'master', self.bridge)
        namespace.ip('link', 'set', self.tap, 'up')

    def settings(self):
        return super().settings() + ['vm_ip=%s/24,%s/64' % (self.ipv4, self.ipv6), 'vm_mac=' + self.mac,
                                     'vm_mtu=%d' % self.mtu]

    def devices(self):
        # csum=off: the kernel computes checksums itself, so that what passes the tap has them.
        return ['-netdev', 'tap,id=n0,ifname=%s,script=no,downscript=no' % self.tap,
                '-device', 'virtio-net-pci,netdev=n0,mac=%s,addr=3,romfile=,csum=off,'
                'guest_csum=off,host_mtu=%d' % (self.mac, self.mtu)]

    def about(self):
        return '%s mtu %d' % (self.ipv4, self.mtu)

    def start(self):
        if not os.path.exists('/proc/sys/net/ipv4/conf/' + self.tap):
            self.make_tap()
        super().start()

    def change_to_siw(self):
        """Replaces rxe0 by siw0 on eth0: iWARP over the kernel's TCP. librdmacm would choose rxe0."""
        self.put(paths.siw(self.suite), '/tmp/siw.ko')
        self.run('set -e; modprobe libcrc32c; modprobe iw_cm; insmod /tmp/siw.ko; '
                 'rdma link del rxe0; rdma link add siw0 type siw netdev eth0')
        self.wait_for("rdma link show siw0/1 | grep -q 'state ACTIVE'")

    # Faults of the path, for RoCEv2 packets only: ARP and TCP are not affected.

    def netem(self, out=None, into=None):
        """Sets netem's options for packets that this guest sends and gets; None: no faults. As in
        there.netem(out='loss 10%', into='delay 5ms reorder 25% duplicate 5%')."""
        script = ['set -e', 'for m in sch_netem sch_prio sch_ingress cls_u32 act_mirred; do '
                  'modprobe $m; done', 'modprobe ifb numifbs=1', 'ip link set ifb0 up',
                  'tc qdisc del dev eth0 root 2>/dev/null || true',
                  'tc qdisc del dev eth0 ingress 2>/dev/null || true',
                  'tc qdisc del dev ifb0 root 2>/dev/null || true']
        match = [(kind, 'u32 match %s protocol 17 0xff match %s dport 4791 0xffff' % (what, what))
                 for kind, what in (('ip', 'ip'), ('ipv6', 'ip6'))]
        if out:
            script += ['tc qdisc add dev eth0 root handle 1: prio bands 4',
                       'tc qdisc add dev eth0 parent 1:4 handle 40: netem limit 10000 ' + out]
            script += ['tc filter add dev eth0 parent 1: protocol %s prio %d %s flowid 1:4' % (
                kind, number, rule) for number, (kind, rule) in enumerate(match, 1)]
        if into:
            script += ['tc qdisc add dev ifb0 root netem limit 10000 ' + into,
                       'tc qdisc add dev eth0 ingress']
            script += ['tc filter add dev eth0 parent ffff: protocol %s prio %d %s '
                       'action mirred egress redirect dev ifb0' % (kind, number, rule)
                       for number, (kind, rule) in enumerate(match, 1)]
        self.run('\n'.join(script))


def boot_all(guests):
    """Boots several guests at a time."""
    for guest in guests:
        guest.start()
    try:
        for guest in guests:
            guest.boot()
    except BaseException:
        for guest in guests:
            guest.stop()
        raise


def make_bridge(name='br0', mtu=1500):
    """Makes a bridge for the taps of several guests that sends no packets of its own."""
    namespace.ip('link', 'add', name, 'type', 'bridge', 'forward_delay', '0', 'mcast_snooping',
                 '0')
    namespace.ip('link', 'set', name, 'mtu', str(mtu), 'up')


def host_address(interface, address='192.0.2.1/24'):
    """Gives the host's kernel an address, for the TCP connections with which programs start."""
    namespace.ip('addr', 'add', address, 'dev', interface)
