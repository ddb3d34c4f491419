#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the instructions that the provider adds to Bluebell's calls, per posted request, by callgrind.

usage: test_count.py FI_COUNT. Fails if a call adds more than LIMIT instructions.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIP = 77
COUNT = 100     # requests of each loop of fi_count.c
LIMIT = 80
LOOPS = ('send64', 'inject64', 'send4096', 'write4096', 'read4096', 'recv64')


def inside(profile):
    """Returns {function: instructions of its calls} of the loops in a profile of callgrind."""
    totals, callee = {}, None
    lines = iter(profile)
    for line in lines:
        if line.startswith('cfn='):
            callee = line[4:].rstrip('\n')
        elif line.startswith('calls='):
            cost = next(lines)
            if re.fullmatch('(fi|bb)_(%s)' % '|'.join(LOOPS), callee):
                totals[callee] = totals.get(callee, 0) + int(cost.split()[-1])
    return totals


def main():
    if shutil.which('valgrind') is None:
        print('SKIP: valgrind is not installed')
        return SKIP
    with tempfile.TemporaryDirectory(prefix='callgrind.') as tmp:
        out = os.path.join(tmp, 'out')
        cmd = ['valgrind', '--tool=callgrind', '--fair-sched=try', '--callgrind-out-file=' + out,
               '--dump-after=count_round', '--compress-strings=no', '--compress-pos=no']
        cmd += ['--toggle-collect=%s_%s' % (side, loop) for loop in LOOPS for side in ('fi', 'bb')]
        res = subprocess.run([*cmd, sys.argv[1]], capture_output=True, text=True)
        if res.returncode != 0:
            print(res.stdout, res.stderr)
            return 1
        rounds = []
        for path in glob.glob(out + '.*'):
            with open(path) as f:
                rounds.append(inside(f))
    # The thread of the provider may hold the lock for a moment, so the lowest count of each loop is used.
    over = False
    print('%-10s %10s %10s %10s' % ('request', 'bluebell', 'libfabric', 'added'))
    for loop in LOOPS:
        bb, fi = (min(r[side + loop] for r in rounds if side + loop in r) / COUNT for side in ('bb_', 'fi_'))
        print('%-10s %10.1f %10.1f %10.1f%s' % (loop, bb, fi, fi - bb, '  more than %d' % LIMIT if fi - bb > LIMIT else ''))
        over |= fi - bb > LIMIT
    return over


if __name__ == '__main__':
    sys.exit(main())
