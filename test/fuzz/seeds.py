#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the seeds of the fuzz targets cqe, frame, mailbox, roce, roce_resp, wire, wqe: seeds.py CORPUS.

A seed is a short legal program in the format that fuzz_<target>.c describes. The fuzzer has added
the files "found_*" beside them, which this script leaves alone.
"""

import os
import re
import struct
import sys

from seeds_roce import roce_resp_seeds, wire_seeds

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')

# fuzz_mailbox.c: enum call
(CREATE, MODIFY, QUERY, GENERAL, DESTROY, UMEM, MR, UAR, PD, DM, EVENT, MEMORY, RUN,
 PORT) = range(14)
CQ, QP, COUNTER, RAW, RMP, MCG = range(6)
INIT, RTR, RTS, RTS2RTS, INIT2INIT, ERR, RST, LWM, RESIZE, MODERATE = range(10)
PLAIN = bytes([0, 0])  # no corrupted bytes, the correct length
SAME = bytes([0])      # the correct length of the answer


def create(slot, kind, spoil=PLAIN):
    return bytes([CREATE, slot, kind]) + spoil + SAME


def spoil(*edits):
    """Changes bytes (offset, value) of a mailbox."""
    return bytes([len(edits)]) + b''.join(struct.pack('>HB', *e) for e in edits) + SAME


def modify(slot, op, change=PLAIN):
    return bytes([MODIFY, slot, op]) + change + SAME


def query(slot, change=PLAIN):
    return bytes([QUERY, slot]) + change + SAME


def up(slot):
    return b''.join(modify(slot, op) for op in (INIT, RTR, RTS))


def mailbox_seeds():
    memory = bytes([0, 0, 0, 0x20, 0])  # 8 KiB from the start
    yield 'caps', b''.join(bytes([GENERAL, mod]) + PLAIN + SAME for mod in range(0, 9))
    yield 'objects', (create(1, CQ) + create(2, COUNTER) + create(3, QP) + query(2) + query(3) +
                      bytes([DESTROY, 1, DESTROY, 2, DESTROY, 3]))
    yield 'counter_qp', (create(2, COUNTER) + create(3, QP, spoil((0x18 + 0x14, 1))) + query(2) +
                         bytes([DESTROY, 2, DESTROY, 3, DESTROY, 2]))
    yield 'all_states', (create(3, QP) + modify(3, INIT) + modify(3, INIT2INIT) +
                         modify(3, RTR) + modify(3, RTS) + modify(3, RTS2RTS) + query(3) +
                         modify(3, ERR) + query(3) + modify(3, RST) + up(3))
    yield 'wrong_states', (create(3, QP) + modify(3, RTS) + modify(3, RTR) + modify(3, RTS2RTS) +
                           modify(3, INIT2INIT) + up(3) + modify(3, RTR) + modify(3, INIT))
    yield 'events', (create(3, QP) + bytes([EVENT, 3, 2, 0x05, 0x12]) +
                     bytes([EVENT, 0, 1, 0x09]) + up(3) + modify(3, ERR) +
                     bytes([RUN, 3, 1, 0, 0, 0, 1, 4]) + bytes([EVENT, 3, 1, 0x10]))
    yield 'handles', (bytes([UMEM, 1]) + memory + bytes([1, 0, UMEM, 1]) +
                      bytes([PD, 1, MR, 1, 1]) + memory + bytes([15, 0, PD, 1, MR, 1, PD, 1]) +
                      bytes([UAR, 1, 1, UAR, 2, 0, UAR, 1, 0, UAR, 2, 0]) +
                      bytes([DM, 1, 4, 0, 0, 0x10, 0, 6, DM, 1, 65, 0, 0, 0, 0, 16]) +
                      bytes([DM, 1, 66, 0, 0, 0, 4, 16, DM, 1, 0]))
    yield 'ports', b''.join(bytes([PORT, p, i, 0, 0, 0]) for p, i in
                            ((1, 0), (1, 3), (1, 15), (1, 16), (2, 0)))
    # A NOP at block 0 of the send queue, its record, its doorbell.
    yield 'nop', (create(3, QP) + up(3) + bytes([MEMORY]) + struct.pack('>HB', 8192 + 512, 16) +
                  struct.pack('>IIII', 0, 0x100 | 1, 8, 0) + bytes([MEMORY]) +
                  struct.pack('>HB', 16384 + 64 + 4, 4) + struct.pack('>I', 1) +
                  bytes([RUN, 3, 1, 0, 0, 0, 0, 1]))
    yield 'rmp', (create(1, RMP) + query(1) + modify(1, LWM) + query(1) + bytes([DESTROY, 1]) +
                  create(1, RMP, spoil((0x20 + 0x30, 0x10))))
    yield 'rmp_qp', (create(1, RMP) + create(2, QP, spoil(
        (0x18 + 0xa8 + 3, 0), (0x18 + 0xaf, 1), (0x18 + 0x0c, 0), (0x18 + 2, 1))) +
                     up(2) + bytes([DESTROY, 1]))
    yield 'cq_changes', (create(1, CQ) + modify(1, RESIZE) + modify(1, MODERATE) + query(1) +
                         modify(1, RESIZE) + bytes([RUN, 1, 3]) + modify(1, RESIZE))
    yield 'groups', create(3, QP, spoil((0x18 + 1, 2))) + b''.join(bytes([CREATE, 4 + i, MCG, 3]) + change + SAME for i, change in enumerate(
        (PLAIN, spoil((31, 1)), PLAIN, spoil((16, 9))))) + bytes([DESTROY, 3, DESTROY, 4, DESTROY, 3, DESTROY, 5])
    yield 'box_lengths', (create(3, QP) + bytes([CREATE, 4, QP, 0, 0x80, 0]) +
                          bytes([CREATE, 4, QP, 0, 0xf0, 0]) + bytes([CREATE, 4, CQ, 0, 0, 0xf8]) +
                          bytes([GENERAL, 1, 0, 0, 0x81]) + bytes([QUERY, 3, 0, 0, 0x81]))
    for name, command in (('cqc', lambda c: create(1, CQ, c)),
                          ('qpc', lambda c: create(2, QP, c)),
                          ('rmpc', lambda c: create(2, RMP, c)),
                          ('lwm', lambda c: create(2, RMP) + modify(2, LWM, c)),
                          ('resize', lambda c: create(1, CQ) + modify(1, RESIZE, c)),
                          ('moderate', lambda c: create(1, CQ) + modify(1, MODERATE, c)),
                          ('init', lambda c: create(2, QP) + modify(2, INIT, c)),
                          ('rtr', lambda c: create(2, QP) + modify(2, INIT) + modify(2, RTR, c)),
                          ('rts', lambda c: (create(2, QP) + modify(2, INIT) + modify(2, RTR) +
                                             modify(2, RTS, c)))):
        for field, change in field_changes(name):
            yield '%s_%s' % (name, field), command(change)


def field_changes(context):
    """Yields each field of a context, with a small value and with all ones."""
    with open(os.path.join(TOP, 'lib', 'format', 'bb_prm.h')) as f:
        text = f.read()
    rmp = ((0x20, 'RMPC'), (0x50, 'WQ'), (0, 'CREATE_RMP'), (0, 'MODIFY_RMP'))
    changes = ((0x10, 'CQC'), (0, 'CREATE_CQ'), (0, 'MODIFY_CQ'), (0, 'CMD'))
    kinds = {'rmpc': rmp, 'lwm': rmp, 'resize': changes, 'moderate': changes,
             'cqc': ((0x10, 'CQC'), (0, 'CREATE_CQ')), 'qpc': ((0x18, 'QPC'), (0, 'CREATE_QP'))}
    for base, kind in kinds.get(context, ((0x18, 'QPC'), (0x30, 'ADS'), (0, 'MODIFY_QP'))):
        pattern = r'define BB_PRM_%s_(\w+) +BB_PRM_F\((\w+), (\d+), (\d+)\)' % kind
        for name, byte, bit, width in re.findall(pattern, text):
            byte, bit, width = int(byte, 0) + base, int(bit), min(int(width), 64)
            if '_OUT' in name or name in ('QPC', 'CQC') or byte + 8 > 0x110:
                continue
            word = ((1 << width) - 1) << (-(bit + width) % 8)
            first, count = byte + bit // 8, (bit % 8 + width + 7) // 8
            for suffix, value in (('1', 1 << (-(bit + width) % 8)), ('ff', word)):
                octets = value.to_bytes(count, 'big')
                yield '%s_%s' % (name.lower(), suffix), spoil(
                    *((first + i, v) for i, v in enumerate(octets)))


# fuzz_wqe.c: enum step
(WQE, RECORD, STORE, BLUEFLAME, RECV, SRUN, RAW_RECORD, RAW_STORE, MODIFY_QP, REVIVE, POLL,
 WRITE_MEM) = range(12)
UMR = 127
RADDR = bytes([0, 0, 1, 0])  # start of the peer's memory with keys, its own key
IN_CQE, UC, UD, SRQ, LIST, KEYS, DETOUR = 1, 2, 4, 8, 16, 32, 64  # enum option
BIND1, BIND2, INV, KLM_LIST, PATTERN = range(5)  # of step_umr()
NOP, WRITE, WRITE_IMM, SEND, SEND_IMM, READ, CAS, FADD = 0, 8, 9, 10, 11, 16, 17, 18
SIGNALED, FENCE, SOLICITED = 8, 0x80, 2


def data(length):
    return bytes([1, length, 0, 0, 2])


def inline(length):
    return bytes([3, length])


def wqe(opcode, *segs, fm=SIGNALED):
    return bytes([WQE, opcode, fm, len(segs)]) + b''.join(segs) + bytes([0, 0])


RING = bytes([RECORD, STORE, SRUN, 3, POLL])
RING_B = bytes([RECORD | 0x80, STORE | 0x80, SRUN, 3, POLL | 0x80])
RING_BF = bytes([BLUEFLAME, SRUN, 3, POLL])
RECV64 = bytes([RECV | 0x80, 1, 64, 0, 0, 2, 0])


def wqe_seeds():
    plain = {
        'nop': wqe(NOP),
        'write': wqe(WRITE, RADDR, data(64)),
        'write_list': wqe(WRITE, RADDR, data(8), data(100), data(3)),
        'write_inline': wqe(WRITE, RADDR, inline(40)),
        'write_empty': wqe(WRITE, RADDR),
        'read': wqe(READ, RADDR, data(64)),
        'read_fenced': wqe(READ, RADDR, data(64)) + wqe(WRITE, RADDR, data(8), fm=FENCE),
        'cmp_swap': wqe(CAS, RADDR, bytes([4, 1, 0x5a]), data(8)),
        'fetch_add': wqe(FADD, RADDR, bytes([4, 1, 0]), data(8)),
        'send': wqe(SEND, data(64)),
        'send_imm': wqe(SEND_IMM, inline(20), fm=SIGNALED | SOLICITED),
        'write_imm': wqe(WRITE_IMM, RADDR, data(16)),
        'unknown': wqe(0x2a, RADDR, data(16)),
    }
    # A QP connected to itself fails by its own request.
    for name, body in (('key', wqe(WRITE, bytes([0, 0, 1, 210]), data(64))),
                       ('recv', recv(8) + wqe(SEND, data(64)))):
        yield 'self_' + name, (bytes([0, 0, 2]) + bytes(b for how in (1, 2, 69, 4)
                                                        for b in (MODIFY_QP, how)) +
                               body + RING + RING)
    # One CQ for both sides: two engines write it in turn.
    for name, program in plain.items():
        yield name + '_shared', bytes([LIST, 8, 2]) + RECV64 * 2 + program * 2 + RING + RING
    yield 'shared_overrun', (bytes([LIST, 0xc8, 2]) + RECV64 * 4 + plain['send'] * 6 +
                             bytes([RECORD, STORE]) + bytes([SRUN, 9]) * 4)
    for name, program in plain.items():
        # One engine, then two; a receive is posted in time or too late.
        for how, suffix in ((0, ''), (8, '_two')):
            head = bytes([0, how, 2])
            yield name + suffix, head + RECV64 + program + RING
        yield name + '_bf', bytes([0, 0, 2]) + RECV64 + program + RING_BF
        yield name + '_rnr', bytes([0, 8, 0]) + program + RING + bytes([SRUN, 15]) + RING
        yield name + '_rights', bytes([0, 0, 8, 0]) + RECV64 + program + RING
        yield name + '_psn', bytes([0, 0, 64, 255]) + RECV64 + program + RING + bytes([SRUN, 9])
    for defect in range(1, 16):
        body = b''.join((RECV64 + plain[n] + RING) for n in ('write', 'send', 'fetch_add'))
        yield 'defect_%u' % defect, bytes([0x80 | defect, 0, 2]) + body * 3
    late = bytes([SRUN, 0x80]) * 6
    dead = bytes([MODIFY_QP | 0x80, 0])
    for how, suffix in ((0, ''), (8, '_two')):
        for name in ('write', 'send', 'fetch_add'):
            # No answer; no receive until late; or a receive in time.
            yield 'dead_%s%s' % (name, suffix), (bytes([0, how, 1]) + dead + plain[name] + RING +
                                                 late)
            yield 'late_%s%s' % (name, suffix), (bytes([0, how, 2]) + plain[name] + RING + late +
                                                 RECV64 + late)
            yield 'tired_%s%s' % (name, suffix), bytes([0, how, 4]) + plain[name] + RING + late
            # A PSN ahead of and one behind the expected one.
            for psn, link in (('ahead', 1), ('behind', 0xff)):
                yield 'psn_%s_%s%s' % (psn, name, suffix), (
                    bytes([0, how, 64, link]) + RECV64 + plain[name] * 3 + RING + late)
        for n in (1, 2):
            yield 'reads_%u%s' % (n, suffix), (bytes([0, how, 32, 4, n - 1]) +
                                               (plain['read'] + plain['fetch_add']) * 5 + RING)
        yield 'short_recv' + suffix, (bytes([0, how, 0]) + RECV64 +
                                      wqe(SEND, data(100)) + RING + RING)
        yield 'long' + suffix, bytes([0, how, 16, 0, 4]) + RECV64 + wqe(SEND, data(100)) + RING
        for key in (165, 190, 210, 230, 250):
            for n, program in (('recv', bytes([RECV | 0x80, 1, 64, key, 0, 2, 0]) +
                                wqe(SEND, data(64))),
                               ('local', wqe(WRITE, RADDR, bytes([1, 64, key, 0, 2]))),
                               ('write', wqe(WRITE, bytes([0, 0, 1, key]), data(64))),
                               ('read', wqe(READ, bytes([0, 0, 1, key]), data(64))),
                               ('atomic', wqe(FADD, bytes([0, 0, 1, key]), bytes([4, 1, 0]),
                                              data(8)))):
                yield 'key_%s_%u%s' % (n, key, suffix), bytes([0, how, 0]) + program + RING
        for at in (130, 131, 180, 210, 1):
            for n, program in (('write', wqe(WRITE, bytes([0, at, 1, 0]), data(64))),
                               ('atomic', wqe(FADD, bytes([0, at, 3, 0]), bytes([4, 1, 0]),
                                              data(8)))):
                yield 'at_%s_%u%s' % (n, at, suffix), bytes([0, how, 0]) + program + RING
    # Masked atomics of 4 and 8 bytes (opmod, the first byte of the WQE): 0x15 adds.
    for size, opmod in ((4, 8), (8, 9), (7, 7)):
        for op, name in ((0x14, 'cs'), (0x15, 'fa')):
            for n in (1, 2):
                body = [RADDR] + [bytes([5]) + bytes([0, 0, 0, 0xff] * 4)] * n + [data(size)]
                program = (bytes([WQE, op, SIGNALED, len(body)]) + b''.join(body) +
                           bytes([0, 0xf0, opmod]))
                yield 'masked_%s_%u_%u' % (name, size, n), bytes([1, 0, 0]) + program + RING
                yield 'masked_%s_%u_%u_two' % (name, size, n), (bytes([0, 8, 0]) + program + RING)
                yield 'masked_%s_%u_%u_no' % (name, size, n), bytes([1, 2, 0]) + program + RING
    # Data in CQEs, of 32 bytes and one more.
    for name in ('read', 'cmp_swap', 'fetch_add', 'send', 'send_imm', 'write_imm'):
        yield 'in_cqe_' + name, bytes([1, 0, 2]) + RECV64 + plain[name] + RING
        yield 'in_cqe_%s_two' % name, bytes([1, 8, 2]) + RECV64 + plain[name] + RING
    for n in (0, 8, 32, 33):
        yield 'in_cqe_len_%u' % n, (bytes([1, 0, 2]) + RECV64 + wqe(SEND, data(n)) +
                                    wqe(READ, RADDR, data(n)) + RING)
    yield from ud_seeds()
    yield from uc_seeds(plain)
    yield from srq_seeds(plain)
    yield from umr_seeds()
    yield from link_seeds(plain)
    yield 'send_inv', (bytes([0, 0, 2]) + RECV64 + wqe(1, data(8)) + RING +
                       wqe(0x1b, fm=SIGNALED) + RING)
    yield 'no_rq', bytes([0, 16, 0]) + plain['send'] + RING
    yield 'error', bytes([0, 8, 0, MODIFY_QP, 0]) + plain['write'] + RING + bytes([REVIVE, 0])
    yield 'overrun', bytes([0, 0xc0, 0]) + plain['write'] * 9 + bytes([RECORD, STORE, SRUN, 9])


def recv(*lengths, last=0):
    return (bytes([RECV | 0x80, len(lengths)]) + b''.join(bytes([n, 0, 0, 2]) for n in lengths) +
            bytes([last]))


def av(wrong=0, gid=3):
    return bytes([250, wrong, gid])


def umr(kind, edits=(), size=0, key=0, fm=SIGNALED, post=UMR):
    """Edits are (offset after the control segment, bits)."""
    return (bytes([post, kind, fm, len(edits)]) + b''.join(bytes(e) for e in edits) +
            bytes([size, key]))


def send_inv(key, *segs):
    return bytes([WQE, 1, SIGNALED, len(segs)]) + b''.join(segs) + key + bytes([0, 0])


def ud_seeds():
    for how, suffix in ((0, ''), (8, '_two')):
        for options, kind in ((UD, ''), (UD | SRQ, '_srq'), (UD | IN_CQE, '_in_cqe')):
            head = bytes([options, how, 0])
            for gid in (0, 1, 3, 9):
                yield 'ud_gid_%u%s%s' % (gid, kind, suffix), (
                    head + recv(150) + recv(30, 100) + recv(40, 9) +
                    wqe(SEND, av(0, gid), data(64)) + wqe(SEND_IMM, av(0, gid), inline(33), fm=2) +
                    wqe(SEND, av(0, gid)) + RING + RING)
            for bit in range(7):
                yield 'ud_wrong_%u%s%s' % (bit, kind, suffix), (
                    head + recv(150) + wqe(SEND, av(1 << bit), data(64)) + RING + RING)
            for name, body in (('no_recv', b''), ('short_recv', recv(50)),
                               ('bad_recv', recv(150)[:3] + bytes([210, 0, 2, 0]))):
                yield 'ud_%s%s%s' % (name, kind, suffix), (
                    head + body + wqe(SEND, av(), data(64)) + RING + RING)
            yield 'ud_dead' + kind + suffix, (head + bytes([MODIFY_QP | 0x80, 0]) + recv(150) +
                                              wqe(SEND, av(), data(64)) + RING + RING)
        yield 'ud_many' + suffix, (bytes([UD, how, 0]) + recv(150) * 4 +
                                   wqe(SEND, av(), data(3), data(5), inline(9), data(7)) * 5 +
                                   RING + RING)
        # InfiniBand: with and without a GRH, into receives of one piece and of several.
        for options, kind in ((UD | UC, ''), (UD | UC | SRQ, '_srq')):
            for gid in (0, 16, 25):
                for wrong in (0, 64):
                    yield 'ud_ib_%u_%u%s%s' % (gid, wrong, kind, suffix), (
                        bytes([options, how, 0]) + recv(150) + recv(30, 10, 100) + recv(40, 9) +
                        recv(8, 90) + wqe(SEND, av(wrong, gid), data(64)) +
                        wqe(SEND_IMM, av(wrong, gid), inline(33), fm=2) +
                        wqe(SEND, av(wrong, gid)) + wqe(SEND, av(wrong, gid), data(5), data(6)) +
                        RING + RING)
        # A datagram's CQE finds the CQ full.
        yield 'ud_overrun' + suffix, (bytes([UD, how | 0xc0, 0]) + recv(150) * 8 +
                                      wqe(SEND, av(), data(3)) * 8 + bytes([RECORD, STORE]) +
                                      bytes([SRUN, 9]) * 4)
    yield 'ud_no_av', bytes([UD, 0, 0]) + recv(150) + wqe(SEND, data(64)) + RING
    yield 'ud_long', (bytes([UD, 0, 0]) + recv(150) +
                      wqe(SEND, av(), bytes([1, 192, 0x10, 1, 0, 0, 2])) + RING)
    for opcode in (WRITE, READ, FADD, 1, 0x25):
        yield 'ud_opcode_%u' % opcode, bytes([UD, 0, 0]) + wqe(opcode, av(), data(8)) + RING


def uc_seeds(plain):
    for how, suffix in ((0, ''), (8, '_two')):
        for name, program in plain.items():
            yield 'uc_%s%s' % (name, suffix), bytes([UC, how, 0]) + RECV64 + program + RING + RING
            yield 'uc_late_%s%s' % (name, suffix), bytes([UC, how, 0]) + program + RING + RING
            yield 'uc_rights_%s%s' % (name, suffix), (bytes([UC, how, 8, 0]) + RECV64 + program +
                                                      RING + RING)
            yield 'uc_psn_%s%s' % (name, suffix), (bytes([UC, how, 64, 255]) + RECV64 + program +
                                                   RING + RING)
        for key in (165, 190, 210, 230):
            yield 'uc_key_%u%s' % (key, suffix), (
                bytes([UC, how, 0]) + wqe(WRITE, bytes([0, 0, 1, key]), data(64)) + RING + RING)
        yield 'uc_short_recv' + suffix, (bytes([UC, how, 0]) + RECV64 + wqe(SEND, data(100)) +
                                         RING + RING)
        yield 'uc_long' + suffix, (bytes([UC, how, 16, 0, 4]) + RECV64 + wqe(SEND, data(100)) +
                                   RING)
        yield 'uc_dead' + suffix, (bytes([UC, how, 0, MODIFY_QP | 0x80, 0]) + plain['write'] +
                                   RING + RING)


def srq_seeds(plain):
    for how, suffix in ((0, ''), (8, '_two')):
        for options in (SRQ, SRQ | LIST, SRQ | UC, SRQ | LIST | IN_CQE):
            head, end = bytes([options, how, 2]), '_%u%s' % (options, suffix)
            yield 'srq' + end, (head + recv(64) * 5 + plain['send'] + plain['send_imm'] +
                                plain['write_imm'] + wqe(SEND, data(30)) + RING + RING)
            yield 'srq_wrap' + end, head + (recv(60, 4) + plain['send'] + RING) * 10
            yield 'srq_late' + end, head + plain['send'] + RING + recv(64) + RING + RING
            yield 'srq_short' + end, head + recv(8) + plain['send'] + RING + recv(64) + RING
            yield 'srq_count' + end, head + recv(64, last=239) + plain['send'] + RING + RING
            yield 'srq_link' + end, head + recv(64, last=255) + plain['send'] * 2 + RING + RING
            yield 'srq_key' + end, (head + recv(64)[:3] + bytes([210, 0, 2, 0]) +
                                    plain['send'] + RING + RING)
            yield 'srq_dead' + end, (head + recv(64) + bytes([MODIFY_QP | 0x80, 0]) +
                                     plain['send'] + RING + RING)


def by_b(program):
    """Returns a WQE posted by b."""
    return bytes([program[0] | 0x80]) + program[1:] + RING_B


def link_seeds(plain):
    """States, MTUs and PSNs of a connection, and other kinds of memory."""
    big = bytes([1, 192, 6, 0, 0, 0, 2])  # 1536 bytes
    for how, suffix in ((0, ''), (8, '_two')):
        for options in (0, UC):
            end = '_%u%s' % (options, suffix)
            rtr = bytes([MODIFY_QP | 0x80, 1, MODIFY_QP | 0x80, 2, MODIFY_QP | 0x80, 3])
            self = bytes([MODIFY_QP, 1, MODIFY_QP, 2, MODIFY_QP, 69, MODIFY_QP, 4])
            take = bytes([RECV, 1, 64, 0, 0, 2, 0])
            for name in ('write', 'send', 'write_imm'):
                yield 'rtr_%s%s' % (name, end), (bytes([options, how, 2]) + rtr + RECV64 +
                                                 plain[name] + RING + RING)
                yield 'self_%s%s' % (name, end), (bytes([options, how, 2]) + self + take +
                                                  plain[name] + RING + RING)
            yield 'mtu' + end, (bytes([options, how, 16, 0, 30]) + RECV64 +
                                wqe(WRITE, RADDR, big) + RING + RING)
            yield 'psn_within' + end, (bytes([options, how, 64, 1]) + RECV64 +
                                       wqe(WRITE, RADDR, big) + RING + RING)
        for options in (DETOUR, DETOUR | UC, DETOUR | IN_CQE):
            head, end = bytes([options, how, 2]), '_%u%s' % (options, suffix)
            for name in ('write', 'write_list', 'write_inline', 'write_imm', 'read', 'fetch_add'):
                yield 'detour_%s%s' % (name, end), head + RECV64 + plain[name] + RING + RING
                yield 'detour_b_%s%s' % (name, end), head + by_b(plain[name]) + RING_B
            yield 'detour_inline' + end, (head + wqe(WRITE, RADDR, inline(7), inline(40)) + RING +
                                          RING)


def umr_seeds():
    zero = bytes([255]) + bytes(8)  # an address of 0
    first = bytes([0, 0])           # the start of the memory with keys
    for how, suffix in ((0, ''), (8, '_two')):
        for options in (KEYS, KEYS | UC, KEYS | SRQ | LIST, KEYS | IN_CQE):
            head, end = bytes([options, how, 2]), '_%u%s' % (options, suffix)
            run = RING + RING
            for name, kind, key, at in (('one', BIND1, 252, first),
                                        ('two', BIND2, 253, first),
                                        ('list', KLM_LIST, 254, zero),
                                        ('pattern', PATTERN, 254, zero)):
                # b makes the key, a uses it; then b uses it itself and invalidates it.
                made = umr(kind, post=UMR | 0x80) + RING_B
                lists = umr(kind, ((50, 0x40),), post=UMR | 0x80) + RING_B
                remote = bytes([0]) + at + bytes([key])
                use = (wqe(WRITE, remote, data(40)) + wqe(READ, remote, data(40)) +
                       wqe(FADD, remote, bytes([4, 1, 0]), data(8)))
                own = bytes([1, 40, key]) + at
                local = wqe(WRITE, RADDR, own) + wqe(READ, RADDR, own) + wqe(SEND, own)
                inv = send_inv(bytes([key]), data(8))
                for what, program in (('use', use), ('write', wqe(WRITE, remote, data(40))),
                                      ('atomic', wqe(FADD, remote, bytes([4, 1, 0]), data(8))),
                                      ('masked', bytes([WQE, 0x15, SIGNALED, 3]) + remote +
                                       bytes([5]) + bytes(16) + data(8) + bytes([0, 0xf0, 9])),
                                      ('read', wqe(READ, remote, data(40))),
                                      ('beyond', wqe(WRITE, remote, data(190), data(190))),
                                      ('inv', inv), ('inv_twice', inv + inv),
                                      ('inv_use', inv + use)):
                    yield 'umr_%s_%s%s' % (name, what, end), (head + made + RECV64 * 2 + program +
                                                              run)
                    if options == KEYS:
                        yield 'umr_all_%s_%s%s' % (name, what, end), (
                            head + lists + RECV64 * 2 + program + run)
                yield 'umr_%s_local%s' % (name, end), (head + umr(kind, ((50, 0x04),)) + RING +
                                                       RECV64 + local + run)
                yield 'umr_%s_read%s' % (name, end), (head + umr(kind) + RING +
                                                      wqe(READ, RADDR, own) + run)
                yield 'umr_%s_unfenced%s' % (name, end), (head + umr(kind) + RECV64 + local + run)
                yield 'umr_%s_recv%s' % (name, end), (
                    head + made + bytes([RECV | 0x80, 1, 64, key]) + at + b'\0' +
                    wqe(SEND, data(64)) + run)
                yield 'umr_%s_recv_inv%s' % (name, end), (
                    head + made + bytes([RECV | 0x80, 1, 64, key]) + at + b'\0' +
                    send_inv(bytes([key]), data(8)) + run)
                yield 'umr_%s_twice%s' % (name, end), head + umr(kind) * 2 + RING
                yield 'umr_%s_back%s' % (name, end), (head + umr(kind) +
                                                      umr(INV + 5 * (key - 252)) * 2 + RING)
                if options == KEYS and how == 0:
                    for place in range(128):
                        yield 'umr_%s_edit_%u' % (name, place), (
                            head + umr(kind, ((place, 0x11),)) + RING)
    head = bytes([KEYS, 0, 2])
    for n in (1, 4, 15):
        yield 'umr_size_%u' % n, head + umr(BIND2, size=240 + n) + RING
    for n in (192, 224, 232, 255):
        for key in (0, 190, 210, 250):
            yield 'umr_key_%u_%u' % (n, key), (head + bytes([UMR, BIND2, SIGNALED, 0, 0, n, key]) +
                                               bytes([0, 0]) + RING)
    for key in (0, 165, 190, 210, 250):
        yield 'inv_key_%u' % key, head + RECV64 + send_inv(bytes([key]), data(8)) + RING + RING


# fuzz_cqe.c: enum step
CQE, POST, POST_RECV, POLL_CQ, POLL_TS, RESET_QP, RAW_CQE = range(7)
REQ, RESP_SEND, RESP_IMM, RESP_WR_IMM, REQ_ERR, RESP_ERR = 0, 2, 3, 4, 5, 6


def cqe(qp, what, counter=0, syndrome=0, edits=b'\0'):
    return bytes([CQE, qp, what, counter, syndrome]) + edits


def cqe_seeds():
    posts = b''.join(bytes([POST, 2, 1, kind]) for kind in range(4))
    recvs = bytes([POST_RECV, 2]) * 4
    poll = bytes([POLL_CQ, 8])
    for name, poll_one in (('', poll), ('_ts', bytes([POLL_TS, 8]))):
        yield 'sends' + name, posts + b''.join(cqe(2, REQ, i) for i in range(4)) + poll_one
        yield 'recvs' + name, (recvs + cqe(2, RESP_SEND) + cqe(2, RESP_IMM | 8, 1) +
                               cqe(2, RESP_WR_IMM, 2) + cqe(2, 7, 3) + poll_one)
        for syndrome in (1, 2, 4, 5, 6, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x22, 0x77):
            yield 'errors%s_%02x' % (name, syndrome), (
                posts + recvs + cqe(2, REQ_ERR, 0, syndrome) + cqe(2, RESP_ERR, 0, syndrome) +
                poll_one)
        # No QP of that index, an index out of range, not outstanding, unknown opcode, purged.
        for edit, text in (('uidx', b'\xe1\x23\x55'), ('top', b'\xe1\x21\xff'),
                           ('purged', b'\xe3\x21\xff\x22\xff\x23\xfd'),
                           ('opcode', b'\xe1\x3f\x70'), ('bytes', b'\xe1\x2c\xff')):
            yield 'stray_%s%s' % (edit, name), posts + cqe(2, REQ, 0, 0, text) + poll_one
        yield 'twice' + name, posts + (cqe(2, REQ, 3) + cqe(2, REQ_ERR, 3, 5)) * 2 + poll_one
        yield 'no_rq' + name, cqe(3, RESP_SEND) + cqe(3, RESP_ERR, 0, 4) + poll_one
    # Data in the CQE, whose format is at 0x3f: of READs, atomics, receives, and receives of an SRQ.
    takes = bytes([POST, 2, 1, 2, POST, 2, 1, 3])
    kept = b'\xe1\x3f\x04'
    for what, head, qp in (('rq', recvs, 2), ('srq', bytes([POST_RECV, 0]) * 4, 0),
                           ('ud', bytes([POST_RECV, 1]) * 4, 1)):
        yield 'data_' + what, (head + cqe(qp, RESP_SEND, 0, 0, kept) +
                               cqe(qp, RESP_IMM, 1, 0, b'\xe2\x3f\x04\x2f\x54') +
                               cqe(qp, RESP_SEND, 9, 0, kept) + poll)
        yield 'plain_' + what, (head + cqe(qp, RESP_SEND) + cqe(qp, RESP_SEND, 7) +
                                cqe(qp, RESP_IMM, 1, 0, b'\xe1\x38\x20') +
                                cqe(qp, RESP_ERR, 2, 4) + poll)
        # 0x30 in flags and QP: a GRH.
        yield 'grh_' + what, head + cqe(qp, RESP_SEND, 0, 0, b'\xe1\x38\x30') + poll
    yield 'data_sends', (takes + posts + cqe(2, REQ, 0, 0, kept) + cqe(2, REQ, 1, 0, kept) +
                         cqe(2, REQ, 2, 0, kept) + cqe(2, REQ, 3, 0, kept) + poll)
    yield 'data_unposted', bytes([POST_RECV, 2]) + cqe(2, RESP_SEND, 3, 0, kept) + poll
    yield 'compressed', recvs + cqe(2, RESP_SEND, 0, 0, b'\xe1\x3f\x0c') + poll
    yield 'reset', (posts + recvs + cqe(2, REQ, 0) + cqe(1, REQ, 9) + cqe(2, RESP_SEND, 0) +
                    bytes([RESET_QP, 2, 2]) + cqe(2, REQ, 1) + poll)
    yield 'lap', (posts + cqe(2, REQ, 1)) * 20 + poll * 2 + (posts + cqe(2, REQ, 1)) * 20 + poll


def roce_seeds():
    # Opcode: bytes of headers after the BTH. RC, then UC, UD and the CNP.
    headers = {op: 0 for op in (0, 1, 2, 4, 7, 8, 14)}
    headers.update({op: 4 for op in (3, 5, 9, 13, 15, 16, 17, 22, 23)})
    headers.update({6: 16, 10: 16, 11: 20, 12: 16, 18: 12, 19: 28, 20: 28})
    headers.update({0x20 + op: headers[op] for op in range(12)})
    headers.update({0x64: 8, 0x65: 12, 0x81: 16})
    for op, length in headers.items():
        rest = bytes(range(1, length + 1))
        for pad, body in ((0, 0), (0, 8), (3, 8), (1, 0)):
            bth = struct.pack('>BBHII', op, 0xc0 | pad << 4, 0xffff, 0xc0123456, 0x80abcdef)
            yield 'op%02x_%d_%d' % (op, pad, body), b'\x05' + bth + rest + bytes(body)
    yield 'version', b'\0' + bytes([4, 1]) + bytes(10)
    yield 'opcode', b'\0' + bytes([0x15, 0]) + bytes(10)
    yield 'short', b'\0' + bytes(11)
    yield 'huge', b'\0' + bytes([4]) + bytes(65535)


# fuzz_frame.c: enum step, enum frame_flags
FRAME, TIME, RESOLVE = 0, 1, 2
SUMS, STRIPPED, GOOD, BAD = 4, 8, 48, 64
US, PEER, ALL = b'\2\xbb\0\0\0\1', b'\2\xcc\0\0\0\2', b'\xff' * 6
US4, PEER4 = bytes([192, 0, 2, 1]), bytes([192, 0, 2, 2])
US6, PEER6 = (b'\x20\x01\x0d\xb8' + bytes(11) + bytes([n]) for n in (1, 2))
GROUP = b'\xff\2' + bytes(9) + b'\1\xff\0\0\1'


def frame_step(frame, flags=SUMS):
    return bytes([FRAME | flags]) + len(frame).to_bytes(2, 'big') + frame


def ether(kind, body, dst=US, tag=b''):
    return dst + PEER + tag + kind.to_bytes(2, 'big') + body


def ipv4(proto, body, dst=US4, flags=0x4000, ihl=5):
    return (bytes([0x40 | ihl, 2]) + (20 + len(body)).to_bytes(2, 'big') + bytes(2) +
            flags.to_bytes(2, 'big') + bytes([64, proto, 0, 0]) + PEER4 + dst + body)


def ipv6(proto, body, dst=US6, src=PEER6, hops=255):
    return (b'\x60\0\0\0' + len(body).to_bytes(2, 'big') + bytes([proto, hops]) + src + dst + body)


def frame_seeds():
    udp = b'\xc0\0\x12\xb7\0\x18\0\0' + bytes(range(16))
    arp = b'\0\1\x08\0\6\4\0'
    ns = bytes([135, 0, 0, 0, 0, 0, 0, 0]) + US6
    na = bytes([136, 0, 0, 0, 0x60, 0, 0, 0]) + PEER6
    frames = {
        'roce4': ether(0x800, ipv4(17, udp)),
        'roce6': ether(0x86dd, ipv6(17, udp)),
        'roce4_sum': ether(0x800, ipv4(17, udp[:6] + b'\x12\x34' + udp[8:])),
        'port': ether(0x800, ipv4(17, udp[:3] + b'\0' + udp[4:])),
        'fragment4': ether(0x800, ipv4(17, udp, flags=0x2000)),
        'fragment6': ether(0x86dd, ipv6(44, udp)),
        'options': ether(0x800, ipv4(17, bytes(4) + udp, ihl=6)),
        'tcp': ether(0x800, ipv4(6, udp)),
        'ping4': ether(0x800, ipv4(1, bytes([8, 0, 0, 0, 0, 1, 0, 1]) + bytes(21))),
        'ping6': ether(0x86dd, ipv6(58, bytes([128, 0, 0, 0, 0, 1, 0, 1]) + bytes(21))),
        'pong4': ether(0x800, ipv4(1, bytes([0, 0, 0, 0, 0, 1, 0, 1]))),
        'arp_ask': ether(0x806, arp + b'\1' + PEER + PEER4 + bytes(6) + US4, ALL),
        'arp_tell': ether(0x806, arp + b'\2' + PEER + PEER4 + US + US4),
        'arp_probe': ether(0x806, arp + b'\1' + PEER + bytes(4) + bytes(6) + US4, ALL),
        'arp_taken': ether(0x806, arp + b'\2' + PEER + US4 + US + US4),
        'ns': ether(0x86dd, ipv6(58, ns + b'\1\1' + PEER, GROUP), b'\x33\x33' + GROUP[12:]),
        'ns_options': ether(0x86dd, ipv6(58, ns + b'\x0e\1' + bytes(6) + b'\1\1' + PEER)),
        'dad': ether(0x86dd, ipv6(58, ns, GROUP, bytes(16)), b'\x33\x33' + GROUP[12:]),
        'na': ether(0x86dd, ipv6(58, na + b'\2\1' + PEER)),
        'na_short': ether(0x86dd, ipv6(58, na)),
        'na_weak': ether(0x86dd, ipv6(58, na[:4] + b'\x40' + na[5:] + b'\2\1' + US)),
    }
    for name, text in frames.items():
        yield name, b'\0' + frame_step(text) * 2
        yield name + '_tag', b'\1' + frame_step(text[:12] + b'\x81\0\0\x0c' + text[12:]) * 2
        yield name + '_hw', b'\1' + (frame_step(text, SUMS | STRIPPED | GOOD) +
                                     frame_step(text, STRIPPED | BAD))
        yield name + '_room', b'\2' + frame_step(text) * 4
        yield name + '_hosted', b'\4' + frame_step(text) * 2
        for cut in (13, 20, 40, 60):
            yield '%s_cut_%u' % (name, cut), b'\0' + frame_step(text[:cut])
    for version, who in ((4, 1), (6, 9)):
        ask = bytes([RESOLVE, who])
        tell = frame_step(frames['arp_tell' if version == 4 else 'na'])
        wait = bytes([TIME, 4])
        yield 'resolve_%u' % version, b'\0' + ask + tell + ask + (wait * 32 + ask) * 5
        yield 'nobody_%u' % version, b'\0' + (ask + wait) * 10
    yield 'ask_all', b'\0' + b''.join(bytes([RESOLVE, n]) for n in range(16)) * 3


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for target, seeds in (('cqe', cqe_seeds()), ('mailbox', mailbox_seeds()), ('roce', roce_seeds()), ('wqe', wqe_seeds()),
                          ('frame', frame_seeds()), ('roce_resp', roce_resp_seeds()), ('wire', wire_seeds())):
        folder = os.path.join(sys.argv[1], target)
        os.makedirs(folder, exist_ok=True)
        for name, text in seeds:
            with open(os.path.join(folder, name), 'wb') as f:
                f.write(text)


if __name__ == '__main__':
    main()
