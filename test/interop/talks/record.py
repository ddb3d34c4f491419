#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Records the conversations of conversations.py between two guests, one pcap each.

It made the files of test/golden/data; with the same names it makes them anew.
"""

import argparse
import os
import sys

sys.dont_write_bytecode = True
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import paths  # noqa: E402
import capture  # noqa: E402
import guest  # noqa: E402
import namespace  # noqa: E402
import pair  # noqa: E402
import roce  # noqa: E402
import runs  # noqa: E402
import verbs  # noqa: E402


def main():
    talks = {row[0]: row[1:] for row in runs.RECORDED}
    listing = '\n'.join('  %-14s %s; MTU %d, IPv%d' % (name, row[0].__doc__, row[1], row[2])
                        for name, row in talks.items())
    p = argparse.ArgumentParser(prog='test/interop/talks/record.py', description=__doc__,
                                epilog='conversations:\n' + listing,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--suite', default='bookworm', help='whose kernel (see vm/build)')
    p.add_argument('--out', default=os.path.join(paths.TOP, 'test', 'golden', 'data'),
                   help='folder of the pcaps (default: test/golden/data)')
    p.add_argument('program', help='verbs_peer as built: BUILD/test/interop/verbs_peer')
    p.add_argument('name', nargs='*', help='conversations (default: all)')
    args = p.parse_args()
    for name in args.name:
        if name not in talks:
            p.error('no conversation %s' % name)
    reason = guest.missing(args.suite)
    if reason:
        sys.exit('record: ' + reason)
    namespace.enter()
    guest.make_bridge('br0', 4200)
    guests = [guest.Guest(number, 4200, 'br0', args.suite) for number in (2, 3)]
    guest.boot_all(guests)
    kernel = '.'.join(guests[0].run('uname -r').split('.')[:2]).strip()
    both = pair.Pair(*[verbs.Verbs(there, args.program) for there in guests])
    for name in args.name or talks:
        talk, both.mtu, both.ip = talks[name]
        with capture.Capture(guests[0].tap) as recorded:
            both.run(talk)
        path = os.path.join(args.out, 'rxe-%s-%s.pcap' % (kernel, name))
        recorded.write(path)
        packets = [roce.parse(frame) for _, frame in recorded.frames]
        wrong = sum(not packet.icrc_right for packet in packets)
        print('%s: %d packets, %d bytes, %d wrong ICRCs' % (path, len(packets),
                                                           os.path.getsize(path), wrong))
        if wrong or not packets:
            return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
