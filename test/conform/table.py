#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares doc/guides/conformance.rst with the results of the suite; see also --update.

usage: table.py [--update] CONFORM ALLOWED_SKIPS CONFORMANCE_RST DEVICE...

Runs every row on every device. The table in the tree must equal the resulting one, and
no cell of it may be empty.
"""

import difflib
import os
import subprocess
import sys
import tempfile


def make(conform, skips, devices, path):
    cmd = [conform, '--timeout', '30', '--allowed-skips', skips, '--table', path]
    for device in devices:
        cmd += ['--device', device]
    return subprocess.call(cmd)


def empty_cells(text):
    """Returns lines of a table with an empty cell."""
    return [line for line in text.splitlines() if line.startswith('   ') and
            any(cell.strip() == '' for cell in line.strip().split(','))]


def main():
    args = sys.argv[1:]
    update = '--update' in args
    args = [a for a in args if a != '--update']
    if len(args) < 4:
        sys.exit(__doc__)
    conform, skips, rst, devices = args[0], args[1], args[2], args[3:]
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, 'conformance.rst')
        rc = make(conform, skips, devices, path)
        if not os.path.exists(path):
            sys.exit('conform wrote no table')
        with open(path) as f:
            made = f.read()
    for line in empty_cells(made):
        print('empty cell: ' + line)
        rc = 1
    if update and rc == 0:
        with open(rst, 'w') as f:
            f.write(made)
        return 0
    with open(rst) as f:
        kept = f.read()
    if kept != made:
        sys.stdout.writelines(difflib.unified_diff(kept.splitlines(True), made.splitlines(True),
                                                   rst, 'as the suite finds it'))
        print('the table is out of date: ninja -C BUILD conformance-table')
        rc = 1
    return rc


if __name__ == '__main__':
    sys.exit(main())
