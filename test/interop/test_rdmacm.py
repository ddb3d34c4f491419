#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""lib/connect by librdmacm and the kernel's IB CM, on rxe0 in a guest.

Both ends are cm_peer, or one is an unchanged program of Debian's rdmacm-utils.

usage: test_rdmacm.py CM_PEER [--only PATTERN] [--cycles N]
"""

import argparse
import re
import sys
import time

sys.dont_write_bytecode = True

import paths  # noqa: E402, F401
import carry  # noqa: E402
import guest  # noqa: E402
import namespace  # noqa: E402

EAL = '--no-huge -m 64 --no-pci --no-telemetry --no-shconf --log-level=lib.eal:4'
SECONDS = 240
# No host has the first address; the host's kernel has the second one, which answers no CM request.
NO_HOST, MUTE_HOST = '192.0.2.200', '192.0.2.1'


class Peers:
    """Runs cm_peer in a guest; every pair of processes has a port of its own."""

    def __init__(self, there, program, cycles, device='rxe0'):
        self.there = there
        self.device = device
        self.program, self.options = carry.carry(there, program)
        self.cycles = cycles
        self.port = 7470
        there.run('mkdir -p /var/run')

    def begin(self, side, host=None, lcore=1, stdin=False, device=None):
        """Starts a cm_peer, which first prints its process id."""
        return self.there.begin('echo pid $$; exec env %s -l %d %s %s -- %s %s:%d %s' % (
            self.program, lcore, EAL, self.options, device or self.device,
            self.there.ipv4 if host is None else host, self.port, side), SECONDS, stdin)

    def serve(self, side, host=None, stdin=False):
        """Starts a cm_peer that listens."""
        self.port += 1
        request = self.begin(side, host, 0, stdin)
        shown = 0
        while True:
            line = request.read_line(shown)
            if line.startswith('listening'):
                return request
            shown += len(line.encode()) + 1

    def serve_theirs(self, command):
        self.port += 1
        return self.there.serve_cm(command % self.port, SECONDS)


def ours(server, client):
    """Two processes of cm_peer."""
    def run(peers):
        n = {'cycle': peers.cycles}
        sides = [side.format(**n) for side in (server, client)]
        listening = peers.serve(sides[0])
        calling = peers.begin(sides[1])
        return calling.check() + listening.check()
    run.__doc__ = '%s, %s' % (server.split()[0], client.split()[0])
    return run


def ipv6(peers):
    """IPv6, a listener at all addresses, the device by its full name"""
    server = peers.serve('rping-server 3', '')
    client = peers.begin('rping-client 3', '[%s]' % peers.there.ipv6, device='verbs:' + peers.device)
    return client.check() + server.check()


def until(request, word):
    """Waits until a cm_peer has printed the word."""
    while word not in request.output:
        assert request.poll(0.1) is None, request.output


def mute(peers):
    """a server that does not answer in time"""
    server = peers.serve('mute-server', stdin=True)
    text = peers.begin('mute-client 1000').check()
    until(server, 'asked')
    server.write('now\n')
    return text + server.check()


def rping_calls(peers):
    """rping calls cm_peer"""
    server = peers.serve('rping-server 20')
    client = peers.there.begin('rping -c -V -v -C 20 -S 1000 -a %s -p %d' % (
        peers.there.ipv4, peers.port), SECONDS)
    # Its thread may still read events of a closed channel and report an error at the end.
    client.wait()
    assert client.output.count('ping data: rdma-ping-') == 20, client.output
    return server.check()


def rping_serves(peers):
    """cm_peer calls rping"""
    # Its last line says, as with its own client, that it waited for another round.
    server = peers.serve_theirs('rping -s -v -C 20 -S 4000 -a %s -p %%d' % peers.there.ipv4)
    text = peers.begin('rping-client 20').check()
    server.wait()
    assert server.output.count('server ping data: rdma-ping-') == 20, server.output
    return text


def ucmatose_serves(peers):
    """cm_peer calls ucmatose"""
    server = peers.serve_theirs('ucmatose -c 16 -C 0 -p %d')
    text = peers.begin('many-client 16').check()
    return text + server.check()


def ucmatose_calls(peers):
    """ucmatose calls cm_peer"""
    server = peers.serve('many-server 16')
    client = peers.there.begin('ucmatose -c 16 -C 0 -p %d -s %s' % (
        peers.port, peers.there.ipv4), SECONDS)
    return client.check() + server.check()


def rejects_theirs(peers):
    """cm_peer rejects rping"""
    server = peers.serve('no-server')
    client = peers.there.begin('rping -c -C 1 -a %s -p %d' % (peers.there.ipv4, peers.port),
                               SECONDS)
    assert client.wait() != 0, client.output
    # On iWARP the kernel reports a reset.
    assert re.search('RDMA_CM_EVENT_REJECTED, error (28|-104)', client.output), client.output
    return server.check()


def nobody(peers):
    """a port where nobody listens"""
    peers.port += 1
    return peers.begin('nobody').check()


def no_host(peers):
    """an address that nobody has"""
    peers.port += 1
    return peers.begin('mute-client 1000', NO_HOST).check()


def mute_host(peers):
    """a host without a CM"""
    peers.port += 1
    return peers.begin('mute-client 1000', MUTE_HOST).check()


def killed(side):
    """One of the two is killed; the other is notified."""
    def run(peers):
        server = peers.serve('hold-server')
        client = peers.begin('hold-client')
        both = {'server': server, 'client': client}
        dead = both.pop(side)
        (left,) = both.values()
        for request in (server, client):
            until(request, 'established')
        peers.there.run('kill -9 %s' % re.search(r'^pid (\d+)$', dead.output, re.M)[1])
        text = left.check()
        assert dead.wait() != 0
        return text
    run.__doc__ = 'the %s is killed' % side
    return run


CASES = [ours('rping-server 20', 'rping-client 20'), ipv6,
         ours('cycle-server {cycle}', 'cycle-client {cycle}'),
         ours('many-server 16', 'many-client 16'), ours('no-server', 'no-client'),
         mute, killed('client'), killed('server'),
         nobody, no_host, mute_host, rping_calls, rping_serves, ucmatose_calls, ucmatose_serves,
         rejects_theirs]


def hold(peers, cases):
    """Runs cases; none may leave objects in the kernel."""
    for case in cases:
        began = time.monotonic()
        text = case(peers)
        print('%s, %.1f s:' % (case.__doc__, time.monotonic() - began), flush=True)
        for line in text.split('\n'):
            if line and not re.match(r'BLUEBELL: \w+: EAL runs without|pid ', line):
                print('   ', line, flush=True)
    left = peers.there.run("rdma resource show cm_id; rdma resource show qp | grep -v 'type GSI'"
                           ' || true')
    if left.strip():
        sys.exit('left behind:\n' + left)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('cm_peer')
    p.add_argument('--suite', default='bookworm', help='whose kernel (see vm/build)')
    p.add_argument('--only', default='', help='cases whose name this pattern matches')
    p.add_argument('--cycles', type=int, default=40, help='connections made and ended')
    args = p.parse_args()
    reason = guest.missing(args.suite)
    if reason:
        namespace.skip(reason)
    namespace.enter_or_skip()
    cases = [case for case in CASES if re.search(args.only, case.__doc__)]
    assert cases, 'no such case'
    with guest.Guest(suite=args.suite) as there:
        guest.host_address(there.tap)
        peers = Peers(there, args.cm_peer, args.cycles)
        hold(peers, cases)
    return 0


if __name__ == '__main__':
    sys.exit(main())
