# SPDX-License-Identifier: BSD-3-Clause
"""Programs that connect by rdma_cm, unchanged, on both sides: a device of Linux in a guest, and bb_verbs on the host."""

import re


class Case:
    """A pair of commands, with {host} for the server's address. sign: a regular expression that the client's output has
    `count` times; ip: version of IP, 4 or 6; faults: options of netem for both directions; device: further options of
    the host's device, after a comma; status: both ends exit with 0; attempts: of both."""

    def __init__(self, name, server, client, sign, count=1, ip=4, faults='', device='', status=True, attempts=1):
        self.name = name
        self.server = server
        self.client = client
        self.sign = re.compile(sign, re.M)
        self.count = count
        self.ip = ip
        self.faults = faults
        self.device = device
        self.status = status
        self.attempts = attempts

    @property
    def title(self):
        program, comma, rest = self.name.partition(',')
        faults = ', ' + self.faults if self.faults else self.device.replace(',', ', ', 1)
        return program + ' over IPv6' * (self.ip == 6) + comma + rest + faults


def rping(rounds, ip=4, faults=''):
    # A thread of rping may still read events of a closed channel and report an error at the end.
    return Case('rping', 'rping -s -V -C %d -S 1000 -p {port}%s' % (rounds, ' -a ::' if ip == 6 else ''),
                'rping -c -V -v -C %d -S 1000 -a {host} -p {port}' % rounds, r'ping data: rdma-ping-', rounds,
                ip, faults, status=False)


def bind(ip):
    """Returns the server's option for its address. Without it the programs listen at any IPv4 address."""
    return ' -b {host}' if ip == 6 else ''


def ucmatose(connections, ip=4, faults='', device=''):
    return Case('ucmatose, %d connections' % connections, 'ucmatose -c %d -p {port}%s' % (connections, bind(ip)),
                'ucmatose -c %d -p {port} -s {host}' % connections, r'^data transfers complete$',
                ip=ip, faults=faults, device=device)


def udaddy(destinations, ip=4):
    """The server of udaddy reads no further request. If its last reply is lost, the client's repeated one gets none."""
    args = 'udaddy -c %d' % destinations
    return Case('udaddy, %d destinations' % destinations, args + bind(ip), args + ' -s {host}',
                r'^data transfers complete$', ip=ip, attempts=3)


def rstream(*flags, ip=4):
    args = ' '.join(('rstream -I 10 -C 10 -S 4096 -p {port}', *flags))
    return Case(' '.join(('rstream', *flags)) + ' (rsockets)', args + bind(ip), args + ' -s {host}', r'^custom +4k ',
                ip=ip)


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
    rping(20, ip=6),
    ucmatose(16, ip=6),
    udaddy(8, ip=6),
    rstream(ip=6),
    ucmatose(16, faults='loss 5%'),
    rping(5, faults='loss 5%'),
]
ROLES = ('guest', 'host')     # of the client

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

# Cases in which the host's program is bb_perf, with both kinds of guests.
API_PERF = [perftest('ib_write_bw')]

# Cases of test/kernel/test_eth.py, whose guest has Linux's mlx5 driver on bb_hca. netem does not affect its RoCE packets,
# so the host's device loses packets of both directions.
HCA_CASES = [*(case for case in CASES if not case.faults), ucmatose(16, device=',tx_drop=5,rx_drop=5')]
# Cases of Bluebell's API there, by function.
HCA_API_CASES = {
    'test_host_device': ('rping', 'rping over IPv6'),
    'test_bb_perf': tuple(case.title for case in API_PERF),
}


def collect(api, cases):
    """Returns [(name, sides)] for a table: every case, with the sides of the host that it has. api: (name, sides)."""
    found = {}
    for name, sides in [*api, *((case.title, SIDES[2:]) for case in cases)]:
        found.setdefault(name, set()).update(sides)
    return found.items()


def rxe_table():
    return collect([*API_CASES.values(), *((case.title, SIDES[:2]) for case in API_PERF)], CASES)


def hca_table():
    return collect(((name, SIDES[:2]) for names in HCA_API_CASES.values() for name in names), HCA_CASES)
