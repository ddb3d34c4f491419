# SPDX-License-Identifier: BSD-3-Clause
"""Captures the packets of an interface of this namespace into a classic pcap."""

import select
import socket
import struct
import threading
import time

import roce

SO_RCVBUFFORCE = 33


class Capture:
    """Records the RoCEv2 packets of an interface, both ways, until stop().

        with capture.Capture(there.tap) as recorded: ...
        recorded.write('file.pcap')
    """

    def __init__(self, interface):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20)
        except OSError:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 20)
        self.socket.bind((interface, 3))        # ETH_P_ALL
        self.frames = []
        self.stopping = False
        self.thread = threading.Thread(target=self.loop, daemon=True)

    def loop(self):
        while True:
            if select.select([self.socket], [], [], 0.1)[0]:
                frame = self.socket.recv(1 << 16)
                if roce.parse(frame):
                    self.frames.append((time.time(), frame))
            elif self.stopping:
                return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        # The loop ends once no packet has arrived for a moment.
        self.stopping = True
        self.thread.join()
        self.socket.close()

    def write(self, path):
        with open(path, 'wb') as f:
            f.write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 1 << 18, 1))
            for when, frame in self.frames:
                micro = int(when * 1e6)
                f.write(struct.pack('<IIII', micro // 1000000, micro % 1000000, len(frame),
                                    len(frame)))
                f.write(frame)
