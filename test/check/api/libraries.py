#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the dependencies of the two libraries and their programs, as the dynamic linker sees them.

usage: libraries.py LIBBLUEBELL.SO LIBBLUEBELL-SOFT.SO RELEASE [PROGRAM...]

- libbluebell and each PROGRAM, with all libraries that they load at start, need no ethdev
- libbluebell reads the environment only by secure_getenv
- libbluebell-soft needs only symbols of the version node BLUEBELL_PRIVATE_RELEASE of libbluebell,
  and this node has no other symbol
- libbluebell-soft exports nothing
"""

import re
import subprocess
import sys

from symbols import dynamic_symbols

ETHDEV = 'librte_ethdev.so'


def loaded(path):
    """Returns the names of libraries that the dynamic linker loads with a file."""
    text = subprocess.check_output(['ldd', path], text=True)
    return re.findall(r'^\s*(\S+) =>', text, re.M)


def check_cards(path):
    """Checks a program for cards."""
    errors = []
    if any(name.startswith(ETHDEV) for name in loaded(path)):
        errors.append('%s loads %s: a program for cards needs none' % (path, ETHDEV))
    errors += ['%s needs %s: a program for cards has no ports' % (path, name)
               for _, defined, name, _ in dynamic_symbols(path)
               if not defined and name.startswith('rte_eth_')]
    return errors


def check_environment(lib):
    needed = {name for _, defined, name, _ in dynamic_symbols(lib) if not defined}
    return [] if 'getenv' not in needed else [
        '%s calls getenv: by secure_getenv a program with set-user-ID ignores the environment' % lib]


def check_private(lib, soft, release):
    node = 'BLUEBELL_PRIVATE_' + release
    given = {name: version for _, defined, name, version in dynamic_symbols(lib) if defined}
    private = {name for name, version in given.items() if version == node and name != node}
    taken = {name: version for _, defined, name, version in dynamic_symbols(soft)
             if not defined and name in given}
    errors = ['%s needs %s of the node %s: the software device knows the command interface alone'
              % (soft, name, version) for name, version in sorted(taken.items()) if version != node]
    errors += ['%s has %s in %s, which %s does not need' % (lib, name, node, soft)
               for name in sorted(private - set(taken))]
    if not taken:
        errors.append('%s needs nothing of %s: another release of it would be loaded' % (soft, node))
    errors += ['%s exports %s' % (soft, name) for _, defined, name, _ in dynamic_symbols(soft) if defined]
    return errors


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    lib, soft, release = sys.argv[1:4]
    errors = check_environment(lib) + check_private(lib, soft, release)
    for path in [lib] + sys.argv[4:]:
        errors += check_cards(path)
    for error in errors:
        print(error)
    print('libraries: %d files, %d errors' % (len(sys.argv) - 2, len(errors)))
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
