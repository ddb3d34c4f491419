#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unchanged programs by librdmacm: bb_verbs at the host's end of a guest's tap, and Linux's rxe0 in the guest.

usage: test_cm_verbs.py BB_VERBS [--only PATTERN]
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

import guest  # noqa: E402
import namespace  # noqa: E402
from cm_cases import CASES, ROLES  # noqa: E402

SECONDS = 200
HERE = '192.0.2.9'
LISTEN = 'verbs: rdma_cm command 0x7 '  # RDMA_USER_CM_CMD_LISTEN


class Here:
    """A program on bb_verbs."""

    def __init__(self, bb_verbs, tap, args, listens):
        self.out = tempfile.TemporaryFile(mode='w+')
        self.process = subprocess.Popen(
            [bb_verbs, '--vdev', 'net_af_packet0,iface=' + tap, '--device', 'soft0,port=net_af_packet0', '--address',
             HERE + '/24', '--', *shlex.split(args)], stdout=self.out, stderr=subprocess.STDOUT,
            env=dict(os.environ, BB_VERBS_TRACE='1'))
        end = time.monotonic() + SECONDS
        while listens and LISTEN not in self.output and self.process.poll() is None and time.monotonic() < end:
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
    def __init__(self, bb_verbs, there):
        self.bb_verbs, self.there = bb_verbs, there
        self.port = 7470

    def here(self, args, listens=False):
        return Here(self.bb_verbs, self.there.tap, args, listens)

    def once(self, case, role):
        """Runs both ends. Returns what was wrong, '' for nothing."""
        self.port += 1
        if role == 'rxe':
            server = self.here(case.server.format(port=self.port), True)
            client = self.there.begin(case.client.format(host=HERE, port=self.port), SECONDS)
        else:
            server = self.there.serve_cm(case.server.format(port=self.port), SECONDS)
            client = self.here(case.client.format(host=self.there.ipv4, port=self.port))
        status = [client.wait()]
        if status[0] != 0 and case.status:
            self.end(server, case)
        status.append(server.wait())
        text = '\n'.join(line for line in client.output.splitlines() if not line.startswith('verbs: '))
        if 124 in status or (case.status and status != [0, 0]) or len(case.sign.findall(text)) != case.count:
            return 'status of client and server: %s\n--- client:\n%s\n--- server:\n%s' % (
                status, client.output[-4000:], server.output[-4000:])
        return ''

    def end(self, server, case):
        """Ends a server whose client has failed."""
        if isinstance(server, Here):
            server.process.kill()
        else:
            self.there.run('killall %s || true' % shlex.quote(case.server.split()[0]))

    def run(self, case, role):
        if case.faults:
            self.there.netem(out=case.faults, into=case.faults)
        try:
            for attempt in range(case.attempts):
                wrong = self.once(case, role)
                if not wrong:
                    return attempt + 1
        finally:
            if case.faults:
                self.there.netem()
        raise AssertionError(wrong)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('bb_verbs')
    p.add_argument('--only', default='', help='cases whose name this pattern matches')
    args = p.parse_args()
    reason = guest.missing()
    if reason:
        namespace.skip(reason)
    namespace.enter_or_skip()
    cases = [case for case in CASES if re.search(args.only, case.name)]
    assert cases, 'no such case'
    with guest.Guest() as there:
        hosts = Hosts(os.path.abspath(args.bb_verbs), there)
        for case in cases:
            for role in ROLES:
                began = time.monotonic()
                attempts = hosts.run(case, role)
                print('%s, the client on %s, %s: %.1f s, attempt %d' % (
                    case.name, role, case.faults or 'no faults', time.monotonic() - began, attempts), flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
