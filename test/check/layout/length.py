#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A source file of more than 600 lines needs a reason in the file long-files.

usage: length.py TREE
"""

import os
import sys

LIMIT = 600
ROOTS = ('lib', 'drivers', 'app', 'examples', 'test', 'devtools', 'doc')
ENDINGS = ('.c', '.h', '.py', '.sh', '.rst', '.md')


def check(top):
    reasons = {}
    errors = []
    with open(os.path.join(top, 'test', 'check', 'layout', 'long-files')) as f:
        for line in f:
            line = line.split('#')[0].strip()
            if line:
                path, _, reason = line.partition(':')
                reasons[path.strip()] = reason.strip()
    count = 0
    for root in ROOTS:
        for folder, _, names in os.walk(os.path.join(top, root)):
            for name in sorted(names):
                if not name.endswith(ENDINGS):
                    continue
                full = os.path.join(folder, name)
                path = os.path.relpath(full, top)
                with open(full, errors='replace') as f:
                    lines = sum(1 for _ in f)
                count += 1
                if lines > LIMIT and not reasons.get(path):
                    errors.append('%s: %d lines, over %d: split it, or give a reason in '
                                  'test/check/layout/long-files' % (path, lines, LIMIT))
                if lines <= LIMIT and path in reasons:
                    errors.append('%s: %d lines: take it out of test/check/layout/long-files'
                                  % (path, lines))
                reasons.pop(path, None)
    errors += ['%s: in test/check/layout/long-files, but not in the tree' % p for p in reasons]
    return errors, count


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    errors, count = check(sys.argv[1])
    for error in errors:
        print(error)
    print('length: %d files, %d errors' % (count, len(errors)))
    return 1 if errors or not count else 0


if __name__ == '__main__':
    sys.exit(main())
