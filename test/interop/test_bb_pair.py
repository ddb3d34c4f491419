#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The conversations between software devices of two processes, over DPDK's memif, a VLAN there, or
shared memory."""

import argparse
import errno
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import bluebell  # noqa: E402
import pair  # noqa: E402
import peer  # noqa: E402
import runs  # noqa: E402


# Protocols that tshark takes our patterns for.
ON_TOP = ['rpcordma', 'smb_direct', 'iser', 'nvme-rdma', 'smc', 'lnet', 'infiniband.eoib',
          'infiniband_sdp']


def memif(n):
    """The device and EAL's option of side n, 1 or 2."""
    # An abstract socket leaves no file behind.
    return 'port=net_memif0,framesz=4198', ['--vdev=net_memif0,role=%s,socket=@bb_pair%d,'
                                            'socket-abstract=yes,bsize=4224' % (
                                                ('server', 'client')[n - 1], os.getpid())]


def shm(_):
    return 'shm=bb_pair%d' % os.getpid(), []


def vlan(n):
    link, eal = memif(n)
    return link + ',vlan=5', eal


def vlans(n):
    """A VLAN for each: they must not hear each other."""
    link, eal = memif(n)
    return link + ',vlan=%d' % (4 + n), eal


LINKS = {'memif': memif, 'vlan': vlan, 'shm': shm}
APART = {'vlan': vlans}


def pairs(args, options, links=LINKS):
    """options: more of them for the device of each side."""
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
    """A second reader's word on a capture of what an ethdev carried: IP packets of RoCEv2."""
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
    """Conversations on a VLAN, captured, and none between two of them."""
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


def main():
    p = argparse.ArgumentParser(prog='test/interop/test_bb_pair.py', description=__doc__)
    p.add_argument('--link', choices=LINKS, default='memif', help='default: %(default)s')
    p.add_argument('bb_peer', help='bb_peer as built')
    args = p.parse_args()
    if args.link == 'vlan':
        return tagged(args)
    runs.hold(lambda option: pairs(args, [option, option]), runs.BLUEBELL)
    return 0


if __name__ == '__main__':
    sys.exit(main())
