# SPDX-License-Identifier: BSD-3-Clause
"""Symbols of object files: what circles.py and rooms.py read the calls between files from."""

import json
import os
import subprocess


def symbols(path):
    """The symbols that an object file needs and those that it defines."""
    needs, defines = set(), set()
    for line in subprocess.check_output(['nm', '-P', path], text=True).splitlines():
        symbol, kind = line.split()[:2]
        if kind == 'U':
            needs.add(symbol)
        elif kind in 'TDBRCVW':
            defines.add(symbol)
    return needs, defines


def source_tree(build):
    with open(os.path.join(build, 'meson-info', 'meson-info.json')) as f:
        return json.load(f)['directories']['source']


def of_target(build, target):
    """{source, as a path in the tree: object} of a target of meson, without what older builds have left."""
    found = {}
    tree = source_tree(build)
    folder = os.path.relpath(target, build) + '.p/'
    with open(os.path.join(build, 'compile_commands.json')) as f:
        for command in json.load(f):
            if command.get('output', '').startswith(folder):
                source = os.path.relpath(os.path.join(build, command['file']), tree)
                found[source] = os.path.join(build, command['output'])
    return found
