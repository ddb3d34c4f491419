# SPDX-License-Identifier: BSD-3-Clause
"""Conversations by path: the columns of the table.

    for run in runs.RUNS:
        run.hold(pair)
"""

import conversations as talks
import failures

MESSAGES = [talks.rc_messages, talks.uc_messages, talks.ud_messages]
# Conversations that must succeed over a network with faults.
RELIABLE = [talks.rc_messages, talks.rc_pipeline, talks.rc_counting]
ALL = MESSAGES + [talks.rc_64k, talks.rc_1m, talks.uc_large, talks.rc_atomics, talks.rc_counting, talks.rc_pipeline,
                  talks.rc_fence, talks.rc_invalidate, failures.rc_errors, failures.rc_rnr,
                  failures.rc_refused, failures.uc_lost, failures.ud_lost]
# Pcaps of the golden suite: name, conversation, MTU, IP version.
RECORDED = [('rc-messages', talks.rc_messages, 1024, 4),
            ('rc-ipv6', talks.rc_messages, 256, 6),
            ('rc-mtu4096', talks.rc_messages, 4096, 4),
            ('rc-atomics', talks.rc_atomics, 1024, 4),
            ('rc-invalidate', talks.rc_invalidate, 1024, 4),
            ('rc-errors', failures.rc_errors, 1024, 4),
            ('rc-rnr', failures.rc_rnr, 1024, 4),
            ('uc-messages', talks.uc_messages, 1024, 4),
            ('ud-messages', talks.ud_messages, 1024, 4),
            ('ud-ipv6', talks.ud_messages, 1024, 6),
            ('lossy-atomics', failures.lossy_atomics, 1024, 4)]


class Run:
    """Conversations on one path. netem: faults of the path from and to a guest, as Guest.netem
    takes them; option: faults of Bluebell's device."""

    def __init__(self, talks, mtu=1024, ip=4, name=None, netem=None, option=None):
        self.talks, self.mtu, self.ip = talks, mtu, ip
        self.name = name or 'IPv%d, MTU %d' % (ip, mtu)
        self.netem, self.option = netem, option

    def hold(self, pair, gap=lambda talk: None, echo=print):
        """Runs them. Returns results by cell: "pass", or the known gap of gap(talk)."""
        pair.mtu, pair.ip = self.mtu, self.ip
        pair.lossy = bool(self.netem or self.option)
        there = next((side.guest for side in (pair.a, pair.b) if hasattr(side, 'guest')), None)
        found = {}
        if self.netem:
            there.netem(out=self.netem, into=self.netem)
        for talk in self.talks:
            why = gap(talk)
            if why is None:
                pair.run(talk)
            echo('%s: %s%s' % (self.name, talk.title, '' if why is None else ': skipped'),
                 flush=True)
            found.update(dict.fromkeys(talk.cells, why or 'pass'))
        if self.netem:
            there.netem()
        return found


PATHS = [Run(ALL)] + [Run(MESSAGES, mtu) for mtu in (256, 512, 2048, 4096)] + \
        [Run(ALL, 1024, 6)] + [Run(MESSAGES, mtu, 6) for mtu in (256, 4096)]
# Faults made by the software device; the seed is that of its random numbers.
LOSSES = [Run(RELIABLE + more, name='device option ' + option, option=option) for option, more in (
    ('tx_drop=5,rx_drop=5,seed=11', [talks.rc_64k]),
    ('tx_corrupt=5,rx_corrupt=5,seed=12', [talks.rc_64k]),
    ('tx_dup=20,rx_dup=20,seed=13', [talks.rc_64k, talks.rc_1m]),
    ('tx_delay=300,rx_delay=300', [talks.rc_64k, talks.rc_1m]),
    ('tx_drop=2,rx_drop=2,tx_dup=5,rx_dup=5,tx_corrupt=2,tx_delay=100,seed=14',
     [talks.rc_64k]))]
# Linux survives reordering only with short messages.
REORDER = 'tx_reorder=20,rx_reorder=20,seed=15'
SHORT = Run(RELIABLE, name='device option ' + REORDER, option=REORDER)
LONG = Run(RELIABLE + [talks.rc_64k, talks.rc_1m], name=SHORT.name, option=REORDER)
# In both directions, by the guest's kernel.
NETEM = [Run(RELIABLE + more, name='netem ' + rule, netem=rule) for rule, more in (
    ('loss 1%', [talks.rc_64k, talks.rc_1m]),
    ('loss 5%', [talks.rc_64k]),
    ('duplicate 20%', [talks.rc_64k, talks.rc_1m]),
    ('delay 3ms reorder 25%', []),
    ('delay 20ms', [talks.rc_64k]),
    ('delay 2ms loss 2% duplicate 5%', []))]
# Between two devices of Bluebell.
BLUEBELL = PATHS + LOSSES + [LONG]
# Between Bluebell and rxe: the columns of the table.
RXE = PATHS + NETEM + LOSSES + [SHORT]
# A run of each kind, for a test that is short.
RXE_SHORT = [PATHS[0], PATHS[-1], NETEM[1], LOSSES[0]]
# Known failures between them: {(who asks, conversation): reason}.
GAPS = {}


def gap(role, talk):
    """Returns why a conversation is left out in a role ("bluebell" or "rxe" asks), or None."""
    return GAPS.get((role, talk.title))


def hold(pairs, of, echo=print):
    """Runs in an order that needs each device once. pairs(option) returns a Pair and its close function."""
    for option in dict.fromkeys(run.option for run in of):
        both, close = pairs(option)
        for run in of:
            if run.option == option:
                run.hold(both, echo=echo)
        close()
