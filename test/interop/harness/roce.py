# SPDX-License-Identifier: BSD-3-Clause
"""RoCEv2 packets as bytes, independent of Bluebell's code, for comparison in tests.

Numbers of IBTA volume 1, chapter 9 (transport headers), annex A17 (RoCEv2).
"""

import ipaddress
import struct
import zlib

PORT = 4791
PSN_MASK = QPN_MASK = MSN_MASK = 0xffffff

RC_SEND_ONLY, RC_SEND_ONLY_INV = 0x04, 0x17
RC_WRITE_ONLY, RC_READ_REQUEST = 0x0a, 0x0c
RC_READ_RESPONSE_ONLY, RC_ACK, RC_ATOMIC_ACK = 0x10, 0x11, 0x12
RC_CMP_SWAP, RC_FETCH_ADD = 0x13, 0x14

# AETH syndromes: an ACK with credits, an RNR NAK with its timer, the four NAKs.
ACK_NO_CREDITS = 0x1f
NAK_SEQUENCE, NAK_INVALID, NAK_ACCESS, NAK_OPERATIONAL = 0x60, 0x61, 0x62, 0x63


def icrc(ip):
    """Returns the 4 bytes of ICRC as on the wire, for an IP packet without them. CRC-32 over 8
    bytes of ones instead of the LRH, then the packet with variant fields as ones. These are type
    of service, TTL and header checksum (IPv6: traffic class, flow label, hop limit), the UDP
    checksum, and byte 4 of the BTH."""
    data = bytearray(ip)
    if data[0] >> 4 == 4:
        udp = (data[0] & 15) * 4
        data[1] = data[8] = data[10] = data[11] = 0xff
    else:
        udp = 40
        data[0] |= 0x0f
        data[1] = data[2] = data[3] = data[7] = 0xff
    data[udp + 6] = data[udp + 7] = 0xff
    data[udp + 12] = 0xff
    return struct.pack('<I', zlib.crc32(bytes(data), zlib.crc32(b'\xff' * 8)))


def checksum(data):
    """The Internet checksum of RFC 1071."""
    total = sum(struct.unpack('>%dH' % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def mac_bytes(text):
    return bytes.fromhex(text.replace(':', ''))


def bth(opcode, qpn, psn, pad=0, ack_request=False, pkey=0xffff, solicited=False, migrated=False):
    flags = (0x80 if solicited else 0) | (0x40 if migrated else 0) | pad << 4
    return struct.pack('>BBHII', opcode, flags, pkey, qpn, (1 << 31 if ack_request else 0) | psn)


def aeth(syndrome, msn):
    return struct.pack('>I', syndrome << 24 | msn)


class Path:
    """Source and destination of frames: MACs and IP addresses (both of one family)."""

    def __init__(self, source_mac, source_ip, target_mac, target_ip):
        self.ethernet = mac_bytes(target_mac) + mac_bytes(source_mac)
        self.source = ipaddress.ip_address(source_ip)
        self.target = ipaddress.ip_address(target_ip)

    def frame(self, transport, udp_source=0xc000, corrupt_icrc=False):
        """Returns an Ethernet frame around a BTH with headers and payload, padded by the caller."""
        size = 8 + len(transport) + 4
        udp = struct.pack('>HHHH', udp_source, PORT, size, 0)
        if self.source.version == 4:
            kind = 0x0800
            head = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 20 + size, 0, 0x4000, 64, 17, 0,
                               self.source.packed, self.target.packed)
            head = head[:10] + struct.pack('>H', checksum(head)) + head[12:]
        else:
            kind = 0x86dd
            head = struct.pack('>IHBB', 6 << 28, size, 17, 64) + self.source.packed + \
                self.target.packed
        packet = head + udp + transport
        crc = icrc(packet)
        if corrupt_icrc:
            crc = bytes([crc[0] ^ 1]) + crc[1:]
        return self.ethernet + struct.pack('>H', kind) + packet + crc


class Packet:
    """A RoCEv2 packet from a frame; see parse."""

    def __init__(self, ip, udp):
        self.ip = ip
        self.icrc_right = icrc(ip[:-4]) == ip[-4:]
        self.udp_source = struct.unpack_from('>H', ip, udp)[0]
        self.opcode, flags, self.pkey, qpn, psn = struct.unpack_from('>BBHII', ip, udp + 8)
        self.pad = flags >> 4 & 3
        self.qpn = qpn & QPN_MASK
        self.psn = psn & PSN_MASK
        self.ack_request = bool(psn >> 31)
        # Bytes after the BTH: further headers, payload, pad.
        self.body = ip[udp + 20:-4]

    @property
    def syndrome(self):
        return self.body[0]

    @property
    def msn(self):
        return struct.unpack_from('>I', self.body)[0] & MSN_MASK


def parse(frame):
    """Returns the Packet in an Ethernet frame, None if it contains no whole RoCEv2 packet."""
    if len(frame) < 14 + 20:
        return None
    kind, ip = struct.unpack_from('>H', frame, 12)[0], frame[14:]
    if kind == 0x0800 and ip[9] == 17:
        udp, size = (ip[0] & 15) * 4, struct.unpack_from('>H', ip, 2)[0]
    elif kind == 0x86dd and len(ip) >= 40 and ip[6] == 17:
        udp, size = 40, 40 + struct.unpack_from('>H', ip, 4)[0]
    else:
        return None
    if size > len(ip) or size < udp + 8 + 12 + 4:
        return None
    if struct.unpack_from('>H', ip, udp + 2)[0] != PORT:
        return None
    return Packet(ip[:size], udp)


def arp_reply(request, mac, address):
    """Returns the answer to an ARP request for the IPv4 address, else None."""
    if request[12:14] != b'\x08\x06' or len(request) < 42:
        return None
    kind, _, _, _, operation = struct.unpack_from('>HHBBH', request, 14)
    sender, target = request[22:32], request[38:42]
    if kind != 1 or operation != 1 or target != ipaddress.ip_address(address).packed:
        return None
    own = mac_bytes(mac)
    return request[6:12] + own + b'\x08\x06' + struct.pack('>HHBBH', 1, 0x0800, 6, 4, 2) + own \
        + target + sender
