# SPDX-License-Identifier: BSD-3-Clause
"""The TCP side of pingpong and perftest in Python, for tests of bb_perf.

A peer that echoes what it receives names bb_perf's own queue pair and memory, so the RDMA goes to
bb_perf itself: a whole test in one process.
"""

import socket
import struct
import threading

WAIT = 120
PINGPONG = 52
KEYS = 108
# Exchanges of perftest's keys before the RDMA.
ROUNDS = {'write_lat': 4, 'read_lat': 4, 'atomic_lat': 4, 'write_bw': 3, 'read_bw': 3,
          'atomic_bw': 3, 'send_lat': 4, 'send_bw': 4}


def read(conn, length):
    """Reads `length` bytes, fewer if the other end closes."""
    data = b''
    while len(data) < length:
        more = conn.recv(length - len(data))
        if not more:
            break
        data += more
    return data


def address(qpn=0x77, psn=5, gid='00000000000000000000ffffc0000201'):
    return ('0000:%06x:%06x:%s\0' % (qpn, psn, gid)).encode()


def keys(qpn=0x77, psn=5, reads=16, gid='00000000000000000000ffffc0000201'):
    pairs = ':'.join(gid[i:i + 2] for i in range(0, 32, 2))
    return ('0000:%04x:%06x:%06x:%08x:%016x:%s:%08x:\0' % (
        reads, qpn, psn, 0x1234, 0x7f0000001000, pairs, 0)).encode()


def hello(mtu=b'3\0'):
    """Returns perftest's first messages: version, cycle buffer, cache line, MTU."""
    return [b'6.06'.ljust(16, b'\0'), struct.pack('>I', 4096), struct.pack('>I', 64), mtu]


class Server(threading.Thread):
    """Accepts one connection and calls `talk(conn)`, which may raise any exception."""

    def __init__(self, talk):
        super().__init__(daemon=True)
        self.listener = socket.socket()
        self.listener.bind(('127.0.0.1', 0))
        self.listener.listen(1)
        self.listener.settimeout(WAIT)
        self.port = self.listener.getsockname()[1]
        self.talk = talk
        self.error = None
        self.start()

    def run(self):
        try:
            conn, _ = self.listener.accept()
            conn.settimeout(WAIT)
            with conn:
                self.talk(conn)
        except Exception as err:
            self.error = err

    def end(self):
        self.listener.close()
        self.join(WAIT)


def echo(conn):
    try:
        while True:
            data = conn.recv(4096)
            if not data:
                return
            conn.sendall(data)
    except ConnectionResetError:
        pass    # the program may exit with our last message unread, as its peers do


def exchange(conn, data):
    """A perftest client's half of an exchange: send, then receive."""
    conn.sendall(data)
    return read(conn, len(data))


class Heard:
    """Messages that a server of bb_perf sent."""


def client(conn, protocol, own=None, report=None):
    """A perftest client that does no RDMA. With own=None it names the server's own queue pair."""
    heard = Heard()
    heard.hello = [exchange(conn, part) for part in hello()]
    heard.keys = [exchange(conn, own or keys())]
    for _ in range(ROUNDS[protocol] - 1):
        heard.keys.append(exchange(conn, own or heard.keys[0]))
    own = own or heard.keys[0]
    if protocol in ('write_bw', 'read_bw', 'atomic_bw'):
        heard.keys.append(exchange(conn, own))
        heard.report = [exchange(conn, part) for part in report or
                        [struct.pack('>Q', 64), struct.pack('>Q', 1000)] +
                        [struct.pack('>d', x) for x in (3.5, 2.5, 0.25)]]
    if protocol != 'write_lat':
        heard.keys.append(exchange(conn, own))
        heard.done = read(conn, 5)
        conn.sendall(b'done\0')
    return heard
