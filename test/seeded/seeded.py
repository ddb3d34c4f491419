#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the tests find defects: seeds single-line changes in lib/ and drivers/, one at a time, and runs the tests.

usage: seeded.py [--seed N] [--count N] [--protocol FILE] [--full | --again] [--patience N] TREE BUILD

TREE is a clone that is not used otherwise, BUILD its build folder (devtools/test makes build-test/gcc). Each
change is compiled and tested in steps; the first test that fails ends it:
  1. tests that load the library: model suite, conformance on soft0 and over a wire, golden
  2. the other tests of devtools/test, linked anew
  3. --full: the tests of --all, under AddressSanitizer (TREE/build-test/asan) as well
The tests run on the unchanged tree first; a test that fails there, or that fails with a change only once
of two times, detects nothing.
Results go to FILE, one line each, after a line with the commit. A run with the same FILE and commit continues
where the last one ended. A change that no test detects gets a field "why" by hand: the reason, or the new test.
Changes are named by file name and text, so that trees with moved files get the same changes.
  --again: TREE is a later commit; makes the changes of FILE that were found, and adds to each what finds it there
           ("again"; "gone" if the line is no longer there). The old finder runs first. BUILD has -Dwerror=true.
  --patience N: the time limits of tests, in quarters (1); more where the machine does other work
"""

import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import time

STATEMENT = re.compile(r'^\t+(?!return|break|continue|goto|case|default|else|if|for|while|do|switch)'
                       r'[\w*(].*[^,(|&+]\s*;$')
OPERATORS = [
    (re.compile(r' < '), ' <= '), (re.compile(r' > '), ' >= '), (re.compile(r' <= '), ' < '),
    (re.compile(r' >= '), ' > '), (re.compile(r' == '), ' != '), (re.compile(r' != '), ' == '),
    (re.compile(r' && '), ' || '), (re.compile(r' \|\| '), ' && '), (re.compile(r' \+ '), ' - '),
    (re.compile(r' - '), ' + '), (re.compile(r'\b0\b'), '1'), (re.compile(r'\b1\b'), '2'),
    (re.compile(r' & '), ' | '), (re.compile(r' << '), ' >> '), (re.compile(r'\+\+'), '--'),
    (re.compile(r' \|= '), ' = '), (re.compile(r'\btrue\b'), 'false'), (re.compile(r'\bfalse\b'), 'true'),
]
SKIP = re.compile(r'LOG|static_assert|^\s*[/*#"]|^\s*(struct|enum|union|static|extern|const)\b|\bprintf\(|^}')
FOLDERS = ('lib/', 'drivers/')


def sources(tree):
    listed = subprocess.check_output(['git', '-C', tree, 'ls-files', '*.c', '*.h'], text=True).split()
    return {os.path.basename(path): path for path in listed if path.startswith(FOLDERS)}


def changes_of(line):
    """Returns the possible changes of a line."""
    if SKIP.search(line) or '\t' not in line[:1]:
        return []
    # Not inside a string: an even number of quotation marks precedes it.
    found = [line[:m.start()] + new + line[m.end():] for old, new in OPERATORS for m in old.finditer(line)
             if line.count('"', 0, m.start()) % 2 == 0]
    # Omits a statement; declarations start with a type.
    if STATEMENT.match(line) and not re.match(r'^\t+[a-z_]\w*( \w+)? \**\w+( = |;|\[|,)', line):
        found.append('')
    return found


def candidates(tree):
    """Returns (file name, line text, number among equal lines, new text), always in the same order."""
    found = []
    for name, path in sorted(sources(tree).items()):
        seen = {}
        with open(os.path.join(tree, path)) as f:
            for line in f.read().split('\n'):
                nth = seen[line] = seen.get(line, -1) + 1
                found += [(name, line, nth, new) for new in changes_of(line)]
    return found


def chosen(changes, most):
    """Returns the first @most of the shuffled @changes, one per file; headers last, as each
    recompiles all."""
    files = {}
    for change in changes:
        files.setdefault(change[0], change)
        if len(files) == most:
            break
    return sorted(files.values(), key=lambda change: change[0].endswith('.h'))


def key_of(change):
    return json.dumps(change)


class Tree:
    def __init__(self, top, build, patience):
        self.top, self.build, self.patience = top, build, patience
        self.paths = sources(top)
        if not self.ninja(build):
            sys.exit('%s does not build' % build)
        self.clean = self.digest()
        self.broken = set()

    def commit(self):
        return subprocess.check_output(['git', '-C', self.top, 'rev-parse', 'HEAD'], text=True).strip()

    def digest(self):
        with open(os.path.join(self.build, 'libbluebell_whole.so'), 'rb') as f:
            return hashlib.sha256(f.read()).hexdigest()

    def apply(self, change):
        """Changes the file. Returns a function that restores it, or None if the line does not exist."""
        name, line, nth, new = change
        path = os.path.join(self.top, self.paths[name]) if name in self.paths else None
        if path is None:
            return None
        with open(path) as f:
            text = f.read()
        lines = text.split('\n')
        at = [i for i, have in enumerate(lines) if have == line]
        if len(at) <= nth:
            return None
        lines[at[nth]] = new

        def write(what):
            with open(path, 'w') as out:
                out.write(what)
        write('\n'.join(lines))
        return lambda: write(text)

    def ninja(self, build, *targets):
        return subprocess.run(['ninja', '-C', build, *targets], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode == 0

    def tests(self, build):
        out = subprocess.check_output(['meson', 'introspect', '--tests', build], text=True)
        return [(t['name'], {s.split(':')[-1] for s in t['suite']}, t['cmd'][0]) for t in json.loads(out)
                if t['name'] not in self.broken]

    def failures(self, build, names, parallel, most, how):
        """Runs tests until @most fail (0: all run). Returns those that fail."""
        log = os.path.join(build, 'meson-logs', 'testlog.json')
        if os.path.exists(log):
            os.unlink(log)
        # A change may make a test hang. No test needs a quarter of its time limit on a quiet machine.
        subprocess.run(['meson', 'test', '-C', build, '--no-rebuild', '--maxfail', str(most),
                        '-t', str(how.get('multiplier', 0.25) * self.patience), '--num-processes', str(parallel), *names],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env=dict(os.environ, **how.get('env', {})), check=False)
        with open(log) as f:
            return [record['name'].split(' / ')[-1] for record in map(json.loads, f)
                    if record['result'] not in ('OK', 'SKIP', 'INTERRUPT')]

    def first_failure(self, build, names, **how):
        """Returns the name of a test that fails twice, or None. Ends at the first one."""
        names = list(names)
        while True:
            for parallel, alone in ((3, False), (1, True)):
                some = [n for n, a in names if a == alone]
                failed = self.failures(build, some, parallel, 1, how) if some else []
                if failed:
                    break
            else:
                return None
            # A second test can fail before the first one's failure ends the run.
            for name in failed:
                if self.failures(build, [name], 1, 1, how):
                    return name
            names = [(n, a) for n, a in names if n not in failed]

    def exclude_broken(self, build, names, **how):
        """Runs tests on the unchanged tree. Those that fail are not used."""
        for parallel, alone in ((3, False), (1, True)):
            some = [n for n, a in names if a == alone]
            for name in self.failures(build, some, parallel, 0, how) if some else []:
                if self.failures(build, [name], 1, 1, how):
                    print('%s fails without a change and is not used' % name, flush=True)
                    self.broken.add(name)


def loads_library(program):
    out = subprocess.run(['ldd', program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return 'libbluebell' in out.stdout


def quick(tests):
    return [(n, s, p) for n, s, p in tests if not s & {'long', 'interop', 'check'}]


def judge(tree, header, full, finder=''):
    """Returns the test that detects the present change, with its step; '' if none does; None if it
    changes nothing or does not compile. If @finder is set, tries it first, after the compiler."""
    build = tree.build
    # A header is compiled into programs, too.
    libraries = [] if header else ['libbluebell_whole.so'] + ['%s.so.%s' % (lib, version(build)) for lib in
                                                                ('libbluebell', 'libbluebell-soft')]
    if not tree.ninja(build, *libraries):
        return '0 compiler' if finder else None
    if tree.digest() == tree.clean:
        return None
    tests = quick(tree.tests(build))
    if [p for n, _, p in tests if n == finder and (loads_library(p) or tree.ninja(build))] and \
            tree.first_failure(build, [(finder, True)]):
        return '0 ' + finder
    first = [(n, 'alone' in s) for n, s, p in tests if s & {'model', 'conform', 'golden'} and 'alone' not in s and
             loads_library(p)]
    found = tree.first_failure(build, first)
    if found:
        return '1 ' + found
    if not tree.ninja(build):
        return None
    done = {n for n, _ in first}
    found = tree.first_failure(build, [(n, 'alone' in s) for n, s, p in tests if n not in done])
    if found:
        return '2 ' + found
    if not full:
        return ''
    rest = [(n, 'alone' in s) for n, s, p in tree.tests(build) if 'long' in s and 'interop' not in s]
    found = tree.first_failure(build, rest)
    if found:
        return '3 ' + found
    asan = os.path.join(os.path.dirname(build), 'asan')
    if os.path.isdir(asan) and tree.ninja(asan):
        names = [(n, 'alone' in s) for n, s, p in tree.tests(asan)
                 if not s & {'plain', 'bench', 'check', 'table', 'defects', 'bulk', 'interop', 'short'}]
        found = tree.first_failure(asan, names, multiplier=5, env={
            'ASAN_OPTIONS': 'halt_on_error=1:abort_on_error=1', 'UBSAN_OPTIONS': 'halt_on_error=1:abort_on_error=1'})
        if found:
            return '3 asan ' + found
    return ''


def version(build):
    out = json.loads(subprocess.check_output(['meson', 'introspect', '--projectinfo', build], text=True))
    return out['version']


def again(tree, path):
    """Makes the changes that @path says were found in @tree, and notes there what finds them."""
    with open(path) as f:
        head, *rows = map(json.loads, f)
    commit = tree.commit()
    if head.setdefault('again', commit) != commit:
        sys.exit('%s was continued on commit %s: check it out, or remove the fields "again"' % (path, head['again']))
    finders = {row['found'].split(' ')[-1] for row in rows if row['found']}
    tree.exclude_broken(tree.build, [(n, 'alone' in s) for n, s, p in quick(tree.tests(tree.build)) if n in finders])
    for row in rows:
        if not row['found'] or 'again' in row:
            continue
        restore = tree.apply(row['change'])
        try:
            row['again'] = 'gone' if restore is None else judge(tree, row['change'][0].endswith('.h'), False,
                                                                row['found'].split(' ')[-1])
        finally:
            if restore is not None:
                restore()
        with open(path + '.new', 'w') as f:
            f.write(''.join(json.dumps(r) + '\n' for r in [head, *rows]))
        os.rename(path + '.new', path)
        print('%s: %s -> %s: found %s, again %s' % (*row['change'][:2], row['change'][3].strip(), row['found'],
                                                    row['again']), flush=True)


def main():
    p = argparse.ArgumentParser(usage=__doc__.split('usage: ')[1].split('\n')[0], description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--seed', type=int, default=23)
    p.add_argument('--count', type=int, default=60)
    p.add_argument('--protocol', default=os.path.join(os.path.dirname(os.path.abspath(__file__)), 'protocol.jsonl'))
    p.add_argument('--full', action='store_true')
    p.add_argument('--again', action='store_true')
    p.add_argument('--patience', type=float, default=1)
    p.add_argument('tree')
    p.add_argument('build')
    args = p.parse_args()
    tree = Tree(os.path.abspath(args.tree), os.path.abspath(args.build), args.patience)
    if subprocess.check_output(['git', '-C', tree.top, 'status', '--porcelain', '-uno'], text=True).strip():
        sys.exit('%s has changes that are not committed' % tree.top)
    if args.again:
        again(tree, args.protocol)
        return 0
    tree.exclude_broken(tree.build, [(n, 'alone' in s) for n, s, p in quick(tree.tests(tree.build))])
    commit = tree.commit()
    done = {}
    if os.path.exists(args.protocol):
        with open(args.protocol) as f:
            first, *rows = map(json.loads, f)
        if first['commit'] != commit:
            sys.exit('%s is of commit %s: check it out, or name another file' % (args.protocol, first['commit']))
        done = {key_of(row['change']): row for row in rows}
    else:
        with open(args.protocol, 'w') as f:
            f.write(json.dumps({'commit': commit, 'seed': args.seed}) + '\n')
    changes = candidates(tree.top)
    random.Random(args.seed).shuffle(changes)
    taken = 0
    for change in chosen(changes, args.count + args.count // 2):
        if taken == args.count:
            break
        row = done.get(key_of(list(change)))
        if row is None or row['found'] == '' and args.full and not row.get('full'):
            restore = tree.apply(change)
            if restore is None:
                continue
            begin = time.time()
            try:
                found = judge(tree, change[0].endswith('.h'), args.full)
            finally:
                restore()
            if change[0].endswith('.h') and not tree.ninja(tree.build):
                sys.exit('the tree does not build again')
            row = {'change': change, 'found': found, 'seconds': round(time.time() - begin)}
            if args.full:
                row['full'] = True
            with open(args.protocol, 'a') as f:
                f.write(json.dumps(row) + '\n')
        if row['found'] is None:
            continue
        taken += 1
        print('%2d %s: %s -> %s: %s' % (taken, change[0], change[1].strip(), change[3].strip() or '(left out)',
                                        row['found'] or 'NOT FOUND ' + row.get('why', '')), flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
