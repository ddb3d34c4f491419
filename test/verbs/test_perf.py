#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bb_perf -R against perftest -R, as server and as client. perftest runs on bb_verbs.

No verdict depends on speed.
"""

import os
import re
import sys
import time

from test_rdmacm import PERFTEST, SERVER, Base, main
from verbstest import WAIT, clocked

OWN = '10.88.200.3'  # address of bb_perf
COUNT = 200
# Program of perftest, its options, and the messages in one direction.
TESTS = (('ib_write_bw', ('-q', '3'), 3 * COUNT), ('ib_write_lat', (), COUNT), ('ib_read_bw', ('-a',), COUNT),
         ('ib_read_lat', (), COUNT), ('ib_send_bw', ('-b',), COUNT), ('ib_send_lat', (), COUNT),
         ('ib_atomic_bw', (), COUNT))


class Perf(Base):
    """The hostile program of this class is bb_perf."""

    def bb_perf(self, tool, args, host=()):
        cpu = str(min(os.sched_getaffinity(0)))
        return [self.hostile, '-l', cpu, '--no-huge', '-m', '128', '--no-shconf', '--no-pci', '--no-telemetry', '--',
                '-d', 'soft0,shm=%s,ip=%s/16' % (self.network, OWN), '-P', tool[len('ib_'):], '-R', '--check',
                '--silence', str(WAIT), '-n', str(COUNT), *args, *host]

    def perftest(self, tool, args):
        return (tool, '-R', '-n', str(COUNT), *args)

    def lines(self, out, count):
        """The table has a row of the messages."""
        self.assertRegex(out, re.compile(r'^ *\d+ +%d +\d' % count, re.M))

    def as_client(self, tool, args):
        server = self.listening(*self.perftest(tool, args))
        rc, out = self.run_one(self.bb_perf(tool, args, [SERVER]))
        server_rc, server_out = self.ended(server)
        return (rc, server_rc), out + server_out

    def as_server(self, tool, args):
        server = self.start(self.bb_perf(tool, args))
        out, end = '', time.monotonic() + WAIT
        while 'of rdma_cm' not in out and server.poll() is None and time.monotonic() < end:
            out += server.stdout.readline()
        rc, client_out = self.run_one(self.at(SERVER, *self.perftest(tool, args), OWN))
        server_rc, rest = self.end(server)
        return (rc, server_rc), client_out + out + rest

    def against_perftest(self, pair):
        self.need('ib_write_bw', PERFTEST)
        for tool, args, count in TESTS:
            with self.subTest(tool=tool):
                status, out = clocked(lambda tool=tool, args=args: pair(tool, args))
                self.assertEqual(status, (0, 0), out)
                self.lines(out, count)

    def test_bb_perf_is_the_client_of_perftest(self):
        self.against_perftest(self.as_client)

    def test_bb_perf_is_the_server_of_perftest(self):
        self.against_perftest(self.as_server)


if __name__ == '__main__':
    main(sys.argv)
