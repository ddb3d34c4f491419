# SPDX-License-Identifier: BSD-3-Clause
"""Programs that connect by rdma_cm, unchanged, on both sides: Linux's rxe0 in a guest, and bb_verbs at the tap."""

import re



class Case:
    """A pair of commands. sign: a regular expression that the client's output has `count` times; faults: options of
    netem for both directions; status: both ends exit with 0; attempts: of both."""

    def __init__(self, name, server, client, sign, count=1, faults=None, status=True, attempts=1):
        self.name = name
        self.server = server
        self.client = client
        self.sign = re.compile(sign, re.M)
        self.count = count
        self.faults = faults
        self.status = status
        self.attempts = attempts


def rping(rounds, faults=None):
    # A thread of rping may still read events of a closed channel and report an error at the end.
    return Case('rping', 'rping -s -V -C %d -S 1000 -p {port}' % rounds,
                'rping -c -V -v -C %d -S 1000 -a {host} -p {port}' % rounds, r'ping data: rdma-ping-', rounds,
                faults, status=False)


def ucmatose(connections, faults=None):
    return Case('ucmatose, %d connections' % connections, 'ucmatose -c %d -p {port}' % connections,
                'ucmatose -c %d -p {port} -s {host}' % connections, r'^data transfers complete$',
                faults=faults)


def udaddy(destinations):
    """The server of udaddy reads no further request. If its last reply is lost, the client's repeated one gets none."""
    args = 'udaddy -c %d' % destinations
    return Case('udaddy, %d destinations' % destinations, args, args + ' -s {host}', r'^data transfers complete$', attempts=3)


def rstream(*flags):
    args = ' '.join(('rstream -I 10 -C 10 -S 4096 -p {port}', *flags))
    return Case(' '.join(('rstream', *flags)) + ' (rsockets)', args, args + ' -s {host}', r'^custom +4k ')


def perftest(tool, *flags):
    """perftest's server destroys its listener and listens again between two connections of its client, which does not
    repeat a connection that is rejected meanwhile."""
    args = ' '.join((tool, '-R', *flags, '-n 50 -p {port}'))
    return Case(' '.join((tool, '-R', *flags)), args, args + ' {host}', r'^ *\d+ +50 +\d', attempts=20)


CASES = [
    rping(20),
    ucmatose(16),
    udaddy(8),
    rstream(),
    rstream('-T', 'n'),
    perftest('ib_write_bw'),
    perftest('ib_send_lat', '-c', 'UD'),
    ucmatose(16, 'loss 5%'),
    rping(5, 'loss 5%'),
]
ROLES = ('rxe', 'bb_verbs')     # the client

SIDES = ('API serves', 'API calls', 'bb_verbs serves', 'bb_verbs calls')
# Cases of test_cm_ib.py, by function: name in the table, sides of the host.
API_CASES = {
    'rping_calls': ('rping', SIDES[:1]),
    'rping_serves': ('rping', SIDES[1:2]),
    'rping_calls_ipv6': ('rping over IPv6', SIDES[:1]),
    'rping_serves_ipv6': ('rping over IPv6', SIDES[1:2]),
    'ucmatose_calls': ('ucmatose, 16 connections', SIDES[:1]),
    'ucmatose_serves': ('ucmatose, 16 connections', SIDES[1:2]),
    'rejects': ('rping, which is rejected', SIDES[:1]),
    'nobody': ('no listener', SIDES[1:2]),
    'lossy': ('rping, loss 5%', SIDES[:2]),
}


def table():
    """Returns [(name, sides)] for the table: every case, with the sides of the host that it has."""
    found = {}
    for name, sides in API_CASES.values():
        found.setdefault(name, set()).update(sides)
    for case in CASES:
        found.setdefault(', '.join(filter(None, (case.name, case.faults))), set()).update(SIDES[2:])
    return found.items()
