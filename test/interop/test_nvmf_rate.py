#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Requests per second of nvmf_target and of Linux's nvmet-rdma, in turn.

Both targets run on rxe0 of one guest, and Linux's nvme-rdma on rxe0 of another one. Storage is nothing
(null_blk and null:) or memory (brd and malloc:). Each pair of runs gives a ratio, and the last lines have
the medians. The guests are emulated, so only the ratio says something. nvmf_target sleeps when it has no
work, as nvmet-rdma does: a target that polls takes a processor of the machine also from the other guest.

Data is checked, and wrong data fails the test. Speed does not: the goal is stated as reached or missed,
or "not judged" if other programs used the processors.

usage: test_nvmf_rate.py NVMF_TARGET BLOCK_LOAD [--pairs N] [--seconds S] [--depth N]
"""

import argparse
import glob
import os
import re
import statistics
import sys
import time

sys.dont_write_bytecode = True

import paths  # noqa: E402, F401
import carry  # noqa: E402
import guest  # noqa: E402
import namespace  # noqa: E402
import nvmet  # noqa: E402

SECONDS = 240
GOAL = 1.0
BUSY = 0.05
NQN = 'nqn.2026-01.org.example:'
LINUX, BLUEBELL = 'nvmet-rdma', 'nvmf_target'
PORTS = {LINUX: 4420, BLUEBELL: 4421}
SLEEP_US = 20
LOADS = [('null', 'read'), ('null', 'write'), ('memory', 'read'), ('memory', 'write')]
EAL = '-l 1 --no-huge -m 128 --no-pci --no-telemetry --no-shconf --log-level=lib.eal:4'


def used():
    """Returns the CPU seconds that all programs of the machine have used, and those of this namespace."""
    with open('/proc/stat') as f:
        total = sum(map(int, f.readline().split()[1:4]))
    own = 0
    for path in glob.glob('/proc/[0-9]*/stat'):
        try:
            with open(path) as f:
                own += sum(map(int, f.read().rsplit(')', 1)[1].split()[11:15]))
        except OSError:
            pass  # it has ended
    return total / os.sysconf('SC_CLK_TCK'), own / os.sysconf('SC_CLK_TCK')


def verdict(ratio, share):
    """Compares @ratio with the goal. @share: share of the processors that other programs used."""
    if share > BUSY:
        return 'not judged: other programs used %.0f %% of the processors' % (100 * share)
    return 'reached' if ratio >= GOAL else 'missed'


class Targets:
    """nvmet-rdma and nvmf_target in a guest; nvmf_target is stopped while it is not measured."""

    def __init__(self, there, program):
        self.there = there
        there.run('set -e; modprobe null_blk nr_devices=1 gb=1 bs=4096 irqmode=0 queue_mode=2; modprobe brd rd_nr=1 rd_size=32768; '
                  'mkdir -p /var/run', SECONDS)
        linux = nvmet.Nvmet(there, PORTS[LINUX])
        linux.add(NQN + 'null', '/dev/nullb0')
        linux.add(NQN + 'memory', '/dev/ram0')
        command, plugins = carry.carry(there, program)
        self.request = there.begin(
            'echo pid $$; exec env %s %s %s -- --device rxe0 --listen %s:%d --queues 4 --io-queues 1 '
            '--subsystem %snull --namespace null:1G --subsystem %smemory --namespace malloc:32M --sleep %d' % (
                command, EAL, plugins, there.ipv4, PORTS[BLUEBELL], NQN, NQN, SLEEP_US), 3600)
        end = time.monotonic() + SECONDS
        while 'port %d' % PORTS[BLUEBELL] not in self.request.output:
            assert self.request.poll(0.2) is None and time.monotonic() < end, self.request.output
        self.pid = re.search(r'pid (\d+)', self.request.output)[1]
        self.send('STOP')

    def send(self, signal):
        self.there.run('kill -%s %s' % (signal, self.pid))

    def stop(self):
        """Ends nvmf_target. Returns its output."""
        self.send('CONT')
        self.send('TERM')
        return self.request.check()


class Runs:
    def __init__(self, args, here, there):
        self.args, self.here, self.targets = args, here, Targets(there, args.nvmf_target)
        self.share = 0

    def connected(self, target, what, script):
        """Runs a script on the initiator while it is connected to a subsystem. Returns its output."""
        if target == BLUEBELL:
            self.targets.send('CONT')
        self.here.run('nvme connect -t rdma -a %s -s %d -n %s%s --hostnqn=%sguest -i 1 -Q 64 -k 60' % (
            self.targets.there.ipv4, PORTS[target], NQN, what, NQN), SECONDS)
        self.here.wait_for('test -b /dev/nvme0n1', SECONDS)
        text = self.here.run('set -e; ' + script, SECONDS)
        self.here.run('nvme disconnect -n %s%s' % (NQN, what), SECONDS)
        self.here.wait_for('test ! -e /dev/nvme0', SECONDS)
        if target == BLUEBELL:
            self.targets.send('STOP')
        return text

    def fill(self):
        """Writes all blocks of the memory of both targets, and compares what it reads."""
        for target in PORTS:
            text = self.connected(target, 'memory', '/tmp/block_load /dev/nvme0n1 fill 32 0; /tmp/block_load /dev/nvme0n1 check 32 2')
            print('%s, data: %s' % (target, text.strip().replace('\n', ' written, ') + ' checked'), flush=True)

    def rate(self, target, what, kind):
        before, began = used(), time.monotonic()
        text = self.connected(target, what, '/tmp/block_load /dev/nvme0n1 %s %d %d' % (kind, self.args.depth, self.args.seconds))
        after, passed = used(), time.monotonic() - began
        foreign = (after[0] - before[0]) - (after[1] - before[1])
        self.share = max(self.share, foreign / passed / os.cpu_count())
        count, seconds = re.search(r'(\d+) requests in ([\d.]+) s', text).groups()
        return int(count) / float(seconds)

    def measure(self):
        for what, kind in LOADS:
            rates = []
            for i in range(self.args.pairs):
                # The order changes, so that neither target always comes first.
                order = list(PORTS) if i % 2 == 0 else list(PORTS)[::-1]
                rate = {target: self.rate(target, what, kind) for target in order}
                rates.append((rate[LINUX], rate[BLUEBELL]))
                print('%s, %s: %s %.0f a second, %s %.0f, ratio %.2f' % (
                    what, kind, LINUX, rate[LINUX], BLUEBELL, rate[BLUEBELL], rate[BLUEBELL] / rate[LINUX]), flush=True)
            ratio = statistics.median(b / a for a, b in rates)
            print('%s, %s, medians: %s %.0f, %s %.0f, ratio of a pair %.2f; goal %.2f: %s' % (
                what, kind, LINUX, statistics.median(r[0] for r in rates), BLUEBELL,
                statistics.median(r[1] for r in rates), ratio, GOAL, verdict(ratio, self.share)), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('nvmf_target')
    p.add_argument('block_load')
    p.add_argument('--pairs', type=int, default=3, help='pairs of runs of each load (default 3)')
    p.add_argument('--seconds', type=int, default=2, help='seconds of a run (default 2)')
    p.add_argument('--depth', type=int, default=32, help='outstanding requests (default 32)')
    args = p.parse_args()
    reason = nvmet.missing()
    if reason:
        namespace.skip(reason)
    namespace.enter_or_skip()
    guest.make_bridge()
    here, there = guest.Guest(2, bridge='br0'), guest.Guest(3, bridge='br0')
    there.memory = 768
    guest.boot_all([here, there])
    try:
        nvmet.install(here, 'nvme_rdma')
        nvmet.install(there)
        here.put(args.block_load, '/tmp/block_load')
        runs = Runs(args, here, there)
        try:
            runs.fill()
            runs.measure()
            print(runs.targets.stop())
        except BaseException:
            print(here.run('dmesg | tail -20'), there.run('dmesg | tail -20'), runs.targets.request.output)
            raise
        for one in here, there:
            log = one.run('dmesg')
            assert not re.search('WARNING|BUG:|Call Trace', log), log
    finally:
        here.stop()
        there.stop()
    return 0


if __name__ == '__main__':
    sys.exit(main())
