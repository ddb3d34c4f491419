#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/nvmf/client with nvmf_target: data through the target and back, and checks that find defects."""

import os
import re
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import long, main  # noqa: E402
from nvmftest import ADDR, BS, EAL, NQN, NvmfTest, refuse_io_uring  # noqa: E402

SIZE = 1 << 20
BLOCKS = SIZE // BS


class Client(NvmfTest):
    def round_trip(self, *space, io=None, more=()):
        """Writes the whole file, reads and writes at random, and checks the target's counters."""
        target = self.target('size=%d' % SIZE, *space, io=io, more=more)
        r, _ = self.client('--rw', 'write', '--flush-every', '50')
        self.assertEqual((r['writes'], r['failed'], r['wrong']), (BLOCKS, 0, 0))
        self.assertEqual(r['flushes'], -(-BLOCKS // 50))
        self.assertEqual(r['latency_ns']['samples'], BLOCKS + r['flushes'])
        self.assertEqual(self.stamps(), {i * BS: i + 1 for i in range(BLOCKS)})
        r, _ = self.client('--rw', 'randread', '--verify', '--windows')
        self.assertEqual((r['reads'], r['verified'], r['unwritten']), (BLOCKS, BLOCKS, 0))
        r, text = self.client('--rw', 'randrw', '--verify', '--fua', '--depth', '200', '--ios', '600')
        self.assertEqual((r['reads'] + r['writes'], r['wrong'], r['flushes']), (600, 0, 0))
        self.assertEqual(r['reads'], r['verified'])
        self.assertIn('connected, depth 63', text)  # the target's queues have 64 entries
        reads, writes, err = self.stop(target)
        # Exactly the completions that the clients got.
        self.assertEqual((reads, writes), (BLOCKS + r['reads'], BLOCKS + r['writes']))
        self.assertNotIn('disconnected', err)

    def test_io_uring(self):
        self.round_trip(io=self.io())

    def test_sleeping_target(self):
        self.round_trip(io=self.io(), more=('--sleep', '1'))

    @long
    def test_plain_calls(self):
        self.round_trip('buffered', io='sync')

    def test_io_uring_refused(self):
        # As a container with a filter of system calls does.
        size = 'size=%d' % SIZE
        rc, out, err = self.run_target(size, io='uring', preexec_fn=refuse_io_uring).end()
        self.assertEqual(rc, 1, out + err)
        self.assertIn('the kernel refuses io_uring here', err)
        target = self.target(size, io='sync', preexec_fn=refuse_io_uring)
        self.client('--ios', '10')
        self.stop(target)

    @long
    def test_two_lcores(self):
        target = self.target('size=%d' % SIZE)
        r, text = self.client('--rw', 'randrw', '--verify', '--ios', '1000', n=2)
        self.assertEqual((r['queues'], r['reads'] + r['writes'], r['wrong']), (2, 2000, 0))
        self.assertEqual(r['reads'], r['verified'])
        for kind in 'read', 'write':
            rate = r['%s_mbytes_per_s' % kind]
            self.assertAlmostEqual(rate, r[kind + 's'] * 4096 / r['seconds'] / 1e6, delta=0.001 + rate / 1000)
            shown = re.search(r'(?m)^%s +\d+ a second, (\d+\.\d\d) MB/s$' % kind, text)
            self.assertAlmostEqual(float(shown[1]), rate, delta=0.011)
        reads, writes, _ = self.stop(target)
        self.assertEqual(reads + writes, 2000)

    @long
    def test_several_clients(self):
        target = self.target('size=%d' % SIZE)
        half = str(SIZE // 2)
        clients = [self.start_client(['--rw', 'randrw', '--verify', '--ios', '3000', '--size', half,
                                      '--offset', offset, '--seed', offset])
                   for offset in ('0', half)]
        for c in clients:
            rc, out, err = c.end()
            self.assertEqual(rc, 0, out + err)
            self.assertIn(' 0 WRONG', out)
        reads, writes, _ = self.stop(target)
        self.assertEqual(reads + writes, 6000)

    @long
    def test_full_target_is_asked_again(self):
        target = self.target('size=%d' % SIZE, more=('--queues', '2'))
        first = self.start_client(['--rw', 'randread', '--seconds', '1000'])
        first.proc.stdout.readline()
        _, text = self.client('--wait', '1', rc=1)
        self.assertIn('it has no queue left', text)
        second = self.start_client(['--ios', '10'])
        target.wait_err('refused.*\n(.*\n)*.*refused|refused')
        self.kill(first)
        rc, out, err = second.end()
        self.assertEqual(rc, 0, out + err)
        self.stop(target)

    def test_read_only(self):
        self.stop(self.target('size=%d' % SIZE))
        target = self.target('ro')
        r, _ = self.client('--rw', 'read', '--verify')
        self.assertEqual(r['unwritten'], BLOCKS)
        _, text = self.client('--rw', 'write', rc=1)
        self.assertIn('the target is read-only', text)
        self.stop(target)

    def test_defects_are_found(self):
        """Data that changes on the disk, and a namespace that acknowledges writes without storing them."""
        target = self.target('size=%d' % SIZE, 'buffered', io='sync', more=('--namespace', 'null:1M'))
        self.client('--rw', 'write')
        with open(self.disk, 'r+b') as f:
            f.seek(5 * BS + 100)
            f.write(b'x')
        r, text = self.client('--rw', 'read', '--verify', rc=1)
        self.assertEqual((r['wrong'], r['verified']), (1, BLOCKS - 1))
        self.assertIn('WRONG: 4096 bytes at %d: is damaged' % (5 * BS), text)
        _, text = self.client('--rw', 'randrw', '--verify', '--ios', '500', '--size', str(SIZE // 16), '--namespace', '2', rc=1)
        self.assertIn('acknowledged write is not there', text)
        self.stop(target)

    def test_check_reads_only_what_the_journal_names(self):
        target = self.target('size=%d' % SIZE)
        path = os.path.join(self.folder.name, 'journal')
        self.client('--rw', 'randwrite', '--ios', '20', '--journal', path)
        with open(path) as f:
            lines = f.read().splitlines()[1:-1]
        r, _ = self.client('--check', path)
        self.assertGreater(len(lines), 1)
        self.assertEqual((r['reads'], r['verified'], r['unwritten'], r['wrong']), (len(lines), len(lines), 0, 0))
        # A block that was not written, of which the journal says that it was.
        absent = next(o for o in range(0, SIZE, BS) if not any(line.startswith('%d ' % o) for line in lines))
        with open(path, 'w') as f:
            f.write('nvmf_client 1 bs %d seed 1\n%d 1 1\nend 1\n' % (BS, absent))
        r, text = self.client('--check', path, rc=1)
        self.assertEqual((r['reads'], r['wrong']), (1, 1))
        self.assertIn('acknowledged write is not there', text)
        with open(path, 'w') as f:
            f.write('nvmf_client 1 bs %d seed 1\nend 0\n' % BS)
        r, _ = self.client('--check', path)
        self.assertEqual(r['reads'], 0)
        reads, _, _ = self.stop(target)
        self.assertEqual(reads, len(lines) + 1)
        # A run that does not connect leaves the journal of the run before.
        with open(path, 'w') as f:
            f.write('\n'.join(['nvmf_client 1 bs %d seed 1' % BS, *lines, 'end %d' % len(lines)]) + '\n')
        with open(path) as f:
            before = f.read()
        self.client('--rw', 'randwrite', '--ios', '20', '--journal', path, '--wait', '1', rc=1)
        with open(path) as f:
            self.assertEqual(f.read(), before)

    @long
    def test_large_requests(self):
        target = self.target('size=%d' % SIZE, more=('--max-io', '256K', '--depth', '32'))
        self.client('--rw', 'write', '--bs', str(SIZE // 4))
        r, _ = self.client('--rw', 'randrw', '--verify', '--ios', '40', '--bs', str(SIZE // 4))
        self.assertEqual(r['reads'], r['verified'])
        self.stop(target)

    def test_usage(self):
        need = ['--connect', ADDR, '--subsystem', NQN]
        for args, words in (([], ['--connect', '--subsystem', 'missing']), (['--connect', ADDR], ['missing']),
                            (need + ['--rw', 'up'], ['randrw']), (need + ['--bs', '1000'], ['multiple of 512']),
                            (need + ['--depth', '0'], ['1 to 256']), (['--connect', 'x'], ['192.0.2.1']),
                            (need + ['--fua', '--flush-every', '3'], ['need no flush']),
                            (need + ['--namespace', '0'], ['--namespace']), (need + ['--what'], ['--help'])):
            self.usage_error(args, *words, eal=EAL)
        self.client('--subsystem', 'disk', rc=2)
        target = self.target('size=%d' % SIZE, more=('--max-io', '8K', '--host', 'nqn.2026-01.org.example:own'))
        own = ['--host', 'nqn.2026-01.org.example:own']
        for args, words, rc in ((['--connect', '192.0.2.1:4421'], 'does it run, at this address?', 1),
                                (['--subsystem', NQN + '2'], 'no such subsystem', 1),
                                ([], 'this host is not allowed', 1),
                                (own + ['--namespace', '2'], 'has no namespace of this number', 1),
                                (own + ['--bs', '512'], 'multiples of 4096 up to 8192', 2),
                                (own + ['--bs', '16K'], 'up to 8192', 2), (own + ['--offset', '1M'], 'has 1048576', 2),
                                (own + ['--size', '2M'], 'has 1048576', 2)):
            _, text = self.client(*args, rc=rc)
            self.assertIn(words, text)
        self.client(*own, '--ios', '10')
        self.stop(target)


class Huge(NvmfTest):
    """The same on hugepages: rings, and the buffers registered with io_uring and the device."""
    eal = ['--in-memory' if arg == '--no-huge' else arg for arg in EAL if arg not in ('-m', '256')]

    def test_hugepages(self):
        target = self.target('size=%d' % SIZE, more=('--max-io', '64K'))
        with open('/proc/%d/smaps' % target.proc.pid) as f:
            sizes = re.findall(r'KernelPageSize: +(\d+) kB', f.read())
        r, text = self.client('--rw', 'write')
        self.assertEqual((r['writes'], r['flushes'], r['failed']), (BLOCKS, 1, 0))
        self.assertEqual(self.stamps(), {i * BS: i + 1 for i in range(BLOCKS)})
        r, more = self.client('--rw', 'randrw', '--verify', '--ios', '2000')
        self.assertEqual((r['reads'] + r['writes'], r['verified'], r['wrong']), (2000, r['reads'], 0))
        _, _, err = self.stop(target)
        self.assertNotIn('without hugepages', text + more + err)
        self.assertGreater(max(map(int, sizes)), 4)


def free_hugepages():
    with open('/proc/meminfo') as f:
        return int(re.search(r'HugePages_Free: +(\d+)', f.read() + 'HugePages_Free: 0').group(1))


if __name__ == '__main__':
    if 'Huge' in sys.argv and free_hugepages() < 100:
        print('skipped: not 100 free hugepages')
        sys.exit(77)
    main()
