#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The conversations between software devices of two processes, over DPDK's memif, a VLAN there, shared
memory, a tap, or AF_XDP on a veth pair. The last two run in a network namespace, and only in part.
"""

import argparse
import ctypes
import ctypes.util
import errno
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import paths  # noqa: E402, F401
import bluebell  # noqa: E402
import namespace  # noqa: E402
import pair  # noqa: E402
import peer  # noqa: E402
import runs  # noqa: E402


# Protocols for which tshark mistakes our patterns.
ON_TOP = ['rpcordma', 'smb_direct', 'iser', 'nvme-rdma', 'smc', 'lnet', 'infiniband.eoib',
          'infiniband_sdp']


def memif(n):
    """Returns the device's and EAL's option of side n, 1 or 2."""
    # An abstract socket leaves no file.
    return 'port=net_memif0,framesz=4198', ['--vdev=net_memif0,role=%s,socket=@bb_pair%d,'
                                            'socket-abstract=yes,bsize=4224' % (
                                                ('server', 'client')[n - 1], os.getpid())]


def shm(_):
    return 'shm=bb_pair%d' % os.getpid(), []


def vlan(n):
    link, eal = memif(n)
    return link + ',vlan=5', eal


def vlans(n):
    """A VLAN for each: they must not receive each other's packets."""
    link, eal = memif(n)
    return link + ',vlan=%d' % (4 + n), eal


def tap(n):
    """A tap, and a packet socket on Linux's interface of that tap."""
    if n == 1:
        return 'port=net_tap0', ['--vdev=net_tap0,iface=bbtap']
    # Side 1 is running and gave its own MAC to the interface, but two hosts must differ.
    namespace.ip('link', 'set', 'bbtap', 'address', '02:00:00:00:00:77', 'up')
    return 'port=net_af_packet0', ['--vdev=net_af_packet0,iface=bbtap']


def veth():
    if 'bbx1' in namespace.ip('link', 'show'):
        namespace.ip('link', 'del', 'bbx1')
    namespace.ip('link', 'add', 'bbx1', 'mtu', '2200', 'type', 'veth', 'peer', 'name', 'bbx2', 'mtu', '2200')
    for end in ('bbx1', 'bbx2'):
        namespace.ip('link', 'set', end, 'up')


def af_xdp(n):
    """Each has an end of a veth pair, made anew, as processes leave their XDP programs there."""
    if n == 1:
        veth()
    return 'port=net_af_xdp0', ['--vdev=net_af_xdp0,iface=bbx%d' % n]


LINKS = {'memif': memif, 'vlan': vlan, 'shm': shm, 'tap': tap, 'af_xdp': af_xdp}
# The kernel's links are slower: some conversations of each kind, and those with packet loss.
KERNEL = [runs.Run(runs.MESSAGES), runs.Run(runs.MESSAGES, ip=6), runs.LOSSES[0]]
KERNEL_RUNS = {'tap': KERNEL, 'af_xdp': KERNEL + [runs.Run(runs.MESSAGES, 2048)]}
APART = {'vlan': vlans}


def pairs(args, options, links=LINKS):
    """Makes a pair. options: further ones for the device of each side."""
    sides = []
    for n in (1, 2):
        link, eal = links[args.link](n)
        device = 'soft0,%s,ip=192.0.2.%d/24,ip=2001:db8::%d/64' % (link, n, n)
        sides.append(bluebell.Bluebell(bluebell.Process(
            args.bb_peer, [device + (',' + options[n - 1] if options[n - 1] else '')], eal)))
    for side in sides:
        side.wait_port()

    def close():
        for side in sides:
            side.process.close()
    return pair.Pair(*sides), close


def judge(capture):
    """tshark reads a capture of an ethdev's packets: all must be RoCEv2 packets over IP."""
    out = subprocess.run(['tshark', '-n', '-r', capture, '-T', 'fields'] +
                         [arg for p in ON_TOP for arg in ('--disable-protocol', p)] +
                         [arg for f in ('frame.packet_flags_direction', 'ip.version',
                                        'infiniband.bth.opcode', '_ws.malformed')
                          for arg in ('-e', f)],
                         check=True, capture_output=True, text=True).stdout
    seen = set()
    for number, line in enumerate(out.splitlines(), 1):
        direction, v4, opcode, malformed = line.split('\t')
        if not opcode or malformed:
            raise SystemExit('packet %d: opcode "%s", malformed "%s"' % (number, opcode, malformed))
        seen.add((direction, v4))
    if len(seen) != 4:
        raise SystemExit('not both directions, IPv4 and IPv6: %s' % sorted(seen))
    print('tshark: %d packets' % number)


def tagged(args):
    """Conversations on a VLAN, with capture, and none between two VLANs."""
    both, close = pairs(args, [None, None], APART)
    try:
        both.connect()
    except peer.VerbsError as err:
        if err.errno != errno.EHOSTUNREACH:
            raise
        print('two VLANs: not connected')
    else:
        raise SystemExit('VLAN 5 hears VLAN 6')
    close()
    with tempfile.TemporaryDirectory() as tmp:
        capture = os.path.join(tmp, 'vlan.pcapng')
        both, close = pairs(args, ['capture=' + capture, None])
        for run in (runs.Run(runs.MESSAGES), runs.Run(runs.MESSAGES, 4096, 6)):
            run.hold(both)
        close()
        if shutil.which('tshark') is None:
            print('skipped: the conversations went right; no tshark is installed to read the capture')
            return 77
        judge(capture)
    return 0


def without_rings():
    """Returns why there are no packet sockets with rings, or None. QEMU's emulation of Linux has none."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        try:
            s.setsockopt(263, 10, 1)  # SOL_PACKET, PACKET_VERSION, TPACKET_V2
        except OSError as err:
            return 'no rings of packet sockets: %s' % err
    return None


def without_xdp():
    """Returns why XDP, the right to load its programs, or an interface for them is missing; or None."""
    number = {'x86_64': 321, 'aarch64': 280}.get(platform.machine())  # bpf
    if number is None:
        return 'what is the number of bpf() here?'
    libc = ctypes.CDLL(None, use_errno=True)
    attr = (ctypes.c_uint32 * 32)(17, 4, 4, 1)  # BPF_MAP_TYPE_XSKMAP, bytes of key and value, entries
    made = libc.syscall(number, 0, attr, ctypes.sizeof(attr))  # BPF_MAP_CREATE
    if made < 0:
        return 'no XDP: %s' % os.strerror(ctypes.get_errno())
    os.close(made)
    try:
        socket.socket(44, socket.SOCK_RAW).close()  # AF_XDP
        veth()
    except OSError as err:
        return 'no XDP: %s' % err
    except namespace.NamespaceError as err:
        return 'no veth pair: %s' % err
    return None


NEEDS = {'tap': (['tap', 'af_packet'], without_rings), 'af_xdp': (['af_xdp'], without_xdp)}


def by_kernel(args):
    """Runs conversations over the kernel's links, in a namespace."""
    pmds, without = NEEDS[args.link]
    for pmd in pmds:
        if ctypes.util.find_library('rte_net_' + pmd) is None:
            namespace.skip('DPDK has no net_' + pmd)
    namespace.enter_or_skip()
    why = without()
    if why is not None:
        namespace.skip(why)
    runs.hold(lambda option: pairs(args, [option, option]), KERNEL_RUNS[args.link])
    return 0


def main():
    p = argparse.ArgumentParser(prog='test/interop/test_bb_pair.py', description=__doc__)
    p.add_argument('--link', choices=LINKS, default='memif', help='default: %(default)s')
    p.add_argument('bb_peer', help='bb_peer as built')
    args = p.parse_args()
    if args.link == 'vlan':
        return tagged(args)
    if args.link in NEEDS:
        return by_kernel(args)
    runs.hold(lambda option: pairs(args, [option, option]), runs.BLUEBELL)
    return 0


if __name__ == '__main__':
    sys.exit(main())
