# SPDX-License-Identifier: BSD-3-Clause
"""A peer on a guest's rxe0: verbs_peer.c runs there."""

import peer

TARGET = '/tmp/verbs_peer'


class Verbs(peer.Peer):
    """One process of verbs_peer in a guest, with a CQ and objects of its own.

    program: verbs_peer as meson built it. seconds: how long it may live.
    """
    # rxe sends again by its timeout alone where no later packet shows a gap, and for ever.
    lossy = 15

    def __init__(self, there, program, seconds=600):
        super().__init__(there.name)
        self.guest = there
        if there.begin('test -x %s' % TARGET).wait() != 0:
            there.put(program, TARGET)
        self.request = there.begin('exec %s rxe0' % TARGET, seconds, stdin=True)
        self.taken = 0
        self.reply('start')

    def write_line(self, line):
        self.request.write(line + '\n')

    def read_line(self):
        text = self.request.read_line(self.taken)
        self.taken += len(text) + 1
        return text

    def close(self):
        self.request.socket.close()
