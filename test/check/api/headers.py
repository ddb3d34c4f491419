#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compiles each public header alone, twice in one file, with gcc in C11; all of them with clang and in C++.

usage: headers.py HEADER...

Headers that include one of DPDK are compiled as GNU C, which DPDK's headers need; our warnings do
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
ALONE = ('gcc', ['-x', 'c', '-std=c11'])
TOGETHER = [
    ('clang-14', ['-x', 'c', '-std=c11']),
    ('g++', ['-x', 'c++', '-std=c++11']),
    ('g++', ['-x', 'c++', '-std=c++20']),
    ('clang++-14', ['-x', 'c++', '-std=c++11']),
]


def brings_dpdk(path):
    with open(path) as f:
        return '#include <rte_' in f.read()


def compile_twice(folder, names, compiler, flags, dpdk):
    """Compiles a file that includes @names twice. Returns what the compiler says if it fails, None if there is no such
    compiler."""
    # Newer Debians have no compiler of version 14 (devtools/packages).
    if shutil.which(compiler) is None:
        compiler = compiler.replace('-14', '')
    if shutil.which(compiler) is None:
        return None
    text = ''.join('#include "%s"\n' % name for name in names) * 2
    result = subprocess.run([compiler, *flags, *WARNINGS, '-I', folder, *dpdk, '-'], input=text, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if result.returncode == 0:
        return ''
    return '%s with %s %s:\n%s' % (' '.join(names), compiler, ' '.join(flags), result.stdout)


def check(headers):
    """Returns errors, and the number of compilations, of the header files given by path."""
    dpdk = subprocess.check_output(['pkg-config', '--cflags', 'libdpdk'], text=True).split()
    dpdk = ['-isystem' + d[2:] if d.startswith('-I') else d for d in dpdk]
    kinds = {'-std=c': [os.path.basename(p) for p in headers if not brings_dpdk(p)],
             '-std=gnu': [os.path.basename(p) for p in headers if brings_dpdk(p)]}
    with tempfile.TemporaryDirectory() as folder:
        for path in headers:
            shutil.copy(path, folder)
        said = []
        for kind, names in kinds.items():
            for compiler, flags in [ALONE] + TOGETHER:
                flags = [f.replace('-std=c', kind) for f in flags]
                groups = [[name] for name in names] if compiler == ALONE[0] else [names]
                said += [compile_twice(folder, group, compiler, flags, dpdk) for group in groups if group]
    ran = [text for text in said if text is not None]
    return [text for text in ran if text], len(ran)


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
