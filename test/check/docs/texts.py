#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The troubleshooting guide quotes messages that are in the sources, and has every status.

In all guides, each line of the library's log in an example of output is one that the sources print.

usage: texts.py TREE
"""

import glob
import os
import re
import sys

GUIDES = 'doc/guides/*/*.rst'
GUIDE = 'doc/guides/start/troubleshooting.rst'
STATUSES = 'lib/core/include/bb_cq.h'


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def strings(source):
    """Returns all string literals of C source; adjacent ones are joined."""
    joined = re.sub(r'"(\s|\\\n)*"', '', source)
    # The value of PRIu64 and the like.
    joined = re.sub(r'"\s*PRI\w+\s*"', 'llu', joined)
    return re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined)


def terms(guide):
    """Returns terms of definition lists that are one literal: quoted messages."""
    return re.findall(r'^``(.+)``\n    \S', guide, re.M)


def findings(guide, sources, statuses):
    texts = [text for source in sources for text in strings(source)]
    quoted = terms(guide)
    if not quoted:
        return ['no message is quoted']
    bad = ['no source says: ' + t for t in quoted if not any(t in text for text in texts)]
    names = sorted(set(re.findall(r'^\s+(BB_WC_\w+_ERR)\b', statuses, re.M)))
    if not names:
        return bad + ['no status found']
    return bad + ['status without a row: ' + n for n in names if '``%s``' % n not in guide]


def logged(guide):
    """Returns the lines in examples of output that the library has logged, without their prefix."""
    blocks = re.findall(r'^( *)\.\. code-block:: (?:console|none|text)\n((?:\s*\n|\1 +.*\n)+)', guide, re.M)
    return [line for _, block in blocks for line in re.findall(r'^ +(?:BLUEBELL|soft): (.*\S)', block, re.M)]


def formats(texts):
    """Returns the patterns of format strings that have at least 10 letters."""
    for text in set(texts):
        parts = re.split(r'%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z)?[a-zA-Z%]',
                         text.replace('\\n', '').replace('\\"', '"'))
        if sum(len(re.findall(r'[a-z]', part)) for part in parts) >= 10:
            yield re.compile('.*'.join(map(re.escape, parts)))


def unprinted(lines, patterns):
    """Returns the lines that no source prints. A line that ends with "..." is cut off."""
    return ['no source prints: ' + line for line in lines
            if not line.endswith('...') and not any(p.fullmatch(line) for p in patterns)]


def main():
    tree = sys.argv[1]
    sources = []
    for top in ('lib', 'drivers'):
        for path, _, files in os.walk(os.path.join(tree, top)):
            sources += [read(os.path.join(path, f)) for f in files if f.endswith(('.c', '.h'))]
    bad = findings(read(os.path.join(tree, GUIDE)), sources, read(os.path.join(tree, STATUSES)))
    for line in bad:
        print('%s: %s' % (GUIDE, line))
    patterns = list(formats(text for source in sources for text in strings(source)))
    for path in sorted(glob.glob(os.path.join(tree, GUIDES))):
        for line in unprinted(logged(read(path)), patterns):
            bad.append(line)
            print('%s: %s' % (path, line))
    sys.exit(1 if bad else 0)


if __name__ == '__main__':
    main()
