#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares names of the API in documents and header comments with the API, in both directions.

usage: names.py TREE

Guides, README.md and public headers may name a function bb_x(), a header bb_x.h or a constant BB_X.
The name must be in a header of lib/, or in an installed one of examples/, or be an environment
variable that lib/, drivers/ or app/ reads. A name that ends with _ stands for all names with this prefix.

A function that lib/bluebell.map exports must be named in a guide, or be in the file
unmentioned-functions beside this script, with a reason. The inline function bb_x() calls bb_x_v.
"""

import fnmatch
import os
import re
import sys

import symbols

HEADER = re.compile(r'\bbb_[a-z0-9_]+\.h\b')
FUNCTION = re.compile(r'\b(bb_[a-z0-9_]+)\(\)')
CONSTANT = re.compile(r'\bBB_[A-Z0-9_]+\b')
EXPORT = re.compile(r'^\s+(bb_\w+);', re.M)
VARIABLE = re.compile(r'(?:\b(?:secure_getenv|environ\.get)\(|#define \w+_ENV_\w+ +)["\'](BB_\w+)["\']')
LINE = re.compile(r'//.*|/\*.*?\*/', re.S)


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def walk(top, endings):
    return sorted(os.path.join(path, name) for path, _, names in os.walk(top) for name in names
                  if name.endswith(endings))


def findings(text, headers, code):
    """Returns names in @text that neither the names of @headers nor their @code has."""
    known = set(re.findall(r'\b(?:bb|BB)_\w+', code))
    bad = sorted(set(HEADER.findall(text)) - headers)
    for name in sorted(set(FUNCTION.findall(text)) | set(CONSTANT.findall(text))):
        if name not in known and not (name.endswith('_') and any(k.startswith(name) for k in known)):
            bad.append(name)
    return bad


def unmentioned(exports, guides, reasons):
    """Returns names of a map that neither @guides nor a pattern of @reasons has, and patterns
    without a match."""
    words = set(re.findall(r'\bbb_\w+', guides))
    names = [n for n in EXPORT.findall(exports) if n not in words and re.sub('_v$', '', n) not in words]
    bad = [n for n in names if not any(fnmatch.fnmatchcase(n, r) for r in reasons)]
    return bad, [r for r in reasons if not fnmatch.filter(names, r)]


def main():
    tree = sys.argv[1]
    paths = walk(os.path.join(tree, 'lib'), '.h')
    # Names of installed headers begin so.
    paths += [p for p in walk(os.path.join(tree, 'examples'), '.h') if os.path.basename(p).startswith('bb_')]
    headers = {os.path.basename(p) for p in paths}
    headers |= {os.path.basename(p) for p in walk(os.path.join(tree, 'test/include'), '.h')}
    code = '\n'.join(LINE.sub('', read(p)) for p in paths)
    code += '\n'.join(name for folder in ('lib', 'drivers', 'app')
                      for p in walk(os.path.join(tree, folder), ('.c', '.h', '.py'))
                      for name in VARIABLE.findall(read(p)))
    documents = walk(os.path.join(tree, 'doc/guides'), '.rst') + paths + \
        [os.path.join(tree, name) for name in ('README.md', 'CONTRIBUTING.md')]
    bad = [(d, name) for d in documents for name in findings(read(d), headers, code)]
    for document, name in bad:
        print('%s: there is no %s' % (os.path.relpath(document, tree), name))
    guides = '\n'.join(read(d) for d in documents if d.endswith('.rst'))
    missing, stale = unmentioned(read(os.path.join(tree, 'lib/bluebell.map')), guides,
                                 symbols.read_list('unmentioned-functions'))
    for name in missing:
        print('no guide names %s(), which the library exports' % name)
    for name in stale:
        print('unmentioned-functions: %s stands for nothing' % name)
    print('names: %d documents, %d names that are not there, %d that no guide has'
          % (len(documents), len(bad), len(missing)))
    return 1 if bad or missing or stale else 0


if __name__ == '__main__':
    sys.exit(main())
