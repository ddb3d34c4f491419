# SPDX-License-Identifier: BSD-3-Clause
"""A path between a guest's tap and a port of Bluebell, reordered by a rule packet by packet.

    path = relay.Relay(there)               # path.tap: the interface for Bluebell's port
    path.rule = relay.Reorder(seed=1)
    ...
    path.sent                               # the packets that Bluebell sent, in order

A rule takes each RoCEv2 packet and returns the frames to forward now. Other frames pass unchanged.
"""

import random
import select
import socket
import threading

import endpoint
import namespace
import roce


def direct(frame, packet, to_guest):
    """The rule that changes nothing."""
    return [frame]


class StaleAck:
    """Adds an ACK of `psn` before the READ response with that PSN, once."""

    def __init__(self, there, psn, address='192.0.2.9', mac='02:00:00:00:00:09'):
        self.path = roce.Path(mac, address, there.mac, there.ipv4)
        self.psn = psn
        self.done = False

    def __call__(self, frame, packet, to_guest):
        if self.done or not to_guest or packet.psn != self.psn:
            return [frame]
        self.done = True
        return [self.path.frame(roce.bth(roce.RC_ACK, packet.qpn, packet.psn) +
                                roce.aeth(roce.ACK_NO_CREDITS, 1)), frame]


class LateAck:
    """Delivers the ACK of `psn`, Bluebell's own, before the READ response with PSN `before`. The
    READ request waits for the ACK: otherwise the responses could replace it."""

    def __init__(self, psn, before):
        self.psn, self.before = psn, before
        self.ack, self.request = None, None
        self.done = False

    def __call__(self, frame, packet, to_guest):
        if self.done:
            return [frame]
        if not to_guest:
            if packet.opcode != roce.RC_READ_REQUEST or self.ack:
                return [frame]
            self.request = frame
            return []
        if packet.opcode == roce.RC_ACK and packet.psn == self.psn:
            self.ack = frame
            return []
        if packet.psn != self.before or not self.ack:
            return [frame]
        self.done = True
        return [self.ack, frame]

    def idle(self, to_guest):
        if to_guest or not self.ack or not self.request:
            return []
        request, self.request = self.request, None
        return [request]


class Reorder:
    """Holds back two packets in five until up to three others of their direction have passed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.held = {True: [], False: []}

    def __call__(self, frame, packet, to_guest):
        held = self.held[to_guest]
        if self.random.random() < 0.4:
            held.append([self.random.randint(1, 3), frame])
            return []
        for entry in held:
            entry[0] -= 1
        late = [entry[1] for entry in held if entry[0] <= 0]
        held[:] = [entry for entry in held if entry[0] > 0]
        return [frame] + late

    def idle(self, to_guest):
        """Returns the frames to forward because no other packet comes."""
        late = [entry[1] for entry in self.held[to_guest]]
        self.held[to_guest] = []
        return late


class Relay:
    """Forwards frames between there.tap and one end of a veth pair until the process ends."""

    def __init__(self, there, tap='bb-port', mtu=4200):
        namespace.ip('link', 'add', tap, 'mtu', str(mtu), 'type', 'veth',
                     'peer', 'name', 'bb-relay', 'mtu', str(mtu))
        for name in (tap, 'bb-relay'):
            namespace.ip('link', 'set', name, 'up')
        self.tap = tap
        self.rule = direct
        self.sent, self.asked = [], []
        self.sockets = {True: self.open(there.tap), False: self.open('bb-relay')}
        threading.Thread(target=self.loop, daemon=True).start()

    @staticmethod
    def open(interface):
        # Otherwise it would forward its own frames.
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        made.setsockopt(endpoint.SOL_PACKET, endpoint.PACKET_IGNORE_OUTGOING, 1)
        made.bind((interface, 3))           # ETH_P_ALL
        return made

    def reset(self, rule):
        """Sets another rule and clears the records."""
        self.rule, self.sent, self.asked = rule, [], []

    def loop(self):
        while True:
            ready = select.select(list(self.sockets.values()), [], [], 0.003)[0]
            for to_guest, target in self.sockets.items():
                source = self.sockets[not to_guest]
                if source in ready:
                    self.forward(source.recv(1 << 16), to_guest, target)
                elif not ready and hasattr(self.rule, 'idle'):
                    for frame in self.rule.idle(to_guest):
                        target.send(frame)

    def forward(self, frame, to_guest, target):
        packet = roce.parse(frame)
        if packet is None:
            target.send(frame)
            return
        (self.sent if to_guest else self.asked).append(packet)
        for out in self.rule(frame, packet, to_guest):
            target.send(out)
