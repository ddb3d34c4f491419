# SPDX-License-Identifier: BSD-3-Clause
"""The address of rxe0 disappears and returns at another index of the GID table, during traffic of
cm_move.c. The connections recover by themselves; requests are replayed or reported.
"""

import re
import time

import carry
import gids

ROUNDS = 2
OTHER, OURS = '192.0.2.77', '192.0.2.2'
SECONDS = 120


class Mover:
    """The program, which has two connections of a device with itself."""

    def __init__(self, there, program, device='rxe0'):
        self.there = there
        run, options = carry.carry(there, program)
        there.run('mkdir -p /var/run')
        self.request = there.begin('env %s %s %s -- %s 2>%s' % (
            run, gids.EAL, options, device, gids.LOG), carry.PROGRAM_SECONDS, stdin=True)
        self.taken = 0
        while self.line() != 'connected':
            pass

    def line(self):
        text = self.request.read_line(self.taken)
        self.taken += len(text.encode()) + 1
        return text

    def ask(self):
        """Returns the counters of both streams: {'lost': ..., 'back': ..., 'done': ..., ...}."""
        self.request.write('?\n')
        return [{key: int(value) for key, value in re.findall(r'(\w+)=(\d+)', part)}
                for part in self.line().split('|')]

    def until(self, what):
        """Waits until the condition holds for both streams."""
        end = time.monotonic() + SECONDS
        while True:
            flows = self.ask()
            if all(what(flow) for flow in flows):
                return flows
            assert time.monotonic() < end, '%s\n%s' % (flows, self.there.run('cat ' + gids.LOG))
            time.sleep(0.05)

    def flows(self):
        """Waits for traffic on both streams and returns their counters."""
        before = self.ask()
        for i, flow in enumerate(before):
            self.until(lambda now, i=i, flow=flow: now['done'] > min(f['done'] for f in before))
        return self.ask()

    def close(self):
        """Ends the program, which checks the memory that its requests wrote."""
        self.request.write('end\n')
        self.request.check()


def check(there, program):
    """Returns the last counters of both streams: the one that posts again, the one that reports."""
    table = gids.Table(there)
    mover = Mover(there, program)
    places = set()
    for n in range(1, ROUNDS + 1):
        before = mover.flows()
        # The first address that is added takes the first free index.
        first, second = (OTHER, OURS) if n % 2 else (OURS, OTHER)
        table.change(gids.DROP, '-' + OURS)
        mover.until(lambda flow: flow['lost'] >= n)
        table.change(gids.ADD % first, first)
        table.change(gids.ADD % second, second)
        after = mover.until(lambda flow: flow['back'] >= n)
        places |= {flow['gid'] for flow in before + after}
        mover.flows()
    again, told = mover.ask()
    mover.close()
    assert len(places) > 1, places
    assert told['reported'] > 0 and again['reported'] == 0, (again, told)
    table.change('ip addr del %s/24 dev eth0' % OTHER, '-' + OTHER)
    return again, told


def remove(there, program, device):
    """Removes a device that is in use. The kernel's rxe waits for its users without notifying them.
    Unlike drivers of cards it does not disconnect them (disassociate_ucontext)."""
    mover = Mover(there, program, device)
    mover.flows()
    gone = there.begin('rdma link del ' + device, 300)
    mover.flows()
    assert gone.poll(0.5) is None, gone.output
    mover.flows()
    mover.close()
    gone.check()
