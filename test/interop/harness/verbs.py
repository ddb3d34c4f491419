# SPDX-License-Identifier: BSD-3-Clause
"""Peers on a guest's rxe0: verbs_peer.c runs there, or bb_peer.c on drivers/verbs."""

import carry
import peer

TARGET = '/tmp/verbs_peer'
EAL = carry.EAL


class InGuest(peer.Peer):
    """A process in a guest. command: runs it."""
    # rxe stops at 64 packets in flight and only then records that it waits. If the last of them has
    # left in between, nothing wakes it. RC has its timer, UC has none.
    stalls = True

    def __init__(self, there, command):
        super().__init__(there.name)
        self.guest = there
        self.request = there.begin('exec ' + command, carry.PROGRAM_SECONDS, stdin=True)
        self.taken = 0
        self.reply('start')

    def write_line(self, line):
        self.request.write(line + '\n')

    def read_line(self):
        text = self.request.read_line(self.taken)
        self.taken += len(text) + 1
        return text

    def standing(self, n):
        # Twice, so that moving counters show.
        shown = 'rdma resource show qp lqpn %d; ' % self.qpn[n]
        return super().standing(n) + '\n' + self.guest.run(
            shown + 'sleep 3; ' + shown + 'cd /sys/class/infiniband; grep -v ^0 /dev/null '
            '*/ports/1/hw_counters/*; ip -s link show dev eth0; tc -s qdisc show dev eth0; '
            'dmesg | tail -n 5')

    def close(self):
        self.request.socket.close()


class Verbs(InGuest):
    """verbs_peer in a guest, with a CQ and objects of its own. program: as meson built it."""
    # rxe retransmits only by its timeout where no later packet shows a gap, and without end.
    lossy = 15

    def __init__(self, there, program):
        if there.begin('test -x %s' % TARGET).wait() != 0:
            there.put(program, TARGET)
        super().__init__(there, '%s rxe0' % TARGET)


class Bluebell(InGuest):
    """bb_peer in a guest; its log goes to a file there."""
    LOG = '/tmp/bb_peer.log'
    timeout = lossy = 20

    def __init__(self, there, program, device='rxe0'):
        program, options = carry.carry(there, program)
        there.run('mkdir -p /var/run')
        super().__init__(there, 'env %s %s %s -- %s 2>%s' % (
            program, EAL, options, device, self.LOG))

    def said(self):
        return self.guest.run('tail -n 40 ' + self.LOG)
