# SPDX-License-Identifier: BSD-3-Clause
"""fio for a guest: one static program, from the source of Debian's package, without the engines of other storage."""

import fcntl
import os
import shutil
import subprocess

import paths

SOURCE = os.path.join(paths.HERE, '..', '..', 'devtools', 'fio-source')
# Part of the key of the cache: increment when the build changes.
LAYOUT = 1
CONFIGURE = ['./configure', '--build-static', '--disable-native']
SECONDS = 1800


class Missing(Exception):
    """There is no fio, and the text says why."""


def checked(args, folder):
    done = subprocess.run(args, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS,
                          env=dict(os.environ, LC_ALL='C'))
    if done.returncode == 77:
        raise Missing(done.stdout.strip().split('\n')[-1])
    if done.returncode != 0:
        raise Missing('%s failed: %s' % (' '.join(args), done.stdout[-1500:]))
    return done.stdout


def build(out):
    source, work = os.path.join(out, 'source'), os.path.join(out, 'work')
    checked([SOURCE, source], out)
    version = paths.read_text(source + '.apt/version')
    key = paths.key_of(LAYOUT, version, *CONFIGURE)
    if paths.read_text(os.path.join(out, 'key')) == key:
        return
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(source, work, symlinks=True)
    checked(CONFIGURE, work)
    checked(['make', '-j2', 'fio'], work)
    checked(['strip', '-o', os.path.join(out, 'fio'), 'fio'], work)
    shutil.rmtree(work)
    with open(os.path.join(out, 'key'), 'w') as f:
        f.write(key)


def program():
    """Returns the path of the program, which the first call builds. Raises Missing."""
    out = os.path.join(paths.CACHE, 'fio')
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, 'lock'), 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        build(out)
    return os.path.join(out, 'fio')
