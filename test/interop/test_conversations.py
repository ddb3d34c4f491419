#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the conversations hold for Linux itself: both peers in one guest, over rxe's loopback."""

import argparse
import sys

sys.dont_write_bytecode = True

import paths  # noqa: E402, F401
import guest  # noqa: E402
import namespace  # noqa: E402
import pair  # noqa: E402
import runs  # noqa: E402
import verbs  # noqa: E402


def main():
    p = argparse.ArgumentParser(prog='test/interop/test_conversations.py', description=__doc__)
    p.add_argument('--suite', default='bookworm', help='whose kernel (see vm/build)')
    p.add_argument('program', help='verbs_peer as built')
    args = p.parse_args()
    reason = guest.missing(args.suite)
    if reason:
        namespace.skip(reason)
    namespace.enter_or_skip()
    with guest.Guest(mtu=4200, suite=args.suite) as there:
        both = pair.Pair(verbs.Verbs(there, args.program), verbs.Verbs(there, args.program))
        for run in runs.PATHS:
            run.hold(both)
    return 0


if __name__ == '__main__':
    sys.exit(main())
