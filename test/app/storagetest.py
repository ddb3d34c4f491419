# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of examples/storage_plane share: a target, clients, and the data in the file."""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import threading

from apptest import CPUS, AppTest

TARGET = os.path.abspath(sys.argv.pop())  # the second argument that meson gives
EAL = ['--no-huge', '-m', '256', '--no-pci', '--no-shconf', '--no-telemetry',
       '--log-level=lib.eal:error']
WAIT = 150  # seconds; sanitizers are slow
BS = 4096
UNIT = 512  # pattern.h: each has a stamp
STAMP = struct.Struct('<QQQQ')
MAGIC = 0x6d7453656c754242


def lcores(first, n=1):
    """EAL's option for @n lcores on the processors there are."""
    return ['--lcores', ','.join('%d@%d' % (i, CPUS[(first + i) % len(CPUS)]) for i in range(n))]


class Process:
    """A program that runs; its lines are read as they come, so that no pipe fills."""

    def __init__(self, cmd, **how):
        self.proc = subprocess.Popen(cmd, text=True, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, **how)
        self.err = []
        self.said = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.proc.stderr:
            with self.said:
                self.err.append(line)
                self.said.notify_all()

    def wait_err(self, pattern):
        """Wait for a line on stderr."""
        with self.said:
            if not self.said.wait_for(lambda: any(re.search(pattern, l) for l in self.err), WAIT):
                raise AssertionError('no %s in %s' % (pattern, self.err))

    def end(self, sig=None):
        if sig is not None and self.proc.poll() is None:
            self.proc.send_signal(sig)
        out = self.proc.stdout.read()
        rc = self.proc.wait(timeout=WAIT)
        self.reader.join(WAIT)
        self.proc.stdout.close()
        self.proc.stderr.close()
        return rc, out, ''.join(self.err)


class StorageTest(AppTest):
    serial = 0

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get('STORAGE_TEST_DIR'))
        self.addCleanup(self.folder.cleanup)
        self.disk = os.path.join(self.folder.name, 'disk')
        StorageTest.serial += 1
        self.fabric = 'st%d_%d' % (os.getpid(), StorageTest.serial)
        self.host = 1

    def device(self, i=0):
        """The @i-th device of a process, a host of its own on the fabric of this test."""
        self.host += 1
        return 'soft%d,shm=%s,ip=192.0.2.%d/24' % (i, self.fabric, self.host)

    def run_target(self, args, n=1, **how):
        cmd = [TARGET] + lcores(0, n) + EAL + ['--', '--file', self.disk, '--listen', '127.0.0.1:0']
        for i in range(n):
            cmd += ['--device', self.device(i)]
        target = Process(cmd + args, **how)
        self.addCleanup(self.kill, target)
        return target

    def target(self, *args, **how):
        """Start one, and wait until it listens."""
        target = self.run_target(list(args), **how)
        for line in target.proc.stdout:
            found = re.search(r'queue 0 at port (\d+)', line)
            if found:
                self.port = int(found.group(1))
                return target
        self.fail('no target: %s' % (target.end(),))

    def kill(self, process):
        if process.proc.poll() is None:
            process.proc.kill()
            process.end()

    def start_client(self, args, n=1):
        cmd = [self.program] + lcores(1, n) + EAL + ['--', '--connect', '127.0.0.1:%d' % self.port,
                                                     '--wait', '120']
        for i in range(n):
            cmd += ['--device', self.device(i)]
        client = Process(cmd + list(args))
        self.addCleanup(self.kill, client)
        return client

    def client(self, *args, rc=0, n=1):
        """Run one to its end: its JSON, and all it said."""
        path = os.path.join(self.folder.name, 'result%d' % self.host)
        got, out, err = self.start_client(list(args) + ['--json', path], n).end()
        self.assertNotIn('Sanitizer', err)
        self.assertEqual(got, rc, out + err)
        with open(path) as f:
            r = json.load(f)
        self.assertEqual(r['exit_status'], rc)
        return r, out + err

    def stop(self, target):
        """End a target as a person would; what it counted."""
        import signal
        rc, out, err = target.end(signal.SIGINT)
        self.assertEqual(rc, 0, out + err)
        self.assertNotIn('Sanitizer', err)
        self.assertNotIn('runtime error', err)
        found = re.search(r'(\d+) reads, (\d+) writes \((\d+) FUA\), (\d+) flushes, (\d+) refused',
                          out)
        names = ('reads', 'writes', 'fua', 'flushes', 'refused')
        return dict(zip(names, map(int, found.groups()))), err

    def stamps(self, start=0):
        """What is in the file from @start on, read without any of our code: write number of each block."""
        found = {}
        with open(self.disk, 'rb') as f:
            f.seek(start)
            data = f.read(1 << 20)
        for at in range(start, start + len(data), BS):
            block = data[at - start:at - start + BS]
            if block.count(0) == BS:
                continue
            seqs = set()
            for unit in range(0, BS, UNIT):
                magic, offset, seq, _ = STAMP.unpack_from(block, unit)
                self.assertEqual((magic, offset), (MAGIC, at + unit))
                seqs.add(seq)
            self.assertEqual(len(seqs), 1, 'block at %d is of writes %s' % (at, seqs))
            found[at] = seqs.pop()
        return found
