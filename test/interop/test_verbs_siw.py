#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""drivers/verbs inside a guest, on the kernel's siw: iWARP, connected by librdmacm.

usage: test_verbs_siw.py CM_PEER CONFORM GUIDE [--all] [--update]

siw0 is on eth0 instead of rxe0. Both sides, and TCP between them, are in the guest. The cases are
those of test_rdmacm.py, against cm_peer itself and against Debian's programs: each checks the bytes
of its SENDs, READs and WRITEs. Without --all only cases that wait for no timeout run.

Then conformance rows that iWARP supports run, with pairs connected by librdmacm, too. Areas that only
InfiniBand and RoCE have are left out: bb_qp_connect(), UC, UD, atomics, windows, NAKs. KNOWN lists
where siw differs. The table in GUIDE must equal the results: --update writes it.
"""

import argparse
import fnmatch
import re
import sys

sys.dont_write_bytecode = True

import paths  # noqa: E402, F401
import carry  # noqa: E402
import guest  # noqa: E402
import namespace  # noqa: E402
import test_rdmacm as cm  # noqa: E402
import test_verbs_rxe as rxe  # noqa: E402

# A host without a listener answers at once, with TCP's reset, so cm.mute_host does not apply.
# ucmatose does not apply either: its server sends first, also at the end. The connecting side must
# do so (RFC 5044, 7.1), as siw gives up if an MPA answer is followed by more data.
CASES = [cm.ours('rping-server 20', 'rping-client 20'), cm.ipv6,
         cm.ours('cycle-server {cycle}', 'cycle-client {cycle}'),
         cm.ours('many-server 16', 'many-client 16'), cm.ours('no-server', 'no-client'),
         cm.killed('server'), cm.nobody, cm.rping_calls, cm.rping_serves, cm.rejects_theirs]
MORE = [cm.mute, cm.killed('client'), cm.no_host]

# All of completion and srq except rows that wait for what siw never delivers: the receive without
# pieces, and SRQ_LAST_WQE.
PART = ('data/rc/*/64/*,data/rc/*/mtu+1/*,data/rc/*/64K/*,data/rc/*/1M/*,completion/[!r]*,'
        'completion/rc/data-in-cqe/[!s]*,completion/rc/data-in-cqe/send/[!0]*,cq/*,device/*,event/*,'
        'list/*,memory/*,order/*,post/*,srq/[!r]*,srq/rc/[!l]*,srq/rc/limit/*')

# Rows that fail on siw: pattern, kernels, message of the row, behaviour of siw or the driver.
KNOWN = [
    ('memory/mr/zero-based/*', '6.1 6.12', r'-95|Operation not supported',
     'no region at another address: the driver refuses it'),
    ('memory/mr/iova/*', '6.1 6.12', r'-95|Operation not supported',
     'no region at another address: the driver refuses it'),
    # The driver arms for all completions (verbs_cq_arm()): an unsolicited message raises an event,
    # and nothing else may fail.
    ('event/rc/solicited-only/messages', '6.1 6.12',
     r'a message that is not solicited: bb_channel_wait\(\) returned 0, expected -11',
     'an event for each completion'),
    ('order/rc/aligned-8-bytes-whole/*', '6.1 6.12', r'torn units', 'no unit of 8 bytes is whole'),
    ('srq/rc/full-and-empty/*', '6.1 6.12', r'bb_srq_query', 'no query of an SRQ'),
    ('srq/rc/limit/*', '6.1 6.12', r'bb_srq_query', 'no query of an SRQ'),
]

BEGIN, END = '.. siw-table begins\n', '.. siw-table ends\n'
HEAD = [':header: area of the conformance suite, tests passed, tests skipped, differences of siw',
        ':widths: 12, 10, 39, 39']


def conform(there, args):
    """Runs PART in the guest. Returns the rows, and whether all pass that should."""
    found = carry.conform(there, args.conform, 'siw0', "-a %s -t 30 -f '%s'" % (there.ipv4, PART), carry.PROGRAM_SECONDS)
    rows = [row for row in found if row['result'] != 'not run']
    bad, count = rxe.judge(rows, KNOWN, rxe.kernel_of(there))
    for line in bad:
        print('FAIL', line)
    print('%(pass)d rows hold, %(skip)d skip for want of an ability, %(known)d are known not to'
          % count, flush=True)
    return rows, not bad and count['pass'] >= 50


def words(counts):
    return '"%s"' % '; '.join('%d: %s' % (n, re.sub(r'\bbb_dev_attr\.', '', why))
                              for why, n in sorted(counts.items()))


def table(rows, kernel):
    """Returns for each area the rows that pass, that lack a capability, and that KNOWN lists."""
    areas = {}
    for row in rows:
        hold, skip, other = areas.setdefault(row['name'].split('/')[0], ([], {}, {}))
        # By name: whether a torn unit is seen is chance.
        why = next((why for pattern, kernels, _, why in KNOWN
                    if fnmatch.fnmatchcase(row['name'], pattern) and kernel in kernels.split()), None)
        if row['result'] == 'skip':
            skip[row['why']] = skip.get(row['why'], 0) + 1
        elif why:
            other[why] = other.get(why, 0) + 1
        else:
            hold.append(row)
    lines = ['', '.. csv-table::'] + ['   ' + line for line in HEAD] + ['']
    for area, (hold, skip, other) in sorted(areas.items()):
        lines.append('   %s, %d, %s, %s' % (area, len(hold), words(skip), words(other)))
    return '\n'.join(lines + ['', ''])


def compare(args, made):
    """Returns whether the guide's table equals this one. --update: replaces it."""
    with open(args.guide) as f:
        text = f.read()
    head, rest = text.split(BEGIN)
    kept, tail = rest.split(END)
    if args.update:
        with open(args.guide, 'w') as f:
            f.write(head + BEGIN + made + END + tail)
        return True
    if kept != made:
        print('%s: the table of siw is out of date; test_verbs_siw.py --update makes:\n%s' % (
            args.guide, made))
    return kept == made


def main():
    p = argparse.ArgumentParser()
    p.add_argument('cm_peer')
    p.add_argument('conform')
    p.add_argument('guide')
    p.add_argument('--suite', default='bookworm', help='whose kernel (see vm/build)')
    p.add_argument('--all', action='store_true', help='cases that wait, too')
    p.add_argument('--cycles', type=int, default=20, help='connections made and ended')
    p.add_argument('--update', action='store_true', help='write the table into the guide')
    args = p.parse_args()
    reason = guest.missing_siw(args.suite)
    if reason:
        namespace.skip(reason)
    namespace.enter_or_skip()
    with guest.Guest(suite=args.suite) as there:
        there.change_to_siw()
        peers = cm.Peers(there, args.cm_peer, args.cycles, 'siw0')
        cm.hold(peers, CASES + MORE if args.all else CASES)
        rows, held = conform(there, args)
        made = table(rows, rxe.kernel_of(there))
    # The guide has the table of Linux 6.1.
    return 0 if held and (args.suite != 'bookworm' or compare(args, made)) else 1


if __name__ == '__main__':
    sys.exit(main())
