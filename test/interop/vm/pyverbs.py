# SPDX-License-Identifier: BSD-3-Clause
"""rdma-core's own tests for a guest: Python and pyverbs from Debian's packages, as an archive."""

import glob
import gzip
import os
import shutil
import subprocess
import tarfile

import image

# Of the release of the guest's programs. python3-pyverbs has the tests in its documentation.
PACKAGES = '''python3-pyverbs python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libpython3.11
  libc6 libexpat1 libffi8 libuuid1 libbz2-1.0 liblzma5 libssl3 librdmacm1 libibverbs1 ibverbs-providers
  libnl-3-200 libnl-route-3-200 zlib1g'''.split()
TESTS = '/usr/share/doc/rdma-core/tests'
# Part of the key of the cache: increment when the staging changes.
LAYOUT = 1
TOPS = ('/usr/lib/python3.11', '/usr/lib/python3/dist-packages/pyverbs')
# Libraries of libc6, which the guest has: here they only run the compiler.
THERE = ('libc.', 'libm.', 'libmvec', 'libdl.', 'librt.', 'libpthread', 'libutil', 'libanl', 'libnss', 'libresolv',
         'libthread', 'libmemusage', 'libpcprofile', 'libBroken', 'libc_malloc', 'libnsl.')
# Parts of Python that the tests do not use.
UNUSED = ['test', 'idlelib', 'tkinter', 'lib2to3', 'ensurepip', 'pydoc_data', 'distutils', 'turtledemo']
# Folder of the tests in the guest. Its name is that of the package as which the tests import one another.
FOLDER = 'pyverbs/tests'


def stage(root):
    """Returns (path in the guest, file) of each file, from unpacked packages. Unpacks compressed tests."""
    files = []
    tests = root + TESTS
    for path in glob.glob(tests + '/*.gz'):
        with gzip.open(path) as source, open(path[:-3], 'wb') as target:
            shutil.copyfileobj(source, target)
        os.unlink(path)
    for top in (*TOPS, TESTS):
        for path, folders, _ in os.walk(root + top):
            for name in UNUSED:
                if name in folders:
                    shutil.rmtree(os.path.join(path, name))
    compile_all(root)
    for top in TOPS:
        for path, folders, names in os.walk(root + top):
            files += [(os.path.relpath(os.path.join(path, name), root), os.path.join(path, name)) for name in names
                      if name != 'sitecustomize.py']
    for path, folders, names in os.walk(tests):
        files += [(os.path.join(FOLDER, os.path.relpath(os.path.join(path, name), tests)), os.path.join(path, name))
                  for name in names]
    for path in glob.glob(root + image.LIB + '/lib*.so.*') + glob.glob(root + '/lib/x86_64-linux-gnu/lib*.so.*'):
        if not os.path.basename(path).startswith(THERE):
            files.append((os.path.join(image.LIB[1:], os.path.basename(path)), os.path.realpath(path)))
    files.append(('usr/bin/python3', root + '/usr/bin/python3.11'))
    return files


def compile_all(root):
    """Compiles Python's library and the tests, as the guest would take a minute for it."""
    loader = image.inside(root, '/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2')
    where = ':'.join([root + '/lib/x86_64-linux-gnu', root + image.LIB])
    folders = [root + top for top in (*TOPS, TESTS)]
    # A check of the sources would depend on the times of the files.
    subprocess.run([loader, '--library-path', where, root + '/usr/bin/python3.11', '-m', 'compileall', '-q',
                    '--invalidation-mode', 'unchecked-hash', '-s', root, '-p', '/', *folders], check=False,
                   env={'PYTHONHOME': root + '/usr'}, stdout=subprocess.DEVNULL, timeout=300)


def archive(root, target):
    """Writes the archive. Returns the number of its files."""
    files = stage(root)
    with tarfile.open(target, 'w:gz') as tar:
        for name, path in files:
            if os.path.isfile(path):
                tar.add(os.path.realpath(path), name)
    return len(files)
