# SPDX-License-Identifier: BSD-3-Clause
"""Messages of lib/connect, for tests whose peer is a socket and bytes."""

import struct

HEADER, END = 16, 64  # lib/connect/bb_cm_msg.h
REP, RTU, REJ = 2, 3, 4
CONSUMER = 28  # enum bb_reject_reason


def message(sock):
    """Returns a whole message, or the bytes before the end of the connection."""
    data = b''
    while len(data) < HEADER or len(data) < HEADER + struct.unpack_from('>I', data, 8)[0]:
        more = sock.recv(65536)
        if not more:
            break
        data += more
    return data


def reject():
    """Returns a REJ without private data."""
    return struct.pack('>4sBBHIIIHH', b'BBCM', 1, REJ, HEADER, 8, 0, CONSUMER, 0, 0)
