#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Finds files of a program that need each other, directly or through others.

usage: circles.py [--folders PREFIX] BUILD TARGET...

TARGET is a program or archive that meson has built in BUILD. A file needs another one if its object
needs a symbol, function or variable, that the other one defines (nm). The report names a circle's
files and the symbols between them.

--folders PREFIX  compare folders instead of files, those whose path in the tree begins with PREFIX
"""

import collections
import os
import sys

import nm


def graph(build, target, prefix):
    """Returns {node: {needed node: symbols}}; a node is a file or, with a prefix, a folder."""
    paths = {source: path for source, path in nm.of_target(build, target).items()
             if prefix is None or source.startswith(prefix)}
    symbols = nm.symbols(paths.values())
    table = {source: symbols[path] for source, path in paths.items()}
    home = {symbol: source for source, (_, defines) in table.items() for symbol in defines}
    node = str if prefix is None else os.path.dirname
    needs = {node(source): collections.defaultdict(set) for source in table}
    for source, (undefined, _) in table.items():
        for symbol in undefined & home.keys():
            if node(home[symbol]) != node(source):
                needs[node(source)][node(home[symbol])].add(symbol)
    return needs


def reach(needs, start):
    """Returns all nodes that start needs."""
    found, todo = set(), [start]
    while todo:
        new = needs[todo.pop()].keys() - found
        found |= new
        todo += new
    return found


def circles(needs):
    """Returns sets of nodes that all need each other."""
    reached = {node: reach(needs, node) for node in needs}
    return sorted({tuple(sorted(other for other in reached[node] if node in reached[other]))
                   for node in needs if node in reached[node]})


def check(build, targets, prefix=None):
    errors, count = [], 0
    for target in targets:
        needs = graph(build, target, prefix)
        count += len(needs)
        common = os.path.commonpath(list(needs)) if len(needs) > 1 else ''
        for circle in circles(needs):
            errors.append('%s: %s need each other' % (
                os.path.basename(target), ', '.join(os.path.relpath(node, common) for node in circle)))
            errors += ['    %s needs %s: %s' % (os.path.relpath(a, common), os.path.relpath(b, common),
                                                ', '.join(sorted(needs[a][b])))
                       for a in circle for b in circle if needs[a][b]]
    return errors, count


def main():
    args, prefix = sys.argv[1:], None
    if args[:1] == ['--folders']:
        prefix, args = args[1], args[2:]
    if len(args) < 2:
        sys.exit(__doc__)
    errors, count = check(args[0], args[1:], prefix)
    for error in errors:
        print(error)
    print('circles: %d %s of %s, %d lines about circles' % (
        count, 'files' if prefix is None else 'folders', ', '.join(map(os.path.basename, args[1:])), len(errors)))
    if count < 2:
        sys.exit('no object found in %s: build it first' % args[0])
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
