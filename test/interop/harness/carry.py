# SPDX-License-Identifier: BSD-3-Clause
"""Copies a program of this build into a guest, with the libraries that the guest lacks; runs conform."""

import glob
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile

# For programs that need few resources.
EAL = '-l 0,1 --no-huge -m 200 --no-pci --no-telemetry --no-shconf --log-level=lib.eal:4'

# Time limit of a program. It is shorter than that of a test in devtools/test, 3 * 900 s, so that a program that hangs is
# reported with its output.
PROGRAM_SECONDS = 2400

# Libraries of a guest: assumed to be of the same Debian release.
THERE = ('libc.so', 'ld-linux', 'linux-vdso', 'libpthread', 'libdl.so', 'librt.so', 'libgcc_s')


def libraries(program):
    """Returns the paths of the shared libraries that a program loads."""
    text = subprocess.run(['ldd', program], check=True, capture_output=True, text=True).stdout
    paths = re.findall(r'=> (/\S+)', text)
    # A program that opens the software device loads it from the library's folder.
    softs = [path.replace('libbluebell.so', 'libbluebell-soft.so') for path in paths if 'libbluebell.so' in path]
    for soft in softs:
        if soft not in (program, *paths):
            paths += [p for p in [soft] + libraries(soft) if p not in paths]
    return paths


def plugins():
    """Returns the plugins that EAL loads by itself and programs need: mempools."""
    folder = subprocess.run(['pkg-config', '--variable=libdir', 'libdpdk'], check=True,
                            capture_output=True, text=True).stdout.strip()
    return glob.glob(os.path.join(folder, 'librte_mempool_ring.so.[0-9][0-9]'))


def stripped(path, folder):
    """Makes a copy without debug information, which is most of a program."""
    copy = os.path.join(folder, os.path.basename(path))
    subprocess.run(['strip', '--strip-debug', '-o', copy, path], check=True)
    return copy


def carry(guest, program, folder='/bb'):
    """Copies a program to the guest. Returns the command that runs it and the EAL options that it
    needs there. Files copied for another program stay."""
    data = io.BytesIO()
    there = guest.carried.setdefault(folder, {})
    with tempfile.TemporaryDirectory() as work, tarfile.open(fileobj=data, mode='w') as tar:
        for path in [program] + libraries(program) + plugins():
            name = os.path.basename(path)
            if not name.startswith(THERE) and there.get(name) != path:
                tar.add(stripped(os.path.realpath(path), work), name)
                there[name] = path
        local = os.path.join(work, 'all.tar')
        tar.close()
        with open(local, 'wb') as f:
            f.write(data.getvalue())
        guest.put(local, '/tmp/carry.tar')
    # EAL loads no plugin from a folder that is writable by everyone.
    guest.run('chmod go-w / && mkdir -p %s && tar -xf /tmp/carry.tar -C %s && rm /tmp/carry.tar' % (folder, folder))
    return ('LD_LIBRARY_PATH=%s %s/%s' % (folder, folder, os.path.basename(program)),
            ' '.join('-d %s/%s' % (folder, os.path.basename(p)) for p in plugins()))


def conform(guest, program, device, options, seconds, skips=()):
    """Runs the conformance suite in the guest. Returns its results: rows of the one device. @skips: files
    with the skips that conform allows."""
    command, eal = carry(guest, program)
    for path in skips:
        guest.put(path, '/tmp/skips.' + os.path.basename(os.path.dirname(path)))
        options += ' --allowed-skips /tmp/skips.' + os.path.basename(os.path.dirname(path))
    request = guest.begin('mkdir -p /var/run; %s -d %s %s --json /tmp/c.json -- %s %s' % (
        command, device, options, EAL, eal), seconds)
    if request.wait() not in (0, 1):
        sys.exit('conform ended with %d\n%s' % (request.status, request.output[-4000:]))
    report = json.loads(guest.get('/tmp/c.json'))
    return report['devices'][0]['rows']
