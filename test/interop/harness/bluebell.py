# SPDX-License-Identifier: BSD-3-Clause
"""Peers on Bluebell: processes of bb_peer.c on the host."""

import os
import select
import subprocess
import tempfile
import time

import paths  # noqa: F401
import peer
from apptest import own_cpu

EAL = ['--no-huge', '-m', '256', '--no-pci', '--no-shconf', '--no-telemetry']
# A line is answered at once, a poll within 5 s; the machine may be busy.
SECONDS = 120
# More than all conversations of a run; a full capture gets no more packets.
CAPTURE_MIB = 1024


class Process:
    """One process of bb_peer with one or two devices. eal: further options of EAL, as --vdev=...
    capture: the first device writes sent and received packets to a file while the process lives."""

    def __init__(self, program, devices, eal=(), capture=False):
        self.name = ' and '.join(devices)
        self.capture = None
        if capture:
            self.folder = tempfile.TemporaryDirectory()
            self.capture = os.path.join(self.folder.name, 'capture.pcapng')
            devices = ['%s,capture=%s,capture_max=%d' % (devices[0], self.capture, CAPTURE_MIB)] + \
                list(devices[1:])
        self.log = tempfile.TemporaryFile()
        self.child = subprocess.Popen([program, '-l', str(own_cpu())] + EAL + list(eal) + ['--'] +
                                      list(devices), stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=self.log)
        self.data = b''

    def said(self):
        """Returns the log of EAL and the library."""
        return os.pread(self.log.fileno(), 1 << 20, 0).decode(errors='replace')[-4000:]

    def write_line(self, line):
        try:
            self.child.stdin.write(line.encode() + b'\n')
            self.child.stdin.flush()
        except OSError as err:
            raise peer.PeerError('%s: %s: %s\n%s' % (self.name, line, err, self.said())) from None

    def read_line(self):
        end = time.monotonic() + SECONDS
        while b'\n' not in self.data:
            ready = select.select([self.child.stdout], [], [], max(end - time.monotonic(), 0))[0]
            data = os.read(self.child.stdout.fileno(), 1 << 16) if ready else b''
            if not data:
                raise peer.PeerError('%s: %s\n%s' % (
                    self.name, 'ended' if ready else 'no answer for %d s' % SECONDS, self.said()))
            self.data += data
        line, self.data = self.data.split(b'\n', 1)
        return line.decode(errors='replace')

    def close(self):
        """Ends it and returns its log. Raises if it failed, as by a report of a sanitizer."""
        self.child.stdin.close()
        try:
            status = self.child.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.child.kill()
            status = 'kill'
        self.child.stdout.close()
        if status != 0:
            raise peer.PeerError('%s: ended with %s\n%s' % (self.name, status, self.said()))
        return self.said()

    def kill(self):
        self.child.kill()
        self.child.wait()


class Bluebell(peer.Peer):
    """A peer: one of the devices of a Process."""
    # 4 s, 8 times: a guest may be silent that long. The device itself retries earlier.
    timeout = lossy = 20

    def __init__(self, process, on=0, **gids):
        super().__init__('%s of %s' % (on, process.name), **gids)
        self.process = process
        self.on = on
        self.read_line = process.read_line
        if on == 0:
            try:
                self.reply('start')
            except peer.VerbsError:
                print(process.said(), flush=True)
                raise

    def standing(self, n):
        return '%s\ndevice: %s\n%s' % (super().standing(n), self('stats'), self.process.said())

    def capture(self):
        return self.process.capture

    def write_line(self, line):
        self.process.write_line('%s on=%d' % (line, self.on) if self.on else line)
