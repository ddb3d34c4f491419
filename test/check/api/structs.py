#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs that were built against older and newer output structs than the library's.

usage: structs.py PROGRAM LIBRARY HEADER...

PROGRAM is built three times. The first build uses the headers as they are. In the second, output
structs lack their last field (an old program with a new library). In the third, they have one more
field (a new program with an old library). Each run must leave the memory after its
structs alone, and get the same values in the common fields and zeros in the others.
An output struct that the program does not query is an error, too.

A struct that functions fill in the caller's memory begins with its size, or is in the file
unsized-structs beside this script, with a reason.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import symbols

STRUCT = re.compile(r'^struct (bb_\w+) \{\n(\tuint32_t size; +/\*\*< bytes of the caller.*?)^\};\n',
                    re.M | re.S)
WHOLE = re.compile(r'^struct (bb_\w+) \{\n(.*?)^\}', re.M | re.S)
# A parameter through which a function may write: a struct, or a pointer to a new object.
OUTPUT = re.compile(r'(?<!const )\bstruct (bb_\w+) (\*+)\w+[,)]')
COMMENT = re.compile(r'/\*.*?\*/', re.S)
IN_OUT = ['bb_qp_attr', 'bb_srq_attr']
NEW = 24


def members(body):
    return [' '.join(m.split()) for m in COMMENT.sub('', body).split(';') if m.strip()]


def unsized(code):
    """Returns the structs of headers that functions fill in the caller's memory, without a size."""
    outputs = OUTPUT.findall(code)
    objects = {name for name, stars in outputs if stars == '**'}
    filled = {name for name, stars in outputs if stars == '*'} - objects
    return sorted(name for name, body in WHOLE.findall(code)
                  if name in filled and members(body)[0] != 'uint32_t size')


def check_sizes(code, reasons):
    found = unsized(code)
    return (['struct %s is filled by the library, and does not begin with its size' % name
             for name in found if name not in reasons] +
            ['unsized-structs: no function fills a struct %s without a size' % name
             for name in sorted(reasons) if name not in found])


def changed(body, delta):
    fields = members(body)
    if delta < 0:
        fields = fields[:-1]
    elif delta > 0:
        fields.append('uint64_t of_a_newer_version[%d]' % (NEW // 8))
    return ''.join('\t%s;\n' % f for f in fields)


def read(path):
    with open(path, encoding='utf-8') as f:
        return COMMENT.sub('', f.read())


def copy(headers, folder, delta):
    """Copies the headers with changed structs. Returns the names of the structs."""
    names = []
    for path in headers:
        with open(path) as f:
            text = f.read()

        def change(m):
            names.append(m.group(1))
            return 'struct %s {\n%s};\n' % (m.group(1), changed(m.group(2), delta))
        with open(os.path.join(folder, os.path.basename(path)), 'w') as f:
            f.write(STRUCT.sub(change, text))
    return names


def flags(what):
    return subprocess.check_output(['pkg-config', what, 'libdpdk'], text=True).split()


def run(program, library, headers, delta):
    """Returns the program's lines, an error text or '', and the names of the output structs."""
    with tempfile.TemporaryDirectory() as folder:
        names = copy(headers, folder, delta)
        exe = os.path.join(folder, 'structs')
        lib = os.path.abspath(library)
        cmd = ['cc', '-std=gnu11', '-Wall', '-Werror', '-DDELTA=(%d)' % delta, '-I', folder, program,
               '-o', exe, lib, '-Wl,-rpath,' + os.path.dirname(lib)]
        build = subprocess.run(cmd + flags('--cflags') + flags('--libs'), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if build.returncode != 0:
            return [], build.stdout, names
        eal = ['--no-huge', '-m', '128', '--no-pci', '--no-telemetry', '-l', '0',
               '--log-level=lib.eal:error']
        done = subprocess.run([exe] + eal, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=60)
        lines = [line for line in done.stdout.split('\n') if line.startswith('bb_')]
        return lines, '' if done.returncode == 0 else done.stderr or 'it fails', names


def compare(name, lines, base):
    """Returns errors where bytes known to both runs differ."""
    if len(lines) != len(base):
        return ['%s: %d lines, not %d' % (name, len(lines), len(base))]
    errors = []
    for got, want in zip(lines, base):
        a, b = got.split(), want.split()
        n = min(len(a), len(b))
        if a[:n] != b[:n]:
            errors.append('%s: %s differs:\n  %s\n  %s' % (name, a[0], got, want))
    return errors


def check(program, library, headers):
    errors = []
    base, error, names = run(program, library, headers, 0)
    errors += ['as it is: ' + error] if error else []
    filled = {line.split()[0] for line in base if line.endswith(' filled')}
    errors += ['%s: the program does not ask for it' % n for n in names + IN_OUT if n not in filled]
    errors += [] if names else ['no output struct was found in the headers']
    for name, delta in (('an old program', -4), ('a new program', NEW)):
        lines, error, _ = run(program, library, headers, delta)
        errors += ['%s: %s' % (name, error)] if error else compare(name, lines, base)
    return errors, len(names) + len(IN_OUT)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    if shutil.which('cc') is None:
        print('structs: there is no cc')
        return 77
    errors, count = check(sys.argv[1], sys.argv[2], sys.argv[3:])
    errors += check_sizes('\n'.join(map(read, sys.argv[3:])), symbols.read_list('unsized-structs'))
    for error in errors:
        print(error)
    print('structs: %d structs, 3 programs, %d errors' % (count, len(errors)))
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
