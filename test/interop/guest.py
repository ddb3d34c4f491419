# SPDX-License-Identifier: BSD-3-Clause
"""A guest with Linux's rdma_rxe, behind a tap in the network namespace of this process."""

import base64
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import uuid

import namespace
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


def missing(suite='bookworm'):
    """Returns why no guest can run here, or None."""
    if shutil.which(QEMU) is None:
        return '%s is not installed (package qemu-system-x86)' % QEMU
    if paths.image(suite) is None:
        return 'no guest image in %s: run test/interop/vm/build' % os.path.join(paths.CACHE, suite)
    return None


def missing_siw(suite='bookworm'):
    """Returns why no guest can have a siw0, or None."""
    if missing(suite) or paths.siw(suite):
        return missing(suite)
    why = paths.read_text(os.path.join(paths.CACHE, suite, 'siw-missing'))
    return 'no module siw for the guest: %s' % (why or 'run test/interop/vm/build')


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


class Guest:
    """One guest: eth0 at the end of `tap`, rxe0 on it.

    number: 2 to 254, last byte of its addresses (192.0.2.N, 2001:db8::N) and part of its MAC
    and tap name. mtu: of eth0 and tap; RoCE's is the largest of 256 ... 4096 that fits with
    its headers (1500: 1024, 4200: 4096). bridge: the tap becomes a port of it.
    """

    def __init__(self, number=2, mtu=1500, bridge=None, suite='bookworm', echo=print):
        self.number = number
        self.mtu = mtu
        self.bridge = bridge
        self.suite = suite
        self.echo = echo
        self.name = 'g%d' % number
        self.tap = 'tap-' + self.name
        self.ipv4 = '192.0.2.%d' % number
        self.ipv6 = '2001:db8::%x' % number
        self.mac = '52:54:00:00:02:%02x' % number
        self.port = 23000 + number
        self.qemu = None
        self.log = None
        self.carried = {}

    def __enter__(self):
        self.boot()
        return self

    def __exit__(self, *_):
        self.stop()

    def make_tap(self):
        namespace.ip('tuntap', 'add', 'dev', self.tap, 'mode', 'tap')
        namespace.ip('link', 'set', self.tap, 'mtu', str(self.mtu))
        if self.bridge:
            namespace.ip('link', 'set', self.tap, 'master', self.bridge)
        namespace.ip('link', 'set', self.tap, 'up')

    def command(self):
        reason = missing(self.suite)
        if reason:
            raise GuestError(reason)
        kernel, initramfs = paths.image(self.suite)
        options = KERNEL_OPTIONS + ['vm_ip=%s/24,%s/64' % (self.ipv4, self.ipv6),
                                    'vm_mac=' + self.mac, 'vm_mtu=%d' % self.mtu,
                                    'vm_name=' + self.name]
        # csum=off: the kernel computes checksums itself, so that what passes the tap has them.
        return [QEMU, '-name', self.name, '-M', 'pc', '-accel', 'tcg,thread=multi', '-cpu', 'max',
                '-smp', '2', '-m', '512', '-nodefaults', '-no-user-config', '-display', 'none',
                '-no-reboot', '-kernel', kernel, '-initrd', initramfs,
                '-append', ' '.join(options),
                '-chardev', 'stdio,id=console,signal=off', '-serial', 'chardev:console',
                '-netdev', 'tap,id=n0,ifname=%s,script=no,downscript=no' % self.tap,
                '-device', 'virtio-net-pci,netdev=n0,mac=%s,addr=3,romfile=,csum=off,'
                'guest_csum=off,host_mtu=%d' % (self.mac, self.mtu),
                '-netdev', 'user,id=n1,restrict=on,ipv6=off,'
                'hostfwd=tcp:127.0.0.1:%d-10.0.2.15:2323' % self.port,
                '-device', 'virtio-net-pci,netdev=n1,addr=4,romfile=']

    def console(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode(errors='replace')

    def start(self):
        """Starts booting."""
        self.log = tempfile.TemporaryFile()
        self.carried = {}
        if not os.path.exists('/proc/sys/net/ipv4/conf/' + self.tap):
            self.make_tap()
        self.began = time.monotonic()
        self.qemu = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=self.log,
                                     stderr=self.log)

    def wait_ready(self, seconds=BOOT_SECONDS):
        while True:
            ended = self.qemu.poll()
            text = self.console()
            said = re.search(r'interop-guest: (READY|FAILED)(.*)\n', text)
            if said and said[1] == 'READY':
                self.echo('%s: Linux%s, %s mtu %d, up after %.1f s' % (
                    self.name, said[2].rstrip(), self.ipv4, self.mtu,
                    time.monotonic() - self.began))
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


    def change_to_siw(self):
        """Replaces rxe0 by siw0 on eth0: iWARP over the kernel's TCP. librdmacm would choose rxe0."""
        self.put(paths.siw(self.suite), '/tmp/siw.ko')
        self.run('set -e; modprobe libcrc32c; modprobe iw_cm; insmod /tmp/siw.ko; '
                 'rdma link del rxe0; rdma link add siw0 type siw netdev eth0')
        self.wait_for("rdma link show siw0/1 | grep -q 'state ACTIVE'")

    # Faults of the path, for RoCEv2 packets only: ARP and TCP are not affected.

    def netem(self, out=None, into=None):
        """Sets netem's options for packets that this guest sends and gets; None: no faults. As in
        there.netem(out='loss 10%', into='delay 5ms reorder 25% duplicate 5%')."""
        script = ['set -e', 'for m in sch_netem sch_prio sch_ingress cls_u32 act_mirred; do '
                  'modprobe $m; done', 'modprobe ifb numifbs=1', 'ip link set ifb0 up',
                  'tc qdisc del dev eth0 root 2>/dev/null || true',
                  'tc qdisc del dev eth0 ingress 2>/dev/null || true',
                  'tc qdisc del dev ifb0 root 2>/dev/null || true']
        match = [(kind, 'u32 match %s protocol 17 0xff match %s dport 4791 0xffff' % (what, what))
                 for kind, what in (('ip', 'ip'), ('ipv6', 'ip6'))]
        if out:
            script += ['tc qdisc add dev eth0 root handle 1: prio bands 4',
                       'tc qdisc add dev eth0 parent 1:4 handle 40: netem limit 10000 ' + out]
            script += ['tc filter add dev eth0 parent 1: protocol %s prio %d %s flowid 1:4' % (
                kind, number, rule) for number, (kind, rule) in enumerate(match, 1)]
        if into:
            script += ['tc qdisc add dev ifb0 root netem limit 10000 ' + into,
                       'tc qdisc add dev eth0 ingress']
            script += ['tc filter add dev eth0 parent ffff: protocol %s prio %d %s '
                       'action mirred egress redirect dev ifb0' % (kind, number, rule)
                       for number, (kind, rule) in enumerate(match, 1)]
        self.run('\n'.join(script))


def boot_all(guests):
    """Boots several guests at a time."""
    for guest in guests:
        guest.start()
    try:
        for guest in guests:
            guest.boot()
    except BaseException:
        for guest in guests:
            guest.stop()
        raise


def make_bridge(name='br0', mtu=1500):
    """Makes a bridge for the taps of several guests that sends no packets of its own."""
    namespace.ip('link', 'add', name, 'type', 'bridge', 'forward_delay', '0', 'mcast_snooping',
                 '0')
    namespace.ip('link', 'set', name, 'mtu', str(mtu), 'up')


def host_address(interface, address='192.0.2.1/24'):
    """Gives the host's kernel an address, for the TCP connections with which programs start."""
    namespace.ip('addr', 'add', address, 'dev', interface)
