#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unchanged programs by librdmacm: bb_verbs at the host's end of a guest's tap, and Linux's rxe0 in the guest.

bb_perf is the host's end of perftest, too.

usage: test_cm_verbs.py BB_VERBS BB_PERF [--only PATTERN]
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import paths  # noqa: E402, F401
import guest  # noqa: E402
import namespace  # noqa: E402
from apptest import own_cpu  # noqa: E402
from cm_cases import API_PERF, CASES, ROLES  # noqa: E402

SECONDS = 200
HERE = {4: '192.0.2.9', 6: '2001:db8::9'}
LISTEN = 'verbs: rdma_cm command 0x7 '  # RDMA_USER_CM_CMD_LISTEN
PERF_LISTENS = 'of rdma_cm'    # of bb_perf -R


class Here:
    """A program of the host. @listens: text of its output by which it listens, None for a client. Clients do not list
    their calls: rstream polls, so its list may be longer than what is read of the output."""

    def __init__(self, command, listens):
        self.out = tempfile.TemporaryFile(mode='w+')
        self.process = subprocess.Popen(command, stdout=self.out, stderr=subprocess.STDOUT,
                                        env=dict(os.environ, **({'BB_VERBS_TRACE': '1'} if listens else {})))
        end = time.monotonic() + SECONDS
        while listens and listens not in self.output and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)

    @property
    def output(self):
        return os.pread(self.out.fileno(), 1 << 22, 0).decode(errors='replace')

    def wait(self):
        """Returns the exit status; 124 if the program had to be killed."""
        try:
            return self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return 124


class Hosts:
    """A guest, and @program of the host, bb_verbs, on @interface. @here and @there: their addresses by version of IP;
    @within: returns the command that runs a command in the guest."""

    port = 7470     # of the last attempt; each has its own

    def __init__(self, program, interface, here, guest, there, within=str):
        self.program = os.path.abspath(program)
        self.interface = interface
        self.here = here
        self.guest = guest
        self.there = there
        self.within = within

    def start(self, args, listens, device):
        """Starts an end on the host. @device: further options of its device."""
        command = [self.program, '--vdev', 'net_af_packet0,iface=' + self.interface, '--device',
                   'soft0,port=net_af_packet0,ip=%s/64%s' % (self.here[6], device), '--address', self.here[4] + '/24', '--']
        return Here(command + shlex.split(args), LISTEN if listens else None)

    def once(self, case, role):
        """Runs both ends. Returns what was wrong, '' for nothing."""
        Hosts.port += 1
        where = {'host': (self.here if role == 'guest' else self.there)[case.ip], 'port': Hosts.port}
        server, client = case.server.format(**where), case.client.format(**where)
        if role == 'guest':
            server = self.start(server, True, case.device)
            client = self.guest.begin(self.within(client), SECONDS)
        else:
            server = self.guest.serve_cm(self.within(server), SECONDS)
            client = self.start(client, False, case.device)
        status = [client.wait()]
        if status[0] != 0 and case.status:
            self.end(server, case)
        status.append(server.wait())
        if 124 in status or (case.status and status != [0, 0]) or len(case.sign.findall(client.output)) != case.count:
            return 'status of client and server: %s\n--- client:\n%s\n--- server:\n%s' % (
                status, client.output[-4000:], server.output[-4000:])
        return ''

    def end(self, server, case):
        """Ends a server whose client has failed."""
        if isinstance(server, Here):
            server.process.kill()
        else:
            self.guest.run('killall %s || true' % shlex.quote(case.server.split()[0]))

    def run(self, case, role):
        if case.faults:
            self.guest.netem(out=case.faults, into=case.faults)
        try:
            for attempt in range(case.attempts):
                wrong = self.once(case, role)
                if not wrong:
                    return attempt + 1
        finally:
            if case.faults:
                self.guest.netem()
        raise AssertionError(wrong)


class PerfHosts(Hosts):
    """The program of the host is bb_perf, with the options of perftest."""

    def start(self, args, listens, device):
        tool, *options = args.split()
        return Here([
            self.program, '-l', str(own_cpu()), '--no-huge', '-m', '256', '--no-pci', '--no-telemetry', '--no-shconf',
            '--log-level=lib.eal:4', '--vdev=net_af_packet0,iface=' + self.interface,
            '--', '-d', 'soft0,port=net_af_packet0,ip=%s/24%s' % (self.here[4], device), '--qp-timeout', '18', '--check',
            '--silence', str(SECONDS), '-P', tool[len('ib_'):], *options], PERF_LISTENS if listens else None)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('bb_verbs')
    p.add_argument('bb_perf')
    p.add_argument('--only', default='', help='cases whose name this pattern matches')
    args = p.parse_args()
    reason = guest.missing()
    if reason:
        namespace.skip(reason)
    namespace.enter_or_skip()
    with guest.Guest() as there:
        where = there.tap, HERE, there, {4: there.ipv4, 6: there.ipv6}
        runs = [(Hosts(args.bb_verbs, *where), case) for case in CASES]
        runs += [(PerfHosts(args.bb_perf, *where), case) for case in API_PERF]
        runs = [run for run in runs if re.search(args.only, run[1].title)]
        assert runs, 'no such case'
        for hosts, case in runs:
            for role in ROLES:
                began = time.monotonic()
                attempts = hosts.run(case, role)
                print('%s on %s, the client on %s: %.1f s, attempt %d' % (
                    case.title, os.path.basename(hosts.program), role, time.monotonic() - began, attempts), flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
