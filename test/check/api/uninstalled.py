#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compiles and links programs against a build folder, by the .pc files of its meson-uninstalled.

usage: uninstalled.py BUILD PACKAGE:HEADER,... ...
"""

import os
import subprocess
import sys
import tempfile


def fault(build, package, headers):
    """Returns the error for PACKAGE as text; '' if a program with HEADERS compiles and links."""
    env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(build, 'meson-uninstalled'))
    flags = subprocess.run(['pkg-config', '--cflags', '--libs', package], env=env, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if flags.returncode != 0:
        return flags.stderr
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, 'a.c')
        with open(source, 'w') as f:
            f.write(''.join('#include <%s>\n' % h for h in headers) + 'int main(void) {return 0;}\n')
        done = subprocess.run(['cc', source, '-o', os.path.join(folder, 'a')] + flags.stdout.split(),
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.stdout if done.returncode != 0 else ''


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    failed = False
    for pair in sys.argv[2:]:
        package, _, headers = pair.partition(':')
        text = fault(sys.argv[1], package, [os.path.basename(h) for h in headers.split(',')])
        failed |= text != ''
        print('%s: %s' % (package, text or 'compiles and links'))
    sys.exit(failed)


if __name__ == '__main__':
    main()
