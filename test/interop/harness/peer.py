# SPDX-License-Identifier: BSD-3-Clause
"""Any verb of a peer, one call at a time, on any implementation.

    peer('mr', n=0, size=4096)                      # {'addr': ..., 'lkey': ..., 'rkey': ...}
    peer('qp', n=0, type='rc')
    peer('rtr', n=0, gid='::ffff:192.0.2.9', dqpn=0x4242, psn=7, mtu=1024)
    peer('rts', n=0, psn=9)
    peer('send', qp=0, id=1, op='write', mr=0, len=64, raddr=..., rkey=...)
    peer.completion()                               # {'id': 1, 'status': 0, ...}

peer_line.h lists the commands. Numbers in a reply are int, other values are text.
"""

import errno
import time

# ibv_wc_status.
SUCCESS, LOC_LEN_ERR, LOC_PROT_ERR, WR_FLUSH_ERR = 0, 1, 4, 5
REM_INV_REQ_ERR, REM_ACCESS_ERR, REM_OP_ERR, RETRY_EXC_ERR, RNR_RETRY_EXC_ERR = 9, 10, 11, 12, 13


class PeerError(Exception):
    """A peer answers wrongly or not at all."""


class VerbsError(Exception):
    """A verb failed with errno."""

    def __init__(self, number, text):
        super().__init__(text)
        self.errno = number


def convert(text):
    try:
        return int(text, 0)
    except ValueError:
        return text


class Peer:
    """Base of all kinds of peers, which provide write_line and read_line. name: for messages. ipv4,
    ipv6: indexes of its GIDs for RoCEv2. timeout: of its requests, as for ibv_modify_qp; lossy:
    the same where packets get lost. stalls: it may forget the rest of a request until the next
    one is posted."""
    timeout = lossy = 18
    stalls = False

    def __init__(self, name, ipv4=1, ipv6=2):
        self.name = name
        self.sgid = {4: ipv4, 6: ipv6}
        self.qpn = {}

    def reply(self, line):
        text = self.read_line()
        kind, _, rest = text.partition(' ')
        if kind == 'error':
            number = int(rest.split(' ', 1)[0])
            raise VerbsError(number, '%s: %s: %s (%s)' % (
                self.name, line, rest, errno.errorcode.get(number, '?')))
        if kind != 'ok':
            raise PeerError('%s: %s: %s' % (self.name, line, text))
        words = [word.split('=', 1) for word in rest.split()]
        return {word[0]: convert(word[1]) for word in words if len(word) == 2}

    def __call__(self, command, **args):
        line = ' '.join([command] + ['%s=%s' % pair for pair in args.items()])
        self.write_line(line)
        return self.reply(line)

    def standing(self, n):
        """Returns the state of QP `n` and of its device, for a report of a missing completion."""
        return 'QP: %s' % self('state', n=n)

    def capture(self):
        """Returns the file of the packets that its device sent and received, if there is one."""

    def wait_port(self, seconds=120):
        """Waits until the port is up."""
        end = time.monotonic() + seconds
        while self('port')['state'] != 'ACTIVE':
            if time.monotonic() > end:
                raise PeerError('%s: the port is down' % self.name)
            time.sleep(0.01)

    def completion(self, ms=60000):
        """Returns the next completion, None if there is none within ms."""
        # The peer answers within the time limit of a line, so a long wait consists of short ones.
        while True:
            step = min(ms, 5000)
            found = self('poll', ms=step)
            ms -= step
            if found or ms <= 0:
                return found or None


def connect(a, b, n=0, mtu=1024, ip=4, psn=(0xfffff0, 0x10), skew=0, lossy=False,
            **options):
    """Moves RC or UC QP `n` of two peers, made by 'qp', to RTS; `options` go to rtr and rts. psn:
    first of a's and of b's requests; a's wrap. a starts `skew` PSNs behind the one that b
    expects."""
    gids = [peer('gid', index=peer.sgid[ip])['gid'] for peer in (a, b)]
    rtr = {k: v for k, v in options.items() if k in ('depth',)}
    rts = {k: v for k, v in options.items() if k in ('timeout', 'retry', 'rnr', 'depth')}
    for peer, other, gid, first in ((a, b, gids[1], psn[1]), (b, a, gids[0], psn[0])):
        peer('rtr', n=n, gid=gid, sgid=peer.sgid[ip], dqpn=other.qpn[n], psn=first, mtu=mtu,
             rnr=options.get('rnr_timer', 12), **rtr)
    for peer, first in ((a, psn[0] + skew), (b, psn[1])):
        wait = peer.lossy if lossy else peer.timeout
        peer('rts', n=n, psn=first & 0xffffff, **{'timeout': wait, **rts})


def make_qps(a, b, n=0, type='rc', **options):
    """Makes QP `n` of two peers, in INIT; their numbers are stored for connect."""
    for peer in (a, b):
        peer.qpn[n] = peer('qp', n=n, type=type, **options)['qpn']
