# SPDX-License-Identifier: BSD-3-Clause
"""Seeds of the fuzz targets roce_resp and wire, for seeds.py."""

import struct


def roce_resp_seeds():
    def pkt(op, length=0, psn=0, va=0, dma=0, flags=1, edits=b''):
        flags |= len(edits) // 2 << 5
        return struct.pack('>BBBbhHH', 0, flags, op, psn, va, dma, length) + edits

    def run(budget=255, room=255):
        return bytes([2, room, budget])

    def change(what, value):
        return bytes([3, what, value])

    rc, uc, ud = b'\0\1', b'\1\1', b'\2\1'
    key1, key2, no_key, far = 5, 9, 13, 0x11
    recvs, room, gone, rights, invalidate = range(5)
    send = pkt(0, 256) + pkt(1, 256) + pkt(2, 9)
    write = pkt(6, 256, 0, 8, 520) + pkt(7, 256) + pkt(8, 8)
    read = pkt(12, 0, 0, 40, 1000)
    atomics = pkt(20, 0, 0, 8, 5) + pkt(19, 0, 0, 8, 5)
    for name, kind in (('rc', rc), ('uc', uc), ('rts', b'\4\1')):
        yield name + '_send', kind + send + run()
        yield name + '_only', kind + pkt(4, 0) + pkt(5, 256) + pkt(10, 3, 0, 0, 3) + run()
        yield name + '_write', kind + write + run()
        yield name + '_imm', kind + (pkt(0, 256) + pkt(3, 4) + pkt(6, 256, 0, 0, 257) +
                                     pkt(9, 1) + pkt(11, 0) + run())
        yield name + '_order', kind + send[:9] + pkt(8, 4) + pkt(2, 4) + pkt(4, 4) + run()
        yield name + '_no_recv', kind + change(recvs, 0) + send + run() + change(recvs, 9) + send
        yield name + '_broken', kind + change(recvs, 255) + pkt(4, 4) + run()
        for value in (250, 251, 1):
            yield '%s_room_%d' % (name, value), kind + change(room, value) + send + run()
        yield name + '_refused', kind + (pkt(10, 4, 0, -1, 4) + pkt(10, 4, 0, 0, 4, no_key) +
                                         pkt(4, 4) + run())
        yield name + '_right', kind + change(rights, 1) + write + pkt(4, 4) + run()
        yield name + '_gone', kind + write[:9] + change(gone, 1) + write[9:] + run()
        yield name + '_gap', kind + send + pkt(4, 4, 1) + pkt(4, 4, 1) + run() + send + run()
        yield name + '_far', kind + pkt(4, 4, 127, 0, 0, far) + pkt(4, 4, -128, 0, 0, far) + run()
    yield 'inv', rc + pkt(23, 4) + pkt(0, 256) + pkt(22, 4) + run()
    yield 'inv_again', rc + change(invalidate, 255) + pkt(23, 4) + change(invalidate, 0) + pkt(23, 4)
    yield 'inv_refused', rc + change(invalidate, 19) + pkt(23, 4) + run()
    yield 'read', rc + read + run(2) + run()
    yield 'read_0', rc + pkt(12, 0, 0, 0, 0, no_key) + run() + pkt(12, 0, -1, 0, 0) + run()
    yield 'read_again', rc + (read + run(2) + pkt(12, 0, -4, 40, 1000) + run(1) +
                              pkt(12, 0, -2, 552, 488) + run() + pkt(12, 0, -2, 552, 487) + run())
    yield 'read_back', rc + (read + atomics + read + run() + pkt(12, 0, -10, 40, 1000) +
                             pkt(20, 0, -6, 8, 5) + run(3) + pkt(12, 0, -4, 40, 1000) + run())
    yield 'read_key', rc + pkt(12, 0, 0, 0, 1000, key1) + pkt(12, 0, 0, 0, 700, key2) + run()
    yield 'read_gone', rc + (read + run() + change(gone, 1) + pkt(12, 0, -4, 40, 1000) + run() +
                             change(gone, 0) + read + pkt(0, 256) + run(2) + change(gone, 1))
    yield 'read_many', rc + pkt(12, 0, 0, 0, 8) * 5 + run()
    yield 'read_one', b'\x08\1' + pkt(12, 0, 0, 0, 8) * 2 + run()
    yield 'read_steady', rc + (pkt(12, 0, 0, 0, 8) * 2 + run()) * 5 + pkt(12, 0, -1, 0, 8) + read
    yield 'atomics', rc + atomics + run() + pkt(20, 0, -2, 8, 5) + pkt(19, 0, -2, 8, 5) + run()
    yield 'atomic_misaligned', rc + pkt(20, 0, 0, 4, 5) + run()
    yield 'atomic_key', rc + pkt(20, 0, 0, 8, 5, key1) + run()
    yield 'ack_limit', rc + pkt(4, 4) + read + pkt(4, 4) + run() + pkt(4, 4, -6) + run()
    yield 'ack_covered', rc + (read + pkt(4, 4) + run(1) + pkt(4, 4, -1) + pkt(12, 0, -5, 40, 1000) +
                               run())
    yield 'no_room', rc + pkt(4, 4) + run(255, 0) + pkt(4, 4) + read + run(255, 1)
    yield 'two_sends', rc + pkt(0, 256) * 2 + run() + send
    for at, value in ((0, 0x1f), (2, 0x80), (3, 1), (9, 1), (1, 0x10)):
        yield 'edit_%d' % at, rc + pkt(4, 4, 0, 0, 0, 1, bytes([at, value])) + run()
    yield 'ud', ud + pkt(4, 100) + pkt(5, 0) + pkt(4, 4, 0, 0, 0, key1) + pkt(4, 257) + run()
    yield 'ud_room', ud + change(room, 1) + pkt(4, 9) + change(recvs, 0) + pkt(4, 1) * 2
    yield 'ud_broken', ud + change(recvs, 255) + pkt(4, 9)


# fuzz_wire.c: enum option
UC, UD, IN_CQE, NO_RQ, DETOUR, LONG, RIGHTS, KEYS = (1 << i for i in range(8))


def wire_seeds():
    def pkt(op, length=0, psn=0, va=0, key=0, flags=1, edits=()):
        flags |= key << 2 | len(edits) << 6
        return (struct.pack('>BBBbhH', 0, flags, op, psn, va, length) +
                b''.join(struct.pack('>HB', *e) for e in edits))

    def shm(step):
        return bytes([step[0] | 8]) + step[1:]

    def answer(op, psn=0, syndrome=31, length=0):
        return struct.pack('>BBBbhHB', 2, 1, op, psn, 0, length, syndrome)

    def recv(key=0, va=0, pieces=1, lens=(255, 255)):
        return bytes([3, pieces | key << 2]) + b''.join(
            struct.pack('>Bh', lens[i], va + 1000 * i) for i in range(pieces))

    def post(kind, length=8):
        return bytes([4, kind] + ([length // 8] if kind % 5 != 4 else []))

    def anew(step):
        return bytes([step[0] | 24]) + step[1:]

    run, revive, ro, none, other, window, end = b'\5', b'\6', 3, 4, 5, 6, 32
    kinds = {'rc': bytes([0]), 'in_cqe': bytes([IN_CQE]),
             'detour': bytes([DETOUR]), 'long': bytes([LONG]), 'rights': bytes([RIGHTS]),
             'keys': bytes([KEYS]), 'no_rq': bytes([NO_RQ])}
    steps = {
        'write': pkt(10, 8) + run + pkt(10, 8, 0, 8) + run + pkt(10, 8) * 3 + run,
        'write_imm': recv() * 4 + (pkt(11, 8) + run) * 3 + pkt(11, 0) + run,
        'write_long': pkt(6, 600) + pkt(7, 9) + run + pkt(8, 88) + run,
        'send': recv(pieces=2, lens=(20, 200)) * 2 + pkt(0, 9) + pkt(1, 9) + pkt(2, 9) + run,
        'send_only': recv() * 5 + (pkt(4, 8) + run) * 3 + pkt(5, 8) + run + pkt(4, 0) + run,
        'shm': recv() * 7 + (shm(pkt(4, 8)) + run) * 3 + shm(pkt(4, 30)) + pkt(4, 1) + shm(pkt(4, 9, 1)) + run,
        'shm_edits': recv() * 7 + b''.join(shm(pkt(4, 9, edits=((at, value),))) + run for at, value in (
            (11, 1), (ETH_BTH + 1, 0x10), (ETH_BTH + 3, 1), (ETH_BTH + 4, 0x80), (15, 3), (ETH_BTH + 7, 1))),
        'shm_no_recv': shm(pkt(4, 8)) + run + recv(pieces=0) + shm(pkt(4, 8)) + run + shm(pkt(5, 8)) + run,
        'unassigned': b''.join(way(pkt(op)) + run + revive
                               for op in (21, 24, 31) for way in (bytes, shm, anew)),
        'shm_all': recv() * 7 + b''.join(way(pkt(op, 8)) + run for op in (4, 5, 10, 11, 12, 19, 20)
                                         for way in (shm, anew)),
        'shm_answers': (post(0) + run + shm(answer(17)) + run) * 2 + post(0) + run + anew(answer(17)) + run,
        'send_held': recv() * 2 + b''.join(p + run for p in (
            pkt(10, 8, 1), pkt(10, 8), pkt(23, 20, 1, key=none), pkt(10, 8), pkt(4, 200), pkt(11, 8))),
        'send_short': recv() * 3 + pkt(4, 3) + run + pkt(4, 30) + run + pkt(4, 64) + run,
        'no_recv': pkt(4, 8) + run + recv() + pkt(4, 8) + run,
        'recv_small': recv(lens=(1, 1)) + pkt(4, 9) + run + revive + recv(pieces=0) + pkt(4, 1) + run,
        'recv_none': recv(none) + pkt(4, 9) + run,
        'recv_other': recv(other) + pkt(11, 9) + run + pkt(4, 9) + run,
        'inv': recv() * 2 + pkt(23, 8, key=window) + run + pkt(23, 8, key=window) + run,
        'inv_mr': recv() + pkt(23, 8) + run,
        'window': pkt(10, 8, 0, 0, window) + run + pkt(12, 100, 0, 0, window) + run,
        'read': pkt(12, 600) + run * 3 + pkt(12, 600, -3) + run + pkt(12, 0) + run,
        'atomic': pkt(20, 8) + run + pkt(19, 8) + run + pkt(20, 8, -1) + run + pkt(20, 8, 0, 4) + run,
        'many': (pkt(10, 8) + pkt(12, 300) + pkt(20, 8)) * 8 + run,
        'dup': (pkt(10, 8) + run + pkt(10, 8, -1) + pkt(10, 8, 3) + run) * 3,
        'fecn': (pkt(10, 8) + run) * 3 + pkt(10, 8, edits=((ETH_BTH + 4, 0x80),)) + run,
        'qpn': pkt(10, 8, edits=((ETH_BTH + 7, 1),)) + run,
        'icrc': pkt(10, 8, edits=((0x8000 | ETH_BTH + 12, 1),)) + run,
        'cut': pkt(10, 8, edits=((0, 0), (0, 0), (0x8000, 0))) + run,
        'ack': (post(0) + run + answer(17) + run) * 4,
        'talk': (pkt(10, 8) + run + post(0) + run + answer(17) + run) * 8 + pkt(10, 8) + run + revive,
        'nak': post(0) + run + answer(17, 0, 0x60) + run + answer(17, 0, 0x63) + run,
        'rnr': post(1) + run + answer(17, 0, 0x21) + run,
        'read_back': post(2, 600) + run + answer(13, 0) + answer(14, 1) + answer(15, 2, 31, 88) + run,
        'read_one': post(2, 8) + run + answer(16, 0, 31, 8) + run,
        'atomic_back': post(4) + run + answer(18, 0) + run,
        'room': post(2, 80) + b'\7\0' + pkt(12, 600) + run + b'\7\1' + run + b'\7\xff' + run,
    }
    for key, name in ((ro, 'ro'), (none, 'none'), (other, 'other')):
        for op in (10, 12, 20):
            steps['%s_%d' % (name, op)] = (pkt(op, 8, 0, 0, key) + run + revive +
                                           pkt(op, 100, 0, -99, 0) + run + revive +
                                           pkt(op, 100, 0, -99, 0, 1 | end) + run)
    for kind, options in kinds.items():
        for name, text in steps.items():
            yield '%s_%s' % (kind, name), options + text
    ud = bytes([UD])
    for flags in (0, 2):
        for length in (0, 8, 250):
            yield 'ud_%d_%d' % (flags, length), ud + recv() * 2 + (
                pkt(100, length, flags=flags) + pkt(101, length, flags=flags)) + run
    yield 'ud_small', ud + recv(lens=(2, 2)) + pkt(100, 9) + run + recv(none) + pkt(100, 9) + run
    def group(step):
        return bytes([step[0] | 32]) + step[1:]

    yield 'ud_group', ud + recv() * 3 + group(pkt(100, 8)) + run + group(pkt(101, 8)) * 2 + run
    # A unicast QP number, one bit of the group's number, and its address with a connected QP.
    yield 'ud_group_edits', ud + recv() * 3 + b''.join(
        group(pkt(100, 8, edits=((at, value),))) + run for at, value in (
            (ETH_BTH + 5, 0xff), (ETH_BTH + 7, 1), (33, 1), (0x8000 | ETH_BTH + 12, 1)))
    yield 'rc_group', bytes([0]) + recv() * 2 + group(pkt(4, 8)) + run + pkt(4, 8) + run
    yield 'ud_none', ud + pkt(100, 9) + run
    uc = bytes([UC])
    yield 'uc_ops', uc + recv() * 4 + b''.join(pkt(32 + op, 8) + run for op in (4, 5, 10, 11, 0, 2, 6, 8))


ETH_BTH = 14 + 20 + 8
