# SPDX-License-Identifier: BSD-3-Clause
"""Folder of the interop suite's build results. A test imports this module first, to find the modules of the
other folders."""

import hashlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path += [os.path.join(HERE, folder) for folder in ('harness', 'talks', 'vm')] + [os.path.join(TOP, 'test', 'app')]
# Shared by all builds of the tree; BB_INTEROP_CACHE selects another folder.
CACHE = os.path.abspath(os.environ.get('BB_INTEROP_CACHE',
                                       os.path.join(TOP, 'build-test', 'interop')))
# Suites of Debian whose kernels guests run.
SUITES = ['bookworm', 'bookworm-backports', 'forky']
# Files of this tree in the initramfs.
GUEST_FILES = [os.path.join(HERE, 'vm', 'guest', name) for name in ('init', 'agent')]


def guest_key():
    """Returns a hash of these files' content, as git changes the times of files."""
    key = hashlib.sha256()
    for path in GUEST_FILES:
        with open(path, 'rb') as f:
            key.update(f.read())
    return key.hexdigest()


def key_of(*what):
    """Returns a hash of what a part of the cache was made from."""
    return hashlib.sha256(repr(what).encode()).hexdigest()


def read_text(path):
    try:
        with open(path) as f:
            return f.read().strip()
    except FileNotFoundError:
        return None


def image(suite):
    """Returns (kernel, initramfs) of a Debian suite; None unless vm/build made them from this tree."""
    folder = os.path.join(CACHE, suite)
    files = [os.path.join(folder, name) for name in ('vmlinux', 'initramfs.cpio')]
    if read_text(os.path.join(folder, 'key')) is None or not all(map(os.path.exists, files)):
        return None
    if read_text(os.path.join(folder, 'guest-key')) != guest_key():
        return None
    return files


def qemu():
    """Returns the command of the QEMU that vm/build --qemu made; None if there is none."""
    root = os.path.join(CACHE, 'qemu', 'root')
    if read_text(os.path.join(CACHE, 'qemu', 'key')) is None or not os.path.isdir(root):
        return None
    lib = os.path.join(root, 'usr/lib/x86_64-linux-gnu')
    return [os.path.join(root, 'usr/lib64/ld-linux-x86-64.so.2'), '--library-path', lib + ':' + lib + '/pulseaudio',
            os.path.join(root, 'usr/bin/qemu-system-x86_64'), '-L', os.path.join(root, 'usr/share/qemu'),
            '-L', os.path.join(root, 'usr/share/seabios')]


def pyverbs():
    """Returns the archive of rdma-core's own tests that vm/build --qemu made; None if there is none."""
    folder = os.path.join(CACHE, 'pyverbs')
    path = os.path.join(folder, 'pyverbs.tar.gz')
    return path if read_text(os.path.join(folder, 'key')) is not None and os.path.exists(path) else None


def siw(suite):
    """Returns the module siw for the kernel of a suite; None if vm/build made none."""
    folder = os.path.join(CACHE, suite)
    path = os.path.join(folder, 'siw.ko')
    version = read_text(os.path.join(folder, 'version'))
    if version is None or read_text(os.path.join(folder, 'siw-key')) != version:
        return None
    return path if os.path.exists(path) else None


def nvme(suite):
    """Returns the archive for NVMe over Fabrics of a suite; None if vm/build made none."""
    folder = os.path.join(CACHE, suite)
    path = os.path.join(folder, 'nvme.tar.gz')
    return path if read_text(os.path.join(folder, 'nvme-key')) is not None and os.path.exists(path) else None
