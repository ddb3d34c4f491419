# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces of tests, which last until close()."""

import subprocess


class NetnsError(Exception):
    pass


class Netns:
    """A network namespace. more: further namespaces as options of unshare; script: runs in it first."""

    def __init__(self, more=(), script=':'):
        # The namespaces exist once the process prints a line. They last as long as it does.
        try:
            self.holder = subprocess.Popen(['unshare', '--net', *more, 'sh', '-c', '(%s) && echo up && exec sleep 3600' % script],
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        except FileNotFoundError as err:
            raise NetnsError(str(err)) from None
        self.pid = self.holder.pid
        self.enter = ['nsenter', '--net', *more, '--target', str(self.pid)]
        if self.holder.stdout.readline() != 'up\n':
            raise NetnsError(self.close())
        try:
            self.ip('link', 'set', 'lo', 'up')
        except NetnsError:
            self.close()
            raise

    def ip(self, *args):
        """Runs ip in the namespace."""
        try:
            res = subprocess.run([*self.enter, 'ip', *args], stderr=subprocess.PIPE, text=True)
        except FileNotFoundError as err:
            raise NetnsError(str(err)) from None
        if res.returncode != 0:
            raise NetnsError('ip %s: %s' % (' '.join(args), res.stderr.strip()))

    def close(self):
        """Ends the namespaces. Returns what their process wrote to stderr."""
        self.holder.kill()
        return self.holder.communicate()[1].strip()


class Hosts:
    """Two namespaces in the place of two hosts, with a link for the kernel's TCP: tcp0, 198.51.100.1 and .2.
    roce: name of another link, for packets of DPDK ports."""

    def __init__(self, roce=None, more=(), scripts=(':', ':')):
        self.sides = []
        try:
            for script in scripts:
                self.sides.append(Netns(more, script))
            self.link('tcp0')
            for i, side in enumerate(self.sides, 1):
                side.ip('addr', 'add', '198.51.100.%d/24' % i, 'dev', 'tcp0')
            if roce:
                self.link(roce, address=False)
        except NetnsError:
            self.close()
            raise
        self.enter = [side.enter for side in self.sides]

    def link(self, name, address=True):
        """Adds a link with an end of that name in both. Without @address, the kernel sends nothing there, so that only
        the port answers."""
        one, two = self.sides
        one.ip('link', 'add', name, 'type', 'veth', 'peer', 'name', name, 'netns', str(two.pid))
        for side in self.sides:
            if not address:
                side.ip('link', 'set', name, 'addrgenmode', 'none')
            side.ip('link', 'set', name, 'up')

    def close(self):
        for side in self.sides:
            side.close()
