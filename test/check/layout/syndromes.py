#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""No two sources have the same base of syndromes: a syndrome names the line that refuses a command.

usage: syndromes.py TREE
"""

import os
import re
import sys

BASE = re.compile(r'#define (?:SOFT|FRONT)_SYNDROME (0x[0-9a-f]{8})u\n')
LINES = 0xffff  # bits of the line


def check(top):
    bases = {}
    errors = []
    for folder, _, names in os.walk(os.path.join(top, 'drivers')):
        for name in sorted(names):
            if not name.endswith(('.c', '.h')):
                continue
            full = os.path.join(folder, name)
            path = os.path.relpath(full, top)
            with open(full, errors='replace') as f:
                text = f.read()
            for base in BASE.findall(text):
                if int(base, 16) & LINES:
                    errors.append('%s: syndrome %s has bits of the line' % (path, base))
                if base in bases:
                    errors.append('%s and %s: the same syndrome %s' % (bases[base], path, base))
                bases[base] = path
            if len(BASE.findall(text)) != text.count('_SYNDROME 0x'):
                errors.append('%s: syndrome that syndromes.py cannot read' % path)
    return errors, len(bases)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    errors, count = check(sys.argv[1])
    for error in errors:
        print(error)
    print('syndromes: %d bases, %d errors' % (count, len(errors)))
    return 1 if errors or not count else 0


if __name__ == '__main__':
    sys.exit(main())
