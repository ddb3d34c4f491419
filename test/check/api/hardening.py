#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads the hardening of installed programs and libraries from their ELF files.

usage: hardening.py [--no-fortify] FILE...

- the whole relocation table is read-only after start: PT_GNU_RELRO and BIND_NOW
- the stack is not executable: PT_GNU_STACK without E
- programs are position-independent (PIE)
- functions are compiled with a stack protector: the file needs __stack_chk_fail
- calls are compiled with _FORTIFY_SOURCE: the file needs a function NAME_chk of glibc, if it needs
  one of glibc's functions that have such a form. --no-fortify: for a build without it (-O0, sanitizers)

Of an archive (.a) the objects are read: stack note, stack protector, checked calls.
"""

import re
import subprocess
import sys

# Functions whose calls nearly always have a buffer of known size or a format.
CHECKED = ('printf', 'fprintf', 'snprintf', 'sprintf', 'vsnprintf', 'vfprintf')
SEGMENT = re.compile(r'^\s*(GNU_STACK|GNU_RELRO)(?:\s+0x[0-9a-f]+){5}\s+([RWE ]+?)\s+0x', re.M)


def readelf(option, path):
    return subprocess.check_output(['readelf', '-W', option, path], text=True)


def needed_functions(text):
    """Returns the names of functions that a file needs from other files."""
    return set(re.findall(r'\bFUNC\s+\w+\s+\w+\s+UND\s+(\w+)', text))


def check_calls(needed, fortify):
    errors = []
    if '__stack_chk_fail' not in needed:
        errors.append('no stack protector: compile with -fstack-protector-strong')
    plain = sorted(needed.intersection(CHECKED))
    if fortify and plain and not any(name.endswith('_chk') for name in needed):
        errors.append('calls %s unchecked: compile with -D_FORTIFY_SOURCE=2' % ', '.join(plain))
    return errors


def check_archive(path, fortify):
    needed = set(re.findall(r'\bUND\s+(\w+)', readelf('-s', path)))
    sections = readelf('-S', path)
    stacks = re.findall(r'\.note\.GNU-stack\s+PROGBITS((?:\s+\S+){4})\s+(X?)', sections)
    objects = len(re.findall(r'^\s*\[ 0\]', sections, re.M))
    errors = [] if len(stacks) == objects and not any(x for _, x in stacks) else [
        'an object asks for an executable stack']
    return errors + check_calls(needed, fortify)


def check_linked(path, fortify):
    header, segments = readelf('-h', path), dict(SEGMENT.findall(readelf('-l', path)))
    dynamic, needed = readelf('-d', path), needed_functions(readelf('--dyn-syms', path))
    errors = []
    if 'GNU_RELRO' not in segments:
        errors.append('no RELRO: link with -Wl,-z,relro')
    if not re.search(r'\(BIND_NOW\)|\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*\bNOW\b', dynamic):
        errors.append('symbols are bound late, so the table stays writable: link with -Wl,-z,now')
    if 'E' in segments.get('GNU_STACK', 'E'):
        errors.append('the stack is executable: link with -Wl,-z,noexecstack')
    if not re.search(r'Type:\s+DYN', header):
        errors.append('no position-independent program: -Db_pie=true')
    return errors + check_calls(needed, fortify)


def check(path, fortify=True):
    look = check_archive if path.endswith('.a') else check_linked
    return ['%s: %s' % (path, e) for e in look(path, fortify)]


def main():
    fortify = '--no-fortify' not in sys.argv
    paths = [a for a in sys.argv[1:] if not a.startswith('--')]
    if not paths:
        sys.exit(__doc__)
    errors = [e for path in paths for e in check(path, fortify)]
    for e in errors:
        print(e)
    print('%d files, %d faults' % (len(paths), len(errors)))
    sys.exit(1 if errors else 0)


if __name__ == '__main__':
    main()
