# SPDX-License-Identifier: BSD-3-Clause
"""An end point in Python at the host's end of a guest's tap.

It sends and receives whole frames, so it sees the packets on the wire and can send packets that no
correct stack would. It has a MAC and an IPv4 address of its own, beside the host kernel's.
"""

import select
import socket
import time

import roce

PACKET_IGNORE_OUTGOING = 23
SOL_PACKET = 263


class RawEndpoint:
    """Frames of one interface of this namespace.

    guest: the Guest at the other end. address: its own IPv4 address; it answers ARP for it.
    """

    def __init__(self, guest, address='192.0.2.9', mac='02:00:00:00:00:09'):
        self.address = address
        self.mac = mac
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        # Otherwise it would also receive frames that the host's kernel sends.
        self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.socket.bind((guest.tap, 3))        # ETH_P_ALL
        self.path = roce.Path(mac, address, guest.mac, guest.ipv4)
        self.bad_icrc = 0

    def send(self, transport, **options):
        """Sends a padded BTH with headers and payload; see roce.Path.frame."""
        self.socket.send(self.path.frame(transport, **options))

    def receive(self, seconds):
        """Returns the next RoCEv2 packet, None after the given seconds; answers ARP meanwhile."""
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            if not select.select([self.socket], [], [], max(left, 0))[0]:
                if left <= 0:
                    return None
                continue
            frame = self.socket.recv(1 << 16)
            reply = roce.arp_reply(frame, self.mac, self.address)
            if reply:
                self.socket.send(reply)
                continue
            packet = roce.parse(frame)
            if packet is None:
                continue
            if packet.icrc_right:
                return packet
            self.bad_icrc += 1

    def close(self):
        self.socket.close()


class Pingpong:
    """The TCP handshake of rdma-core's ibv_*_pingpong, as client of a server in the guest."""

    def __init__(self, guest, wire, qpn, psn, port=18515):
        self.socket = socket.create_connection((guest.ipv4, port), timeout=60)
        gid = '0' * 20 + 'ffff' + socket.inet_aton(wire.address).hex()
        # LID, QPN, PSN, GID and the terminating NUL.
        self.socket.sendall(('%04x:%06x:%06x:%s\0' % (0, qpn, psn, gid)).encode())
        answer = b''
        while len(answer) < 52:
            # The server resolves the MAC of the GID's address before it answers.
            while not select.select([self.socket], [], [], 0.02)[0]:
                wire.receive(0)
            data = self.socket.recv(52 - len(answer))
            if not data:
                raise ConnectionError('the pingpong server ends after %r' % answer)
            answer += data
        _, qpn, psn, self.gid = answer.rstrip(b'\0').decode().split(':')
        self.qpn, self.psn = int(qpn, 16), int(psn, 16)
        # Sent with its NUL once this side is ready to receive.
        self.socket.sendall(b'done\0')

    def close(self):
        self.socket.close()
