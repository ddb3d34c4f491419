#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the dynamic symbols of libraries and programs.

usage: symbols.py LIBBLUEBELL.SO [--headers HEADER...] [--programs PROGRAM...]

- no binary needs a symbol that DPDK marks INTERNAL, nor one that is EXPERIMENTAL and not in
  the file experimental-symbols beside this script, with a reason
- the library exports exactly the functions that its public headers declare, except those in
  the file unexported-functions, with a reason, and those that libraries.py checks
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# "  12: 0000000000000000  0 FUNC GLOBAL DEFAULT UND rte_eal_init@DPDK_23 (4)"
SYMBOL = re.compile(r'^\s*\d+:\s+\S+\s+\S+\s+(\w+)\s+(GLOBAL|WEAK)\s+\w+\s+(\S+)\s+'
                    r'([^\s@]+)(?:@@?(\S+))?')


def dynamic_symbols(path):
    """Yields (type, defined, name, version) of each dynamic symbol of a binary."""
    text = subprocess.check_output(['readelf', '--dyn-syms', '-W', path], text=True)
    for line in text.splitlines():
        m = SYMBOL.match(line)
        if m:
            yield m.group(1), m.group(3) != 'UND', m.group(4), m.group(5)


def read_list(path):
    """Reads a file of "name: reason" lines."""
    reasons = {}
    with open(os.path.join(HERE, path)) as f:
        for line in f:
            line = line.split('#')[0].strip()
            if line:
                name, _, reason = line.partition(':')
                if not reason.strip():
                    sys.exit('%s: no reason for %s' % (path, name))
                reasons[name.strip()] = reason.strip()
    return reasons


def check_needed(path, allowed):
    errors = []
    for _, defined, name, version in dynamic_symbols(path):
        if defined:
            continue
        if version == 'INTERNAL':
            errors.append('%s needs %s, which is internal to DPDK' % (path, name))
        if version == 'EXPERIMENTAL' and name not in allowed:
            errors.append('%s needs %s, which is experimental in DPDK; avoid it or give a '
                          'reason in experimental-symbols' % (path, name))
    return errors


def declared(headers):
    """Returns the names of functions that headers declare and do not define inline."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'aux')
        text = ''.join('#include "%s"\n' % os.path.abspath(h) for h in headers)
        dirs = sorted({os.path.dirname(os.path.abspath(h)) for h in headers})
        dpdk = subprocess.check_output(['pkg-config', '--cflags', 'libdpdk'], text=True).split()
        cmd = ['gcc', '-x', 'c', '-std=gnu11', '-fsyntax-only', '-aux-info', out]
        for d in dirs:
            cmd += ['-I', d]
        subprocess.run(cmd + dpdk + ['-'], input=text, text=True, check=True)
        with open(out) as f:
            lines = f.read().splitlines()
    own = {os.path.abspath(h) for h in headers}
    names = set()
    for line in lines:
        m = re.match(r'/\* (.+?):\d+:\w+ \*/ (extern|static) .*?\b(\w+) \(', line)
        if m and m.group(2) == 'extern' and os.path.abspath(m.group(1)) in own:
            names.add(m.group(3))
    return names


def check_exports(lib, headers, unexported):
    exported = {name for _, defined, name, node in dynamic_symbols(lib)
                if defined and not (node or '').startswith('BLUEBELL_PRIVATE_')}
    # The name of a version node is a symbol, too.
    exported = {name for name in exported if not name.startswith('BLUEBELL_')}
    names = declared(headers)
    errors = ['%s is declared in a public header, but %s does not export it' % (n, lib)
              for n in sorted(names - exported - set(unexported))]
    errors += ['%s exports %s, which no public header declares' % (lib, n)
               for n in sorted(exported - (names - set(unexported)))]
    errors += ['%s is in unexported-functions, but no public header declares it' % n
               for n in sorted(set(unexported) - names)]
    errors += ['%s: public names begin with bb_' % n for n in sorted(names)
               if not n.startswith('bb_')]
    return errors, len(names)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('library')
    p.add_argument('--headers', nargs='*', default=[])
    p.add_argument('--programs', nargs='*', default=[])
    args = p.parse_args()
    allowed = read_list('experimental-symbols')
    errors = []
    for path in [args.library] + args.programs:
        errors += check_needed(path, allowed)
    more, count = check_exports(args.library, args.headers,
                                read_list('unexported-functions'))
    errors += more
    for error in errors:
        print(error)
    print('symbols: %d binaries, %d public functions, %d errors'
          % (1 + len(args.programs), count, len(errors)))
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
