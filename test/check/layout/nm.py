# SPDX-License-Identifier: BSD-3-Clause
"""Symbols of object files, from which circles.py and rooms.py read the calls between files."""

import json
import os
import subprocess


def symbols(paths):
    """Returns {object file: (symbols that it needs, symbols that it defines)}."""
    found = {path: (set(), set()) for path in paths}
    if not found:
        return found
    for line in subprocess.check_output(['nm', '-A', '-P', *found], text=True).splitlines():
        path, symbol, kind = line.split()[:3]
        if kind == 'U':
            found[path[:-1]][0].add(symbol)
        elif kind in 'TDBRCVW':
            found[path[:-1]][1].add(symbol)
    return found


def source_tree(build):
    with open(os.path.join(build, 'meson-info', 'meson-info.json')) as f:
        return json.load(f)['directories']['source']


def of_target(build, target):
    """Returns {source, as a path in the tree: object} of a target of meson, without leftovers of
    older builds."""
    found = {}
    tree = source_tree(build)
    folder = os.path.relpath(target, build) + '.p/'
    with open(os.path.join(build, 'compile_commands.json')) as f:
        for command in json.load(f):
            if command.get('output', '').startswith(folder):
                source = os.path.relpath(os.path.join(build, command['file']), tree)
                found[source] = os.path.join(build, command['output'])
    return found
