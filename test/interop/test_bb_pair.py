#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The conversations between software devices of two processes, over DPDK's memif or shared memory."""

import argparse
import os
import sys

sys.dont_write_bytecode = True

import bluebell  # noqa: E402
import pair  # noqa: E402
import runs  # noqa: E402


def memif(n):
    """The device and EAL's option of side n, 1 or 2."""
    # An abstract socket leaves no file behind.
    return 'port=net_memif0,framesz=4198', ['--vdev=net_memif0,role=%s,socket=@bb_pair%d,'
                                            'socket-abstract=yes,bsize=4224' % (
                                                ('server', 'client')[n - 1], os.getpid())]


def shm(_):
    return 'shm=bb_pair%d' % os.getpid(), []


LINKS = {'memif': memif, 'shm': shm}


def pairs(args, option):
    sides = []
    for n in (1, 2):
        link, eal = LINKS[args.link](n)
        device = 'soft0,%s,ip=192.0.2.%d/24,ip=2001:db8::%d/64' % (link, n, n)
        sides.append(bluebell.Bluebell(bluebell.Process(
            args.bb_peer, [device + (',' + option if option else '')], eal)))
    for side in sides:
        side.wait_port()

    def close():
        for side in sides:
            side.process.close()
    return pair.Pair(*sides), close


def main():
    p = argparse.ArgumentParser(prog='test/interop/test_bb_pair.py', description=__doc__)
    p.add_argument('--link', choices=LINKS, default='memif', help='default: %(default)s')
    p.add_argument('bb_peer', help='bb_peer as built')
    args = p.parse_args()
    runs.hold(lambda option: pairs(args, option), runs.BLUEBELL)
    return 0


if __name__ == '__main__':
    sys.exit(main())
