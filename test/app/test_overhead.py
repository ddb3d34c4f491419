#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What testrdma costs beside the operations that it measures, in instructions, as those do not
depend on what else the machine does: a write against the bench's loop, and a mix against the
operations that it is of."""

import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from apptest import EAL, LIMIT, SKIP, AppTest, lcores, main

BENCH = sys.argv.pop()  # the second argument that meson gives
MOST = 1.05  # of an operation's instructions, together with what the device does for it
N = 64000


class Overhead(AppTest):
    def count(self, function, cmd):
        """Instructions in @function and what it calls."""
        proc = subprocess.run(['valgrind', '--tool=callgrind', '--collect-atstart=no',
                               '--toggle-collect=' + function, '--callgrind-out-file=/dev/null'] +
                              cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=LIMIT)
        self.assertEqual(proc.returncode, 0, proc.stderr)
        n = int(re.search(r'Collected : (\d+)', proc.stderr).group(1))
        self.assertGreater(n, 0, 'no function ' + function)
        return n

    def per_op(self, function, *args):
        """The same for an operation of the rate phase."""
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
        # So much is always due, and an open loop has no latency phase, of one post at a time.
        size += ['--rate', '100000000']
        write = self.per_op('write_post', '--op', 'write', *size)
        mixed = self.per_op('mixed_post', '--op', 'mixed', '--mix', 'write:50,read:50', *size)
        print('posts: write %.1f, mixed %.1f; a whole write %.1f' % (write, mixed, whole))
        # To post is what a mix does otherwise, and of its operations a WRITE takes least; the
        # device's part is that of any application.
        self.assertLessEqual(mixed - write, (MOST - 1) * whole)


class Times(AppTest):
    """The same by the clock, for a machine with nothing else to do: meson does not run this."""
    PAIRS = 25

    def rows(self, cmd):
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            proc = subprocess.run(cmd + ['--json', f.name], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=LIMIT)
            self.assertEqual(proc.returncode, 0, proc.stdout + proc.stderr)
            with open(f.name) as again:
                return json.load(again)['rows']

    def ours(self):
        """
        Millions of writes in a second, 32 under way as in bench; and for a millisecond, as short as
        there: more would meet more pauses of the machine.
        """
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
