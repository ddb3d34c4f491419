#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""READs of Linux's rdma_rxe that succeed without their tail: the kernel's fault or Bluebell's.

rxe_read.c shows the kernel's fault without Bluebell; rxe_read.txt explains it. Then Bluebell answers
READs, over paths that deliver an ACK late, add a stale ACK, or reorder. A wrong READ is the kernel's
fault only under two conditions. The record of the path shows that Bluebell sent all of its bytes and
nothing else about it. The guest's buffer lacks a tail and is right otherwise. The kernel's fault is
reported; every other error fails the test.
"""

import argparse
import subprocess
import sys

sys.dont_write_bytecode = True

import paths  # noqa: E402, F401
import bluebell  # noqa: E402
import guest  # noqa: E402
import namespace  # noqa: E402
import pair  # noqa: E402
import peer  # noqa: E402
import relay  # noqa: E402
import roce  # noqa: E402
import test_bb_rxe  # noqa: E402
import verbs  # noqa: E402
from pair import TARGET, TARGET2  # noqa: E402

MTU = 1024
PARTS = 12
SIZE = MTU * PARTS
FIRST, MIDDLE, LAST, ONLY = 0x0d, 0x0e, 0x0f, 0x10
PSN = 0xfffff0              # the first PSN of the requesting QP
ROUNDS = 40
# Bytes present after success where the kernel is at fault, by case of rxe_read.c.
KNOWN = {'no ACK': None,
         "ACK of the READ's last PSN before the last part": 3072,
         "ACK of the READ's second PSN before the second part": 1024,
         'ACK of the PSN before the READ': 2048}


class BluebellsFault(AssertionError):
    """The record shows an error of the answering side."""


def pattern(seed, start, size):
    """Returns the bytes that fill and verify of a peer use, from `start` on."""
    return bytes((seed + start + i) % 251 for i in range(size))


def check_answer(sent, seed, first=PSN, parts=PARTS):
    """Raises BluebellsFault unless `sent` answers a READ of `parts` packets completely and correctly."""
    seen = set()
    for packet in sent:
        part = packet.psn - first & roce.PSN_MASK
        if part >= parts:
            continue
        if packet.opcode not in (FIRST, MIDDLE, LAST, ONLY):
            # A NAK of the first PSN means that the request has not arrived.
            if packet.opcode == roce.RC_ACK and packet.syndrome >> 5 == 3 and part == 0:
                continue
            raise BluebellsFault('opcode %#x with PSN %d of the READ' % (packet.opcode, part))
        data = packet.body
        if packet.opcode != MIDDLE:
            if packet.syndrome >> 5 != 0:
                raise BluebellsFault('syndrome %#x with PSN %d of the READ' % (
                    packet.syndrome, part))
            data = data[4:]
        if not packet.icrc_right or data != pattern(seed, part * MTU, MTU):
            raise BluebellsFault('wrong bytes with PSN %d of the READ' % part)
        if (packet.opcode in (LAST, ONLY)) != (part == parts - 1):
            raise BluebellsFault('opcode %#x with PSN %d of the READ' % (packet.opcode, part))
        seen.add(part)
    if len(seen) != parts:
        raise BluebellsFault('no response with PSNs %s of the READ' % sorted(
            set(range(parts)) - seen))


def check_checker():
    """check_answer() rejects the record of a wrong answer and accepts that of a right one."""
    path = roce.Path('02:00:00:00:00:09', '192.0.2.9', '52:54:00:00:02:02', '192.0.2.2')

    def response(part, opcode=None, seed=1, syndrome=roce.ACK_NO_CREDITS):
        opcode = opcode or {0: FIRST, PARTS - 1: LAST}.get(part, MIDDLE)
        head = b'' if opcode == MIDDLE else roce.aeth(syndrome, 1)
        data = b'' if opcode == roce.RC_ACK else pattern(seed, part * MTU, MTU)
        return roce.parse(path.frame(roce.bth(opcode, 5, PSN + part & roce.PSN_MASK) + head + data))

    right = [response(part) for part in range(PARTS)]
    late_nak = response(0, roce.RC_ACK, syndrome=roce.NAK_SEQUENCE)
    for sent in (right, right[::-1], right + right[3:], [late_nak] + right):
        check_answer(sent, 1)
    for name, sent in (('no last part', right[:-1]), ('no middle part', right[:5] + right[6:]),
                       ('wrong bytes', right + [response(4, seed=2)]), ('nothing', []),
                       ('a plain ACK', right + [response(3, roce.RC_ACK)]),
                       ('an early LAST', right + [response(6, LAST)]),
                       ('a NAK in the READ', right + [late_nak, response(
                           4, roce.RC_ACK, syndrome=roce.NAK_ACCESS)])):
        try:
            check_answer(sent, 1)
        except BluebellsFault:
            continue
        raise AssertionError('the record of %s is taken for right' % name)


def without_bluebell(there, program):
    """Runs rxe_read.c: the raw end on the host, the requester in the guest."""
    there.put(program, '/tmp/rxe_read')
    raw = subprocess.Popen([program, 'answer', there.tap, '192.0.2.9'], stdout=subprocess.PIPE)
    try:
        assert raw.stdout.readline() == b'answering\n', 'rxe_read answer does not start'
        request = there.begin('/tmp/rxe_read ask rxe0 1 192.0.2.9', 180)
        status = request.wait()
    finally:
        raw.kill()
        raw.wait()
        raw.stdout.close()
    print('rxe asks, raw frames answer:\n' + request.output, flush=True)
    lines = [line.split(': ') for line in request.output.strip().splitlines()]
    assert status in (0, 1) and [line[0] for line in lines] == list(KNOWN), \
        'rxe_read ask ended with %d' % status
    for name, found, verdict in lines:
        if verdict == 'right':
            continue
        # A kernel that fails the READ because of the ACK is not at fault.
        assert KNOWN[name] is not None, '%s: %s' % (name, found)
        if verdict == 'WRONG':
            assert ' %d of ' % KNOWN[name] in found, '%s: %s' % (name, found)
            report('raw frames, ' + name, KNOWN[name], 4096)


def report(path, length, size):
    print("THE KERNEL'S FAULT: %s: a READ succeeds with %d of %d bytes" % (path, length, size),
          flush=True)


def read(both, path, rule, name, after_write=False):
    """One READ of rxe's, after a WRITE if requested. Returns the number of missing bytes. Raises if
    that is not the kernel's fault."""
    path.reset(rule)
    both.connect()
    seed = both.fill(both.b, SIZE, TARGET)
    before = both.fill(both.a, SIZE, TARGET2)
    if after_write:
        both.post('write', id=9, len=MTU, **both.remote(0))
    both.post('read', off=TARGET2, len=SIZE, **both.remote())
    if after_write:
        both.expect(both.a, name + ': the WRITE', id=9, status=peer.SUCCESS)
    found = both.a.completion()
    if found is None:
        both.lost(both.a, name)
    differs = both.a('verify', mr=0, off=TARGET2, len=SIZE, seed=seed)['differs']
    tail = None
    if differs != 'no':
        tail = both.a('verify', mr=0, off=TARGET2 + differs, len=SIZE - differs,
                      seed=(before + differs) % 251)['differs']
    both.close()
    assert found['status'] == peer.SUCCESS, '%s: %s' % (name, found)
    check_answer(path.sent, seed, PSN + after_write)
    if differs == 'no':
        return 0
    # The bytes before the tail are right. The tail is unchanged, and starts with a packet.
    assert tail == 'no' and differs % MTU == 0, '%s: byte %d is wrong, and byte %s behind it' % (
        name, differs, tail)
    report(name, differs, SIZE)
    return SIZE - differs


def bluebell_answers(there, args):
    path = relay.Relay(there)
    process = test_bb_rxe.bb_peer(args.bb_peer, path, None)
    both = pair.Pair(verbs.Verbs(there, args.verbs_peer), bluebell.Bluebell(process), MTU)
    assert read(both, path, relay.direct, 'Bluebell, direct') == 0, 'without a fault of the path'
    for part in (1, PARTS - 1):
        rule = relay.StaleAck(there, PSN + part)
        read(both, path, rule, 'Bluebell, a stale ACK before packet %d' % part)
        assert rule.done, 'no packet %d' % part
        rule = relay.LateAck(PSN, PSN + 1 + part)
        read(both, path, rule, 'Bluebell, its ACK of a WRITE late, before packet %d' % part, True)
        assert rule.done, 'no ACK of the WRITE, or no packet %d' % part
    both.lossy = True
    lost = [read(both, path, relay.Reorder(seed), 'Bluebell, reordered, seed %d' % seed, True)
            for seed in range(ROUNDS)]
    print('Bluebell answers over a path that reorders: %d of %d READs lack a tail' % (
        sum(map(bool, lost)), ROUNDS), flush=True)
    process.close()


def main():
    p = argparse.ArgumentParser(prog='test/interop/test_rxe_read.py', description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--suite', default='bookworm', help='whose kernel (see vm/build)')
    p.add_argument('rxe_read', help='rxe_read as built')
    p.add_argument('bb_peer', help='bb_peer as built')
    p.add_argument('verbs_peer', help='verbs_peer as built')
    args = p.parse_args()
    check_checker()
    reason = guest.missing(args.suite)
    if reason:
        namespace.skip(reason)
    namespace.enter_or_skip()
    with guest.Guest(mtu=4200, suite=args.suite) as there:
        without_bluebell(there, args.rxe_read)
        bluebell_answers(there, args)
    return 0


if __name__ == '__main__':
    sys.exit(main())
