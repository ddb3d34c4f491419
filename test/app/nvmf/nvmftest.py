# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the tests of examples/nvmf/client: a target, clients, and the data in the file."""

import ctypes
import errno
import json
import os
import platform
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading

from apptest import CPUS, AppTest

TARGET = os.path.abspath(sys.argv.pop())  # meson passes it as the second argument
EAL = ['--no-huge', '-m', '256', '--no-pci', '--no-shconf', '--no-telemetry',
       '--log-level=lib.eal:error']
WAIT = 150  # seconds; sanitizers are slow
BS = 4096
UNIT = 512  # pattern.h: each unit has a stamp
STAMP = struct.Struct('<QQQQ')
MAGIC = 0x6d7453656c754242
ADDR = '192.0.2.1:4420'
NQN = 'nqn.2026-01.org.example:disk'


def lcores(first, n=1):
    """Returns EAL's option for @n lcores on the available processors."""
    return ['--lcores', ','.join('%d@%d' % (i, CPUS[(first + i) % len(CPUS)]) for i in range(n))]


class Process:
    """A running program. Its output is read as it arrives, so that no pipe fills up."""

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
        """Waits for a line on stderr."""
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


# Numbers of system calls: x86-64, 64-bit Arm.
CALLS = {'io_uring_setup': (425, 425), 'fdatasync': (75, 83), 'pwritev2': (328, 287)}


def refuse(call, error, flags=None):
    """Returns a function for a child before exec that installs a filter of system calls, as
    containers have. With @flags a call is refused only if its sixth argument has one of them."""
    number = CALLS[call][platform.machine() == 'aarch64']
    ret = [(0x06, 0, 0, 0x00050000 | error),  # BPF_RET | BPF_K: SECCOMP_RET_ERRNO
           (0x06, 0, 0, 0x7fff0000)]          # SECCOMP_RET_ALLOW
    # BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JSET | BPF_K; struct seccomp_data starts with the
    # number.
    more = [] if flags is None else [(0x20, 0, 0, 16 + 5 * 8), (0x45, 0, 1, flags)]
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1 + len(more), number)] + more + ret

    def apply():
        libc = ctypes.CDLL(None, use_errno=True)
        code = ctypes.create_string_buffer(b''.join(struct.pack('=HBBI', *s) for s in steps))
        prog = ctypes.create_string_buffer(struct.pack('@HP', len(steps), ctypes.addressof(code)))
        # PR_SET_NO_NEW_PRIVS; PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, prog) != 0:
            raise OSError(ctypes.get_errno(), 'no seccomp filter')
    return apply


refuse_io_uring = refuse('io_uring_setup', errno.EPERM)


class NvmfTest(AppTest):
    eal = EAL
    serial = 0
    refused = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get('NVMF_TEST_DIR'))
        self.addCleanup(self.folder.cleanup)
        self.disk = os.path.join(self.folder.name, 'disk')
        NvmfTest.serial += 1
        self.fabric = 'nv%d_%d' % (os.getpid(), NvmfTest.serial)
        self.host = 1

    def device(self, i=0):
        """Returns device @i of a process, a host of its own on the fabric of this test."""
        self.host += 1
        return 'soft%d,shm=%s,ip=192.0.2.%d/24' % (i, self.fabric, self.host)

    def run_target(self, *space, io=None, more=(), **how):
        """Starts a target of file @self.disk, with the words @space of its namespace."""
        cmd = [TARGET] + lcores(0) + self.eal + [
            '--', '--device', 'soft0,shm=%s,ip=192.0.2.1/24' % self.fabric, '--listen', ADDR, '--queues', '8',
            '--subsystem', NQN, '--namespace', ','.join(('file:' + self.disk,) + space), '--io', io or self.io()]
        target = Process(cmd + list(more), **how)
        self.addCleanup(self.kill, target)
        return target

    def target(self, *space, io=None, more=(), **how):
        """Starts a target and waits until it listens."""
        target = self.run_target(*space, io=io, more=more, **how)
        for line in target.proc.stdout:
            if ' port ' in line:
                return target
        self.fail('no target: %s' % (target.end(),))

    def io(self):
        """Returns 'uring', or 'sync' where the kernel or a container refuses io_uring."""
        if NvmfTest.refused is None:
            # A separate file: the test may have made its disk already.
            disk, self.disk = self.disk, self.disk + '.uring'
            target = self.run_target('size=4096', io='uring')
            found = any(' port ' in line and target.proc.send_signal(signal.SIGINT) is None for line in target.proc.stdout)
            _, _, err = target.end()
            if not found:
                self.assertIn('refuses io_uring', err)
            NvmfTest.refused = not found
            os.unlink(self.disk)
            self.disk = disk
        return 'sync' if NvmfTest.refused else 'uring'

    def kill(self, process):
        if process.proc.poll() is None:
            process.proc.kill()
            process.end()

    def start_client(self, args, n=1):
        cmd = [self.program] + lcores(1, n) + self.eal + ['--', '--connect', ADDR, '--subsystem', NQN, '--wait', '120']
        for i in range(n):
            cmd += ['--device', self.device(i)]
        client = Process(cmd + list(args))
        self.addCleanup(self.kill, client)
        return client

    def client(self, *args, rc=0, n=1):
        """Runs a client to its end. Returns its JSON and its output."""
        path = os.path.join(self.folder.name, 'result%d' % self.host)
        got, out, err = self.start_client(list(args) + ['--json', path], n).end()
        self.assertNotIn('Sanitizer', err)
        self.assertEqual(got, rc, out + err)
        with open(path) as f:
            r = json.load(f)
        self.assertEqual(r['exit_status'], rc)
        return r, out + err

    def stop(self, target):
        """Ends a target by SIGINT. Returns its reads, its writes, and what it has written to stderr."""
        rc, out, err = target.end(signal.SIGINT)
        self.assertEqual(rc, 0, out + err)
        self.assertNotIn('Sanitizer', err)
        self.assertNotIn('runtime error', err)
        found = re.search(r'(\d+) reads, (\d+) writes', out)
        return int(found.group(1)), int(found.group(2)), err

    def stamps(self, start=0):
        """Returns the write number of each block of the file from @start on, read without Bluebell code."""
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
