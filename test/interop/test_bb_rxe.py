#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The conversations between Bluebell and Linux's rdma_rxe; each asks the other.

Bluebell is on the host's end of the guest's tap, by DPDK's af_packet, with addresses of its own.
The table of doc/guides must equal the results; --update writes it.
"""

import argparse
import re
import sys

sys.dont_write_bytecode = True

import paths  # noqa: E402, F401
import bluebell  # noqa: E402
import guest  # noqa: E402
import namespace  # noqa: E402
import pair  # noqa: E402
import peer  # noqa: E402
import runs  # noqa: E402
import standstill  # noqa: E402
import table  # noqa: E402
import verbs  # noqa: E402

FRAME = 8192


def bb_peer(program, there, option, ips='ip=192.0.2.9/24,ip=2001:db8::9/64'):
    device = 'soft0,port=net_af_packet0,framesz=%d,%s' % (FRAME, ips)
    vdev = '--vdev=net_af_packet0,iface=%s,blocksz=%d,framesz=%d' % (there.tap, FRAME, FRAME)
    return bluebell.Process(program, [device + (',' + option if option else '')], [vdev], capture=True)


def hold_all(there, args, wanted):
    """Runs the runs @wanted in both roles. Returns the argument of table.render."""
    found = {}
    linux = verbs.Verbs(there, args.verbs_peer)

    def pairs(option):
        process = bb_peer(args.bb_peer, there, option)
        here = bluebell.Bluebell(process)
        return {'bluebell': pair.Pair(here, linux), 'rxe': pair.Pair(linux, here)}, process.close

    for option in dict.fromkeys(run.option for run in wanted):
        both, close = pairs(option)
        for run in wanted:
            for role in table.ROLES if run.option == option else ():
                found[role, run.name] = run.hold(
                    both[role], lambda talk: runs.gap(role, talk),
                    lambda text, **_: print('%s: %s' % (table.ROLES[role], text), flush=True))
        if option is None:
            tells(both['rxe'], there)
        close()
    return found


def tells(both, there):
    """If the ACKs of a request are missing, the failure of a test names the peer that stalled."""
    both.mtu, both.ip, both.lossy = 1024, 4, False
    both.connect()
    both.request('write', len=3000, **both.remote())
    there.netem(into='loss 100%')
    both.post('write', len=5000, **both.remote())
    assert both.a.completion(1000) is None
    text = standstill.report(both, 'write')
    there.netem()
    both.expect(both.a, 'the way is good again', id=1, status=peer.SUCCESS)
    both.close()
    for wanted in (r'sq-psn \d+', r'hw_counters/sent_pkts:\d', r"'state': 'RTS', 'sq_psn'", r"'rx_write': [1-9]",
                   r'in  RC WRITE last, QPN 0x\w+, PSN 0x\w+, asks, 904', r'out RC ACK, .* MSN 2'):
        assert re.search(wanted, text), '%s is not in: %s' % (wanted, text)
    print('a request that stands still: %d lines tell of it' % text.count('\n'), flush=True)


def main():
    p = argparse.ArgumentParser(prog='test/interop/test_bb_rxe.py', description=__doc__)
    p.add_argument('--suite', default='bookworm', help='whose kernel (see vm/build)')
    p.add_argument('--update', action='store_true', help='write the table')
    p.add_argument('--short', action='store_true', help='a run of each kind, and no table')
    p.add_argument('bb_peer', help='bb_peer as built')
    p.add_argument('verbs_peer', help='verbs_peer as built')
    p.add_argument('rst', help='doc/guides/evidence/interop.rst')
    args = p.parse_args()
    reason = guest.missing(args.suite)
    if reason:
        namespace.skip(reason)
    namespace.enter_or_skip()
    with guest.Guest(mtu=4200, suite=args.suite) as there:
        found = hold_all(there, args, runs.RXE_SHORT if args.short else runs.RXE)
    if args.short:
        return 0
    text = table.render(found)
    if args.update:
        with open(args.rst, 'w') as f:
            f.write(text)
        return 0
    wrong = table.differences(text, args.rst)
    sys.stdout.writelines(wrong)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
