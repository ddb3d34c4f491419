#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The conversations between two software devices of one process, as RoCEv2 packets."""

import sys

sys.dont_write_bytecode = True

import paths  # noqa: E402, F401
import bluebell  # noqa: E402
import pair  # noqa: E402
import runs  # noqa: E402


def pairs(option):
    devices = ['soft%d,wire=1%s' % (n, ',' + option if option else '') for n in (0, 1)]
    process = bluebell.Process(sys.argv[1], devices)
    # The GIDs of a link of packets: the link-local one, then IPv4's, both of RoCE v2.
    return pair.Pair(*[bluebell.Bluebell(process, on, ipv4=1, ipv6=0) for on in (0, 1)]), \
        process.close


def main():
    runs.hold(pairs, runs.BLUEBELL)
    return 0


if __name__ == '__main__':
    sys.exit(main())
