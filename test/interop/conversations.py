# SPDX-License-Identifier: BSD-3-Clause
"""Conversations of two peers, each checked at both ends.

A peer is a callable like verbs.Verbs. record.py captures these between two guests;
test_conversations.py runs them in one guest, so that what they expect is known to hold
of Linux before anything else is held against it.
"""

import verbs

SIZE = 1 << 16
QKEY_OTHER = 0x22222222


class Pair:
    """Two peers with one MR each (n=0); QPs are made per conversation."""

    def __init__(self, a, b):
        self.a, self.b = a, b
        self.mr = [peer('mr', n=0, size=SIZE, access='lwrab') for peer in (a, b)]
        self.qp = -1

    def connect(self, type='rc', mtu=1024, sgid=1, **options):
        """A new pair of QPs; their number."""
        self.qp = (self.qp + 1) % 60
        verbs.make_qps(self.a, self.b, self.qp, type)
        verbs.connect(self.a, self.b, self.qp, mtu, sgid, **options)
        return self.qp

    def close(self, qp):
        for peer in (self.a, self.b):
            peer('reset', n=qp)

    def flush(self):
        """What a QP in the error state still has to say."""
        for peer in (self.a, self.b):
            while peer.completion(0):
                pass

    def expect(self, peer, what, **fields):
        found = peer.completion()
        assert found is not None, '%s: no completion' % what
        for name, value in fields.items():
            allowed = value if isinstance(value, tuple) else (value,)
            assert found[name] in allowed, '%s: %s is %s, not %s: %s' % (
                what, name, found[name], value, found)
        return found

    def remote(self, off=0):
        """Where a request of a goes to at b."""
        return dict(raddr=self.mr[1]['addr'] + off, rkey=self.mr[1]['rkey'])

    def request(self, op, status=verbs.SUCCESS, **args):
        """One request of a, to its completion."""
        self.a('send', qp=self.qp, id=1, op=op, mr=0, **args)
        return self.expect(self.a, '%s %s' % (op, args), id=1, status=status)


def verify(peer, what, off, length, seed):
    differs = peer('verify', mr=0, off=off, len=length, seed=seed)['differs']
    assert differs == 'no', '%s: byte %s is wrong' % (what, differs)


def sizes_of(mtu):
    return (0, 1, 61, mtu - 1, mtu, mtu + 1, 3 * mtu - 2)


def sends(pair, mtu, ops=('send', 'send_imm')):
    for seed, size in enumerate(sizes_of(mtu)):
        for op in ops:
            pair.a('fill', mr=0, len=size, seed=seed)
            pair.b('recv', qp=pair.qp, id=2, mr=0, off=8192, len=16384)
            imm = 0xdeadbe00 + seed if op == 'send_imm' else 0
            pair.request(op, len=size, imm=imm, flags='s' if seed & 1 else '-')
            pair.expect(pair.b, op, id=2, status=verbs.SUCCESS, len=size, imm=imm)
            verify(pair.b, op, 8192, size, seed)


def writes(pair, mtu):
    for seed, size in enumerate(sizes_of(mtu)):
        pair.a('fill', mr=0, len=size, seed=seed + 100)
        pair.request('write', len=size, **pair.remote(16384))
        pair.a('fill', mr=0, len=size, seed=seed + 101)
        pair.b('recv', qp=pair.qp, id=3, mr=0, len=0)
        pair.request('write_imm', len=size, imm=7 + seed, **pair.remote(32768))
        pair.expect(pair.b, 'write_imm', id=3, status=verbs.SUCCESS, len=size, imm=7 + seed)
        # On UC only what comes later says that a WRITE is there.
        verify(pair.b, 'write', 16384, size, seed + 100)
        verify(pair.b, 'write_imm', 32768, size, seed + 101)


def reads(pair, mtu):
    for seed, size in enumerate(sizes_of(mtu)):
        pair.b('fill', mr=0, off=8192, len=size, seed=seed + 50)
        pair.request('read', off=32768, len=size, **pair.remote(8192))
        verify(pair.a, 'read', 32768, size, seed + 50)


def rc_messages(pair, mtu=1024, sgid=1):
    """SEND, WRITE, READ with and without immediate: 0, 1, 61, MTU - 1 ... 3 MTU - 2 bytes"""
    qp = pair.connect(mtu=mtu, sgid=sgid)
    sends(pair, mtu)
    writes(pair, mtu)
    reads(pair, mtu)
    pair.close(qp)


def rc_ipv6(pair):
    """as rc-messages, between IPv6 addresses, MTU 256"""
    rc_messages(pair, 256, 2)


def rc_mtu4096(pair):
    """as rc-messages, MTU 4096: SEND and READ only"""
    qp = pair.connect(mtu=4096)
    sends(pair, 4096, ('send',))
    reads(pair, 4096)
    pair.close(qp)


def rc_atomics(pair):
    """FETCH_ADD and CMP_SWAP: a sum that wraps, a compare that fails and one that holds"""
    qp = pair.connect()
    pair.b('poke', mr=0, off=64, value=2 ** 64 - 1)
    value = 2 ** 64 - 1
    for op, compare, swap in (('fetch_add', 5, 0), ('fetch_add', 2 ** 63, 0), ('cmp_swap', 1, 9),
                              ('cmp_swap', 2 ** 63 + 4, 0x1122334455667788)):
        pair.request(op, off=128, len=8, compare=compare, swap=swap, **pair.remote(64))
        before = pair.a('peek', mr=0, off=128)['value']
        assert before == value, '%s: %#x came, %#x was there' % (op, before, value)
        if op == 'fetch_add':
            value = (value + compare) % 2 ** 64
        elif value == compare:
            value = swap
        now = pair.b('peek', mr=0, off=64)['value']
        assert now == value, '%s: %#x is there, not %#x' % (op, now, value)
    pair.close(qp)


def rc_invalidate(pair):
    """WRITE by a memory window, SEND with invalidate of it (1 and 3 packets), WRITE again: NAK"""
    for number, size in enumerate((64, 3000)):
        qp = pair.connect()
        window = pair.b('mw', n=number)['rkey']
        rkey = window & ~0xff | (window + 1) & 0xff
        pair.b('send', qp=qp, id=4, op='bind', mr=0, mw=number, off=0, len=4096, rkey=rkey,
               access='wr')
        pair.expect(pair.b, 'bind', id=4, status=verbs.SUCCESS)
        raddr = pair.mr[1]['addr']
        pair.request('write', len=64, raddr=raddr, rkey=rkey)
        pair.b('recv', qp=qp, id=5, mr=0, off=8192, len=4096)
        pair.request('send_inv', len=size, rkey=rkey)
        pair.expect(pair.b, 'send_inv', id=5, status=verbs.SUCCESS, len=size)
        pair.request('write', verbs.REM_ACCESS_ERR, len=64, raddr=raddr, rkey=rkey)
        pair.close(qp)
        pair.flush()


def rc_errors(pair):
    """NAKs of a wrong key, range or right; a SEND longer than its receive"""
    readonly = pair.b('mr', n=1, size=4096, access='lr')
    right, there = pair.mr[1]['rkey'], pair.mr[1]['addr']
    access = verbs.REM_ACCESS_ERR
    # The specification wants invalid request; rxe of Linux 6.1 says remote operational error.
    too_long = (verbs.REM_INV_REQ_ERR, verbs.REM_OP_ERR)
    for op, args, status in (
            ('write', dict(len=64, raddr=there, rkey=right ^ 0x5500), access),
            ('write', dict(len=3000, raddr=there + SIZE - 2999, rkey=right), access),
            ('write', dict(len=64, raddr=readonly['addr'], rkey=readonly['rkey']), access),
            ('read', dict(len=64, raddr=there, rkey=right ^ 0x5500), access),
            ('read', dict(len=64, raddr=there + SIZE, rkey=right), access),
            ('fetch_add', dict(len=8, raddr=readonly['addr'], rkey=readonly['rkey']), access),
            ('send', dict(len=3000), too_long)):
        qp = pair.connect()
        if op == 'send':
            pair.b('recv', qp=qp, id=6, mr=0, len=2000)
        pair.request(op, status, **args)
        state = pair.a('state', n=qp)['state']
        assert state == 'ERR', '%s: the requester is in %s' % (op, state)
        pair.close(qp)
        pair.flush()


def rc_rnr(pair):
    """SEND without a receive: RNR NAKs until there is one, then until the retries are used up"""
    qp = pair.connect(rnr=7, rnr_timer=16)
    pair.a('send', qp=qp, id=1, op='send', mr=0, len=100)
    assert pair.a.completion(20) is None, 'a SEND without a receive completes'
    pair.b('recv', qp=qp, id=7, mr=0, off=8192, len=4096)
    pair.expect(pair.a, 'send', id=1, status=verbs.SUCCESS)
    pair.expect(pair.b, 'send', id=7, status=verbs.SUCCESS, len=100)
    pair.close(qp)
    qp = pair.connect(rnr=2)
    pair.request('send', verbs.RNR_RETRY_EXC_ERR, len=100)
    pair.close(qp)
    pair.flush()


def uc_messages(pair):
    """UC SEND and WRITE, with and without immediate"""
    qp = pair.connect('uc')
    sends(pair, 1024)
    writes(pair, 1024)
    pair.close(qp)


def ud_messages(pair, sgid=1):
    """UD SEND with and without immediate, a wrong Q_Key between them"""
    qp = pair.connect('ud', sgid=sgid)
    gid = pair.b('gid', index=sgid)['gid']
    where = dict(gid=gid, sgid=sgid, dqpn=pair.b.qpn[qp])
    for seed, size in enumerate((0, 1, 61, 1023, 1024)):
        for op in ('send', 'send_imm'):
            pair.b('recv', qp=qp, id=8, mr=0, off=8192, len=4096)
            pair.a('fill', mr=0, len=size, seed=seed)
            imm = 0x1000 + seed if op == 'send_imm' else 0
            pair.request(op, len=size, imm=imm, qkey=QKEY_OTHER, **where)
            pair.request(op, len=size, imm=imm, **where)
            # The GRH's 40 bytes stand before the data.
            pair.expect(pair.b, 'UD ' + op, id=8, status=verbs.SUCCESS, len=size + 40, imm=imm,
                        src=pair.a.qpn[qp])
            verify(pair.b, 'UD ' + op, 8192 + 40, size, seed)
    pair.close(qp)
    pair.flush()


def ud_ipv6(pair):
    """as ud-messages, between IPv6 addresses"""
    ud_messages(pair, 2)


def lossy_atomics(pair):
    """32 FETCH_ADD while b's replies get lost: duplicate requests, answered and not done again"""
    qp = pair.connect(timeout=14)
    pair.b('poke', mr=0, off=64, value=0)
    pair.b.guest.netem(out='loss 30%')
    for number in range(32):
        pair.request('fetch_add', off=128, len=8, compare=1, **pair.remote(64))
        before = pair.a('peek', mr=0, off=128)['value']
        assert before == number, 'FETCH_ADD %d brought %d' % (number, before)
    pair.b.guest.netem()
    pair.close(qp)


# What needs a wire between two guests, and what needs one with large frames.
ANYWHERE = [rc_messages, rc_ipv6, rc_atomics, rc_invalidate, rc_errors, rc_rnr, uc_messages,
            ud_messages, ud_ipv6]
WIRE = [lossy_atomics]
LARGE = [rc_mtu4096]
