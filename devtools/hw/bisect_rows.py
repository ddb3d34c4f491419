# SPDX-License-Identifier: BSD-3-Clause
"""Finds the option of the device with which a failed test passes, and says what that means."""

import platform

import host

# Ways to ring, from the simplest to the widest copy. Each is a device option.
RINGS = ['no_bf', 'bf_copy=none', 'bf_copy=plain'] + (
    ['bf_copy=neon'] if platform.machine() == 'aarch64' else
    ['bf_copy=avx2', 'bf_copy=avx512', 'bf_copy=movdir64b'])
# Options for rows that failed, from the smallest change to the largest. '' repeats the row as it was.
SWITCHES = ['', 'bf_copy=plain', 'bf_copy=none', 'no_bf']
MOST_ROWS = 8   # of the failed rows, which run again with each switch

# Conclusion from a row that passes with a switch, and advice. The first switch that helps counts.
MEANINGS = {
    '': ('the fault is not repeatable',
         'run hw-check again while the machine is idle; send both reports'),
    'bf_copy=plain': ('BlueFlame copies by wide stores fail; copies by 8-byte stores work',
                      'open the device as {device},bf_copy=plain'),
    'bf_copy=none': ('BlueFlame copies fail; 8-byte stores to the same register work',
                     'open the device as {device},bf_copy=none, or set db_mode to BB_DB_DOORBELL'),
    'no_bf': ('stores to the write-combining register arrive late or are lost',
              'open the device as {device},no_bf'),
}
NO_SWITCH = {
    'pass': ('the fault is not in the doorbell: libmlx5\'s own queues pass, so a mailbox, WQE or CQE of '
             'Bluebell is wrong', 'use verbs:{device} meanwhile; look at the differences in the report'),
    'fail': ('libmlx5\'s own queues fail, too: the card or its settings differ from what the test assumes',
             'compare the row\'s source (conform --list) with the log in the report'),
    None: ('no option helps, and libmlx5\'s queues did not run this row',
           'look at the differences and the log in the report'),
}
# Features that a program can leave out: start of the rows' names, and how.
AVOID = (
    ('cq/resize', 'leave out the device option cq_resize; create CQs as deep as needed'),
    ('cq/compression', 'leave bb_cq_attr.compress false'),
    ('cq/moderation', 'do not call bb_cq_moderate()'),
    ('cq/timestamps', 'do not use bb_wc.timestamp'),
    ('memory/mr/on-demand', 'register without BB_ACCESS_ON_DEMAND'),
    ('memory/mr/relaxed', 'register without BB_ACCESS_RELAXED_ORDERING'),
    ('completion/rc/data-in-cqe', 'leave bb_qp_init_attr without data in CQEs'),
    ('window/', 'do not use memory windows'),
    ('key/', 'do not use indirect keys'),
    ('dm/', 'do not use device memory'),
    ('srq/', 'give each queue pair its own receives'),
    ('event/', 'poll in place of channels'),
    ('atomic/', 'do not use atomics'),
)


def choose(failed):
    """Returns at most MOST_ROWS of the failed rows, from as many areas as possible."""
    seen = {}
    turns = []
    for row in failed:
        area = '/'.join(row.split('/')[:3])
        seen[area] = seen.get(area, 0) + 1
        turns.append((seen[area], len(turns), row))
    return [row for _, _, row in sorted(turns)[:MOST_ROWS]]


def option(device, switch):
    return device + ',' + switch if switch else device


def conclusion(row, helps, verbs, device):
    """Returns (meaning, what to do). @helps: switches with which the row passed, in any order.
    @verbs: the row's result by libmlx5's queues, None if it did not run."""
    for switch in SWITCHES:
        if switch in helps:
            meaning, what = MEANINGS[switch]
            break
    else:
        meaning, what = NO_SWITCH[verbs if verbs in NO_SWITCH else None]
        avoid = [how for start, how in AVOID if row.startswith(start)]
        what = avoid[0] if avoid else what
    return meaning, what.format(device=device.split(',')[0])


def rings_conclusion(results, device):
    """Returns (meaning, what to do) from {way to ring: 'works', 'not on this CPU' or a fault}, None if
    all work."""
    works = [r for r in RINGS if results.get(r) == 'works']
    fails = [r for r in RINGS if results.get(r) not in ('works', 'not on this CPU', None)]
    if not fails:
        return None
    device = device.split(',')[0]
    if not works:
        return ('no way to ring works, so the cause is not the doorbell: the first fault is with %s: %s' % (
            fails[0], results[fails[0]]), 'try %s verbs:%s' % (host.NAME, device))
    return ('%s: works with %s, not with %s' % (device, ', '.join(works), ', '.join(fails)),
            'open the device as %s,%s' % (device, works[-1]))


def groups(conclusions):
    """Returns [(meaning, what to do, rows)] from {row: (meaning, what to do)}."""
    found = {}
    for row, reason in sorted(conclusions.items()):
        found.setdefault(reason, []).append(row)
    return [(meaning, what, rows) for (meaning, what), rows in found.items()]
