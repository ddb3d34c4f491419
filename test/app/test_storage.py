#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/storage_plane: data through the target and back, checks that find defects, several clients."""

import os
import re
import sys

from apptest import long, main
from storagetest import BS, EAL, StorageTest, lcores, refuse_io_uring, silent_client

SIZE = 1 << 20


class Storage(StorageTest):
    def test_plain_calls(self):
        self.round_trip(SIZE, '--io', 'sync', '--buffered')

    def test_uring_refused(self):
        # As a container with a filter of system calls does.
        rc, out, err = self.run_target(['--size', str(SIZE)], preexec_fn=refuse_io_uring).end()
        self.assertEqual(rc, 1, out + err)
        self.assertIn('the kernel refuses io_uring here', err)
        self.assertIn('--io sync', err)
        target = self.target('--size', str(SIZE), '--io', 'sync', preexec_fn=refuse_io_uring)
        self.client('--ios', '10')
        self.stop(target)

    @long
    def test_two_queues(self):
        # The ports of a target are consecutive.
        start = 21000 + os.getpid() % 20000
        for port in range(start, start + 40, 2):
            target = self.run_target(['--size', str(SIZE), '--listen', '127.0.0.1:%d' % port] +
                                     self.io(), n=2)
            lines = [line for _, line in zip(range(3), target.proc.stdout) if 'at port' in line]
            if len(lines) == 2:
                break
            rc, out, err = target.end()
            self.assertIn('cannot listen', err)
        self.port = port
        r, text = self.client('--rw', 'randrw', '--verify', '--ios', '1000', n=2)
        self.assertEqual((r['queues'], r['reads'] + r['writes'], r['wrong']), (2, 2000, 0))
        self.assertEqual(r['reads'], r['verified'])
        for kind in 'read', 'write':
            rate = r['%s_mbytes_per_s' % kind]
            self.assertAlmostEqual(rate, r[kind + 's'] * 4096 / r['seconds'] / 1e6, delta=0.001 + rate / 1000)
            self.assertRegex(text, r'(?m)^%s +\d+ a second, %.2f MB/s$' % (kind, rate))
        counts, _ = self.stop(target)
        self.assertEqual(counts['reads'] + counts['writes'], 2000)

    def test_several_clients(self):
        target = self.target('--size', str(SIZE), '--clients', '3', *self.io())
        half = str(SIZE // 2)
        clients = [self.start_client(['--rw', 'randrw', '--verify', '--ios', '3000', '--size', half,
                                      '--offset', offset, '--seed', offset])
                   for offset in ('0', half)]
        for c in clients:
            rc, out, err = c.end()
            self.assertEqual(rc, 0, out + err)
            self.assertIn(' 0 WRONG', out)
        counts, err = self.stop(target)
        self.assertEqual(counts['reads'] + counts['writes'], 6000)
        # Each has closed its device, which is no error.
        self.assertNotIn('died', err)

    @long
    def test_too_many_clients(self):
        target = self.target('--size', str(SIZE), '--clients', '1', *self.io())
        first = self.start_client(['--rw', 'randread', '--seconds', '1000'])
        target.wait_err('connected')
        _, text = self.client('--wait', '1', rc=1)
        self.assertIn('--clients', text)
        self.kill(first)
        target.wait_err('gone')
        # Its slot is free again.
        self.client('--ios', '10')
        self.stop(target)

    def test_silent_clients_give_their_places_up(self):
        target = self.target('--size', str(SIZE), '--clients', '2', *self.io())
        gid = '192.0.2.%d' % self.host  # the target's own
        silent = [silent_client(self.port, gid) for _ in range(2)]
        # It retries until one of them has been silent for 2 s.
        self.client('--ios', '10')
        target.wait_err('sent no command since it connected, and another')
        for sock in silent:
            sock.close()
        # An active client keeps its slot.
        first = self.start_client(['--rw', 'randread', '--seconds', '1000'])
        target.wait_err('connected')
        silent = silent_client(self.port, gid)
        _, text = self.client('--ios', '10')
        silent.close()
        self.assertIsNone(first.proc.poll())
        self.kill(first)
        self.stop(target)

    def test_one_address_has_as_many_places_as_allowed(self):
        target = self.target('--size', str(SIZE), '--clients', '4', '--per-address', '1', *self.io())
        first = self.start_client(['--rw', 'randread', '--seconds', '1000'])
        target.wait_err('connected')
        _, text = self.client(rc=1)
        self.assertIn('--per-address', text)
        self.kill(first)
        target.wait_err('gone')
        self.client('--ios', '10')
        self.stop(target)

    def test_read_only(self):
        target = self.target('--size', str(SIZE), *self.io())
        self.client('--rw', 'write')
        self.stop(target)
        target = self.target('--read-only', *self.io())
        self.client('--rw', 'read', '--verify')
        _, text = self.client('--rw', 'write', rc=1)
        self.assertIn('the target is read-only', text)
        self.stop(target)

    @long
    def test_defects_are_found(self):
        for defect, rw, words in (('flip-read', 'read', 'another checksum'),
                                  ('flip-write', 'randrw', 'is damaged'),
                                  ('ack-only', 'randrw', 'acknowledged write is not there')):
            target = self.target('--size', str(SIZE), '--defect', defect, *self.io())
            _, text = self.client('--rw', rw, '--verify', '--ios', '2000', '--size', str(SIZE // 16),
                                  rc=1)
            self.assertIn(words, text)
            self.stop(target)
            os.unlink(self.disk)

    def test_check_reads_only_what_the_journal_names(self):
        target = self.target('--size', str(SIZE), *self.io())
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
            f.write('storage_client 1 bs %d seed 1\n%d 1 1\nend 1\n' % (BS, absent))
        r, text = self.client('--check', path, rc=1)
        self.assertEqual((r['reads'], r['wrong']), (1, 1))
        self.assertIn('acknowledged write is not there', text)
        with open(path, 'w') as f:
            f.write('storage_client 1 bs %d seed 1\nend 0\n' % BS)
        r, _ = self.client('--check', path)
        self.assertEqual(r['reads'], 0)
        counts, _ = self.stop(target)
        self.assertEqual(counts['reads'], len(lines) + 1)

    def test_large(self):
        target = self.target('--size', str(SIZE), '--max-io', '1M', '--depth', '4', *self.io())
        self.client('--rw', 'write', '--bs', str(SIZE // 4))
        r, _ = self.client('--rw', 'randrw', '--verify', '--ios', '40', '--bs', str(SIZE // 4))
        self.assertEqual(r['reads'], r['verified'])
        self.stop(target)

    def test_usage(self):
        for args, words in ((['--rw', 'up'], ['randrw']), (['--bs', '1000'], ['multiple of 512']),
                            (['--depth', '0'], ['1 to 256']), (['--connect', 'x'], ['192.0.2.1']),
                            (['--fua', '--flush-every', '3'], ['need no flush']),
                            (['--what'], ['--help'])):
            self.usage_error(args, *words, eal=EAL)
        self.program, client = self.target_path(), self.program
        try:
            for args, words in (([], ['--file']), (['--file', 'x', '--io', 'fast'], ['uring or sync']),
                                (['--file', 'x', '--block', '1000'], ['power of two']),
                                (['--file', 'x', '--size', '1000'], ['--size 1000', 'multiple of --block 4096']),
                                (['--file', 'x', '--depth', '256', '--clients', '1000'], ['32768'])):
                self.usage_error(args, *words, eal=EAL)
            for args, words in ((['--file', '/none/x'], 'No such file'),
                                (['--file', self.folder.name, '--read-only'], 'neither a file nor a block device')):
                res = self.run_program(args, EAL)
                self.assertEqual(res.rc, 1, str(res))
                self.assertIn(words, res.err)
            res = self.run_program(['--file', self.disk, '--size', '1M', '--listen', '127.0.0.1:0'],
                                   ['8' if arg == '256' else arg for arg in EAL])
            self.assertEqual(res.rc, 1, str(res))
            self.assertIn('give EAL more', res.err)
        finally:
            self.program = client
        res = self.run_program(['--connect', '127.0.0.1:1', '--device', self.device()],
                               lcores(0) + EAL)
        self.assertEqual(res.rc, 1, str(res))
        self.assertIn('Connection refused; does storage_target run', res.err)

    @long
    def test_wrong_place(self):
        target = self.target('--size', str(SIZE), '--max-io', '8K', *self.io())
        for args, words in ((['--bs', '512'], 'multiples of 4096 up to 8192'),
                            (['--bs', '16K'], 'up to 8192'), (['--offset', '1M'], 'has 1048576'),
                            (['--size', '2M'], 'has 1048576')):
            _, text = self.client(*args, rc=2)
            self.assertIn(words, text)
        # Two targets of one file would not know each other's writes.
        rc, out, err = self.run_target(['--size', str(SIZE), '--wait', '0']).end()
        self.assertEqual(rc, 1, out + err)
        self.assertTrue(re.search('another target serves it', err), err)
        self.stop(target)

    def test_no_such_file(self):
        """Reports in one line why there is nothing to serve, without advising what the user did."""
        folder = os.path.join(self.disk + '.none', 'disk')
        empty = self.disk + '.empty'
        with open(empty, 'w'):
            pass
        self.addCleanup(os.unlink, empty)
        for args, words in ((['--file', folder], 'give its size to create it'),
                            (['--file', folder, '--size', '1M'], 'the folder of the file does not exist'),
                            (['--file', folder, '--size', '1M', '--read-only'], 'does not create a file'),
                            (['--file', '/proc/version', '--size', '1M'], 'cannot be made 1048576 bytes long'),
                            (['--file', empty], 'is empty: give its size')):
            rc, out, err = self.run_target(args).end()
            self.assertEqual(rc, 1, out + err)
            said = [line for line in err.splitlines() if line.startswith('storage_target: ')]
            self.assertEqual(len(said), 1, err)
            self.assertIn(words, said[0])

    def target_path(self):
        import storagetest
        return storagetest.TARGET


class Huge(StorageTest):
    """The same on hugepages: rings, and the buffers registered with io_uring and the device."""
    eal = ['--in-memory' if arg == '--no-huge' else arg for arg in EAL if arg not in ('-m', '256')]

    def test_hugepages(self):
        target = self.target('--size', str(SIZE), '--clients', '2', '--max-io', '64K', *self.io())
        with open('/proc/%d/smaps' % target.proc.pid) as f:
            sizes = re.findall(r'KernelPageSize: +(\d+) kB', f.read())
        r, text = self.client('--rw', 'write')
        self.assertEqual((r['writes'], r['flushes'], r['failed']), (SIZE // BS, 1, 0))
        self.assertEqual(self.stamps(), {i * BS: i + 1 for i in range(SIZE // BS)})
        r, more = self.client('--rw', 'randrw', '--verify', '--ios', '2000')
        self.assertEqual((r['reads'] + r['writes'], r['verified'], r['wrong']), (2000, r['reads'], 0))
        _, err = self.stop(target)
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
