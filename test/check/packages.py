#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that meson.build needs no package that devtools/packages does not name for the form.

usage: packages.py TREE FORM=GROUP,... ...

A developer's machine has more packages than a new one. For each form, meson sees only the packages of
these groups, their dependencies, and the packages that every Debian has. Meson sees programs and .pc
files of no other package. Headers and libraries are those of the machine.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

FIELDS = '${Package}\t${Essential}\t${Priority}\t${Provides}\t${Pre-Depends}, ${Depends}\n'
BIN = ('/usr/bin/', '/bin/', '/usr/sbin/', '/sbin/')
PC = ('/usr/lib/', '/usr/share/')


def names(text):
    """Names in a list of dependencies: all alternatives, without versions and architectures."""
    return re.findall(r'(?:^|[,|])\s*([a-z0-9][a-z0-9+.-]*)', text)


class Installed:
    def __init__(self):
        self.depends, self.provided, self.base = {}, {}, set()
        out = subprocess.run(['dpkg-query', '-W', '-f', FIELDS], check=True, capture_output=True, text=True).stdout
        for line in out.splitlines():
            name, essential, priority, provides, depends = line.split('\t')
            self.depends[name] = names(depends)
            for p in names(provides):
                self.provided.setdefault(p, set()).add(name)
            if essential == 'yes' or priority == 'required':
                self.base.add(name)

    def closure(self, wanted):
        done, todo = set(), set(wanted) | self.base
        while todo:
            name = todo.pop()
            if name in done:
                continue
            if name not in self.depends:
                todo |= self.provided.get(name, set()) - done
                continue
            done.add(name)
            todo |= set(self.depends[name]) - done
        return done


def files_of(packages):
    out = subprocess.run(['dpkg-query', '-L', *sorted(packages)], check=True, capture_output=True, text=True).stdout
    files = set(out.splitlines())
    # Links of alternatives, such as cc, belong to no package.
    for link in glob.glob('/etc/alternatives/*'):
        if os.path.realpath(link) in files or os.readlink(link) in files:
            files.add('/usr/bin/' + os.path.basename(link))
    return files


def setup(tree, form, files):
    with tempfile.TemporaryDirectory() as tmp:
        for sub in ('bin', 'pc'):
            os.mkdir(f'{tmp}/{sub}')
        for f in files:
            sub = 'bin' if f.startswith(BIN) else 'pc' if f.startswith(PC) and f.endswith('.pc') else None
            to = f'{tmp}/{sub}/{os.path.basename(f)}'
            if sub is not None and os.path.isfile(f) and not os.path.lexists(to):
                os.symlink(f, to)
        env = {'PATH': f'{tmp}/bin', 'PKG_CONFIG_LIBDIR': f'{tmp}/pc', 'HOME': tmp, 'LC_ALL': 'C.UTF-8'}
        r = subprocess.run([f'{tmp}/bin/meson', 'setup', f'{tmp}/build', tree], env=env, capture_output=True, text=True,
                           check=False)
    if r.returncode == 0:
        return True
    print(r.stdout[-2000:] + r.stderr[-2000:])
    print(f'packages: meson setup fails with the packages that devtools/packages names for {form} (above): name the '
          'missing one there, or make it optional')
    return False


def main():
    tree, forms = sys.argv[1], sys.argv[2:]
    try:
        installed = Installed()
    except FileNotFoundError:
        print('packages: dpkg-query is not installed: skipped')
        return 77
    groups = {}
    with open(f'{tree}/devtools/packages', encoding='utf-8') as f:
        for line in f:
            if not line.startswith('#'):
                group, name = line.split()[:2]
                groups.setdefault(group, set()).add(name)
    good = True
    for form in forms:
        name, of = form.split('=')
        wanted = set().union(*(groups[g] for g in of.split(',')))
        if 'meson' not in installed.depends:
            print('packages: meson is not installed from its Debian package: skipped')
            return 77
        good = setup(tree, name, files_of(installed.closure(wanted))) and good
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
