#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes a folder with the headers and libraries for building Bluebell for another system.

usage: sysroot.py DIR [arm64 | RELEASE]

DIR gets Debian's packages, and where.ini, which meson needs before devtools/cross-*.ini. The packages
are those for arm64 of this Debian (the default), or those of another Debian, as trixie, for amd64.
An apt of its own downloads them, and they are unpacked: the machine's packages, and the databases of
apt and dpkg, stay unchanged. No root is needed. A complete existing folder is reused; parallel runs
wait for each other.

Exit status: 0 the folder is there; 77 it cannot be made here, and the last line says why; 2 wrong usage.
"""

import fcntl
import hashlib
import os
import re
import shutil
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import debian  # noqa: E402

START = float(os.environ.get('SUITE_START', time.time()))
PACKAGES = ['libc6-dev', 'libdpdk-dev', 'libibverbs-dev', 'librdmacm-dev', 'libisal-dev', 'liburing-dev',
            'libcmocka-dev', 'libjansson-dev']
# Dependencies to unpack: no programs, as no package is configured, and no scripting languages.
WANTED = re.compile(r'(?!libperl|libpam)(lib|zlib1g|linux-libc-dev$|ibverbs-providers$)')
# Part of the key of an existing folder: increment when the folder's layout changes.
LAYOUT = 2


def say(text):
    print('[%4ds] sysroot: %s' % (time.time() - START, text), flush=True)


def release():
    """Returns this Debian's release: the compiler's own libraries belong to this release."""
    found = re.search(r'^VERSION_CODENAME=(\w+)$', read_text('/etc/os-release') or '', re.M)
    if found is None:
        raise debian.DebianError('/etc/os-release names no release of Debian')
    return found[1]


def key(suite, arch):
    return hashlib.sha256(repr((LAYOUT, suite, arch, PACKAGES, WANTED.pattern)).encode()).hexdigest()


def read_text(path):
    try:
        with open(path) as f:
            return f.read().strip()
    except OSError:
        return None


def relative_links(root):
    """Links with absolute paths mean those of the target system: makes them relative to the folder."""
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path) and os.readlink(path).startswith('/'):
                target = os.path.relpath(root + os.readlink(path), folder)
                os.unlink(path)
                os.symlink(target, path)


def make(root, suite, arch):
    work = root + '.part'
    shutil.rmtree(work, ignore_errors=True)
    apt = debian.Apt(os.path.join(work, 'apt'), suite, arch)
    say("lists of Debian's packages: %s, %s" % (suite, arch))
    apt.update()
    found = {name: what for name, what in apt.closure(PACKAGES).items() if WANTED.match(name)}
    missing = [name for name in PACKAGES if name not in found]
    if missing:
        raise debian.DebianError('no package for %s: %s' % (arch, ' '.join(missing)))
    size = sum(size for _, size in found.values()) / 1e6
    say('downloading %d packages, %.0f MB' % (len(found), size))
    new = os.path.join(work, 'root')
    apt.unpack(['%s=%s' % (name, version) for name, (version, _) in sorted(found.items())], new,
               lambda n: say('%d of %d packages are here' % (n, len(found))), 60)
    relative_links(new)
    with open(os.path.join(new, 'where.ini'), 'w') as f:
        f.write("[constants]\nsysroot = '%s'\n" % root)
    with open(os.path.join(new, '.key'), 'w') as f:
        f.write(key(suite, arch) + '\n')
    shutil.rmtree(root, ignore_errors=True)
    os.rename(new, root)
    shutil.rmtree(work)
    say('unpacked to ' + root)


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith('-'):
        print(__doc__.strip())
        sys.exit(0 if sys.argv[1:] in (['-h'], ['--help']) else 2)
    root = os.path.abspath(sys.argv[1])
    what = sys.argv[2] if len(sys.argv) > 2 else 'arm64'
    os.makedirs(os.path.dirname(root), exist_ok=True)
    with open(root + '.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            suite, arch = (release(), what) if what == 'arm64' else (what, 'amd64')
            # In a tree that was moved, where.ini has the old path.
            if read_text(os.path.join(root, '.key')) == key(suite, arch) and \
                    "'%s'" % root in (read_text(os.path.join(root, 'where.ini')) or ''):
                say('is there')
            else:
                make(root, suite, arch)
        except debian.DebianError as err:
            print('packages for %s cannot be downloaded: %s' % (what, ' '.join(str(err).split())))
            sys.exit(77)


if __name__ == '__main__':
    main()
