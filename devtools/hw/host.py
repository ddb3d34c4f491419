# SPDX-License-Identifier: BSD-3-Clause
"""Facts about the host and its devices, from /sys and from installed files."""

import glob
import os
import platform
import re
import resource
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
# The command as the user types it: in the archive, or in the source tree.
NAME = './hw-check' if os.path.exists(os.path.join(HERE, 'VERSION')) else 'devtools/hw-check'
VERBS = 'verbs:'    # prefix of a device for the verbs driver


def read(path):
    try:
        with open(path) as f:
            return f.read().strip()
    except OSError:
        return None


def devices():
    try:
        return sorted(os.listdir('/sys/class/infiniband'))
    except OSError:
        return []


def plain(device):
    """Returns the name without options and without the prefix of the verbs driver."""
    name = device.split(',')[0]
    return name[len(VERBS):] if name.startswith(VERBS) else name


def kernel_driver(name):
    """Returns the kernel's driver of a device, by its name or PCI address."""
    for path in ('/sys/class/infiniband/%s/device/driver', '/sys/bus/pci/devices/%s/driver'):
        try:
            return os.path.basename(os.readlink(path % name))
        except OSError:
            pass
    return None


def with_resize(device):
    """Adds the option for CQ resize, which is untested and off by default, to a card used by DEVX."""
    name = plain(device)
    if device.startswith(VERBS) or 'cq_resize' in device.split(','):
        return device
    card = name.startswith('mlx5') or kernel_driver(name) == 'mlx5_core'
    return device + ',cq_resize' if card else device


def bus(name):
    """Returns the PCI address of a device, which also opens it."""
    try:
        return os.path.basename(os.readlink('/sys/class/infiniband/%s/device' % name))
    except OSError:
        return None


def missing(device):
    """Returns why the device cannot be opened, as far as /sys shows; None: it may work."""
    name, there = plain(device), devices()
    if name.startswith('soft') or name in there or name in [bus(d) for d in there]:
        return None
    if there:
        return 'there is no %s here, but %s' % (name, ', '.join(there))
    return 'there is no %s: no device in /sys/class/infiniband; load mlx5_ib, or try soft0' % name


def eal():
    """Returns EAL's arguments: lcores 0 and 1 on the first CPUs that this process may use."""
    cpus = sorted(os.sched_getaffinity(0))
    return '--lcores=0@%d,1@%d --no-huge -m 512 --no-pci --no-shconf --no-telemetry' % (
        cpus[0], cpus[min(1, len(cpus) - 1)])


def version_of(library):
    """Returns the version of an installed library of rdma-core, by the name of its file."""
    for folder in ('/usr/lib/*', '/usr/lib64', '/usr/lib', '/lib/*', '/usr/local/lib', '/usr/local/lib64'):
        for path in sorted(glob.glob('%s/%s.so.1.*' % (folder, library))):
            return path.split('.so.')[1]
    return None


def package(name):
    try:
        done = subprocess.run(['pkg-config', '--modversion', name], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None


def bluebell():
    """Returns the version: of the tarball, or of the source tree."""
    version = read(os.path.join(HERE, 'VERSION'))
    if version is not None:
        return version
    try:
        done = subprocess.run(['git', '-C', HERE, 'describe', '--always', '--dirty'], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None


def facts(device):
    """Returns facts about the machine that affect the results."""
    name = plain(device)
    release = re.search(r'^PRETTY_NAME="?([^"\n]*)', read('/etc/os-release') or '', re.M)
    cpu = re.search(r'^model name\s*: (.*)', read('/proc/cpuinfo') or '', re.M)
    found = {'kernel': platform.release(), 'machine': platform.machine(), 'bluebell': bluebell(),
             'os': release[1] if release else None, 'cpu': cpu[1] if cpu else None,
             'memlock': resource.getrlimit(resource.RLIMIT_MEMLOCK)[0],
             'hugepages': read('/proc/sys/vm/nr_hugepages')}
    for key in ('fw_ver', 'hca_type', 'board_id', 'node_type'):
        found[key] = read('/sys/class/infiniband/%s/%s' % (name, key))
    for library in ('libibverbs', 'libmlx5'):
        found[library] = version_of(library) or package(library)
    found['libdpdk'] = read(os.path.join(HERE, 'DPDK')) or package('libdpdk')
    return found
