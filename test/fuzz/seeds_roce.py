# SPDX-License-Identifier: BSD-3-Clause
"""Seeds of the fuzz target roce_resp, for seeds.py."""

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
