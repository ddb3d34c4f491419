#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the harness: a guest boots, and a few lines of Python exchange SENDs with its kernel.

ibv_rc_pingpong in the guest is the server. The client is this program: it sends SEND Only
packets, acknowledges those of the guest, and checks every ICRC of the guest.
"""

import argparse
import sys

sys.dont_write_bytecode = True

import paths  # noqa: E402, F401
import endpoint  # noqa: E402
import guest  # noqa: E402
import namespace  # noqa: E402
import roce  # noqa: E402

QPN = 0x4242
PSN = 0xfffffe          # wraps from 0xffffff to 0 after two packets
SILENCE = 60


def payload(number, size):
    return bytes((number + i) & 255 for i in range(size))


def pingpong(there, count, size):
    """Exchanges `count` SENDs each way, one at a time. Returns the ACKs and SENDs from the guest."""
    server = there.serve_tcp('ibv_rc_pingpong -d rxe0 -g 1 -m 1024 -s %d -n %d' % (size, count),
                             seconds=120)
    wire = endpoint.RawEndpoint(there)
    peer = endpoint.Pingpong(there, wire, QPN, PSN)
    pad = -size % 4
    acked = received = again = acks = sends = 0

    def send(number):
        wire.send(roce.bth(roce.RC_SEND_ONLY, peer.qpn, PSN + number & roce.PSN_MASK, pad, True) +
                  payload(number, size) + b'\0' * pad)

    send(0)
    while acked < count or received < count:
        packet = wire.receive(2)
        if packet is None:
            # Neither side may rely on the peer's timeout alone: this one retransmits too.
            again += 1
            assert again < SILENCE / 2, 'silence after %d acked, %d received' % (acked, received)
            if acked < count:
                send(acked)
            continue
        if packet.qpn != QPN:
            continue
        before = (acked, received)
        if packet.opcode == roce.RC_ACK:
            assert packet.syndrome < 0x20, 'NAK %#x of PSN %#x' % (packet.syndrome, packet.psn)
            done = (packet.psn - PSN & roce.PSN_MASK) + 1
            assert done <= acked + 1, 'ACK of PSN %#x, which was not sent' % packet.psn
            acked = max(acked, done)
            acks += 1
        else:
            assert packet.opcode == roce.RC_SEND_ONLY, 'opcode %#x' % packet.opcode
            assert packet.pad == pad and len(packet.body) == size + pad, 'length'
            number = packet.psn - peer.psn & roce.PSN_MASK
            assert number <= received, 'PSN %#x of the guest is early' % packet.psn
            received = max(received, number + 1)
            sends += 1
            wire.send(roce.bth(roce.RC_ACK, peer.qpn, packet.psn) +
                      roce.aeth(roce.ACK_NO_CREDITS, received))
        if before != (acked, received) and acked == received < count:
            send(acked)
    assert wire.bad_icrc == 0, '%d wrong ICRCs' % wire.bad_icrc
    peer.close()
    wire.close()
    server.check()
    print('%d SENDs of %d bytes each way, %d waits; %d ACKs, %d SENDs came' % (
        count, size, again, acks, sends))
    return acks, sends


def wrong_icrc(there):
    """A packet with a wrong ICRC gets no answer, the same packet with the right one does."""
    server = there.serve_tcp('ibv_rc_pingpong -d rxe0 -g 1 -m 1024 -s 8 -n 1', seconds=300)
    wire = endpoint.RawEndpoint(there)
    peer = endpoint.Pingpong(there, wire, QPN, PSN)
    request = roce.bth(roce.RC_SEND_ONLY, peer.qpn, PSN, 0, True) + payload(0, 8)
    wire.send(request, corrupt_icrc=True)
    # Only this order works: if the first packet were accepted, its PSN would be a duplicate.
    packet = wire.receive(1)
    assert packet is None, 'an answer to a wrong ICRC: opcode %#x' % packet.opcode
    for _ in range(SILENCE):
        wire.send(request)
        packet = wire.receive(1)
        if packet is not None:
            break
    assert packet is not None, 'no answer to a right ICRC'
    assert packet.opcode == roce.RC_ACK and packet.syndrome < 0x20, packet.body.hex()
    print('a wrong ICRC gets no answer')
    server.socket.close()
    peer.close()
    wire.close()


def faults(there, count):
    """netem in the guest applies to sent and to received packets."""
    # The copy of the last packet may come after the end.
    there.netem(out='duplicate 100%')
    acks, sends = pingpong(there, count, 64)
    assert acks >= 2 * count - 1 and sends >= 2 * count - 1, 'what the guest sends comes once'
    there.netem(into='duplicate 100%')
    acks, _ = pingpong(there, count, 64)
    assert acks >= 2 * count - 1, 'what the guest gets comes once: %d ACKs' % acks
    there.netem()


def main():
    p = argparse.ArgumentParser(prog='test/interop/test_harness.py', description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--suite', default='bookworm', help='whose kernel (see vm/build)')
    p.add_argument('--count', type=int, default=50, help='messages each way (default 50)')
    args = p.parse_args()
    reason = guest.missing(args.suite)
    if reason:
        namespace.skip(reason)
    namespace.enter_or_skip()
    with guest.Guest(suite=args.suite) as there:
        guest.host_address(there.tap)
        assert there.begin('echo one; echo two >&2; exit 3').wait() == 3
        assert there.begin('sleep 100', seconds=1).wait() == 124
        there.put(__file__, '/tmp/file')
        with open(__file__, 'rb') as f:
            assert there.get('/tmp/file') == f.read()
        for size in (64, 61, 1024):
            pingpong(there, args.count, size)
        faults(there, args.count)
        wrong_icrc(there)
    return 0


if __name__ == '__main__':
    sys.exit(main())
