#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the order of the folders of drivers/soft ("rooms"): references run from top to bottom.

usage: rooms.py [--matrix] TREE OBJECTS...

OBJECTS is a folder of object files.

The subdir() lines of drivers/soft/meson.build give the order, top first. The head of each room's
meson.build ends with "May call: ROOM, ROOM." or "May call: nothing.", which names only rooms below.
The check reads the headers that each file includes, and the symbols that each object needs (nm).
A reference to a room that is not named is an error, and so is a named room without a reference.

--matrix  print the references between rooms as a table, and each upward reference
"""

import collections
import os
import re
import sys

import nm

TOP = 'drivers/soft'
SUBDIR = re.compile(r"^subdir\('(\w+)'\)", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
MAY_CALL = re.compile(r'May call: ([\w, ]+)\.$')

# A reference: the file, its room, the name, and the room that has it.
Ref = collections.namedtuple('Ref', 'file room name target')


def read(path):
    with open(path, errors='replace') as f:
        return f.read()


class House:
    def __init__(self, tree):
        self.top = os.path.join(tree, TOP)
        self.order = SUBDIR.findall(read(os.path.join(self.top, 'meson.build')))
        self.files = {room: sorted(f for f in os.listdir(os.path.join(self.top, room)) if f.endswith(('.c', '.h')))
                      for room in self.order}
        self.room_of = {f: room for room, files in self.files.items() for f in files}

    def is_upward(self, ref):
        return self.order.index(ref.target) < self.order.index(ref.room)

    def may_call(self, room):
        """Returns the rooms named at the head of a room's meson.build, None without that line."""
        head = ''
        for line in read(os.path.join(self.top, room, 'meson.build')).splitlines():
            if not line.startswith('#'):
                break
            head += ' ' + line.lstrip('# ')
        found = MAY_CALL.search(head.strip())
        if not found:
            return None
        return [] if found.group(1) == 'nothing' else found.group(1).split(', ')

    def always_built(self, room):
        """Returns the sources that every build compiles: their lists start a line."""
        text = read(os.path.join(self.top, room, 'meson.build'))
        return re.findall(r"'(\w+\.c)'", ' '.join(re.findall(r'^soft_sources \+= files\((.*?)\)', text, re.M | re.S)))

    def include_refs(self):
        for room, files in self.files.items():
            for name in files:
                for header in INCLUDE.findall(read(os.path.join(self.top, room, name))):
                    target = self.room_of.get(os.path.basename(header))
                    if target not in (None, room):
                        yield Ref('%s/%s' % (room, name), room, header, target)

    def objects(self, folders):
        """Returns {source file: (needed symbols, defined symbols)} of the object files in @folders."""
        paths = {}
        for folder in folders:
            for name in sorted(os.listdir(folder)):
                source = re.match(r'drivers_soft_([a-z]+)_(\w+\.c)\.o$', name)
                # A moved source may have left an object in the build folder.
                if source is None or source.group(2) not in self.files.get(source.group(1), []):
                    continue
                paths['/'.join(source.groups())] = os.path.join(folder, name)
        symbols = nm.symbols(paths.values())
        return {source: symbols[path] for source, path in paths.items()}

    def symbol_refs(self, objects):
        home = {s: source.split('/')[0] for source, (_, defines) in objects.items() for s in defines}
        for source, (needs, _) in sorted(objects.items()):
            room = source.split('/')[0]
            for symbol in sorted(needs):
                if home.get(symbol, room) != room:
                    yield Ref(source, room, symbol, home[symbol])


def check_heads(house, refs):
    errors = []
    for room in house.order:
        named = house.may_call(room)
        where = '%s/%s/meson.build' % (TOP, room)
        if named is None:
            errors.append('%s: the comment at its head does not end with "May call: ROOM, ROOM."' % where)
            continue
        below = house.order[house.order.index(room) + 1:]
        errors += ['%s: may not call %s, which is no room below %s' % (where, other, room)
                   for other in named if other not in below]
        used = {ref.target: ref for ref in refs if ref.room == room and not house.is_upward(ref)}
        errors += ['%s/%s: %s is of %s, which %s does not name' % (TOP, ref.file, ref.name, ref.target, where)
                   for target, ref in sorted(used.items()) if target not in named]
        errors += ['%s: names %s, to which nothing refers' % (where, other)
                   for other in named if other not in used and other in below]
    return errors


def references(house, folders):
    objects = house.objects(folders)
    missing = ['%s/%s/%s: no object in %s: build it first' % (TOP, room, name, ' '.join(folders))
               for room in house.order for name in house.always_built(room)
               if '%s/%s' % (room, name) not in objects]
    return list(house.include_refs()) + list(house.symbol_refs(objects)), missing


def check(tree, folders):
    house = House(tree)
    refs, errors = references(house, folders)
    errors += ['%s/%s: %s is of %s, a room above %s' % (TOP, ref.file, ref.name, ref.target, ref.room)
               for ref in sorted(refs) if house.is_upward(ref)]
    return errors + check_heads(house, refs), len(refs)


def matrix(tree, folders):
    house = House(tree)
    refs, _ = references(house, folders)
    count = collections.Counter((ref.room, ref.target) for ref in refs)
    print('%-8s' % 'from\\to' + ''.join('%7s' % room for room in house.order))
    for room in house.order:
        print('%-8s' % room + ''.join('%7s' % (count[room, other] or '.') for other in house.order))
    upward = sorted(ref for ref in refs if house.is_upward(ref))
    for ref in upward:
        print('upward: %s %s (%s)' % (ref.file, ref.name, ref.target))
    print('rooms: %d references between rooms, %d upward' % (len(refs), len(upward)))


def main():
    args = sys.argv[1:]
    table = args[:1] == ['--matrix']
    args = args[table:]
    if len(args) < 2:
        sys.exit(__doc__)
    if table:
        matrix(args[0], args[1:])
        return 0
    errors, count = check(args[0], args[1:])
    for error in errors:
        print(error)
    print('rooms: %d references between rooms, %d errors' % (count, len(errors)))
    if count == 0:
        sys.exit('no reference found between the folders of %s/%s' % (args[0], TOP))
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
