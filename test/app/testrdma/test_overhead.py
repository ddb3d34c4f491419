#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Overhead of testrdma beside the measured operations, in instructions, as these do not depend on the
load of the machine: a write against bench's loop, and a mix against its operations.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import EAL, LIMIT, SKIP, AppTest, lcores, main  # noqa: E402

BENCH = sys.argv.pop()  # meson passes it as the last argument
MOST = 1.05  # of an operation's instructions, including the device's work
N = 64000


class Overhead(AppTest):
    def count(self, function, cmd):
        """Returns the instructions in @function and its callees."""
        proc = subprocess.run(['valgrind', '--tool=callgrind', '--collect-atstart=no',
                               '--toggle-collect=' + function, '--callgrind-out-file=/dev/null'] +
                              cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=LIMIT)
        self.assertEqual(proc.returncode, 0, proc.stderr)
        n = int(re.search(r'Collected : (\d+)', proc.stderr).group(1))
        self.assertGreater(n, 0, 'no function ' + function)
        return n

    def per_op(self, function, *args):
        """Returns the instructions per operation in the rate phase."""
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            n = self.count(function, [self.program] + lcores() + EAL + [
                '--', '--burst', '32', '--signal-every', '32', '--duration', '0.2', '--json',
                f.name, *args])
            with open(f.name) as again:
                row = json.load(again)['rows'][0]
        return n / row['rate']['ops']

    def test_write_and_mix(self):
        whole = self.per_op('span', '--op', 'write', '--size', '8', '--inline', '8')
        bench = self.count('soft_write8', [BENCH, '--kernel', 'device/batch32/last', '--side',
                                           'ours', '--instructions', str(N)]) / N
        print('write: testrdma %.1f, bench %.1f: %.3f' % (whole, bench, whole / bench))
        self.assertLessEqual(whole, MOST * bench)
        size = ['--size', '64']
        whole = self.per_op('span', '--op', 'write', *size)
        # At this rate an operation is always due; an open loop has no latency phase of single
        # posts.
        size += ['--rate', '100000000']
        write = self.per_op('write_post', '--op', 'write', *size)
        mixed = self.per_op('mixed_post', '--op', 'mixed', '--mix', 'write:50,read:50', *size)
        print('posts: write %.1f, mixed %.1f; a whole write %.1f' % (write, mixed, whole))
        # Only posting differs in a mix, whose cheapest operation is a WRITE. The device's work is
        # that of any application.
        self.assertLessEqual(mixed - write, (MOST - 1) * whole)


class Times(AppTest):
    """The same in time, for an idle machine: meson does not run this."""
    PAIRS = 25

    def rows(self, cmd):
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            proc = subprocess.run(cmd + ['--json', f.name], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=LIMIT)
            self.assertEqual(proc.returncode, 0, proc.stdout + proc.stderr)
            with open(f.name) as again:
                return json.load(again)['rows']

    def ours(self):
        """Millions of writes per second, 32 in flight as in bench. It lasts a millisecond, as
        there: a longer run would include more pauses of the machine."""
        rows = self.rows([self.program] + lcores() + EAL + [
            '--', '--op', 'write', '--size', '8', '--inline', '8', '--depth', '32', '--burst', '32',
            '--signal-every', '32', '--duration', '0.002'])
        return rows[0]['rate']['mops']

    def bench(self):
        rows = self.rows([BENCH, '--case', 'inline', '--repeat', '1'])
        return next(row['ours'] for row in rows if row['case'] == 'inline/batch32/last')

    def test_write(self):
        ours, bench = zip(*((self.ours(), self.bench()) for _ in range(self.PAIRS)))
        print('\n%d runs each, in turn; writes of 8 bytes inline, 32 to a doorbell and a CQE, M/s' %
              self.PAIRS)
        for name, of in (('median', statistics.median), ('fastest', max)):
            print('%-8s testrdma %5.1f   bench %5.1f   time of a write %.3f x' % (
                name, of(ours), of(bench), of(bench) / of(ours)))


if __name__ == '__main__':
    if shutil.which('valgrind') is None:
        print('skipped: valgrind is not installed')
        sys.exit(SKIP)
    main()
