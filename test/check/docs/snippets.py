#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compiles the C code in the documents.

usage: snippets.py DOCUMENT... -- INCLUDE_DIR...

Every ```c block of a .md file and every code-block:: c of a .rst file must compile by itself,
as C11, without warnings except for unused code. A folder stands for all .rst files below it.
"""

import glob
import os
import re
import subprocess
import sys
import textwrap

FENCE = re.compile(r'^```c\n(.*?)^```', re.M | re.S)
DIRECTIVE = re.compile(r'^\.\. code-block:: c\n\n((?:(?:[ \t].*)?\n)+)', re.M)


def expand(documents):
    return [f for d in documents
            for f in (sorted(glob.glob(os.path.join(d, '**', '*.rst'), recursive=True)) if os.path.isdir(d) else [d])]


def snippets(path):
    with open(path) as f:
        text = f.read()
    found = DIRECTIVE.findall(text) if path.endswith('.rst') else FENCE.findall(text)
    return [textwrap.dedent(s) for s in found]


def check(documents, include_dirs):
    dpdk = subprocess.check_output(['pkg-config', '--cflags', 'libdpdk'], text=True).split()
    cmd = ['gcc', '-x', 'c', '-std=c11', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Werror',
           '-Wno-unused', '-fsyntax-only']
    for d in include_dirs:
        cmd += ['-I', d]
    errors = []
    count = 0
    for path in documents:
        for i, code in enumerate(snippets(path)):
            count += 1
            result = subprocess.run(cmd + dpdk + ['-'], input=code, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if result.returncode != 0:
                errors.append('%s, piece of code %d:\n%s' % (path, i + 1, result.stdout))
    return errors, count


def main():
    if '--' not in sys.argv:
        sys.exit(__doc__)
    split = sys.argv.index('--')
    documents = expand(sys.argv[1:split])
    errors, count = check(documents, sys.argv[split + 1:])
    for error in errors:
        print(error)
    print('snippets: %d documents, %d pieces of code, %d errors'
          % (len(documents), count, len(errors)))
    return 1 if errors or not count else 0


if __name__ == '__main__':
    sys.exit(main())
