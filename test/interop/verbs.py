# SPDX-License-Identifier: BSD-3-Clause
"""Any verb of a guest's rxe0, one call at a time: verbs_peer.c runs there.

    peer = verbs.Verbs(there, program)
    mr = peer('mr', n=0, size=4096)                 # {'addr': ..., 'lkey': ..., 'rkey': ...}
    qp = peer('qp', n=0, type='rc')
    peer('rtr', n=0, gid='::ffff:192.0.2.9', dqpn=0x4242, psn=7, mtu=1024)
    peer('rts', n=0, psn=9)
    peer('send', qp=0, id=1, op='write', mr=0, len=64, raddr=..., rkey=...)
    peer.completion()                               # {'id': 1, 'status': 0, ...}

The head of verbs_peer.c lists the commands. Numbers of a reply are int, all else is text.
"""

import errno

import guest

# ibv_wc_status.
SUCCESS, LOC_LEN_ERR, LOC_PROT_ERR, WR_FLUSH_ERR = 0, 1, 4, 5
REM_INV_REQ_ERR, REM_ACCESS_ERR, REM_OP_ERR, RETRY_EXC_ERR, RNR_RETRY_EXC_ERR = 9, 10, 11, 12, 13

TARGET = '/tmp/verbs_peer'


class VerbsError(Exception):
    """A verb failed; errno says how."""

    def __init__(self, number, text):
        super().__init__(text)
        self.errno = number


def convert(text):
    try:
        return int(text, 0)
    except ValueError:
        return text


class Verbs:
    """One process of verbs_peer in a guest, with a CQ and objects of its own.

    program: verbs_peer as meson built it. seconds: how long it may live.
    """

    def __init__(self, there, program, seconds=600):
        self.guest = there
        if there.begin('test -x %s' % TARGET).wait() != 0:
            there.put(program, TARGET)
        self.request = there.begin('exec %s rxe0' % TARGET, seconds, stdin=True)
        self.taken = 0
        self.qpn = {}
        self.reply('start')

    def reply(self, line):
        text = self.request.read_line(self.taken)
        self.taken += len(text) + 1
        kind, _, rest = text.partition(' ')
        if kind == 'error':
            number = int(rest.split(' ', 1)[0])
            raise VerbsError(number, '%s: %s: %s (%s)' % (
                self.guest.name, line, rest, errno.errorcode.get(number, '?')))
        if kind != 'ok':
            raise guest.GuestError('%s: %s: %s' % (self.guest.name, line, text))
        words = [word.split('=', 1) for word in rest.split()]
        return {word[0]: convert(word[1]) for word in words if len(word) == 2}

    def __call__(self, command, **args):
        line = ' '.join([command] + ['%s=%s' % pair for pair in args.items()])
        self.request.write(line + '\n')
        return self.reply(line)

    def completion(self, ms=60000):
        """The next completion, None if there is none for that long."""
        # The peer answers within the wait for a line, so a long wait is made of short ones.
        while True:
            step = min(ms, 5000)
            found = self('poll', ms=step)
            ms -= step
            if found or ms <= 0:
                return found or None

    def close(self):
        self.request.socket.close()


def connect(a, b, n=0, mtu=1024, sgid=1, psn=(0x10, 0xfffff0), **options):
    """RC or UC QP `n` of two peers, made before by 'qp', to RTS; `options` go to rtr and rts.

    psn: first of a's and of b's requests. Both need their GIDs by sgid.
    """
    gids = [peer('gid', index=sgid)['gid'] for peer in (a, b)]
    rtr = {k: v for k, v in options.items() if k in ('depth',)}
    rts = {k: v for k, v in options.items() if k in ('timeout', 'retry', 'rnr', 'depth')}
    for peer, other, gid, first in ((a, b, gids[1], psn[1]), (b, a, gids[0], psn[0])):
        peer('rtr', n=n, gid=gid, sgid=sgid, dqpn=other.qpn[n], psn=first, mtu=mtu,
             rnr=options.get('rnr_timer', 12), **rtr)
    for peer, first in ((a, psn[0]), (b, psn[1])):
        peer('rts', n=n, psn=first, **rts)


def make_qps(a, b, n=0, type='rc', **options):
    """QP `n` of two peers, in INIT; their numbers are kept for connect."""
    for peer in (a, b):
        peer.qpn[n] = peer('qp', n=n, type=type, **options)['qpn']
