#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the path of an RDMA WRITE in doc/guides/devices/drivers.rst, and its table of rooms.

usage: turn.py TREE              against the sources
       turn.py TREE --run FILE   against the sources that the program turn_path enters, by callgrind

The path is the numbered list under the heading TURN: sources of drivers/soft, or of lib, with their
functions. Each function must be in its source, and an earlier one of the list must call it. The list
has at most MOST sources. With --run, every source entered inside soft_engine_progress(), by a WRITE
of the fast path and by another one, must be in the list; and each .c file of the list is entered.

The table under the heading ROOMS has the folders of drivers/soft in their order, each with the text
at the head of its meson.build.

Exit status: 0; 1 a difference; 77 no valgrind, or a program without line numbers.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import rooms

GUIDE = 'doc/guides/devices/drivers.rst'
TURN = 'One turn of the engine'
ROOMS = 'Folders of the software device'
MOST = 15
START = 'soft_engine_progress'
ITEM = re.compile(r'^\d+\. ``([\w/.]+)``:\s+((?:``\w+\(\)``(?:,\s+)?)+)', re.M)
ROW = re.compile(r'^   \* - ``(\w+)``\n     - (.+(?:\n       .+)*)\n     - (.+(?:\n       .+)*)$', re.M)


def section(text, heading):
    """Returns the text under a heading, up to the next one."""
    found = re.search(r'^%s\n([-=~^])\1+\n(.*?)(?=^[^\n]+\n([-=~^])\3{3,}\n|\Z)' % re.escape(heading), text,
                      re.M | re.S)
    return found.group(2) if found else ''


def path_of(tree, source):
    return os.path.join(tree, source if source.startswith('lib/') else os.path.join(rooms.TOP, source))


def read_path(text):
    """Returns [(source, [function])] of the numbered list."""
    return [(source, re.findall(r'``(\w+)\(\)``', functions))
            for source, functions in ITEM.findall(section(text, TURN))]


def body(source, function):
    found = re.search(r'^%s\(.*?^\}' % function, source, re.M | re.S)
    return found.group(0) if found else None


def check_path(tree, path):
    errors = []
    bodies = []
    for source, functions in path:
        where = path_of(tree, source)
        text = rooms.read(where) if os.path.exists(where) else None
        if text is None:
            errors.append('%s: no such file' % source)
            continue
        for function in functions:
            code = body(text, function)
            if code is None:
                errors.append('%s: has no function %s()' % (source, function))
                continue
            if bodies and not any(re.search(r'\b%s\(' % function, other) for other in bodies):
                errors.append('%s: no function before it in the list calls %s()' % (source, function))
            # Without its own name, so that a function does not count as its own caller.
            bodies.append(code[len(function):])
    sources = {source for source, _ in path}
    if not path or path[0][1][:1] != [START]:
        errors.append('the list does not begin with %s()' % START)
    if len(sources) > MOST:
        errors.append('%d sources in the list: at most %d' % (len(sources), MOST))
    return errors


def check_rooms(tree, text):
    house = rooms.House(tree)
    rows = [tuple(' '.join(cell.split()) for cell in row) for row in ROW.findall(section(text, ROOMS))]
    want = []
    for room in house.order:
        head = ' '.join(line.lstrip('# ') for line in rooms.read(
            os.path.join(tree, rooms.TOP, room, 'meson.build')).split('soft_sources')[0].splitlines())
        what, calls = re.match(r'(.*?)\.? May call: (.*)\.', head).groups()
        want.append((room, what, calls))
    return ['table of folders: %s instead of %s' % (row, other) for row, other in zip(rows, want) if row != other] + (
        ['table of folders: %d rows for %d folders' % (len(rows), len(want))] if len(rows) != len(want) else [])


def entered(program, *args):
    """Returns the sources of the tree whose instructions ran inside the turn."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'out')
        subprocess.run(['valgrind', '--tool=callgrind', '--callgrind-out-file=' + out, '--toggle-collect=' + START,
                        program, *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return sources_of(rooms.read(out))


def sources_of(profile):
    """Parses the format in valgrind's manual, "Callgrind Format Specification"."""
    names, found, here, callee = {}, set(), None, False
    for line in profile.splitlines():
        name = re.match(r'(c?f[lie])=\((\d+)\)(?: (.*))?$', line)
        if name:
            kind, number, path = name.groups()
            if path:
                names[number] = path
            if not kind.startswith('c'):
                here = number
        elif line.startswith('calls='):
            # The next line has the costs of the callee.
            callee = True
        elif re.match(r'[-+*\d]', line):
            if not callee and here is not None:
                found.add(names[here])
            callee = False
    ours = (re.search(r'(?:drivers/soft/|(?=lib/(?:format|queue|roce)/))(\S+)$', path) for path in found)
    return {m.group(1) for m in ours if m}


# soft_opts_defect(): only builds with -Ddefects=true execute it.
TEST_ONLY = {'opts/soft_opts.h'}


def check_run(path, program):
    listed = {source for source, _ in path} | TEST_ONLY
    seen = set()
    for args in ((), ('long',)):
        sources = entered(program, *args)
        seen |= sources
    if not seen:
        return None
    return (['%s is entered, and not in the list' % source for source in sorted(seen - listed)] +
            ['%s is in the list, and not entered' % source
             for source in sorted(listed - seen) if source.endswith('.c')])


def main():
    if len(sys.argv) not in (2, 4) or sys.argv[2:3] not in ([], ['--run']):
        sys.exit(__doc__)
    tree = sys.argv[1]
    text = rooms.read(os.path.join(tree, GUIDE))
    path = read_path(text)
    if len(sys.argv) == 2:
        errors = check_path(tree, path) + check_rooms(tree, text)
    elif shutil.which('valgrind') is None:
        print('turn: valgrind is not installed')
        return 77
    else:
        errors = check_run(path, sys.argv[3])
        if errors is None:
            print('turn: %s has no line numbers (-g)' % sys.argv[3])
            return 77
    for error in errors:
        print('%s: %s' % (GUIDE, error))
    print('turn: %d sources, %d functions, %d errors'
          % (len({source for source, _ in path}), sum(len(functions) for _, functions in path), len(errors)))
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
