# SPDX-License-Identifier: BSD-3-Clause
"""Contents of the guest: a Debian kernel's modules, and programs with their libraries."""

import glob
import lzma
import os
import re
import shutil
import subprocess

LIB = '/usr/lib/x86_64-linux-gnu'
LOADER = '/lib64/ld-linux-x86-64.so.2'

PACKAGES = '''busybox-static dash libc6 libgcc-s1 iproute2 rdmacm-utils ibverbs-utils
  ibverbs-providers libibverbs1 librdmacm1 libibumad3 perftest libnl-3-200 libnl-route-3-200
  libpci3 zlib1g libudev1 libmnl0 libbsd0 libmd0 libcap2 libbpf1 libelf1 libselinux1
  libpcre2-8-0 libxtables12'''.split()

PROGRAMS = ['/bin/dash', '/bin/ip', '/sbin/tc'] + ['/usr/bin/' + name for name in '''
  rdma ibv_devices ibv_devinfo ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong
  ibv_srq_pingpong ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_send_bw ib_send_lat
  ib_atomic_bw ib_atomic_lat rping ucmatose udaddy rdma_client rdma_server rstream'''.split()]

# Opened by name at run time, or needed by programs that tests copy there.
MORE_LIBS = ['libgcc_s.so.1', 'libnss_files.so.2', 'libpthread.so.0', 'libdl.so.2', 'librt.so.1',
             'libm.so.6', 'libibverbs.so.1']

# Of libibverbs.
PROVIDERS = ['rxe', 'siw', 'mlx5']

# libcrc32c is for siw, which is no module of Debian's: see siw.py.
MODULES = '''virtio_pci virtio_net mlx5_core mlx5_ib rdma_rxe ib_uverbs rdma_ucm ib_umad crc32_generic
  crc32c_generic libcrc32c 8021q bonding sch_netem sch_prio sch_ingress cls_u32 act_mirred ifb'''.split()
# Newer kernels have these in the kernel itself or not at all.
OLD_MODULES = ['crc32_generic', 'crc32c_generic', 'libcrc32c']

# A suite whose QEMU has vfio-user-pci, which came with QEMU 10.1, and the package.
QEMU = ('forky', 'qemu-system-x86')


class ImageError(Exception):
    pass


def module_name(name):
    return name.replace('-', '_')


def kernel_folder(root):
    """Returns the folder of a kernel's modules in unpacked packages."""
    folders = glob.glob(root + '/lib/modules/*') + glob.glob(root + '/usr/lib/modules/*')
    if len(folders) != 1:
        raise ImageError('%d kernels in %s' % (len(folders), root))
    return folders[0]


def kernel_image(root):
    """Returns the path of the kernel in unpacked packages."""
    return (glob.glob(root + '/boot/vmlinuz-*') + [os.path.join(kernel_folder(root), 'vmlinuz')])[0]


def stage_modules(top, version, stage, wanted=None):
    """Copies modules (MODULES) with their dependencies from a folder of modules. Returns their number."""
    index = {}
    for path, _, files in os.walk(top):
        for name in files:
            match = re.match(r'(.+)\.ko(\.xz)?$', name)
            if match:
                index[module_name(match[1])] = os.path.join(path, name)
    with open(os.path.join(top, 'modules.builtin')) as f:
        done = {module_name(os.path.basename(line.strip())[:-3]) for line in f}
    builtin = len(done)
    todo = list(wanted or MODULES)
    while todo:
        name = todo.pop()
        if name in done:
            continue
        if name not in index and name in OLD_MODULES:
            continue
        if name not in index:
            raise ImageError('no module %s in %s' % (name, version))
        done.add(name)
        with open(index[name], 'rb') as f:
            data = f.read()
        target = os.path.join(stage, 'lib/modules', version, os.path.relpath(index[name], top))
        if target.endswith('.xz'):
            data = lzma.decompress(data)
            target = target[:-3]
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, 'wb') as f:
            f.write(data)
        for names in re.findall(rb'\0depends=([^\0]*)', data):
            todo += [module_name(n) for n in names.decode().split(',') if n]
    for name in ('modules.builtin', 'modules.order'):
        shutil.copy(os.path.join(top, name), os.path.join(stage, 'lib/modules', version, name))
    return len(done) - builtin


def inside(root, path):
    """Returns the regular file that a path names within a root; links do not lead out of it."""
    for _ in range(10):
        if not os.path.islink(root + path):
            return root + path
        link = os.readlink(root + path)
        path = os.path.normpath(os.path.join(os.path.dirname(path), link))
    raise ImageError('too many links: ' + path)


def copy_into(root, stage, path):
    target = stage + path
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy2(inside(root, path), target)


def libraries(root, loader, program):
    """Returns the libraries that the guest's own loader would map, as paths within the root."""
    where = ':'.join([root + '/lib/x86_64-linux-gnu', root + LIB])
    done = subprocess.run([loader, '--library-path', where, '--list', root + program], text=True,
                          capture_output=True, timeout=60)
    if done.returncode or 'not found' in done.stdout:
        raise ImageError('%s: %s%s' % (program, done.stdout, done.stderr))
    found = set()
    for name, path in re.findall(r'^\s*(\S+) => (.*?) \(0x', done.stdout, re.M):
        if not path.startswith(root):
            raise ImageError('%s needs %s: its package is missing' % (program, name))
        found.add(path[len(root):])
    return found


def stage_programs(root, stage):
    """Copies PROGRAMS with their libraries, and busybox for the rest. Returns their number."""
    loader = inside(root, '/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2')
    providers = [os.path.join(LIB, 'libibverbs', name)
                 for name in os.listdir(root + LIB + '/libibverbs')
                 if name.startswith(tuple('lib%s-' % p for p in PROVIDERS))]
    libs = set()
    for program in PROGRAMS + providers:
        libs |= libraries(root, loader, program)
    for name in MORE_LIBS:
        folder = next((d for d in ('/lib/x86_64-linux-gnu', LIB)
                       if os.path.lexists(root + os.path.join(d, name))), None)
        if folder is None:
            raise ImageError('no library ' + name)
        libs.add(os.path.join(folder, name))
    for path in PROGRAMS + providers + sorted(libs) + ['/bin/busybox']:
        copy_into(root, stage, path)
    os.makedirs(stage + os.path.dirname(LOADER), exist_ok=True)
    shutil.copy2(loader, stage + LOADER)
    os.makedirs(stage + '/etc/libibverbs.d')
    for name in PROVIDERS:
        with open('%s/etc/libibverbs.d/%s.driver' % (stage, name), 'w') as f:
            f.write('driver %s\n' % name)
    # dash is /bin/sh: busybox's sh runs its own ip and tc, whatever PATH says.
    os.symlink('dash', stage + '/bin/sh')
    applets = subprocess.run([root + '/bin/busybox', '--list-full'], check=True, text=True,
                             capture_output=True, timeout=60).stdout.split()
    have = {os.path.basename(p) for p in PROGRAMS} | {'busybox'}
    for path in applets:
        target = os.path.join(stage, path)
        if os.path.basename(path) not in have and not os.path.lexists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.symlink('/bin/busybox', target)
    return len(PROGRAMS)


def vmlinux(bzimage):
    """Returns the ELF kernel inside a bzImage. QEMU boots it by its PVH entry, which saves seconds
    of firmware and decompression without hardware virtualisation."""
    with open(bzimage, 'rb') as f:
        data = f.read()
    for magic, unpack in ((b'\xfd7zXZ\0', None), (b'\x28\xb5\x2f\xfd', ['zstd', '-dqc'])):
        at = data.find(magic)
        while at >= 0:
            image = b''
            if unpack is None:
                try:
                    image = lzma.LZMADecompressor().decompress(data[at:])
                except lzma.LZMAError:
                    pass
            elif shutil.which(unpack[0]):
                image = subprocess.run(unpack, input=data[at:], capture_output=True,
                                       timeout=120).stdout
            if image.startswith(b'\x7fELF'):
                return image
            at = data.find(magic, at + 1)
    return data
