# SPDX-License-Identifier: BSD-3-Clause
"""State of both peers when a completion is missing: queues, counters, last packets."""

import mmap
import os
import struct

import roce

PACKETS = 60
# Of struct pcapng: the block with a packet; of its options: comment, flags (1 in, 2 out).
PACKET_BLOCK, COMMENT, FLAGS = 6, 1, 2
OPCODES = ['SEND first', 'SEND middle', 'SEND last', 'SEND last imm', 'SEND', 'SEND imm', 'WRITE first',
           'WRITE middle', 'WRITE last', 'WRITE last imm', 'WRITE', 'WRITE imm', 'READ', 'answer first',
           'answer middle', 'answer last', 'answer', 'ACK', 'atomic ACK', 'CMP_SWAP', 'FETCH_ADD', '0x15',
           'SEND last inv', 'SEND inv']
KINDS = {0: 'RC', 1: 'UC', 3: 'UD'}
WITH_AETH = {0x0d, 0x0f, 0x10, 0x11, 0x12}


def options(data):
    """Yields code and bytes of each option of a block."""
    while len(data) >= 4:
        code, size = struct.unpack_from('<HH', data)
        if code == 0:
            return
        yield code, bytes(data[4:4 + size])
        data = data[4 + (size + 3 & ~3):]


def packets(path, most=PACKETS):
    """Returns the last packets of a pcapng file that a device is writing: time in ns, options, bytes."""
    if not os.path.getsize(path):
        return []
    with open(path, 'rb') as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as data:
        end, found = len(data), []
        # A block ends with its size, too, so the last ones are found from the end.
        while end >= 12 and len(found) < most:
            size = struct.unpack_from('<I', data, end - 4)[0]
            if size < 12 or size > end or struct.unpack_from('<I', data, end - size + 4)[0] != size:
                found.append((0, {COMMENT: b'no whole block here'}, b''))
                break
            block, end = data[end - size:end], end - size
            if struct.unpack_from('<I', block)[0] == PACKET_BLOCK:
                high, low, kept = struct.unpack_from('<III', block, 12)
                found.append((high << 32 | low, dict(options(block[28 + (kept + 3 & ~3):-4])),
                              block[28:28 + kept]))
    return found[::-1]


def line(when, more, data):
    """Formats one packet, for a search for gaps."""
    way = {1: 'in ', 2: 'out'}.get(more.get(FLAGS, b'\0')[0] & 3, '?  ')
    note = ' [%s]' % more[COMMENT].decode(errors='replace') if COMMENT in more else ''
    kind = b'\x08\x00' if data[:1] and data[0] >> 4 == 4 else b'\x86\xdd'
    packet = roce.parse(bytes(12) + kind + data) if data else None
    if packet is None:
        return '%s %d bytes%s' % (way, len(data), note)
    name = packet.opcode & 31
    text = '%s %s %s, QPN 0x%x, PSN 0x%06x%s, %d bytes' % (
        way, KINDS.get(packet.opcode >> 5, '?'), OPCODES[name] if name < len(OPCODES) else '0x%x' % name,
        packet.qpn, packet.psn, ', asks' if packet.ack_request else '', len(packet.body))
    if packet.opcode in WITH_AETH:
        text += ', syndrome 0x%02x, MSN %d' % (packet.syndrome, packet.msn)
    return '%.6f %s%s%s' % (when / 1e9, text, '' if packet.icrc_right else ', ICRC wrong', note)


def report(pair, what):
    """Returns everything that both peers still report; an error of a query is part of the report."""
    said = ['no completion: %s; conversation with QP %d' % (what, pair.qp)]
    for side in (pair.a, pair.b):
        try:
            said += ['--- %s (%s)' % (side.name, 'asks' if side is pair.a else 'answers'),
                     side.standing(pair.qp).rstrip()]
        except Exception as err:  # the rest of the report matters more
            said.append('it cannot be asked: %s' % err)
    for side in (pair.a, pair.b):
        path = side.capture()
        if path:
            try:
                last = packets(path)
                said += ['--- the last %d packets of %s' % (len(last), side.name)] + [line(*p) for p in last]
            except Exception as err:
                said.append('no capture of %s: %s' % (side.name, err))
    return '\n'.join(said)
