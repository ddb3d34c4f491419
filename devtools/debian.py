# SPDX-License-Identifier: BSD-3-Clause
"""Downloads and unpacks Debian packages by an apt of its own; nothing is installed.

Uses the mirror in the system's apt sources, and its keyring to verify packages.
"""

import glob
import os
import re
import shutil
import subprocess

KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'
DEFAULT_MIRROR = 'http://deb.debian.org/debian'


class DebianError(Exception):
    pass


def mirror():
    """Returns the Debian mirror in the system's apt sources."""
    for path in ['/etc/apt/sources.list'] + sorted(glob.glob('/etc/apt/sources.list.d/*')):
        if os.path.isfile(path):
            with open(path) as f:
                found = re.search(r'^[^#\n]*?(https?://\S+/debian)/?(?=\s|$)', f.read(), re.M)
            if found:
                return found[1]
    return DEFAULT_MIRROR


class Apt:
    """A private apt below `path`, for a machine without these packages installed. `suite` is a
    release or its backports, as bookworm-backports; `arch` is Debian's name of an architecture."""

    def __init__(self, path, suite, arch='amd64'):
        for tool in ('apt-get', 'apt-cache', 'dpkg-deb'):
            if shutil.which(tool) is None:
                raise DebianError('%s is not installed' % tool)
        if not os.path.exists(KEYRING):
            raise DebianError('no %s (package debian-archive-keyring)' % KEYRING)
        self.path = path
        self.backports = suite.endswith('-backports')
        for part in ('lists/partial', 'cache/archives/partial', 'parts'):
            os.makedirs(os.path.join(path, part), exist_ok=True)
        base = mirror()
        release = suite.split('-')[0]
        suites = [(base, release)]
        if release != 'sid':
            suites += [(base, release + '-updates'), (base + '-security', release + '-security')]
        if self.backports:
            suites.append((base, suite))
        with open(os.path.join(path, 'sources.list'), 'w') as f:
            for url, name in suites:
                f.write('deb [signed-by=%s] %s %s main\n' % (KEYRING, url, name))
        with open(os.path.join(path, 'status'), 'w'):
            pass
        self.options = ['-q', '-o', 'Dir::Etc::sourcelist=' + path + '/sources.list',
                        '-o', 'Dir::State::status=' + path + '/status',
                        '-o', 'Dir::Etc::sourceparts=' + path + '/parts',
                        '-o', 'Dir::State::lists=' + path + '/lists',
                        '-o', 'Dir::Cache=' + path + '/cache',
                        '-o', 'Debug::NoLocking=true', '-o', 'APT::Sandbox::User=',
                        '-o', 'APT::Architecture=' + arch, '-o', 'APT::Architectures=' + arch,
                        '-o', 'APT::Architectures::=' + arch, '-o', 'Acquire::Languages=none',
                        '-o', 'Acquire::Retries=3', '-o', 'Acquire::http::Timeout=60']

    def call(self, tool, *args, cwd=None, timeout=600):
        cmd = [tool] + self.options + list(args)
        try:
            done = subprocess.run(cmd, cwd=cwd, timeout=timeout, text=True, capture_output=True,
                                  stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            raise DebianError('%s %s: no end within %d s' % (tool, args[0], timeout)) from None
        if done.returncode:
            raise DebianError('%s %s failed:\n%s' % (tool, ' '.join(args), done.stderr[-1500:]))
        return done.stdout

    def update(self):
        self.call('apt-get', '-o', 'APT::Update::Error-Mode=any', 'update')

    def kernel(self):
        """Returns the packages, as 'name=version', of the kernel that the suite's meta package
        linux-image-amd64 stands for: one of Debian 12, four of Debian 14."""
        meta = 'linux-image-amd64'
        for text in self.call('apt-cache', 'show', meta).split('\n\n'):
            version = re.search(r'^Version: (\S+)', text, re.M)
            if version and ('~bpo' in version[1]) == self.backports:
                found = self.closure(['%s=%s' % (meta, version[1])])
                return ['%s=%s' % (name, of) for name, (of, _) in found.items()
                        if re.match(r'linux-(image|base|binary|modules)-\d', name)]
        raise DebianError('no %s in %s' % (meta, self.path))

    def closure(self, packages):
        """Returns packages with all their dependencies: {name: (version, bytes to download)}."""
        text = self.call('apt-get', 'install', '--no-install-recommends', '--print-uris', '-y',
                         *packages)
        found = re.findall(r"^'[^']*' ([^_\s]+)_([^_\s]+)_\w+\.deb (\d+)", text, re.M)
        return {name: (version.replace('%3a', ':'), int(size)) for name, version, size in found}

    def unpack(self, packages, into, tell=None, at_once=1000):
        """Downloads packages ('name' or 'name=version') and unpacks them into a folder. `tell` is
        called with the number of packages so far, after every `at_once`."""
        os.makedirs(into)
        debs = os.path.join(into, '.debs')
        os.makedirs(debs)
        for first in range(0, len(packages), at_once):
            self.call('apt-get', 'download', *packages[first:first + at_once], cwd=debs)
            if tell:
                tell(min(first + at_once, len(packages)))
        files = sorted(glob.glob(debs + '/*.deb'))
        if len(files) != len(packages):
            raise DebianError('%d packages wanted, %d came' % (len(packages), len(files)))
        for deb in files:
            subprocess.run(['dpkg-deb', '-x', deb, into], check=True, timeout=300)
        shutil.rmtree(debs)
