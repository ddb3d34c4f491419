#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""lib/connect by BB_CM_IB against Linux's rdma_cm: programs of rdmacm-utils on rxe0 in a guest.

cm_peer runs at the host's end of the guest's tap, on DPDK's af_packet. Its software device has the
addresses 192.0.2.9 and 2001:db8::9. The CM messages of both sides are Linux's and the library's own.

usage: test_cm_ib.py CM_PEER [--only PATTERN]
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import paths  # noqa: E402, F401
import cm_cases  # noqa: E402
import guest  # noqa: E402
import namespace  # noqa: E402
from apptest import own_cpu  # noqa: E402

SECONDS = 200
HERE = {4: '192.0.2.9', 6: '2001:db8::9'}


class Peer:
    """A cm_peer on an interface. @host: the address at which it listens or to which it connects; @own: its IPv4
    address."""

    def __init__(self, program, interface, host, port, side, own=HERE[4]):
        self.out = tempfile.TemporaryFile(mode='w+')
        self.process = subprocess.Popen([
            program, '-l', str(own_cpu()), '--no-huge', '-m', '64', '--no-pci', '--no-shconf', '--no-telemetry',
            '--log-level=lib.eal:4', '--vdev=net_af_packet0,iface=' + interface, '--',
            'soft0,port=net_af_packet0,ip=%s/24,ip=%s/64' % (own, HERE[6]),
            ('[%s]:%d' if ':' in host else '%s:%d') % (host, port)] + side.split(),
            stdout=self.out, stderr=subprocess.STDOUT)
        if 'server' in side:
            self.until('listening')

    def text(self):
        self.out.seek(0)
        return self.out.read()

    def until(self, word):
        end = time.monotonic() + SECONDS
        while word not in self.text():
            assert self.process.poll() is None and time.monotonic() < end, self.text()
            time.sleep(0.05)

    def check(self):
        """Returns the output after a successful end."""
        try:
            status = self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = 'none'
        assert status == 0, 'cm_peer: status %s\n%s' % (status, self.text())
        return self.text()


class Both:
    """Makes the two sides of a case, whose port no other case has."""

    def __init__(self, program, there):
        self.program, self.there = program, there
        self.port = 7470

    def here(self, side, host):
        return Peer(self.program, self.there.tap, host, self.port, side)

    def serve_there(self, command):
        self.port += 1
        return self.there.serve_cm(command % self.port, SECONDS)

    def serve_here(self, side, host=HERE[4]):
        self.port += 1
        return self.here(side, host)

    def call_there(self, command, host=HERE[4]):
        return self.there.begin('%s -p %d' % (command % host, self.port), SECONDS)


def rping_calls(both, ip=4, rounds=20):
    """rping calls"""
    server = both.serve_here('rping-server %d' % rounds, HERE[ip])
    client = both.call_there('rping -c -V -v -C %d -S 1000 -a %%s' % rounds, HERE[ip])
    # A thread of rping may still read events of a closed channel and report an error at the end.
    client.wait()
    assert client.output.count('ping data: rdma-ping-') == rounds, client.output
    return server.check()


def rping_serves(both, ip=4, rounds=20):
    """rping serves"""
    address = {4: both.there.ipv4, 6: both.there.ipv6}[ip]
    server = both.serve_there('rping -s -v -C %d -S 4000 -a %s -p %%d' % (rounds, address))
    text = both.here('rping-client %d' % rounds, address).check()
    server.wait()
    assert server.output.count('server ping data: rdma-ping-') == rounds, server.output
    return text


def rping_calls_ipv6(both):
    """rping calls over IPv6"""
    return rping_calls(both, 6)


def rping_serves_ipv6(both):
    """rping serves over IPv6"""
    return rping_serves(both, 6)


def ucmatose_calls(both):
    """ucmatose calls, 16 connections"""
    server = both.serve_here('many-server 16')
    return both.call_there('ucmatose -c 16 -C 0 -s %s').check() + server.check()


def ucmatose_serves(both):
    """ucmatose serves, 16 connections"""
    server = both.serve_there('ucmatose -c 16 -C 0 -p %d')
    text = both.here('many-client 16', both.there.ipv4).check()
    return text + server.check()


def rejects(both):
    """cm_peer rejects rping"""
    server = both.serve_here('no-server')
    client = both.call_there('rping -c -C 1 -a %s')
    assert client.wait() != 0, client.output
    assert re.search('RDMA_CM_EVENT_REJECTED, error 28', client.output), client.output
    return server.check()


def nobody(both):
    """Linux has no listener"""
    both.port += 1
    return both.here('nobody', both.there.ipv4).check()


def lossy(both):
    """rping in both roles with 5 % of the packets lost in each direction"""
    both.there.netem(out='loss 5%', into='loss 5%')
    text = rping_calls(both, rounds=5) + rping_serves(both, rounds=5)
    both.there.netem()
    return text


CASES = [rping_calls, rping_serves, rping_calls_ipv6, rping_serves_ipv6, ucmatose_calls, ucmatose_serves,
         rejects, nobody, lossy]


def main():
    p = argparse.ArgumentParser()
    p.add_argument('cm_peer')
    p.add_argument('--only', default='', help='cases whose name this pattern matches')
    args = p.parse_args()
    assert [case.__name__ for case in CASES] == list(cm_cases.API_CASES), 'the table has other cases'
    reason = guest.missing()
    if reason:
        namespace.skip(reason)
    namespace.enter_or_skip()
    cases = [case for case in CASES if re.search(args.only, case.__name__)]
    assert cases, 'no such case'
    with guest.Guest() as there:
        guest.host_address(there.tap)
        both = Both(args.cm_peer, there)
        for case in cases:
            began = time.monotonic()
            text = case(both)
            print('%s, %.1f s:' % (case.__doc__, time.monotonic() - began), flush=True)
            for line in text.split('\n'):
                if line and not re.match(r'BLUEBELL: \w+: EAL runs without|pid |TELEMETRY', line):
                    print('   ', line, flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
