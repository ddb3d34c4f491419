# SPDX-License-Identifier: BSD-3-Clause
"""NVMe over Fabrics for a guest, as an archive: Linux's modules nvme-rdma, nvmet-rdma, brd, null_blk and ext4, and
nvme-cli and e2fsprogs."""

import os
import tarfile

import image

# Part of the key of the cache: increment when the staging changes.
LAYOUT = 1
MODULES = ['nvme_rdma', 'nvmet_rdma', 'brd', 'null_blk', 'ext4']
PACKAGES = ['nvme-cli', 'e2fsprogs']
PROGRAMS = ['/usr/sbin/nvme', '/sbin/mke2fs', '/sbin/e2fsck']


def archive(kernel_apt, programs_apt, release, work, path):
    """Writes the archive for the kernel of that release. Returns its number of files."""
    kernel_apt.update()
    kernel = os.path.join(work, 'kernel')
    kernel_apt.unpack(['linux-image-' + release], kernel)
    stage = os.path.join(work, 'stage')
    os.makedirs(stage)
    image.stage_modules(image.kernel_folder(kernel), release, stage, MODULES)
    # The guest has the lists of the modules.
    for name in ('modules.builtin', 'modules.order'):
        os.unlink(os.path.join(stage, 'lib/modules', release, name))
    programs_apt.update()
    root = os.path.join(work, 'user')
    programs_apt.unpack(sorted(programs_apt.closure(PACKAGES)), root)
    loader = image.inside(root, '/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2')
    for program in PROGRAMS:
        for name in sorted(image.libraries(root, loader, program)) + [program]:
            image.copy_into(root, stage, name)
    files = 0
    with tarfile.open(path, 'w:gz', compresslevel=1) as tar:
        for folder, _, names in os.walk(stage):
            for name in sorted(names):
                file = os.path.join(folder, name)
                tar.add(file, os.path.relpath(file, stage))
                files += 1
    return files
