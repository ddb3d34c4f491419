#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The initiator of examples/nvmf/host against Linux's nvmet-rdma, on rxe0 in a guest.

The initiator runs at the host's end of the guest's tap, on DPDK's af_packet.

usage: test_nvmet.py NVMF_OPS NVMF_CLIENT [--only PATTERN]
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import paths  # noqa: E402, F401
import guest  # noqa: E402
import namespace  # noqa: E402
import nvmet  # noqa: E402
from apptest import own_cpu  # noqa: E402

SECONDS = 240
DISK, OWN = 'nqn.2026-01.org.example:disk', 'nqn.2026-01.org.example:own'
HOST, OTHER = 'nqn.2026-01.org.example:host', 'nqn.2026-01.org.example:other'
DEVICE = 'soft0,port=net_af_packet0,ip=192.0.2.9/24'
STEPS = ['connected: 33554432 bytes', 'WRITE, WRITE with FUA, READ: 15 ranges', '16 outstanding requests', 'COMPARE: the target has none',
         'ZEROES: half', 'DISCARD: the range beside', 'FLUSH', 'disconnected']


class Both:
    def __init__(self, args, there):
        self.there, self.ops, self.client = there, args.nvmf_ops, args.nvmf_client
        self.at = there.ipv4 + ':4420'
        self.folder = tempfile.TemporaryDirectory()
        there.run('modprobe brd rd_nr=2 rd_size=32768', SECONDS)
        self.target = nvmet.Nvmet(there)
        self.target.add(DISK, '/dev/ram0')
        self.target.add(OWN, '/dev/ram1', OTHER)

    def start(self, program, *options):
        log = tempfile.TemporaryFile(mode='w+')
        process = subprocess.Popen([
            program, '-l', str(own_cpu()), '--no-huge', '-m', '256', '--no-pci', '--no-shconf', '--no-telemetry',
            '--log-level=lib.eal:4', '--vdev=net_af_packet0,iface=' + self.there.tap, '--', *options],
            stdout=log, stderr=subprocess.STDOUT)
        process.log = log
        return process

    def end(self, process, wanted=0):
        """Waits for the end of a program. Returns its output."""
        try:
            status = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            status = 'no end within %d s' % SECONDS
        process.log.seek(0)
        text = process.log.read()
        assert status == wanted, 'status %s\n%s' % (status, text)
        return text

    def clear(self):
        """Overwrites the RAM disk: nvmf_client reports data that it did not write."""
        self.there.run('dd if=/dev/zero of=/dev/ram0 bs=1M count=32 oflag=direct 2>/dev/null')

    def load(self, *options):
        return self.start(self.client, '--device', DEVICE, '--connect', self.at, '--subsystem', DISK, '--wait', '120', *options)


def operates(both, *more):
    """connect, identify, write, read, compare, clear, flush, disconnect"""
    text = both.end(both.start(both.ops, DEVICE, both.at, DISK, HOST, *more))
    for step in STEPS:
        assert re.search('^' + re.escape(step), text, re.M), '%s is not in: %s' % (step, text)
    return text


def operates_with_windows(both):
    """the same, with a memory window for each request, which the target's response invalidates"""
    return operates(both, 'windows')


def serves_named_hosts(both):
    """a subsystem of one host: this host is connected, another one is refused"""
    text = both.end(both.start(both.ops, DEVICE, both.at, OWN, HOST), 3)
    assert 'refused: ' in text and 'this host is not allowed' in text, text
    return text + both.end(both.start(both.ops, DEVICE, both.at, OWN, OTHER))


def keeps_data(both):
    """mixed load with each read checked; a journal of writes, checked by a second connection"""
    both.clear()
    text = both.end(both.load('--rw', 'randrw', '--verify', '--ios', '2000', '--bs', '8192'))
    assert ' 0 WRONG' in text, text
    journal = both.folder.name + '/journal'
    both.clear()
    text += both.end(both.load('--rw', 'randwrite', '--ios', '1500', '--flush-every', '100', '--seed', '2', '--journal', journal))
    text += both.end(both.load('--check', journal, '--seed', '2'))
    # Linux has the data on its disk.
    both.there.run('test "$(tr -d "\\0" </dev/ram0 | wc -c)" -gt 1000000')
    return text


def restores(both):
    """the path fails under load until the target has given up: the connection is restored"""
    queues = 'test "$(rdma resource show qp | grep RC | grep -c RTS)" = %d'
    both.clear()
    process = both.load('--rw', 'randrw', '--verify', '--seconds', '3600', '--seed', '3', '--reconnect', '3000')
    both.there.wait_for(queues % 2, SECONDS)
    both.there.netem(out='loss 100%', into='loss 100%')
    both.there.wait_for('dmesg | grep -q "keep-alive timer .* expired"', SECONDS)
    both.there.wait_for(queues % 0, SECONDS)
    both.there.netem()
    both.there.wait_for(queues % 2, SECONDS)
    time.sleep(2)  # for some requests on the new connection; the verdict does not need them
    process.send_signal(signal.SIGINT)
    text = both.end(process, 130)
    assert re.search('[1-9][0-9]* connections restored', text) and ' 0 WRONG' in text, text
    return text


def ends_for_good(both):
    """the target removes the subsystem under load: it refuses the next Connect for good"""
    both.clear()
    process = both.load('--rw', 'randread', '--seconds', '3600', '--reconnect', '3000')
    both.there.wait_for('test "$(rdma resource show qp | grep RC | grep -c RTS)" = 2', SECONDS)
    both.target.close(DISK)
    text = both.end(process, 1)
    both.target.open(DISK)
    assert 'no such subsystem' in text, text
    return text


CASES = [operates, operates_with_windows, serves_named_hosts, keeps_data, restores, ends_for_good]


def main():
    p = argparse.ArgumentParser()
    p.add_argument('nvmf_ops')
    p.add_argument('nvmf_client')
    p.add_argument('--only', default='', help='cases whose name this pattern matches')
    args = p.parse_args()
    args.nvmf_ops, args.nvmf_client = map(os.path.abspath, (args.nvmf_ops, args.nvmf_client))
    reason = nvmet.missing()
    if reason:
        namespace.skip(reason)
    namespace.enter_or_skip()
    cases = [case for case in CASES if re.search(args.only, case.__name__)]
    assert cases, 'no such case'
    with guest.Guest() as there:
        guest.host_address(there.tap)
        nvmet.install(there)
        both = Both(args, there)
        for case in cases:
            began = time.monotonic()
            there.run('dmesg -c >/dev/null')
            try:
                text = case(both)
            except BaseException:
                print(there.run('dmesg | tail -60'))
                raise
            print('%s, %.1f s:' % (case.__doc__, time.monotonic() - began), flush=True)
            for line in text.split('\n'):
                print('   ', line, flush=True)
            log = there.run('dmesg')
            assert not re.search('WARNING|BUG:|Call Trace', log), log
    return 0


if __name__ == '__main__':
    sys.exit(main())
