#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compiles each public header alone, twice in one file, in C11 and in C++.

usage: headers.py HEADER...

A header that includes one of DPDK is compiled as GNU C, which DPDK's headers need; our warnings do
not apply to these.

The headers are first copied into one folder, as when they are installed, so that a header that needs
a header that is not installed fails.
"""

import os
import shutil
import subprocess
import sys
import tempfile

WARNINGS = ['-Wall', '-Wextra', '-Werror', '-fsyntax-only']
COMPILERS = [
    ('gcc', ['-x', 'c', '-std=c11']),
    ('clang-14', ['-x', 'c', '-std=c11']),
    ('g++', ['-x', 'c++', '-std=c++11']),
    ('g++', ['-x', 'c++', '-std=c++20']),
    ('clang++-14', ['-x', 'c++', '-std=c++11']),
]


def brings_dpdk(path):
    with open(path) as f:
        return '#include <rte_' in f.read()


def compile_alone(folder, name, compiler, flags, dpdk):
    text = '#include "%s"\n#include "%s"\n' % (name, name)
    cmd = [compiler] + flags + WARNINGS + ['-I', folder] + dpdk + ['-']
    return subprocess.run(cmd, input=text, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def check(headers):
    """Returns errors, and the number of compilations, of the header files given by path."""
    dpdk = subprocess.check_output(['pkg-config', '--cflags', 'libdpdk'], text=True).split()
    dpdk = ['-isystem' + d[2:] if d.startswith('-I') else d for d in dpdk]
    errors = []
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in headers:
            shutil.copy(path, folder)
        for path in headers:
            for compiler, flags in COMPILERS:
                # Newer Debians have no compiler of version 14 (devtools/packages).
                if shutil.which(compiler) is None:
                    compiler = compiler.replace('-14', '')
                if shutil.which(compiler) is None:
                    continue
                name = os.path.basename(path)
                if brings_dpdk(path):
                    flags = [f.replace('-std=c', '-std=gnu') for f in flags]
                result = compile_alone(folder, name, compiler, flags, dpdk)
                count += 1
                if result.returncode != 0:
                    errors.append('%s alone with %s %s:\n%s'
                                  % (path, compiler, ' '.join(flags), result.stdout))
    return errors, count


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    errors, count = check(sys.argv[1:])
    for error in errors:
        print(error)
    print('headers: %d headers, %d compilations, %d errors'
          % (len(sys.argv) - 1, count, len(errors)))
    if shutil.which('gcc') is None or shutil.which('g++') is None:
        print('skipped: gcc or g++ is not installed')
        return 1 if errors else 77
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
