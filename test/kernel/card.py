# SPDX-License-Identifier: BSD-3-Clause
"""A guest whose PCI card is bb_hca: Linux's own mlx5 driver on the software device."""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'interop'))

import paths  # noqa: E402
import carry  # noqa: E402
import machine  # noqa: E402
import namespace  # noqa: E402

# bb_hca has this many seconds to listen, and to end after SIGTERM.
SERVER_SECONDS = 60
# A command in the guest that hangs fails after this time; none is judged by its time.
SECONDS = 120
# Stores of a doorbell flood, each of which is a message of QEMU.
FLOOD = 5000
FLOOD_SECONDS = 900
# Lines of the kernel's log that are no fault.
EXPECTED = [
    # The card has no vendor-specific capability, through which the kernel reads crash dumps.
    r'mlx5_pci_vsc_init:.*Failed to get valid vendor specific ID',
    # A busy host stops the guest's CPUs for a while.
    r'hrtimer: interrupt took', r'perf: interrupt took too long', r'clocksource: ', r'workqueue: .* hogged CPU',
]
EAL = ['--no-huge', '-m', '256', '--no-pci', '--no-telemetry', '--no-shconf', '--log-level=lib.eal:4']
LEVELS = {0: 'emergency', 1: 'alert', 2: 'critical', 3: 'error', 4: 'warning'}


def missing(program, suite):
    """Returns why no guest with the card can run here, or None."""
    if not os.path.exists(program):
        return '%s is not built' % program
    if paths.qemu() is None:
        return 'no QEMU in %s: run test/interop/vm/build --qemu' % os.path.join(paths.CACHE, 'qemu')
    return machine.missing_image(suite)


def enter_or_skip(program, suite, tap=False):
    """Enters a namespace for guests with the card; ends as a skipped test where none can run."""
    reason = missing(program, suite)
    if reason:
        namespace.skip(reason)
    namespace.enter_or_skip(tap)


class Card(machine.Machine):
    """One guest. @program: bb_hca, with @options after those of EAL; None: a guest without a card. The guest has
    @functions of bb_hca: PCI devices 0000:00:01.0 and on. @processes: a process of bb_hca for each function, each
    given by its further options of EAL and its options; None: one process serves all functions. @telemetry: the one
    process serves DPDK's telemetry, for counters(). @number: see Machine. @beside: a guest that was started before;
    its process of bb_hca serves this guest, too, with the functions that it does not use itself (@spare)."""
    # 10.1 or newer: the first with vfio-user-pci. The card is a PCIe device, so the chipset has PCIe. The
    # server maps the guest's memory, so that is shared.
    CHIPSET = 'q35,memory-backend=mem'
    memory = 1536

    def __init__(self, program, options, suite='bookworm', echo=print, functions=1, processes=None,
                 telemetry=False, number=2, spare=0, beside=None):
        super().__init__(number, suite, echo)
        self.QEMU = paths.qemu()
        self.program = program
        self.options = options
        self.functions = functions
        self.spare = spare
        self.beside = beside
        self.processes = processes
        self.telemetry = telemetry
        self.folder = None
        self.servers = []
        self.server_log = tempfile.TemporaryFile()

    def sockets(self):
        """Returns the sockets of all functions that the server has."""
        return [os.path.join(self.folder.name, 'hca%d' % i) for i in range(self.functions + self.spare)]

    def devices(self):
        options = ['-object', 'memory-backend-memfd,id=mem,size=%dM,share=on' % self.memory]
        if self.program is None:
            return options
        mine = self.beside.sockets()[-self.functions:] if self.beside else self.sockets()[:self.functions]
        for i, path in enumerate(mine):
            # A socket's address has this form only. The guest's NIC has address 4. After 5 s without a reply,
            # such as on a busy host, QEMU would give the card up.
            options += ['-device', json.dumps({'driver': 'vfio-user-pci', 'id': 'card%d' % i, 'addr': '%d' % (i + 1),
                                               'x-msg-timeout': 60000,
                                               'socket': {'type': 'unix', 'path': path}})]
        return options

    def settings(self):
        # A busy host stops the guest's CPUs for seconds, of which the kernel would warn.
        return super().settings() + ['nowatchdog', 'rcupdate.rcu_cpu_stall_suppress=1']

    def about(self):
        return ' '.join([os.path.basename(self.program), *self.options]) if self.program else 'without a card'

    def start(self):
        if self.program and not self.servers and not self.beside:
            self.start_server()
        super().start()

    def stop_guest(self):
        """Kills QEMU. The server goes on."""
        super().stop()

    def start_server(self):
        self.folder = tempfile.TemporaryDirectory(prefix='bb.')
        if self.processes is None:
            self.start_process([], self.options, self.sockets())
        else:
            for (eal, options), path in zip(self.processes, self.sockets()):
                self.start_process(eal, self.options + options, [path])

    def start_process(self, eal, options, sockets):
        command = [self.program, *(o for o in EAL if o != '--no-telemetry' or not self.telemetry), *eal, '--', *options]
        for path in sockets:
            command += ['--socket', path]
        # The folder for the socket of telemetry.
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.server_log, stderr=self.server_log,
                                  env=dict(os.environ, RUNTIME_DIRECTORY=self.folder.name))
        self.servers.append(server)
        until = time.monotonic() + SERVER_SECONDS
        while not all(map(os.path.exists, sockets)):
            if server.poll() is not None or time.monotonic() > until:
                raise machine.GuestError('%s: %s\n%s' % (
                    ' '.join(command), 'no socket after %d s' % SERVER_SECONDS if server.poll() is None else
                    'ended with %d' % server.returncode, self.server_text()))
            time.sleep(0.02)

    def server_text(self):
        if self.beside:
            return self.beside.server_text()
        return os.pread(self.server_log.fileno(), 1 << 24, 0).decode(errors='replace')

    def counters(self, device='soft0'):
        """Returns the counters of a function, by name."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
            sock.settimeout(SERVER_SECONDS)
            sock.connect(os.path.join(self.folder.name, 'dpdk', 'rte', 'dpdk_telemetry.v2'))
            sock.recv(4096)
            sock.send(b'/bluebell/hca/stats,' + device.encode())
            return json.loads(sock.recv(16384))['/bluebell/hca/stats']

    def stop(self):
        """Ends the guest, then the server."""
        super().stop()
        self.stop_server()

    def stop_server(self):
        """Ends the server as a user does. Returns its exit status, None if none runs. Of several processes returns
        the first status that is not 0."""
        if not self.servers:
            return None
        for server in self.servers:
            server.terminate()
        try:
            return next(filter(None, [server.wait(SERVER_SECONDS) for server in self.servers]), 0)
        finally:
            for server in self.servers:
                server.kill()
                server.wait()
            self.servers = []
            self.folder.cleanup()

    # The driver in the guest.

    def load(self):
        """Loads the driver, and waits for an active port. A port with a netdev is active if the netdev is up. Its
        RoCE v2 GID works once the netdev has its IPv6 address (flags 80: permanent), which comes later: Linux looks
        up the route of the peer's GID."""
        self.run('modprobe mlx5_ib && modprobe ib_uverbs', SECONDS)
        each = 'for n in /sys/class/infiniband/mlx5_0/device/net/*; do [ ! -e $n ] || %s || exit; done'
        self.run(each % 'ip link set $(basename $n) up', SECONDS)
        self.wait_active()
        self.run(each % 'until grep -q " 80 *$(basename $n)$" /proc/net/if_inet6; do usleep 20000; done', SECONDS)

    def wait_active(self):
        self.wait_for('grep -q ACTIVE /sys/class/infiniband/mlx5_0/ports/1/state', SECONDS)
        self.wait_for('[ -e /dev/infiniband/uverbs0 ]', SECONDS)

    def unload(self):
        self.run('rmmod mlx5_ib && rmmod mlx5_core', SECONDS)

    def gid(self):
        """Returns the option of pingpong for a GID: none on InfiniBand, a RoCE v2 GID on Ethernet."""
        found = self.run('cd /sys/class/infiniband/mlx5_0/ports/1; cat link_layer; '
                         'grep -l v2 gid_attrs/types/* 2>/dev/null || true').split()
        return '' if found[0] == 'InfiniBand' else ' -g ' + os.path.basename(found[1])

    def pair(self, command):
        """Runs a program twice in the guest, as server and client. Returns the client's output."""
        server = self.serve_tcp(command, seconds=SECONDS)
        client = self.begin(command + ' 127.0.0.1', SECONDS)
        # If the server ends early, the client reports only that the connection is lost.
        if client.wait() != 0:
            server.wait()
            raise machine.GuestError('%s: status %d\n%s\nserver: status %d\n%s' % (
                client.text, client.status, client.output, server.status, server.output))
        server.check()
        return client.output

    def flood(self, program):
        """Runs doorbell_flood, and a pingpong beside it. The pingpong and the last write of the flood must succeed."""
        command, _ = carry.carry(self, program)
        flood = self.begin('%s mlx5_0 %s %d' % (command, self.gid().replace(' -g ', '') or '0', FLOOD), FLOOD_SECONDS)
        flood.read_line()
        self.pair('ibv_rc_pingpong -d mlx5_0 -n 100' + self.gid())
        print(flood.check().strip().split('\n')[-1], flush=True)

    # The guest's kernel log.

    def kernel_lines(self, start=0):
        """Returns (level, text) of each line of the kernel's log from that line on."""
        found = re.findall(r'^<(\d+)>\[ *[\d.]+\] ?(.*)$', self.run('dmesg -r'), re.M)
        return [(int(level) & 7, text) for level, text in found[start:]]

    def context(self):
        """Returns what helps to find the cause of a failure."""
        try:
            kernel = self.run('dmesg | tail -n 60', 20)
        except machine.GuestError as err:
            kernel = '%s\n%s' % (err, self.console()[-4000:])
        return '---- dmesg of the guest\n%s\n---- log of %s\n%s\n----' % (
            kernel.strip(), self.about(), '\n'.join(self.server_text().strip().split('\n')[-60:]))


def warnings(lines, expected):
    """Returns the lines that are warnings or worse, except those with one of the patterns @expected."""
    return ['%s: %s' % (LEVELS[level], text) for level, text in lines
            if level in LEVELS and not any(re.search(pattern, text) for pattern in expected)]
