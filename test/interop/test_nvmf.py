#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/nvmf against Linux's nvme-rdma: nvme-cli, dd and ext4 in a guest, on rxe0.

nvmf_target runs at the host's end of the guest's tap, on DPDK's af_packet.

usage: test_nvmf.py NVMF_TARGET [--fio] [--only PATTERN]
"""

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import paths  # noqa: E402, F401
import guest  # noqa: E402
import fio  # noqa: E402
import namespace  # noqa: E402
import nvmet  # noqa: E402
from apptest import own_cpu  # noqa: E402

SECONDS = 200
HERE = '192.0.2.9'
DISK, OWN = 'nqn.2026-01.org.example:disk', 'nqn.2026-01.org.example:own'
HOST, OTHER = 'nqn.2026-01.org.example:guest', 'nqn.2026-01.org.example:other'
AT = '-t rdma -a %s -s 4420 --hostnqn=%s ' % (HERE, HOST)
# Lines of Linux's log that say that something went wrong in a run without faults.
TROUBLE = re.compile(r'WARNING|BUG:|Call Trace|nvme.*(error|fail|timeout|bogus|not supported|invalid|warn)|I/O error', re.I)


class Target:
    """An nvmf_target on an interface of the host: a guest's tap, or a bridge."""

    def __init__(self, program, interface, folder):
        self.path, self.folder = folder + '/nvmf.ini', folder
        self.configure()
        self.out = tempfile.TemporaryFile(mode='w+')
        self.process = subprocess.Popen([
            program, '-l', str(own_cpu()), '--no-huge', '-m', '256', '--no-pci', '--no-shconf', '--no-telemetry',
            '--log-level=lib.eal:4', '--vdev=net_af_packet0,iface=' + interface, '--',
            '--config', self.path],
            stdout=self.out, stderr=subprocess.STDOUT)
        end = time.monotonic() + SECONDS
        while 'port 4420' not in self.text():
            assert self.process.poll() is None and time.monotonic() < end, self.text()
            time.sleep(0.05)

    def configure(self, more='', size='32M'):
        """Writes the configuration file. @more: lines of the subsystem DISK."""
        with open(self.path, 'w') as f:
            f.write('[target]\ndevice = soft0,port=net_af_packet0,ip=%s/24\nqueues = 16\ndepth = 32\n'
                    '[subsystem %s]\nnamespace = file:%s/disk,size=%s\nnamespace = null:1G\nnamespace = malloc:1M,ro\n%s'
                    '[subsystem %s]\nhost = %s\nnamespace = malloc:16M\n' %
                    (HERE, DISK, self.folder, size, more, OWN, OTHER))

    def text(self):
        self.out.seek(0)
        return self.out.read()

    def stop(self):
        """Returns the output after a regular end."""
        self.process.terminate()
        status = self.process.wait(SECONDS)
        assert status == 0, 'nvmf_target: status %s\n%s' % (status, self.text())
        return self.text()


class Host:
    """A guest with nvme-rdma."""

    def __init__(self, there):
        self.there = there
        self.at = AT.replace(HOST, HOST + there.name)

    def run(self, script, seconds=SECONDS):
        return self.there.run('set -e; ' + script, seconds)

    def connect(self, options=''):
        self.run('nvme connect %s -n %s -i 2 %s' % (self.at, DISK, options))
        self.there.wait_for('test -b /dev/nvme0n1 -a -b /dev/nvme0n2 -a -b /dev/nvme0n3', SECONDS)

    def disconnect(self):
        assert '1 controller' in self.run('nvme disconnect -n ' + DISK)
        self.there.wait_for('test ! -e /dev/nvme0', SECONDS)


class Both(Host):
    """A target on @interface and a guest. others: further guests."""

    def __init__(self, program, interface, there, *others):
        super().__init__(there)
        self.program, self.interface, self.others = program, interface, others
        self.folder = tempfile.TemporaryDirectory()
        self.start()

    def start(self):
        self.target = Target(self.program, self.interface, self.folder.name)


def discovers(both):
    """nvme discover lists the subsystems of this host"""
    text = both.run('nvme discover ' + AT)
    assert DISK in text and OWN not in text, text
    assert HERE in text and '4420' in text and 'rdma' in text, text
    return text


def refuses(both):
    """a host that is not in the list is refused"""
    done = both.there.begin('nvme connect %s -n %s' % (AT, OWN), SECONDS)
    assert done.wait() != 0, done.output
    return done.output


def describes(both):
    """nvme list, id-ctrl, id-ns, and all log pages and features"""
    both.connect()
    text = both.run('nvme list; nvme id-ctrl /dev/nvme0 | head -20; cat /sys/class/nvme/nvme0/queue_count; '
                    'for n in 1 2 3; do nvme id-ns /dev/nvme0n$n | grep nsze; nvme ns-descs /dev/nvme0n$n; done; '
                    'nvme list-ns /dev/nvme0; nvme smart-log /dev/nvme0; nvme error-log /dev/nvme0 -e 2; '
                    'nvme fw-log /dev/nvme0; nvme effects-log /dev/nvme0; nvme changed-ns-list-log /dev/nvme0; '
                    'for f in 1 2 4 5 6 7 0xa 0xb 0xf; do nvme get-feature /dev/nvme0 -f $f; done; '
                    'nvme show-regs /dev/nvme0 || true; blockdev --getro /dev/nvme0n3')
    assert 'Bluebell NVMe-oF' in text, text
    both.disconnect()
    return text


def keeps_data(both):
    """dd of random data, and the commands of nvme-cli"""
    both.connect()
    text = both.run('''
        dd if=/dev/urandom of=/tmp/data bs=1M count=8 2>/dev/null
        for form in 4k:2048 64k:128 1M:8; do
            bs=${form%:*} count=${form#*:}
            dd if=/tmp/data of=/dev/nvme0n1 bs=$bs seek=$((count / 8)) oflag=direct conv=fsync 2>/dev/null
            echo 3 >/proc/sys/vm/drop_caches
            dd if=/dev/nvme0n1 bs=$bs skip=$((count / 8)) count=$count iflag=direct 2>/dev/null | cmp - /tmp/data
            echo same $bs
        done
        nvme flush /dev/nvme0n1 -n 1
        head -c 8192 /tmp/data >/tmp/two
        nvme write /dev/nvme0n1 -s 4000 -c 1 -z 8192 -d /tmp/two
        nvme compare /dev/nvme0n1 -s 4000 -c 1 -z 8192 -d /tmp/two
        nvme write-zeroes /dev/nvme0n1 -s 4001 -c 0
        if nvme compare /dev/nvme0n1 -s 4000 -c 1 -z 8192 -d /tmp/two; then exit 1; fi
        dd if=/dev/nvme0n1 bs=4096 skip=4001 count=1 iflag=direct 2>/dev/null | tr -d '\\0' | wc -c
        nvme dsm /dev/nvme0n1 -n 1 -d -s 4000,4008 -b 2,1
        if dd if=/dev/zero of=/dev/nvme0n3 bs=4096 count=1 oflag=direct; then exit 1; fi
        dd if=/dev/zero of=/dev/nvme0n2 bs=128k count=64 oflag=direct 2>/dev/null''')
    assert text.count('same') == 3 and re.search(r'^0$', text, re.M), text
    both.disconnect()
    return text


def serves_two_hosts(both):
    """two hosts at once, each with a subsystem and data of its own"""
    both.connect()
    both.run('nvme connect -t rdma -a %s -s 4420 --hostnqn=%s --hostid=%s -n %s -i 2' %
             (HERE, OTHER, '3f0d9a52-5d39-4c3c-8a3c-0a4d2b6c8e11', OWN))
    both.there.wait_for('test -b /dev/nvme1n1', SECONDS)
    text = both.run('''
        write() {
            for i in 1 2 3; do
                dd if=/dev/urandom of=/tmp/$1 bs=64k count=64 2>/dev/null
                dd if=/tmp/$1 of=/dev/$1 bs=64k oflag=direct 2>/dev/null
                dd if=/dev/$1 bs=64k count=64 iflag=direct 2>/dev/null | cmp - /tmp/$1
            done
            echo same $1
        }
        write nvme0n1 & write nvme1n1 & wait; wait
        nvme list; nvme smart-log /dev/nvme0 | grep -i 'data units'; nvme smart-log /dev/nvme1 | grep -i 'data units'
        nvme id-ctrl /dev/nvme1 | head -8
        # The end of one host does not touch the other.
        nvme disconnect -n %s
        dd if=/dev/nvme0n1 bs=64k count=64 iflag=direct 2>/dev/null | cmp - /tmp/nvme0n1''' % OWN)
    assert text.count('same') == 2, text
    both.disconnect()
    return text


def sees_changes(both):
    """SIGHUP: a namespace comes, one grows, one goes; the host notices by events"""
    both.connect()
    target, there = both.target, both.there
    target.configure('namespace = malloc:2M,nsid=9\n', '48M')
    target.process.send_signal(signal.SIGHUP)
    there.wait_for('test -b /dev/nvme0n9 -o -b /dev/nvme0n4', SECONDS)
    there.wait_for('test "$(blockdev --getsize64 /dev/nvme0n1)" = 50331648', SECONDS)
    text = both.run('nvme list-ns /dev/nvme0; lsblk -b 2>/dev/null || cat /proc/partitions')
    target.configure('', '48M')
    target.process.send_signal(signal.SIGHUP)
    there.wait_for('test ! -e /dev/nvme0n9 -a ! -e /dev/nvme0n4', SECONDS)
    text += both.run('nvme list-ns /dev/nvme0; dd if=/dev/nvme0n1 bs=1M skip=40 count=8 iflag=direct 2>/dev/null | tr -d "\\0" | wc -c')
    assert '0x9' in text and text.count('read again') == 0, text
    assert target.text().count('read again') == 2, target.text()
    both.disconnect()
    return text


def makes_a_file_system(both):
    """mkfs.ext4, files, e2fsck"""
    both.connect()
    text = both.run('''
        mke2fs -q -t ext4 /dev/nvme0n1
        mkdir -p /mnt
        for round in 1 2 3; do
            mount -t ext4 -o discard /dev/nvme0n1 /mnt
            if test $round -gt 1; then (cd /mnt; sha256sum -c sums); rm /mnt/file4; fi
            for i in 1 2 3 4; do dd if=/dev/urandom of=/mnt/file$i bs=1M count=2 2>/dev/null; done
            (cd /mnt; sha256sum file* >sums)
            umount /mnt
            e2fsck -fn /dev/nvme0n1
        done''')
    both.disconnect()
    return text


# New data in each round, so that old data is found. /tmp/writing exists while the host writes.
LOAD = '''
    rounds=0
    while test ! -e /tmp/stop; do
        dd if=/dev/urandom of=/tmp/data bs=1M count=2 2>/dev/null
        touch /tmp/writing
        dd if=/tmp/data of=/dev/nvme0n1 bs=16k oflag=direct 2>/dev/null
        rm -f /tmp/writing
        dd if=/dev/nvme0n1 bs=16k count=128 iflag=direct 2>/dev/null | cmp - /tmp/data
        rounds=$((rounds + 1))
    done
    echo $rounds rounds, all data read'''


def reconnects(both):
    """kill -9 of the target while the host writes: the host connects again by itself, and all data is there"""
    both.connect('-c 1 -l 600')
    load = both.there.begin('set -e; rm -f /tmp/stop;' + LOAD, 3 * SECONDS)
    for _ in range(3):
        both.there.wait_for('test -e /tmp/writing', SECONDS)
        both.target.process.kill()
        both.target.process.wait(SECONDS)
        assert load.poll() is None, load.output
        both.start()
        both.there.wait_for('grep -q live /sys/class/nvme/nvme0/state && test ! -e /tmp/writing', SECONDS)
    both.run('touch /tmp/stop')
    text = load.check()
    both.disconnect()
    return text + both.run('dmesg | grep -i nvme | tail -20')


# Each block gets a checksum, a number and random data; then all blocks are read and checked.
FIO = ('/tmp/fio --name=%s --filename=/dev/nvme0n1 --direct=1 --ioengine=io_uring --iodepth=16 --rw=randwrite --size=8M '
       '--verify=crc32c --verify_fatal=1 --randseed=%d %s --output-format=json --output=/tmp/%s.json')


def checked(there, name):
    """Returns a line about a run of fio, after the check that it has written and has read all that it wrote."""
    job = json.loads(there.run('cat /tmp/%s.json' % name))['jobs'][0]
    assert job['error'] == 0 and job['read']['total_ios'] >= job['write']['total_ios'] > 0, job
    return '%s: %d writes, %d reads checked' % (name, job['write']['total_ios'], job['read']['total_ios'])


def verifies(both):
    """fio writes at random with several sizes and checks what it reads, then the same with kill -9 of the target"""
    both.connect('-c 1 -l 600')
    both.run(FIO % ('sizes', 1, '--bsrange=4k-64k --fsync=64', 'sizes'), 2 * SECONDS)
    load = both.there.begin(FIO % ('killed', 2, '--bs=4k --loops=6', 'killed'), 4 * SECONDS)
    for _ in range(3):
        time.sleep(2)
        assert load.poll() is None, 'fio has ended before the target was killed: ' + load.output
        both.target.process.kill()
        both.target.process.wait(SECONDS)
        both.start()
        both.there.wait_for('grep -q live /sys/class/nvme/nvme0/state', SECONDS)
    load.check()
    both.disconnect()
    return '\n'.join(checked(both.there, name) for name in ('sizes', 'killed'))


def serves_two_machines(both):
    """fio of two guests at once, each in its half of the disk; then each reads the other's half"""
    hosts = [both, *(Host(there) for there in both.others)]
    for host in hosts:
        host.connect()
    loads = [host.there.begin(FIO % ('half', 3 + i, '--bs=4k --loops=2 --offset=%dM' % (16 * i), 'half'), 4 * SECONDS)
             for i, host in enumerate(hosts)]
    for load in loads:
        load.check()
    sums = [host.run('dd if=/dev/nvme0n1 bs=1M count=32 iflag=direct 2>/dev/null | sha256sum') for host in hosts]
    assert len(set(sums)) == 1, sums
    for host in hosts:
        host.disconnect()
    return '\n'.join(checked(host.there, 'half') for host in hosts)


CASES = [discovers, refuses, describes, keeps_data, serves_two_hosts, makes_a_file_system, reconnects, sees_changes]
FIO_CASES = [verifies, serves_two_machines]
# Their faults are reported in the log.
FAULTS = [refuses, keeps_data, reconnects, verifies]


def main():
    p = argparse.ArgumentParser()
    p.add_argument('nvmf_target')
    p.add_argument('--only', default='', help='cases whose name this pattern matches')
    p.add_argument('--fio', action='store_true', help='the cases that need fio, which the first call builds')
    args = p.parse_args()
    reason = nvmet.missing()
    if reason:
        namespace.skip(reason)
    if args.fio:
        try:
            fio.program()
        except fio.Missing as why:
            namespace.skip(str(why))
    namespace.enter_or_skip()
    cases = [case for case in (FIO_CASES if args.fio else CASES) if re.search(args.only, case.__name__)]
    assert cases, 'no such case'
    guests = [guest.Guest(number, bridge='br0') for number in ((2, 3) if args.fio else (2,))]
    guest.make_bridge()
    guest.boot_all(guests)
    there = guests[0]
    try:
        for one in guests:
            nvmet.install(one, 'nvme_rdma', 'ext4')
            if args.fio:
                one.put(fio.program(), '/tmp/fio')
                one.run('chmod +x /tmp/fio')
        both = Both(args.nvmf_target, 'br0', *guests)
        try:
            for case in cases:
                began = time.monotonic()
                there.run('dmesg -c >/dev/null')
                text = case(both)
                print('%s, %.1f s:' % (case.__doc__, time.monotonic() - began), flush=True)
                for line in text.split('\n'):
                    print('   ', line, flush=True)
                log = there.run('dmesg')
                wrong = [line for line in log.split('\n') if TROUBLE.search(line)]
                if case in FAULTS:
                    wrong = [line for line in wrong if re.search('WARNING|BUG:|Call Trace', line)]
                assert not wrong, '\n'.join(wrong)
            print(both.target.stop())
        except BaseException:
            print(there.run('dmesg | tail -60'))
            print(both.target.text())
            both.target.process.kill()
            raise
    finally:
        for one in guests:
            one.stop()
    return 0


if __name__ == '__main__':
    sys.exit(main())
