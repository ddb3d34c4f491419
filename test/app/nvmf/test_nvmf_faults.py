#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/nvmf/client: a target that is killed, stopped or short of space, under load."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
import unittest

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import long, main  # noqa: E402
from nvmftest import BS, WAIT, NvmfTest  # noqa: E402

SIZE = 1 << 20


class Faults(NvmfTest):
    def journal(self, path):
        """Reads a journal: block offset: last write acknowledged, last one sent."""
        with open(path) as f:
            lines = f.read().splitlines()
        self.assertEqual(lines[-1], 'end %d' % (len(lines) - 2))
        return {int(o): (int(a), int(s)) for o, a, s in (l.split() for l in lines[1:-1])}

    def wait_for_writes(self, client, least, before=frozenset()):
        client.proc.stdout.readline()
        end = time.monotonic() + WAIT
        while len(set(self.stamps().items()) - before) < least and time.monotonic() < end:
            time.sleep(0.01)

    def crash(self, load, least, used=()):
        """Kills a target under load, on a file that a run with the options @used wrote before.
        Returns the acknowledged writes and what the file contains."""
        target = self.target('size=%d' % SIZE)
        if used:
            self.client('--rw', 'write', *used)
        before = set(self.stamps().items())
        path = os.path.join(self.folder.name, 'journal')
        client = self.start_client(['--rw', 'randwrite', '--seconds', '1000', '--journal', path] + load)
        # Under load, and after at least some blocks were written.
        self.wait_for_writes(client, least, before)
        if used:
            # With writes in flight that it has not read.
            target.proc.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
        target.proc.kill()
        rc, out, err = client.end()
        target.end()
        self.assertEqual(rc, 1, out + err)
        self.assertRegex(err, 'the target is gone|the queue pair is in error')
        self.assertNotIn('Sanitizer', err)
        return path, self.journal(path)

    @long
    def test_killed_under_load(self):
        for load in (['--fua'], ['--flush-every', '20'], ['--fua', '--depth', '1']):
            path, told = self.crash(load, least=60)
            acked = {o: a for o, (a, _) in told.items() if a != 0}
            self.assertGreater(len(acked), 20)
            # Checked in the file, and then through a restarted target.
            there = self.stamps()
            for offset, seq in there.items():
                self.assertLessEqual(seq, told[offset][1])
            for offset, seq in acked.items():
                self.assertGreaterEqual(there.get(offset, 0), seq, 'at %d' % offset)
            target = self.target()
            r, _ = self.client('--check', path)
            self.assertEqual((r['reads'], r['wrong']), (len(told), 0))
            self.stop(target)
            os.unlink(self.disk)

    @long
    def test_killed_on_a_used_disk(self):
        """A block without an acknowledged write may have the data of another run, of any seed."""
        for seed in ('5', '6'):
            path, told = self.crash(['--fua', '--seed', seed], 1, used=['--seed', '5'])
            self.assertTrue(any(s != 0 for _, s in told.values()))
            target = self.target()
            r, text = self.client('--check', path, '--seed', seed)
            self.assertEqual((r['reads'], r['wrong']), (len(told), 0), text)
            self.stop(target)
            os.unlink(self.disk)

    @long
    def test_killed_targets_are_replaced(self):
        """The client restores its connection, and all writes end up in the file."""
        target = self.target('size=%d' % SIZE)
        path = os.path.join(self.folder.name, 'journal')
        client = self.start_client(['--rw', 'randrw', '--verify', '--seconds', '1000', '--journal', path,
                                    '--reconnect', str(WAIT), '--fua'])
        for i in range(3):
            before = set(self.stamps().items())
            if i == 0:
                client.proc.stdout.readline()
            end = time.monotonic() + WAIT
            while len(set(self.stamps().items()) - before) < 20 and time.monotonic() < end:
                time.sleep(0.01)
            target.proc.kill()
            target.end()
            target = self.target()
        before = set(self.stamps().items())
        end = time.monotonic() + WAIT
        while len(set(self.stamps().items()) - before) < 20 and time.monotonic() < end:
            time.sleep(0.01)
        rc, out, err = client.end(signal.SIGINT)
        self.assertEqual(rc, 130, out + err)
        self.assertIn('3 connections restored', out)
        self.assertIn(' 0 WRONG', out)
        told = self.journal(path)
        self.assertTrue(all(a == s for a, s in told.values()))
        self.assertEqual(self.stamps(), {o: a for o, (a, _) in told.items()})
        r, _ = self.client('--check', path)
        self.assertEqual((r['reads'], r['wrong']), (len(told), 0))
        self.stop(target)

    def test_interrupt_without_a_target_writes_the_journal(self):
        """One SIGINT ends a client that restores its connection, and a client that waits in its first attempt."""
        target = self.target('size=%d' % SIZE)
        path = os.path.join(self.folder.name, 'journal')
        client = self.start_client(['--rw', 'randwrite', '--seconds', '100000', '--journal', path, '--reconnect', '3600'])
        self.wait_for_writes(client, 10)
        target.proc.kill()
        target.end()
        rc, out, err = client.end(signal.SIGINT)
        self.assertEqual(rc, 130, out + err)
        self.assertIn('outstanding requests', err)
        told = self.journal(path)
        self.assertTrue(all(told[o][1] >= seq for o, seq in self.stamps().items()))
        target = self.target()
        target.proc.send_signal(signal.SIGSTOP)
        client = self.start_client(['--wait', '3000'])
        self.wait_for_handler(client)
        rc, out, err = client.end(signal.SIGINT)
        self.assertEqual(rc, 130, out + err)
        target.proc.send_signal(signal.SIGCONT)
        self.stop(target)

    def wait_for_handler(self, client):
        """Waits until the program catches SIGINT."""
        end = time.monotonic() + WAIT
        caught = 0
        while not caught & 1 << signal.SIGINT - 1:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
            with open('/proc/%d/status' % client.proc.pid) as f:
                caught = int(re.search(r'SigCgt:\t(\w+)', f.read()).group(1), 16)

    def test_damaged_journal_is_refused(self):
        target = self.target('size=%d' % SIZE)
        path = os.path.join(self.folder.name, 'journal')
        self.client('--rw', 'randwrite', '--ios', '10', '--journal', path)
        with open(path) as f:
            whole = f.read()
        for bad, words in ((whole[:whole.index('end')], 'cut short'), ('x' + whole, 'no journal'),
                           (whole.replace('seed 1', 'seed 2'), 'give --bs 4096 --seed 2'),
                           (re.sub(r'end \d+', 'end 3', whole), 'lost lines'),
                           (re.sub(r'\n\d+ ', '\n7 ', whole, count=1), 'damaged')):
            with open(path, 'w') as f:
                f.write(bad)
            _, text = self.client('--check', path, rc=2)
            self.assertIn(words, text)
        self.stop(target)

    @long
    def test_stopped_target_ends_the_run_after_the_wait(self):
        target = self.target('size=%d' % SIZE)
        client = self.start_client(['--rw', 'randwrite', '--seconds', '1000', '--wait', '2'])
        self.wait_for_writes(client, 10)
        target.proc.send_signal(signal.SIGSTOP)
        rc, out, err = client.end()
        self.assertEqual(rc, 1, out + err)
        self.assertIn('the target', err)
        target.proc.send_signal(signal.SIGCONT)
        self.client('--rw', 'write')
        self.stop(target)

    @long
    def test_check_on_a_used_disk(self):
        """Data from before the journal's run are no loss; blocks that replaced its data are one."""
        target = self.target('size=%d' % SIZE)
        path = os.path.join(self.folder.name, 'journal')
        self.client('--rw', 'write', '--seed', '5')
        self.client('--rw', 'randwrite', '--ios', '50', '--seed', '6', '--journal', path)
        told = self.journal(path)
        r, _ = self.client('--check', path, '--seed', '6')
        self.assertEqual((r['reads'], r['wrong'], r['verified'], r['foreign']),
                         (len(told), 0, len(told), 0))
        self.client('--rw', 'write', '--seed', '5', '--offset', str(min(told)), '--size', str(BS))
        r, text = self.client('--check', path, '--seed', '6', rc=1)
        self.assertEqual((r['wrong'], r['verified']), (1, len(told) - 1))
        self.assertIn('WRONG: 4096 bytes at %d: was written with another --seed' % min(told), text)
        self.stop(target)

    @long
    def test_check_of_what_was_only_sent(self):
        """Write 9 was sent and the file has write 101 of another run: a loss if a write was acknowledged."""
        target = self.target('size=%d' % SIZE)
        path = os.path.join(self.folder.name, 'journal')
        self.client('--rw', 'write', '--seed', '5')
        for seed, acked, words in (('5', 0, ''), ('6', 0, ''), ('5', 7, 'never sent'),
                                   ('6', 7, 'another --seed')):
            with open(path, 'w') as f:
                f.write('nvmf_client 1 bs %d seed %s\n%d %d 9\nend 1\n' %
                        (BS, seed, 100 * BS, acked))
            r, text = self.client('--check', path, '--seed', seed, rc=int(acked > 0))
            self.assertEqual(r['wrong'], int(acked > 0))
            self.assertEqual(r['foreign'], int(seed == '6' and acked == 0))
            self.assertIn(words, text)
        self.stop(target)

    @long
    def test_file_cut_short(self):
        # The file shrinks under a serving target: an error, and never invented data.
        target = self.target('size=%d' % SIZE)
        self.client('--rw', 'write')
        os.truncate(self.disk, SIZE // 2 + 2048)
        r, text = self.client('--rw', 'read', '--verify', rc=1)
        self.assertEqual((r['reads'], r['failed'], r['wrong']),
                         (SIZE // BS // 2, SIZE // BS // 2, 0))
        self.assertIn('Input/output error', text)
        # Writes make it longer again, and it has only their data.
        r, _ = self.client('--rw', 'write', '--offset', str(SIZE - BS), '--size', str(BS))
        r, _ = self.client('--rw', 'read', '--verify', '--offset', str(SIZE // 2 + BS))
        self.assertEqual((r['wrong'], r['failed']), (0, 0))
        self.assertEqual(r['unwritten'], SIZE // BS // 2 - 2)
        self.stop(target)

    @long
    def test_results_have_no_room(self):
        target = self.target('size=%d' % SIZE)
        for option in ('--json', '--journal'):
            rc, out, err = self.start_client(['--rw', 'write', option, '/dev/full']).end()
            self.assertEqual(rc, 1, out + err)
            self.assertIn(option + ' /dev/full: No space left', err)
        self.stop(target)

    def test_file_may_not_grow(self):
        # Far above the shared memory of the devices, which the kernel counts as files, too.
        limit = 256 << 20
        with open(self.disk, 'wb') as f:
            f.truncate(2 * limit)
        target = self.target()
        resource.prlimit(target.proc.pid, resource.RLIMIT_FSIZE, (limit, limit))
        start = limit - SIZE // 2
        place = ['--offset', str(start), '--size', str(SIZE)]
        r, text = self.client('--rw', 'write', *place, rc=1)
        self.assertEqual((r['writes'], r['failed']), (SIZE // BS // 2, SIZE // BS // 2))
        self.assertIn('No space left', text)
        # The acknowledged data are there.
        r, _ = self.client('--rw', 'read', '--verify', *place)
        self.assertEqual((r['reads'], r['unwritten'], r['wrong']), (SIZE // BS, SIZE // BS // 2, 0))
        self.assertEqual(sorted(self.stamps(start)), list(range(start, limit, BS)))
        self.stop(target)

    @unittest.skipIf(os.getuid() != 0, 'to mount a small tmpfs needs root')
    def test_full_disk(self):
        small = os.path.join(self.folder.name, 'small')
        os.mkdir(small)
        mount = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=%d' % (SIZE // 2), 'tmpfs',
                                small], stderr=subprocess.PIPE, text=True)
        if mount.returncode != 0:
            self.skipTest('no tmpfs can be mounted here: ' + mount.stderr.strip())
        # The kernel releases a ring's file some time after its process has ended.
        self.addCleanup(subprocess.run, ['umount', '--lazy', small], check=True)
        self.disk = os.path.join(small, 'disk')
        target = self.target('size=%d' % SIZE)
        path = os.path.join(self.folder.name, 'journal')
        r, text = self.client('--rw', 'write', '--fua', '--journal', path, rc=1)
        self.assertIn('No space left', text)
        self.assertEqual(r['writes'] + r['failed'], SIZE // BS)
        self.assertGreater(r['writes'], SIZE // BS // 4)
        r, _ = self.client('--check', path)
        self.assertEqual(r['wrong'], 0)
        self.assertEqual(len(self.stamps()), sum(a != 0 for a, _ in self.journal(path).values()))
        self.stop(target)


if __name__ == '__main__':
    main()
