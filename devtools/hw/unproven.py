# SPDX-License-Identifier: BSD-3-Clause
"""Parts of Bluebell that no card has run, in the order of risk. The list is doc/guides/evidence/hardware-status.rst."""

import fnmatch
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
# In the source tree, and in the tarball.
GUIDES = (os.path.join(HERE, '..', '..', 'doc', 'guides', 'evidence', 'hardware-status.rst'),
          os.path.join(HERE, 'hardware-status.rst'))
START = 'Parts and their evidence'
PART = re.compile(r'^(\S.*)\n((?:   .*\n|\n(?=   ))+)', re.M)
ROWS = re.compile(r'^   Rows: (.+(?:\n   \S.*)*)$', re.M)


def parts(text=None):
    """Returns [(title, patterns of conform's rows)]; an empty list of patterns: no row tests the part."""
    if text is None:
        path = next((p for p in GUIDES if os.path.exists(p)), None)
        if path is None:
            return []
        with open(path) as f:
            text = f.read()
    found = []
    for title, body in PART.findall(text[text.index(START):]):
        rows = ROWS.search(body)
        found.append((title.replace('``', ''), re.findall(r'``([^`]+)``', rows[1]) if rows else None))
    return found


def judge(results, known=None):
    """Returns [{part, result, passed, failed}] of conform's {row: result}."""
    found = []
    for title, patterns in parts() if known is None else known:
        rows = [r for r in results if any(fnmatch.fnmatchcase(r, p) for p in patterns or [])]
        passed = sum(results[r] == 'pass' for r in rows)
        failed = sum(results[r] in ('fail', 'differs') for r in rows)
        found.append({'part': title, 'passed': passed, 'failed': failed,
                      'result': 'FAILS' if failed else 'holds' if passed else 'not tested'})
    return found
