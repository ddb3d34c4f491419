# SPDX-License-Identifier: BSD-3-Clause
"""Conversations of two peers, each checked at both ends: those without errors.

A peer is a callable like peer.Peer. The expectations are known to hold for Linux: see
test_conversations.py, which runs them in one guest, and record.py, which captures them
between two guests.
"""

import peer
from pair import TARGET, TARGET2, cells, talk

QKEY_OTHER = 0x22222222
SIZES = '0 | 1 | 61 | MTU - 1 | MTU | MTU + 1 | 3 MTU - 2'
# Time that a request may stall before a further one is tried, ms: a guest is slow at times.
STALL = 20000
UD_SIZES = '0 | 1 | 61 | MTU - 1 | MTU'


def sizes(mtu):
    """Returns the sizes of every verb: {name in the table: bytes}."""
    return {'0': 0, '1': 1, '61': 61, 'MTU - 1': mtu - 1, 'MTU': mtu, 'MTU + 1': mtu + 1,
            '3 MTU - 2': 3 * mtu - 2}


def sends(pair, which, ops=('send', 'send_imm')):
    for number, (case, size) in enumerate(which.items()):
        for op in ops:
            seed = pair.fill(pair.a, size)
            pair.receive()
            imm = 0xdeadbe00 + seed if op == 'send_imm' else 0
            pair.request(op, len=size, imm=imm, flags='s' if number & 1 else '-')
            pair.expect(pair.b, op, id=2, status=peer.SUCCESS, len=size, imm=imm)
            pair.verify(pair.b, op, TARGET, size, seed)
            pair.cell(op, case)


def writes(pair, which, ops=('write', 'write_imm')):
    for case, size in which.items():
        seed = pair.fill(pair.a, size)
        pair.request('write', len=size, **pair.remote())
        first, seed = seed, pair.fill(pair.a, size)
        pair.receive(3, 0)
        pair.request('write_imm', len=size, imm=7 + seed, **pair.remote(TARGET2))
        pair.expect(pair.b, 'write_imm', id=3, status=peer.SUCCESS, len=size, imm=7 + seed)
        # On UC only a later message shows that a WRITE has arrived.
        pair.verify(pair.b, 'write', TARGET, size, first)
        pair.verify(pair.b, 'write_imm', TARGET2, size, seed)
        for op in ops:
            pair.cell(op, case)


def reads(pair, which):
    for case, size in which.items():
        seed = pair.fill(pair.b, size, TARGET)
        pair.request('read', off=TARGET2, len=size, **pair.remote())
        pair.verify(pair.a, 'read', TARGET2, size, seed)
        pair.cell('read', case)


@talk(cells('RC', 'send | send_imm | write | write_imm | read', SIZES))
def rc_messages(pair):
    """SEND, WRITE, READ with and without immediate: 0, 1, 61, MTU - 1 ... 3 MTU - 2 bytes"""
    pair.connect()
    sends(pair, sizes(pair.mtu))
    writes(pair, sizes(pair.mtu))
    reads(pair, sizes(pair.mtu))
    pair.close()


def large(pair, which):
    pair.connect()
    sends(pair, which)
    writes(pair, which)
    reads(pair, which)
    pair.close()


@talk(cells('RC', 'send | send_imm | write | write_imm | read', '64 KiB'))
def rc_64k(pair):
    """SEND, WRITE, READ with and without immediate: 64 KiB"""
    large(pair, {'64 KiB': 1 << 16})


@talk(cells('RC', 'send | send_imm | write | write_imm | read', '1 MiB'))
def rc_1m(pair):
    """SEND, WRITE, READ with and without immediate: 1 MiB"""
    large(pair, {'1 MiB': 1 << 20})


def uc_request(pair, op, **args):
    """Runs one request of many packets to its completion; if it stalls, posts a further one."""
    pair.post(op, **args)
    found = pair.a.completion(STALL if pair.a.stalls else 60000)
    nudge = found is None and pair.a.stalls
    if nudge:
        pair.post('write', id=9, len=0, **pair.remote())
        found = pair.a.completion()
    what = 'UC %s of %d' % (op, args['len'])
    if not found:
        pair.lost(pair.a, what)
    right = dict(id=1, status=peer.SUCCESS)
    assert right.items() <= found.items(), '%s: %s at %s' % (what, found, pair.a.name)
    if nudge:
        pair.expect(pair.a, 'the WRITE behind ' + what, id=9, status=peer.SUCCESS)


def uc_arrives(pair, op, size, seed):
    """Sends a UC message until it arrives: networks lose packets of such long bursts. A repeated
    message may arrive during the next one; the immediate, or its absence, distinguishes them. A
    SEND after a WRITE reports its arrival."""
    imm = 0 if op == 'send' else seed
    pair.receive()
    for _ in range(30):
        uc_request(pair, op, len=size, imm=imm, **pair.remote())
        if op == 'write':
            pair.request('send_imm', len=0, imm=imm)
        found = pair.b.completion(2000)
        while found and found['imm'] != imm:
            pair.receive()
            found = pair.b.completion(2000)
        if not found:
            continue
        right = dict(status=peer.SUCCESS, len=0 if op == 'write' else size)
        assert right.items() <= found.items(), 'UC %s: %s, not %s' % (op, found, right)
        if pair.b('verify', mr=0, off=TARGET, len=size, seed=seed)['differs'] == 'no':
            return True
        assert op == 'write', 'UC %s: not what was sent' % op
        pair.receive()
    return False


@talk(cells('UC', 'send | send_imm | write | write_imm', '64 KiB | 1 MiB'))
def uc_large(pair):
    """UC SEND and WRITE, with and without immediate, 64 KiB and 1 MiB: once more if it got lost"""
    pair.connect('uc')
    for case, size in (('64 KiB', 1 << 16), ('1 MiB', 1 << 20)):
        for op in ('send', 'send_imm', 'write', 'write_imm'):
            seed = pair.fill(pair.a, size)
            assert uc_arrives(pair, op, size, seed), 'UC %s of %s never arrives' % (op, case)
            pair.cell(op, case)
    pair.close()


@talk(cells('RC', 'fetch_add', '8'), cells('RC', 'cmp_swap', '8, equal | 8, different'))
def rc_atomics(pair):
    """FETCH_ADD and CMP_SWAP: a sum that wraps, a compare that fails and one that holds"""
    pair.connect()
    pair.value(pair.b, 64, 2 ** 64 - 1)
    value = 2 ** 64 - 1
    for op, compare, swap in (('fetch_add', 5, 0), ('fetch_add', 2 ** 63, 0), ('cmp_swap', 1, 9),
                              ('cmp_swap', 2 ** 63 + 4, 0x1122334455667788)):
        pair.request(op, off=128, len=8, compare=compare, swap=swap, **pair.remote(64))
        before = pair.value(pair.a, 128)
        assert before == value, '%s: %#x came, %#x was there' % (op, before, value)
        case = '8' if op == 'fetch_add' else '8, equal' if value == compare else '8, different'
        if op == 'fetch_add':
            value = (value + compare) % 2 ** 64
        elif value == compare:
            value = swap
        now = pair.value(pair.b, 64)
        assert now == value, '%s: %#x is there, not %#x' % (op, now, value)
        pair.cell(op, case)
    pair.close()


def count_up(pair, times):
    """FETCH_ADDs, each of which must execute once."""
    pair.value(pair.b, 64, 0)
    for number in range(times):
        pair.request('fetch_add', off=128, len=8, compare=1, **pair.remote(64))
        before = pair.value(pair.a, 128)
        assert before == number, 'FETCH_ADD %d brought %d' % (number, before)
    now = pair.value(pair.b, 64)
    assert now == times, '%d FETCH_ADDs made %d' % (times, now)


@talk(cells('RC', 'fetch_add', '32 in a row'))
def rc_counting(pair):
    """32 FETCH_ADD, one at a time: each executes once"""
    pair.connect()
    count_up(pair, 32)
    pair.cell('fetch_add', '32 in a row')
    pair.close()


@talk(cells('RC', 'send | write | read | fetch_add', '12 of each in flight'))
def rc_pipeline(pair):
    """48 requests in flight at a time: completions in order, each request executes once"""
    rounds, size = 12, 2500
    pair.connect()
    pair.value(pair.b, 64, 0)
    seed = pair.fill(pair.a, rounds * size)
    for i in range(rounds):
        pair.receive(100 + i, size, TARGET + i * size)
    for i in range(rounds):
        at = TARGET2 + i * size
        pair.post('send', 4 * i, off=i * size, len=size)
        pair.post('write', 4 * i + 1, off=i * size, len=size, **pair.remote(at))
        pair.post('read', 4 * i + 2, off=at, len=size, **pair.remote(at))
        pair.post('fetch_add', 4 * i + 3, off=TARGET + 8 * i, len=8, compare=1, **pair.remote(64))
    for i in range(4 * rounds):
        pair.expect(pair.a, 'request %d' % i, id=i, status=peer.SUCCESS)
    for i in range(rounds):
        pair.expect(pair.b, 'receive %d' % i, id=100 + i, status=peer.SUCCESS, len=size)
        before = pair.value(pair.a, TARGET + 8 * i)
        assert before == i, 'FETCH_ADD %d brought %d' % (i, before)
    pair.verify(pair.b, 'SENDs', TARGET, rounds * size, seed)
    pair.verify(pair.b, 'WRITEs', TARGET2, rounds * size, seed)
    pair.verify(pair.a, 'READs', TARGET2, rounds * size, seed)
    for verb in ('send', 'write', 'read', 'fetch_add'):
        pair.cell(verb, '12 of each in flight')
    pair.close()


@talk(cells('RC', 'send', 'fenced, behind a READ'))
def rc_fence(pair):
    """SEND with fence of what a READ before it brings"""
    pair.connect()
    seed = pair.fill(pair.b, 5000, TARGET2)
    pair.fill(pair.a, 5000)
    pair.receive()
    pair.post('read', 1, off=0, len=5000, **pair.remote(TARGET2))
    pair.post('send', 2, off=0, len=5000, flags='f')
    pair.expect(pair.a, 'READ', id=1, status=peer.SUCCESS)
    # rxe's requester sees the fence. Then its completer ends the READ and finds no waiting request.
    # Then the requester waits, forever without another post. (rxe_req.c, rxe_comp.c: wait_fence)
    pair.post('write', 3, off=0, len=0, **pair.remote(TARGET))
    pair.expect(pair.a, 'fenced SEND', id=2, status=peer.SUCCESS)
    pair.expect(pair.a, 'WRITE', id=3, status=peer.SUCCESS)
    pair.expect(pair.b, 'fenced SEND', id=2, status=peer.SUCCESS, len=5000)
    pair.verify(pair.b, 'fenced SEND', TARGET, 5000, seed)
    pair.cell('send', 'fenced, behind a READ')
    pair.close()


@talk(cells('RC', 'send_inv', '64 | 3000'), cells('RC', 'write', 'by a memory window'),
      cells('RC', 'write', 'by a key that was invalidated'))
def rc_invalidate(pair):
    """WRITE by a memory window, SEND with invalidate of it (1 and 3 packets), WRITE again: NAK"""
    for number, size in enumerate((64, 3000)):
        pair.connect()
        window = pair.b('mw', n=number)['rkey']
        rkey = window & ~0xff | (window + 1) & 0xff
        pair.b('send', qp=pair.qp, id=4, op='bind', mr=0, mw=number, off=0, len=4096, rkey=rkey,
               access='wr')
        pair.expect(pair.b, 'bind', id=4, status=peer.SUCCESS)
        raddr = pair.mr[1]['addr']
        seed = pair.fill(pair.a, size)
        pair.request('write', len=64, raddr=raddr, rkey=rkey)
        pair.verify(pair.b, 'write by a window', 0, 64, seed)
        pair.cell('write', 'by a memory window')
        pair.receive(5)
        pair.request('send_inv', len=size, rkey=rkey)
        pair.expect(pair.b, 'send_inv', id=5, status=peer.SUCCESS, len=size)
        pair.verify(pair.b, 'send_inv', TARGET, size, seed)
        pair.cell('send_inv', str(size))
        pair.request('write', peer.REM_ACCESS_ERR, len=64, raddr=raddr, rkey=rkey)
        pair.cell('write', 'by a key that was invalidated')
        pair.close()


@talk(cells('UC', 'send | send_imm | write | write_imm', SIZES))
def uc_messages(pair):
    """UC SEND and WRITE, with and without immediate"""
    pair.connect('uc')
    sends(pair, sizes(pair.mtu))
    writes(pair, sizes(pair.mtu))
    pair.close()


@talk(cells('UD', 'send | send_imm', UD_SIZES), cells('UD', 'send', 'wrong Q_Key'))
def ud_messages(pair):
    """UD SEND with and without immediate, a wrong Q_Key between them"""
    pair.connect('ud')
    where = ud_address(pair)
    for case in UD_SIZES.split(' | '):
        size = sizes(pair.mtu)[case]
        for op in ('send', 'send_imm'):
            pair.receive(8)
            seed = pair.fill(pair.a, size)
            imm = 0x1000 + seed if op == 'send_imm' else 0
            pair.request(op, len=size, imm=imm, qkey=QKEY_OTHER, **where)
            pair.request(op, len=size, imm=imm, **where)
            # The GRH's 40 bytes precede the data.
            pair.expect(pair.b, 'UD ' + op, id=8, status=peer.SUCCESS, len=size + 40, imm=imm,
                        src=pair.a.qpn[pair.qp])
            pair.verify(pair.b, 'UD ' + op, TARGET + 40, size, seed)
            pair.cell(op, case)
    pair.cell('send', 'wrong Q_Key')
    pair.close()


def ud_address(pair):
    """Returns the destination of a's datagrams."""
    gid = pair.b('gid', index=pair.b.sgid[pair.ip])['gid']
    return dict(gid=gid, sgid=pair.a.sgid[pair.ip], dqpn=pair.b.qpn[pair.qp])
