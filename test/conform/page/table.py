#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares doc/guides/evidence/conformance.rst with the results of the suite; see also --update.

usage: table.py [--update | --distinct] CONFORM ALLOWED_SKIPS CONFORMANCE_RST RECORDS DEVICE...

Runs every row on every device. RECORDS has the results of devices that only another suite can run (recorded.py). The
page in the tree must equal the one that page.py makes of all results.

With --distinct, a device with the same results in the page as an earlier device does not run, and gets those of that
device. Other tests of suite "devices" run it. A device without a capability always runs, because no other test runs it.
"""

import difflib
import json
import os
import re
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


def twins(kept, devices):
    """Returns the earlier device with the same results in the page @kept, by device."""
    sets = dict(re.findall(r'`(\S+) <(device-set-\d+)_>`__', kept))
    first, found = {}, {}
    for device in devices:
        earlier = first.setdefault(sets.get(device, device), device)
        if earlier != device and ',no_' not in device:
            found[device] = earlier
    return found


def main():
    args = sys.argv[1:]
    update, distinct = '--update' in args, '--distinct' in args
    args = [a for a in args if a not in ('--update', '--distinct')]
    if len(args) < 5:
        sys.exit(__doc__)
    conform, skips, rst, records, devices = args[0], args[1], args[2], args[3], args[4:]
    with open(rst) as f:
        kept = f.read()
    same = twins(kept, devices) if distinct else {}
    rc, results = run(conform, skips, [d for d in devices if d not in same])
    rows = {d['device']: d['rows'] for d in results['devices']}
    results['devices'] = [{'device': d, 'rows': rows[same.get(d, d)]} for d in devices]
    for one in recorded.load(records):
        results['devices'].append({'device': one['device'],
                                   'rows': recorded.expand(one, results['devices'][0]['rows'])})
    made = page.render(results)
    if update and rc == 0:
        with open(rst, 'w') as f:
            f.write(made)
        return 0
    if kept != made:
        sys.stdout.writelines(difflib.unified_diff(kept.splitlines(True), made.splitlines(True),
                                                   rst, 'as the suite finds it'))
        print('the page is out of date: ninja -C BUILD conformance-table')
        rc = 1
    return rc


if __name__ == '__main__':
    sys.exit(main())
