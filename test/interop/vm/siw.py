# SPDX-License-Identifier: BSD-3-Clause
"""Builds the module siw, which Debian's kernels lack, from Debian's source of that kernel.

CONFIG_RDMA_SIW is not set in Debian's kernels, so this builds drivers/infiniband/sw/siw alone, with
the headers of exactly the guest's kernel and the compiler that they name. The module's version
magic and symbol checksums are then those of the kernel, which accepts no other module.
"""

import glob
import os
import re
import shutil
import subprocess
import tarfile

FOLDER = 'drivers/infiniband/sw/siw/'


class SiwError(Exception):
    pass


def field(text, name):
    """Returns a field of the first stanza of apt-cache show, which has the newest version."""
    found = re.search(r'^%s: (.*)$' % name, text, re.M)
    if found is None:
        raise SiwError('apt-cache tells no %s' % name)
    return found[1]


def packages(apt, release):
    """Returns (the headers with their dependencies among kernel packages, the source)."""
    headers = 'linux-headers-' + release
    text = apt.call('apt-cache', 'show', headers)
    version = field(text, 'Version')
    names = [headers + '=' + version]
    for dep in field(text, 'Depends').split(', '):
        name, _, exact = dep.split(' | ')[0].partition(' ')
        if name.startswith(('linux-headers-', 'linux-kbuild-')):
            given = re.match(r'\(= (.*)\)$', exact)
            names.append(name + '=' + (given[1] if given else version))
    return names, 'linux-source-%s=%s' % ('.'.join(release.split('.')[:2]), version)


def take_source(deb, into):
    """Unpacks FOLDER alone. Reads the tar in the package to the end of the folder, no further."""
    unpack = subprocess.Popen(['dpkg-deb', '--fsys-tarfile', deb], stdout=subprocess.PIPE)
    found = 0
    try:
        with tarfile.open(fileobj=unpack.stdout, mode='r|') as package:
            inner = next((m for m in package if m.name.endswith('.tar.xz')), None)
            if inner is None:
                raise SiwError('%s has no tar of the source' % os.path.basename(deb))
            with tarfile.open(fileobj=package.extractfile(inner), mode='r|xz') as source:
                for member in source:
                    at = member.name.find('/' + FOLDER)
                    if at >= 0 and member.isfile():
                        name = os.path.basename(member.name)
                        with open(os.path.join(into, name), 'wb') as f:
                            shutil.copyfileobj(source.extractfile(member), f)
                        found += 1
                    elif found:
                        break
    except tarfile.TarError as err:
        raise SiwError('%s: %s' % (os.path.basename(deb), err)) from None
    finally:
        unpack.kill()
        unpack.wait(60)
        unpack.stdout.close()
    if not found:
        raise SiwError('%s has no %s' % (os.path.basename(deb), FOLDER))


def compiler(headers):
    """Returns the gcc that the headers name."""
    with open(os.path.join(headers, '.kernelvariables')) as f:
        return re.search(r'\bgcc-\d+', f.read())[0]


def missing_tools(needed):
    for tool in needed:
        if shutil.which(tool) is None:
            raise SiwError('%s is not installed' % tool)


def compile_module(headers, folder):
    # Debian's Makefile names the installed package's folder; here it is unpacked elsewhere.
    makefile = os.path.join(headers, 'Makefile')
    with open(makefile) as f:
        text = f.read()
    with open(makefile, 'w') as f:
        f.write(text.replace('/usr/src', os.path.dirname(headers)))
    # If the headers include vmlinux (6.12), make would use pahole to make the module's BTF from it.
    done = subprocess.run(['make', '-s', '-j2', '-C', headers, 'M=' + folder, 'CONFIG_RDMA_SIW=m',
                           'CONFIG_DEBUG_INFO_BTF_MODULES=', 'modules'], text=True, capture_output=True, timeout=600,
                          stdin=subprocess.DEVNULL)
    module = os.path.join(folder, 'siw.ko')
    if done.returncode or not os.path.exists(module):
        raise SiwError('siw does not build:\n' + done.stderr[-1500:])
    subprocess.run(['strip', '--strip-debug', module], check=True)
    return module


def build(apt, release, work):
    """Builds siw.ko for that kernel in a folder. Returns its path."""
    missing_tools(['make', 'strip'])
    apt.update()
    names, source = packages(apt, release)
    root = os.path.join(work, 'headers')
    apt.unpack(names, root)
    headers = os.path.join(root, 'usr/src/linux-headers-' + release)
    missing_tools([compiler(headers)])
    folder = os.path.join(work, 'siw')
    os.makedirs(folder)
    apt.call('apt-get', 'download', source, cwd=work)
    deb = glob.glob(os.path.join(work, 'linux-source-*.deb'))
    if len(deb) != 1:
        raise SiwError('no package ' + source)
    take_source(deb[0], folder)
    os.unlink(deb[0])
    return compile_module(headers, folder)
