# SPDX-License-Identifier: BSD-3-Clause
"""A guest in QEMU: starts it, waits for its agent (vm/guest), runs commands there."""

import base64
import ctypes
import mmap
import os
import platform
import re
import socket
import subprocess
import tempfile
import time
import uuid

import paths

QEMU = 'qemu-system-x86_64'
# A boot takes 4 s on an idle machine, and took 54 s on a busy one.
BOOT_SECONDS = 240
# Requests get this many seconds more than the command in the guest.
GRACE = 30
# no_timer_check: otherwise the kernel waits, in its own time, for ticks that a busy host delivers
# late, and panics ("IO-APIC + timer doesn't work").
KERNEL_OPTIONS = '''console=ttyS0 panic=-1 quiet loglevel=4 edd=off nokaslr mitigations=off
  no_timer_check tsc=reliable random.trust_cpu=on rcupdate.rcu_expedited=1'''.split()


class GuestError(Exception):
    pass


def missing_image(suite):
    """Returns why there is no image with the kernel of that suite, or None."""
    if paths.image(suite) is None:
        return 'no guest image in %s: run test/interop/vm/build' % os.path.join(paths.CACHE, suite)
    return None


def clock_options():
    """Returns the kernel option with the rate of the TSC, which QEMU passes through. A guest that measures
    the rate on a busy host may be wrong by a factor of ten, and all its timeouts with it."""
    if platform.machine() != 'x86_64':
        return []
    try:
        code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return []  # the system forbids memory that is both writable and executable
    # rdtsc; shl $32, %rdx; or %rdx, %rax; ret
    code.write(bytes.fromhex('0f31 48c1e220 4809d0 c3'))
    rdtsc = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))

    def both():
        """Returns the time in ns and the TSC, of the try that read them closest together."""
        tries = [(time.monotonic_ns(), rdtsc(), time.monotonic_ns()) for _ in range(100)]
        before, ticks, after = min(tries, key=lambda t: t[2] - t[0])
        return (before + after) // 2, ticks
    first = both()
    time.sleep(0.05)
    last = both()
    return ['tsc_early_khz=%d' % ((last[1] - first[1]) * 1000000 // (last[0] - first[0]))]


class Request:
    """A command that runs in the guest. `output` grows while it runs (stdout and stderr)."""

    def __init__(self, port, verb, seconds, head, payload=b''):
        self.text = head
        self.id = uuid.uuid4().hex
        self.status = None
        self.data = b''
        self.deadline = time.monotonic() + seconds + GRACE
        try:
            self.socket = socket.create_connection(('127.0.0.1', port), timeout=GRACE)
            self.socket.sendall(('%s %s\n' % (self.id, verb)).encode() + payload)
        except OSError as err:
            raise GuestError('%s: no answer from the guest: %s' % (head, err)) from None

    @property
    def output(self):
        return self.raw.decode(errors='replace')

    @property
    def raw(self):
        text = self.data.split(('@@%s begin\n' % self.id).encode(), 1)
        return text[1].split(('\n@@%s rc ' % self.id).encode())[0] if len(text) == 2 else b''

    def poll(self, seconds=0.0):
        """Reads available output, waiting at most that many seconds. Returns the exit status, None
        while it runs."""
        if self.status is not None:
            return self.status
        self.socket.settimeout(max(seconds, 0.001))
        try:
            data = self.socket.recv(1 << 16)
        except socket.timeout:
            return None
        except OSError as err:
            raise GuestError('%s: %s' % (self.text, err)) from None
        if not data:
            raise GuestError('%s: the guest closed the connection\n%s' % (self.text, self.output))
        self.data += data
        end = re.search(('\n@@%s rc (\\d+)\n' % self.id).encode(), self.data)
        if end:
            self.status = int(end[1])
            self.socket.close()
        return self.status

    def write(self, text):
        """Writes more input to a command that was started with stdin."""
        self.socket.settimeout(GRACE)
        self.socket.sendall(text.encode())

    def read_line(self, start=0):
        """Returns the first whole line of output from byte `start` on; waits for it."""
        while b'\n' not in self.raw[start:]:
            if self.status is not None:
                raise GuestError('%s: ended with %d\n%s' % (self.text, self.status, self.output))
            if time.monotonic() > self.deadline:
                raise GuestError('%s: no line of output\n%s' % (self.text, self.output))
            self.poll(1.0)
        return self.raw[start:].split(b'\n', 1)[0].decode(errors='replace')

    def wait(self):
        """Waits for the end. Returns the exit status; 124 if the guest ended it after its time limit."""
        while self.poll(1.0) is None:
            if time.monotonic() > self.deadline:
                raise GuestError('%s: no end\n%s' % (self.text, self.output))
        return self.status

    def check(self):
        """Waits for success. Returns the output."""
        if self.wait() != 0:
            raise GuestError('%s: status %d\n%s' % (self.text, self.status, self.output))
        return self.output


def b64(text):
    return base64.b64encode(text.encode()).decode()


class Machine:
    """One guest. number: 2 to 254, of its name and port; memory: in MiB.

    A class of it gives QEMU, the chipset, and devices beside the NIC for requests.
    """
    QEMU = [QEMU]
    CHIPSET = 'pc'
    memory = 512

    def __init__(self, number, suite, echo):
        self.number = number
        self.suite = suite
        self.echo = echo
        self.name = 'g%d' % number
        self.port = 23000 + number
        self.qemu = None
        self.log = None
        self.up = None      # seconds from the start of QEMU until the last boot was done
        self.carried = {}

    def __enter__(self):
        self.boot()
        return self

    def __exit__(self, *_):
        self.stop()

    def settings(self):
        """Returns settings of vm/guest/init, vm_NAME=VALUE."""
        return ['vm_name=' + self.name]

    def devices(self):
        """Returns QEMU's options for the devices of a class."""
        return []

    def about(self):
        """Returns what the line about a boot says of this guest."""
        return self.suite

    def command(self):
        kernel, initramfs = paths.image(self.suite)
        return [*self.QEMU, '-name', self.name, '-M', self.CHIPSET, '-accel', 'tcg,thread=multi', '-cpu', 'max',
                '-smp', '2', '-m', str(self.memory), '-nodefaults', '-no-user-config', '-display', 'none',
                '-no-reboot', '-kernel', kernel, '-initrd', initramfs,
                '-append', ' '.join(KERNEL_OPTIONS + clock_options() + self.settings()),
                '-chardev', 'stdio,id=console,signal=off', '-serial', 'chardev:console', *self.devices(),
                '-netdev', 'user,id=n1,restrict=on,ipv6=off,'
                'hostfwd=tcp:127.0.0.1:%d-10.0.2.15:2323' % self.port,
                '-device', 'virtio-net-pci,netdev=n1,addr=4,romfile=']

    def console(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode(errors='replace')

    def start(self):
        """Starts booting."""
        self.log = tempfile.TemporaryFile()
        self.carried = {}
        self.began = time.monotonic()
        self.qemu = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=self.log,
                                     stderr=self.log)

    def wait_ready(self, seconds=BOOT_SECONDS):
        while True:
            ended = self.qemu.poll()
            text = self.console()
            said = re.search(r'interop-guest: (READY|FAILED)(.*)\n', text)
            if said and said[1] == 'READY':
                self.up = time.monotonic() - self.began
                self.echo('%s: Linux%s, %s, up after %.1f s' % (
                    self.name, said[2].rstrip(), self.about(), self.up))
                return
            if said or ended is not None or time.monotonic() - self.began > seconds:
                why = said[0].strip() if said else 'QEMU ended with %s' % ended \
                    if ended is not None else 'not up after %d s' % seconds
                raise GuestError('%s: %s\n%s' % (self.name, why, text[-2000:]))
            time.sleep(0.05)

    def boot(self):
        """Starts and waits; tries once more if that fails."""
        for last in (False, True):
            try:
                if self.qemu is None:
                    self.start()
                self.wait_ready()
                return self
            except GuestError as err:
                self.stop()
                if last:
                    raise
                self.echo('%s\nonce more' % err)
            except BaseException:
                self.stop()
                raise

    def stop(self):
        if self.qemu is not None:
            self.qemu.kill()
            self.qemu.wait(60)
            self.qemu = None

    # Commands in the guest.

    def begin(self, script, seconds=60, stdin=False):
        """Starts a shell script in the guest, with a time limit. Returns its Request."""
        verb = '%s %d %s' % ('i' if stdin else 'x', seconds, b64(script))
        return Request(self.port, verb, seconds, '%s: %s' % (self.name, script))

    def run(self, script, seconds=60):
        """Runs a shell script in the guest to its successful end. Returns its output."""
        return self.begin(script, seconds).check()

    def put(self, path, target):
        """Copies a file into the guest, with its mode."""
        with open(path, 'rb') as f:
            data = f.read()
        verb = 'p %d %o %s' % (len(data), os.stat(path).st_mode & 0o777, b64(target))
        Request(self.port, verb, 60, '%s: put %s' % (self.name, target), data).check()

    def get(self, path):
        """Returns the bytes of a file in the guest."""
        request = self.begin("cat '%s'" % path)
        request.check()
        return request.raw

    def wait_for(self, condition, seconds=60):
        """Polls inside the guest until a shell command succeeds."""
        request = self.begin('until %s; do usleep 20000; done >/dev/null 2>&1' % condition,
                             seconds)
        if request.wait() != 0:
            raise GuestError('%s: %s does not come true within %d s\n%s' % (
                self.name, condition, seconds, request.output))

    def serve(self, script, ready, seconds=60):
        """Starts a server and waits until `ready` (a shell command) succeeds. Returns its Request."""
        request = self.begin(script, seconds)
        poll = self.begin('until %s; do usleep 20000; done >/dev/null 2>&1' % ready, seconds)
        while poll.poll(0.05) is None:
            if request.poll() is not None:
                raise GuestError('%s: ended with %d before it listened\n%s' % (
                    request.text, request.status, request.output))
        if poll.status != 0:
            raise GuestError('%s: does not listen\n%s' % (request.text, request.output))
        return request

    def serve_tcp(self, script, port=18515, seconds=60):
        """A server whose clients first come by TCP: ibv_*_pingpong, perftest without -R."""
        return self.serve(script, "netstat -ltn | grep -q ':%d '" % port, seconds)

    def serve_cm(self, script, seconds=60):
        """A server whose clients come by rdma_cm: rping, perftest -R."""
        return self.serve(script, 'rdma resource show cm_id | grep -q LISTEN', seconds)
