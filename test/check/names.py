#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Names of the API that documents and comments of headers mention are there.

usage: names.py TREE

A function bb_x(), a header bb_x.h or a constant BB_X that a guide, README.md or a public header
names must be in a header of lib/, or in one of examples/ that is installed. A name that ends with _ stands for all that begin so.
"""

import os
import re
import sys

HEADER = re.compile(r'\bbb_[a-z0-9_]+\.h\b')
FUNCTION = re.compile(r'\b(bb_[a-z0-9_]+)\(\)')
CONSTANT = re.compile(r'\bBB_[A-Z0-9_]+\b')
LINE = re.compile(r'//.*|/\*.*?\*/', re.S)


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def walk(top, endings):
    return sorted(os.path.join(path, name) for path, _, names in os.walk(top) for name in names
                  if name.endswith(endings))


def findings(text, headers, code):
    """What @text names and neither the names of @headers nor their @code has."""
    known = set(re.findall(r'\b(?:bb|BB)_\w+', code))
    bad = sorted(set(HEADER.findall(text)) - headers)
    for name in sorted(set(FUNCTION.findall(text)) | set(CONSTANT.findall(text))):
        if name not in known and not (name.endswith('_') and any(k.startswith(name) for k in known)):
            bad.append(name)
    return bad


def main():
    tree = sys.argv[1]
    paths = walk(os.path.join(tree, 'lib'), '.h')
    # Names of headers that are installed begin so.
    paths += [p for p in walk(os.path.join(tree, 'examples'), '.h') if os.path.basename(p).startswith('bb_')]
    headers = {os.path.basename(p) for p in paths}
    code = '\n'.join(LINE.sub('', read(p)) for p in paths)
    documents = walk(os.path.join(tree, 'doc/guides'), '.rst') + paths + \
        [os.path.join(tree, name) for name in ('README.md', 'CONTRIBUTING.md')]
    bad = [(d, name) for d in documents for name in findings(read(d), headers, code)]
    for document, name in bad:
        print('%s: there is no %s' % (os.path.relpath(document, tree), name))
    print('names: %d documents, %d names that are not there' % (len(documents), len(bad)))
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
