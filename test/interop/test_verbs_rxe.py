#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""drivers/verbs inside a guest, on the kernel's rxe0: conform, conversations with the host, GIDs.

usage: test_verbs_rxe.py CONFORM BB_PEER VERBS_COST GIDS CM_MOVE VERBS_LIFE
           [--suite NAME] [--filter LIST] [--all]

Without --all only a part of the suite runs, which takes seconds. KNOWN lists where rxe differs from
libibverbs' manual pages, by kernel, with the symptom: such a row may fail with this symptom only. If
all rows of an entry run and none fails, the entry is stale and the test fails.

Then Bluebell on rxe0 in the guest talks to Bluebell on a software device at the host's end of the
tap; each asks the other. The cost of a write compared with bare libibverbs is printed but not judged:
the guest is emulated, and the machine may be busy. A plain user runs it, too, with limits. In the end
its interface gets VLANs and goes into a bond: see gids.py.
"""

import argparse
import fnmatch
import re
import sys

sys.dont_write_bytecode = True

import paths  # noqa: E402, F401
import bluebell  # noqa: E402
import carry  # noqa: E402
import gids  # noqa: E402
import guest  # noqa: E402
import moves  # noqa: E402
import namespace  # noqa: E402
import pair  # noqa: E402
import runs  # noqa: E402
import test_bb_rxe  # noqa: E402
import verbs  # noqa: E402

# Between guest and host: all conversations, then those that differ with IPv6.
TALKS = [runs.Run(runs.ALL), runs.Run(runs.MESSAGES, ip=6)]

# The quick rows of each area, none of which waits for a timeout.
PART = ('data/rc/write/64/*,data/rc/write/mtu+1/*,data/rc/write/1M/*,data/rc/read/mtu-1/*,'
        'data/rc/read/64K/*,data/rc/write_imm/64/*,data/rc/send/64/*,data/rc/send/mtu+1/*,'
        'data/rc/send_imm/mtu-1/*,data/uc/write/mtu-1/*,data/uc/send/64/*,atomic/*,completion/*,'
        'list/*,post/*,cq/*,event/*,srq/*,order/*,device/*,window/rc/bind*,'
        'unreliable/ud/data/*')

OP = r'completed with "local QP operation error"'
FLUSHED = r'completed with "flushed in error"'
BOTH = '6.1 6.12'
NEW = 'says "flushed" of the request that fails itself'

# Rows that fail on rxe: pattern, kernels, message of the row, behaviour of rxe.
KNOWN = [
    ('window/rc/range/*', BOTH, r'write: completed with "success"',
     'checks the range of the region, not that of the window'),
    ('window/rc/zero-based/*', BOTH, r'write: completed with "success"',
     'takes addresses of a zero-based window as others'),
    ('window/rc/old-key-is-dead/send-with-invalidate', BOTH, "the receive's flags 0x0 and key 0x0",
     "the completion's flag is the kernel's, and it has no key"),
    ('window/rc/region-is-held/type-2/moved', '6.12', FLUSHED, NEW),
    ('window/rc/key-goes-round/*', '6.1', r'completed with "memory window bind error"',
     'does not let a key come round to what it was'),
    ('window/rc/key-goes-round/*', '6.12', FLUSHED, 'the same, and ' + NEW),
    ('error/rc/lkey/*', '6.1', OP, 'says local QP operation error of a bad key'),
    ('error/rc/lkey/*', '6.12', FLUSHED, NEW),
    ('error/rc/local-range/*/[ws]*', '6.12', FLUSHED, NEW),
    ('receive/rc/*', BOTH, r'the bad receive: ' + OP, 'says local QP operation error of a bad receive'),
    ('srq/rc/last-wqe/*', '6.1', 'no event within', 'has no event for the last receive'),
    # The driver arms for all completions (verbs_cq_arm()).
    ('event/rc/solicited-only/messages', BOTH,
     r'a message that is not solicited: bb_channel_wait\(\) returned 0, expected -11',
     'an event for each completion'),
    ('unreliable/ud/lost/own-qkey', BOTH, 'the datagram: 0 of 1 completions came',
     "does not take the QP's Q_Key when the top bit is set"),
    ('async/*/communication-established/*', BOTH, 'the first message: no event within',
     'has no event for the first message of a QP in RTR'),
]


def kernel_of(there):
    """Returns the guest's kernel, as 6.12."""
    return '.'.join(there.run('uname -r').split('.')[:2])


def known(row, table, kernel):
    """Returns the known behaviour of the device that explains this failure; None if there is none."""
    return next((why for pattern, kernels, says, why in table
                 if fnmatch.fnmatchcase(row['name'], pattern) and kernel in kernels.split() and
                 re.search(says, row.get('why', ''))), None)


def judge(rows, table, kernel):
    """Returns the names of rows that fail unexpectedly, and the numbers that passed, skipped and
    are known."""
    bad, count = [], {'pass': 0, 'skip': 0, 'known': 0, 'differs': 0}
    for row in rows:
        if row['result'] != 'fail':
            count[row['result']] += 1
        elif known(row, table, kernel):
            count['known'] += 1
        else:
            bad.append('%s: %s' % (row['name'], row.get('why', '')))
    return bad, count


def stale(rows, table, kernel):
    """Returns entries that excuse no failure: each of their rows ran or was skipped, and one passed."""
    lines = []
    for pattern, kernels, _, why in table:
        if kernel not in kernels.split():
            continue
        results = [r['result'] for r in rows if fnmatch.fnmatchcase(r['name'], pattern)]
        if not results:
            lines.append('%s: KNOWN names it and conform has no such row' % pattern)
        elif 'pass' in results and set(results) <= {'pass', 'skip'}:
            lines.append('%s: holds on Linux %s, though KNOWN says: %s; strike it there' % (
                pattern, kernel, why))
    return lines


def conform(there, args):
    """Runs it in the guest. Returns whether all rows pass that should."""
    rows = '' if args.all else "-f '%s'" % args.filter
    found = carry.conform(there, args.conform, 'rxe0', rows, args.seconds)
    kernel = kernel_of(there)
    bad, count = judge([r for r in found if r['result'] != 'not run'], KNOWN, kernel)
    bad += stale(found, KNOWN, kernel)
    for line in bad:
        print('FAIL', line)
    print('%(pass)d rows hold, %(skip)d skip for want of an ability, %(known)d are known not to'
          % count, flush=True)
    # A device on which nothing passes, or a suite that ran nothing, is no success.
    return not bad and count['pass'] >= 50


def talk(there, program):
    """Runs all conversations; each side asks."""
    inside = verbs.Bluebell(there, program)
    process = test_bb_rxe.bb_peer(program, there, None)
    outside = bluebell.Bluebell(process)
    for asks, both in (('rxe0', pair.Pair(inside, outside)), ('soft0', pair.Pair(outside, inside))):
        for run in TALKS:
            try:
                run.hold(both, echo=lambda text, **_: None)
            except Exception:
                print(inside.said())
                raise
            print('%s asks, %s: %d conversations' % (asks, run.name, len(run.talks)), flush=True)
    process.close()


def talk_over(there, program, device, address, ips):
    """Exchanges messages by that GID of a device in the guest; each side asks."""
    inside = verbs.Bluebell(there, program, device)
    inside.sgid[4] = gids.place(there, device, address)
    process = test_bb_rxe.bb_peer(program, there, None, ips)
    outside = bluebell.Bluebell(process)
    for both in (pair.Pair(inside, outside), pair.Pair(outside, inside)):
        runs.Run(runs.MESSAGES).hold(both, echo=lambda text, **_: None)
    process.close()
    inside.close()
    print('%s by %s: %d conversations each way' % (device, address, len(runs.MESSAGES)), flush=True)


def choose(there, program, talker):
    """Checks GIDs, and traffic by those of VLANs and of a bond. rxe receives nothing by a bond's
    slave: packets arrive by the bond's interface."""
    def vlans():
        for vlan in (5, 7):
            talk_over(there, talker, 'rxe0', '198.51.%d.2' % vlan,
                      'ip=198.51.%d.9/24,vlan=%d' % (vlan, vlan))

    def bond():
        there.run('rdma link add rxe1 type rxe netdev bond0')
        talk_over(there, talker, 'rxe1', '192.0.2.9', 'ip=192.0.2.7/24')

    print('GIDs: %d wishes answered' % gids.check(there, program, vlans, bond), flush=True)


def cost(there, program):
    """Prints one line about the cost of writes, with those of bare libibverbs."""
    run, options = carry.carry(there, program)
    text = there.run('env %s %s %s -- rxe0 2>&1' % (run, gids.EAL, options), 300)
    line = next(line for line in text.split('\n') if line.startswith('a write: '))
    print(line, flush=True)


def life(there, program):
    """Children and signals; without ibv_fork_init(), which this kernel does not need, and with it."""
    run, options = carry.carry(there, program)
    for init in '', 'init':
        text = there.run('env %s %s %s -- rxe0 %s 2>&1' % (run, gids.EAL, options, init), 300)
        print('; '.join(text.strip().split('\n')[-3:]), flush=True)


def plain_user(there, program):
    """Not root: it works with some locked memory; without any, or without rights, it reports the cause."""
    _, options = carry.carry(there, program)
    there.run('chmod 1777 /tmp && echo user:x:1000:1000::/tmp:/bin/sh >/etc/passwd && '
              'echo user:x:1000: >/etc/group')
    for limit, mode, status, said in (
            (64, 666, 0, 'a write: '),
            (0, 666, 1, 'this user may not lock memory (raise the limit: ulimit -l)'),
            (64, 600, 1, 'Permission denied: give this user rights to /dev/infiniband/uverbs')):
        request = there.begin(
            'chmod %d /dev/infiniband/uverbs0; cd /tmp; ulimit -l %d; '
            'export LD_LIBRARY_PATH=/bb HOME=/tmp; exec start-stop-daemon -S -c user '
            '-x /bb/verbs_cost -- %s %s -- rxe0 1 16 2>&1' % (mode, limit, gids.EAL, options), 120)
        assert request.wait() == status and said in request.output, request.output
    there.run('chmod 666 /dev/infiniband/uverbs0')
    print('a plain user: works, or is told what is missing', flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('conform')
    p.add_argument('bb_peer')
    p.add_argument('verbs_cost')
    p.add_argument('gids')
    p.add_argument('cm_move')
    p.add_argument('verbs_life')
    p.add_argument('--suite', default='bookworm', help='whose kernel (see vm/build)')
    p.add_argument('--filter', default=PART)
    p.add_argument('--all', action='store_true', help='the whole suite: minutes')
    p.add_argument('--seconds', type=int, default=carry.PROGRAM_SECONDS)
    args = p.parse_args()
    reason = guest.missing(args.suite)
    if reason:
        namespace.skip(reason)
    namespace.enter_or_skip()
    with guest.Guest(suite=args.suite) as there:
        held = conform(there, args)
        talk(there, args.bb_peer)
        cost(there, args.verbs_cost)
        plain_user(there, args.verbs_cost)
        life(there, args.verbs_life)
        print('an address that moves: replayed %s, reported %s' % moves.check(there, args.cm_move),
              flush=True)
        choose(there, args.gids, args.bb_peer)
        moves.remove(there, args.cm_move, 'rxe1')
        print('rxe1 goes when its user has closed it', flush=True)
    return 0 if held else 1


if __name__ == '__main__':
    sys.exit(main())
