#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The suite can fail: a device with a seeded defect fails it, one without passes.

usage: defects.py CONFORM [--short | DEFECT...]

--short: every fifth defect.
"""

import os
import re
import subprocess
import sys

SOFT_H = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'drivers', 'soft',
                      'opts', 'soft_defect.h')
# It shows only if a doorbell record is written without a register; the public API does both at
# once.
OUT_OF_REACH = {'no_doorbell': 'model/soft_data_defect shows it'}
LEAST = 20  # number of defects that must be caught
LIMIT = 120  # seconds for one device; sanitizers are slow


def defects():
    """Returns the names of enum soft_defect."""
    with open(SOFT_H) as f:
        body = re.search(r'enum soft_defect \{(.*?)\};', f.read(), re.S).group(1)
    names = re.findall(r'^\s*SOFT_DEFECT_(\w+)', body, re.M)
    return [n.lower() for n in names if n != 'NONE']


def run(conform, name):
    """Returns exit status and output; seed=0: a defect occurs at its first chance."""
    device = 'soft0,seed=0' + (',defect=' + name if name else '')
    proc = subprocess.run([conform, '--device', device, '--max-failures', '1', '--timeout', '1'
                           if name else '30'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=LIMIT)
    return proc.returncode, proc.stdout


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    conform, args = sys.argv[1], sys.argv[2:]
    names = defects()[::5] if args == ['--short'] else args or defects()
    failed = caught = 0
    for name in [''] + names:
        rc, out = run(conform, name)
        row = re.search(r'^FAIL \S+ (\S+): (.*)', out, re.M)
        if name == '' or name in OUT_OF_REACH:
            good = rc == 0
            print('%-14s %s' % (name or 'none', 'passes' if good else 'FAILS'))
        else:
            good = rc == 1 and row is not None
            caught += good
            print('%-14s %s' % (name, 'caught by %s: %s' % row.groups() if good else 'NOT CAUGHT'))
        if not good or 'Sanitizer' in out:
            print(out)
            failed += 1
    print('%d of %d defects caught' % (caught, len(names)))
    return 1 if failed or not args and caught < LEAST else 0


if __name__ == '__main__':
    sys.exit(main())
