#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""drivers/verbs inside a guest, on the kernel's siw: iWARP, connected by librdmacm.

usage: test_verbs_siw.py CM_PEER [--all]

siw0 stands on eth0, in place of rxe0; both sides are in the guest, and so is TCP between them. The
cases are those of test_rdmacm.py, against cm_peer itself and against Debian's programs: each checks
the bytes of its SENDs, READs and WRITEs. Without --all those run that wait for nothing.
"""

import argparse
import sys

sys.dont_write_bytecode = True

import guest  # noqa: E402
import namespace  # noqa: E402
import test_rdmacm as cm  # noqa: E402

# A host without a listener answers at once: with TCP's reset. So cm.mute_host has no place here.
# Nor have those whose server may be the first to say something: the calling side has to be (RFC
# 5044, 7.1), as siw gives up when an answer of MPA has more behind it: cycle, many, ucmatose.
CASES = [cm.ours('rping-server 20', 'rping-client 20'), cm.ipv6, cm.ours('no-server', 'no-client'),
         cm.killed('server'), cm.nobody, cm.rping_calls, cm.rping_serves, cm.rejects_theirs]
MORE = [cm.mute, cm.killed('client'), cm.no_host]


def main():
    p = argparse.ArgumentParser()
    p.add_argument('cm_peer')
    p.add_argument('--suite', default='bookworm', help='whose kernel (see vm/build)')
    p.add_argument('--all', action='store_true', help='what waits, too')
    args = p.parse_args()
    reason = guest.missing_siw(args.suite)
    if reason:
        namespace.skip(reason)
    namespace.enter()
    with guest.Guest(suite=args.suite) as there:
        there.change_to_siw()
        peers = cm.Peers(there, args.cm_peer, 0, 'siw0')
        cm.hold(peers, CASES + MORE if args.all else CASES)
    return 0


if __name__ == '__main__':
    sys.exit(main())
