# SPDX-License-Identifier: BSD-3-Clause
"""Conversations of two peers with errors; otherwise as those of conversations.py."""

import peer
from conversations import count_up, ud_address
from pair import SIZE, TARGET, TARGET2, cells, talk

# Short: lost packets stay lost.
BRIEF = dict(timeout=14, retry=2)


@talk(cells('RC', 'write', 'wrong key | out of bounds | read-only memory'),
      cells('RC', 'read', 'wrong key | out of bounds'), cells('RC', 'fetch_add', 'read-only memory'),
      cells('RC', 'send', 'longer than its receive'))
def rc_errors(pair):
    """NAKs of a wrong key, range or right; a SEND longer than its receive"""
    readonly = pair.region(pair.b, 1, 4096, 'lr')
    right, there = pair.mr[1]['rkey'], pair.mr[1]['addr']
    access = peer.REM_ACCESS_ERR
    # The specification requires invalid request; rxe of Linux 6.1 sends remote operational error.
    too_long = (peer.REM_INV_REQ_ERR, peer.REM_OP_ERR)
    for op, case, args, status in (
            ('write', 'wrong key', dict(len=64, raddr=there, rkey=right ^ 0x5500), access),
            ('write', 'out of bounds', dict(len=3000, raddr=there + SIZE - 2999, rkey=right),
             access),
            ('write', 'read-only memory',
             dict(len=64, raddr=readonly['addr'], rkey=readonly['rkey']), access),
            ('read', 'wrong key', dict(len=64, raddr=there, rkey=right ^ 0x5500), access),
            ('read', 'out of bounds', dict(len=64, raddr=there + SIZE, rkey=right), access),
            ('fetch_add', 'read-only memory',
             dict(len=8, raddr=readonly['addr'], rkey=readonly['rkey']), access),
            ('send', 'longer than its receive', dict(len=3000), too_long)):
        pair.connect()
        if op == 'send':
            pair.receive(6, 2000)
        pair.request(op, status, **args)
        state = pair.state(pair.a)
        assert state == 'ERR', '%s: the requester is in %s' % (op, state)
        pair.cell(op, case)
        pair.close()


@talk(cells('RC', 'send', 'receive is late | no receive'))
def rc_rnr(pair):
    """SEND without a receive: RNR NAKs until there is one, then until the retries are used up"""
    pair.connect(rnr=7, rnr_timer=16)
    pair.post('send', len=100)
    assert pair.a.completion(20) is None, 'a SEND without a receive completes'
    pair.receive(7)
    pair.expect(pair.a, 'send', id=1, status=peer.SUCCESS)
    pair.expect(pair.b, 'send', id=7, status=peer.SUCCESS, len=100)
    pair.cell('send', 'receive is late')
    pair.close()
    pair.connect(rnr=2)
    pair.request('send', peer.RNR_RETRY_EXC_ERR, len=100)
    pair.cell('send', 'no receive')
    pair.close()


@talk(cells('RC', 'write', 'wrong PSN | no such queue pair'),
      cells('RC', 'write | read', 'queue pair without the right'))
def rc_refused(pair):
    """WRITE with PSNs from elsewhere, to no queue pair, to one that gives no rights"""
    value = 0x0123456789abcdef
    pair.value(pair.a, 0, ~value & 2 ** 64 - 1)
    pair.value(pair.b, TARGET, value)
    for op, case, status in (
            ('write', 'wrong PSN', peer.RETRY_EXC_ERR),
            ('write', 'no such queue pair', peer.RETRY_EXC_ERR),
            # Annex and chapters differ on which of the two NAKs it is.
            ('write', 'queue pair without the right', (peer.REM_ACCESS_ERR, peer.REM_INV_REQ_ERR)),
            ('read', 'queue pair without the right', (peer.REM_ACCESS_ERR, peer.REM_INV_REQ_ERR))):
        pair.connect(qp=dict(access='-') if 'right' in case else {},
                     skew=1000 if 'PSN' in case else 0,
                     **{} if 'right' in case else BRIEF)
        if 'no such' in case:
            pair.b('reset', n=pair.qp)
        pair.request(op, status, len=8, **pair.remote())
        assert pair.value(pair.b, TARGET) == value, '%s: the WRITE is there' % case
        if 'no such' in case:
            pair.b('qp', n=pair.qp)
        pair.cell(op, case)
        pair.close()


def unreceived(pair, length, **where):
    """A SEND without a receive, then one with: the first is lost, unknown to the sender."""
    # Its completion means that it left, not that it arrived: waits until it cannot arrive any more.
    for number, wait in enumerate((10, 100, 1000, 10000)):
        pair.request('send_imm', len=100, imm=2 * number, **where)
        assert pair.b.completion(wait) is None, 'a SEND without a receive completes one'
        pair.receive(9)
        pair.request('send_imm', len=100, imm=2 * number + 1, **where)
        found = pair.expect(pair.b, 'SEND', id=9, status=peer.SUCCESS, len=length)
        if found['imm'] == 2 * number + 1:
            break
    assert found['imm'] & 1, 'a SEND without a receive was kept for one'
    pair.cell('send', 'no receive')


@talk(cells('UC', 'send', 'no receive'), cells('UC', 'write', 'wrong key'))
def uc_lost(pair):
    """UC SEND without a receive and WRITE by a wrong key: lost, and the sender never knows"""
    pair.connect('uc')
    unreceived(pair, 100)
    pair.close()
    pair.connect('uc')
    value = 0x0123456789abcdef
    pair.value(pair.a, 0, 0)
    pair.value(pair.b, TARGET2, value)
    args = pair.remote(TARGET2)
    pair.request('write', len=8, raddr=args['raddr'], rkey=args['rkey'] ^ 0x5500)
    # The following message has arrived, so the first one would be there.
    pair.receive(9)
    pair.request('send', len=100)
    pair.expect(pair.b, 'UC SEND', id=9, status=peer.SUCCESS, len=100)
    assert pair.value(pair.b, TARGET2) == value, 'the WRITE is there'
    pair.cell('write', 'wrong key')
    pair.close()


@talk(cells('UD', 'send', 'no receive'))
def ud_lost(pair):
    """UD SEND without a receive: lost, and the sender never knows"""
    pair.connect('ud')
    unreceived(pair, 140, **ud_address(pair))
    pair.close()


@talk(cells('RC', 'fetch_add', '32 with lost replies'))
def lossy_atomics(pair):
    """32 FETCH_ADD while b's replies get lost: duplicate requests, answered and not done again"""
    pair.connect(timeout=14)
    pair.b.guest.netem(out='loss 30%')
    count_up(pair, 32)
    pair.b.guest.netem()
    pair.cell('fetch_add', '32 with lost replies')
    pair.close()
