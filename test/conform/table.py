#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares doc/guides/conformance.rst with the results of the suite; see also --update.

usage: table.py [--update] CONFORM ALLOWED_SKIPS CONFORMANCE_RST RECORDS DEVICE...

Runs every row on every device. RECORDS has the results of devices that only another suite can run (recorded.py). The
page in the tree must equal the one that page.py makes of all results.
"""

import difflib
import json
import os
import subprocess
import sys
import tempfile

import page
import recorded


def run(conform, skips, devices):
    """Runs the suite. Returns its exit status and its results."""
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, 'results.json')
        cmd = [conform, '--timeout', '30', '--allowed-skips', skips, '--all-skips', '--json', path]
        for device in devices:
            cmd += ['--device', device]
        rc = subprocess.call(cmd)
        if not os.path.exists(path):
            sys.exit('conform wrote no results')
        with open(path) as f:
            return rc, json.load(f)


def main():
    args = sys.argv[1:]
    update = '--update' in args
    args = [a for a in args if a != '--update']
    if len(args) < 5:
        sys.exit(__doc__)
    conform, skips, rst, records, devices = args[0], args[1], args[2], args[3], args[4:]
    rc, results = run(conform, skips, devices)
    for one in recorded.load(records):
        results['devices'].append({'device': one['device'],
                                   'rows': recorded.expand(one, results['devices'][0]['rows'])})
    made = page.render(results)
    if update and rc == 0:
        with open(rst, 'w') as f:
            f.write(made)
        return 0
    with open(rst) as f:
        kept = f.read()
    if kept != made:
        sys.stdout.writelines(difflib.unified_diff(kept.splitlines(True), made.splitlines(True),
                                                   rst, 'as the suite finds it'))
        print('the page is out of date: ninja -C BUILD conformance-table')
        rc = 1
    return rc


if __name__ == '__main__':
    sys.exit(main())
