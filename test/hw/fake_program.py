#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Stands in for hw_report, conform or testrdma under hw-check: prints what plan.json beside it says.

The plan has, for each program, a list of [pattern of the device, {...}]. The first pattern that matches
counts. Members of the object: json (written to the file that the program names), lines (printed), rc, sleep
(seconds after the lines), signal (number, which ends the program).
"""

import fnmatch
import json
import os
import signal
import sys
import time


def main():
    path = os.path.abspath(sys.argv[0])
    name = os.path.basename(path).split('_fake')[0]
    own = sys.argv[sys.argv.index('--') + 1:] if name != 'conform' else sys.argv[1:]
    device = own[0] if name == 'hw_report' else own[own.index('-d') + 1]
    with open(os.path.join(os.path.dirname(path), 'plan.json')) as f:
        plan = json.load(f)
    with open(os.path.join(os.path.dirname(path), 'calls'), 'a') as f:
        f.write(name + ' ' + ' '.join(sys.argv[1:]) + '\n')
    todo = next(what for pattern, what in plan[name] if fnmatch.fnmatchcase(device, pattern))
    if 'json' in todo:
        with open(own[1] if name == 'hw_report' else own[own.index('--json') + 1], 'w') as f:
            json.dump(todo['json'], f)
    for line in todo.get('lines', []):
        print(line.replace('DEVICE', device), flush=True)
    time.sleep(todo.get('sleep', 0))
    if 'signal' in todo:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), todo['signal'])
    sys.exit(todo.get('rc', 0))


if __name__ == '__main__':
    main()
