#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/storage_plane: a target killed under load, lying clients and targets, full disks."""

import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import unittest

WAITER = os.path.abspath(sys.argv.pop())  # meson passes it as the fifth argument
FALSE = os.path.abspath(sys.argv.pop())
LIAR = os.path.abspath(sys.argv.pop())

from apptest import long, main  # noqa: E402
from cmtest import REP, message, reject  # noqa: E402
from storagetest import BS, EAL, WAIT, Process, StorageTest, lcores  # noqa: E402

SIZE = 1 << 20


class Faults(StorageTest):
    def journal(self, path):
        """Reads a journal: block offset: last write acknowledged, last one sent."""
        with open(path) as f:
            lines = f.read().splitlines()
        self.assertEqual(lines[-1], 'end %d' % (len(lines) - 2))
        return {int(o): (int(a), int(s)) for o, a, s in (l.split() for l in lines[1:-1])}

    def crash(self, load, least, defect=(), used=()):
        """Kills a target under load, on a file that a run with the options @used wrote before.
        Returns the acknowledged writes and what the file contains."""
        target = self.target('--size', str(SIZE), *self.io(), *defect)
        if used:
            self.client('--rw', 'write', *used)
        before = set(self.stamps().items())
        path = os.path.join(self.folder.name, 'journal')
        client = self.start_client(['--rw', 'randwrite', '--seconds', '1000', '--journal', path] +
                                   load)
        # Under load, and after at least some blocks were written.
        end = time.monotonic() + WAIT
        client.proc.stdout.readline()
        while not defect and len(set(self.stamps().items()) - before) < least and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(1 if defect else 0)  # with a defect the file also shows writes that are not acknowledged
        if used:
            # With writes in flight that it has not read.
            target.proc.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
        target.proc.kill()
        rc, out, err = client.end()
        target.end()
        self.assertEqual(rc, 1, out + err)
        self.assertIn('the target is gone', err)
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
            target = self.target('--wait', str(WAIT), *self.io())
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
            target = self.target('--wait', str(WAIT), *self.io())
            r, text = self.client('--check', path, '--seed', seed)
            self.assertEqual((r['reads'], r['wrong']), (len(told), 0), text)
            self.stop(target)
            os.unlink(self.disk)

    @long
    def test_crash_test_can_fail(self):
        path, told = self.crash(['--fua'], 0, ['--defect', 'ack-only'])
        self.assertTrue(any(a != 0 for a, _ in told.values()))
        target = self.target('--wait', str(WAIT), *self.io())
        r, text = self.client('--check', path, rc=1)
        self.assertEqual(r['wrong'], sum(a != 0 for a, _ in told.values()))
        self.assertIn('acknowledged write is not there', text)
        # A damaged journal is rejected.
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
    def test_check_on_a_used_disk(self):
        """Data from before the journal's run are no loss; blocks that replaced its data are one."""
        target = self.target('--size', str(SIZE), *self.io())
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
        target = self.target('--size', str(SIZE), *self.io())
        path = os.path.join(self.folder.name, 'journal')
        self.client('--rw', 'write', '--seed', '5')
        for seed, acked, words in (('5', 0, ''), ('6', 0, ''), ('5', 7, 'never sent'),
                                   ('6', 7, 'another --seed')):
            with open(path, 'w') as f:
                f.write('storage_client 1 bs %d seed %s\n%d %d 9\nend 1\n' %
                        (BS, seed, 100 * BS, acked))
            r, text = self.client('--check', path, '--seed', seed, rc=int(acked > 0))
            self.assertEqual(r['wrong'], int(acked > 0))
            self.assertEqual(r['foreign'], int(seed == '6' and acked == 0))
            self.assertIn(words, text)
        self.stop(target)

    def lie(self, lies):
        """Returns the outcome of each lie."""
        proc = subprocess.run([LIAR] + lcores(1) + EAL + [
            '--', self.device(), '127.0.0.1:%d' % self.port] + list(lies), timeout=WAIT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertNotIn('Sanitizer', proc.stderr)
        self.assertEqual(proc.returncode, 0, proc.stdout + proc.stderr)
        lines = dict(line.split(': ', 1) for line in proc.stdout.splitlines())
        self.assertEqual(list(lines), list(lies))
        return lines

    @long
    def test_liars(self):
        target = self.target('--size', str(SIZE), *self.io())
        self.client('--rw', 'write', '--offset', str(SIZE // 2))
        honest = self.start_client(['--rw', 'randrw', '--verify', '--seconds', '1000', '--offset',
                                    str(SIZE // 2)])
        self.assertIn('connected', honest.proc.stdout.readline())
        answered = {'none': 'status 0', 'length': 'invalid length', 'unaligned': 'invalid length',
                    'range': 'beyond the end', 'digest': 'wrong checksum',
                    'hello': 'refused: its hello is damaged'}
        ended = {'rkey': 'remote access', 'rkey-write': 'remote access', 'addr': 'remote access',
                 'short-memory': 'remote access', 'other-key': 'remote access',
                 'other-key-write': 'remote access', 'closed-key': 'remote access',
                 'id': 'the depth of the client is 4', 'twice': 'used id 1 again', 'flood': 'used id 1 again',
                 'damaged': 'damaged', 'operation': 'no operation', 'flags': 'flags',
                 'cut': 'another length', 'empty': 'another length', 'longer': 'another length',
                 'too-long': 'local length'}
        for what, said in self.lie(list(answered) + list(ended)).items():
            if what in answered:
                self.assertIn(answered[what], said)
                continue
            self.assertTrue(said.startswith('over: '), what + ': ' + said)
            # If the end of the connection is reported first, the reason may be missing.
            self.assertTrue(ended[what] in said or said == 'over: ', what + ': ' + said)
        # The honest client noticed nothing, and no lie reached the file; the honest write did.
        rc, out, err = honest.end(signal.SIGINT)
        self.assertEqual(rc, 130, out + err)
        self.assertIn(' 0 WRONG', out)
        self.assertEqual([o for o in self.stamps() if o < SIZE // 2], [])
        _, err = self.stop(target)
        dropped = [line for line in err.splitlines() if 'it is disconnected' in line]
        self.assertEqual(len(dropped), len(ended), err)
        for line, words in zip(dropped, ended.values()):
            self.assertIn(words, line)

    @long
    def test_refused_answers(self):
        """Clients that refuse at the last message of a connection: none keeps a slot."""
        target = self.target('--size', str(SIZE), '--clients', '2', *self.io())
        with socket.create_server(('127.0.0.1', 0)) as s:
            port, self.port = self.port, s.getsockname()[1]
            s.settimeout(WAIT)
            # Its request is valid while its address exists.
            client = self.start_client(['--rw', 'read'])
            near = s.accept()[0]
        self.addCleanup(near.close)
        request = message(near)
        self.port = port
        for _ in range(3):
            with socket.create_connection(('127.0.0.1', port), WAIT) as s:
                s.sendall(request)
                answer = message(s)
                self.assertEqual(answer[5], REP, answer)
                s.sendall(reject())
                self.assertEqual(s.recv(1), b'')
        client.end(signal.SIGKILL)
        self.client('--rw', 'write')
        counts, err = self.stop(target)
        self.assertEqual(counts['writes'], SIZE // BS)
        self.assertEqual(err.count('gone: consumer reject'), 3, err)

    def false_target(self, lies):
        target = Process([FALSE] + lcores(0) + EAL + ['--', self.device()] + list(lies))
        self.addCleanup(self.kill, target)
        self.port = int(re.match(r'queue 0 at port (\d+), ', target.proc.stdout.readline()).group(1))
        return target

    def test_deaf_target(self):
        """The client's polls do not block while the target does not answer."""
        self.false_target(['deaf'])
        client = Process([WAITER] + lcores(1) + EAL +
                         ['--', self.device(), '127.0.0.1:%d' % self.port])
        rc, out, err = client.end()
        self.assertEqual(rc, 0, out + err)
        self.assertIn('Connection reset by peer', out)
        self.assertIn('is damaged', out)
        self.assertLess(int(re.match(r'longest poll (\d+) ms', out).group(1)), 2000)

    @long
    def test_target_lies(self):
        """The client reports the error and ends; a WRITE outside its memory is rejected."""
        none = 'the peer is no target: its welcome message '
        said = {'welcome-damaged': none + 'is damaged', 'welcome-cut': none + 'has another length',
                'version': none, 'depth': 'grants more requests than the client asked for',
                'block': none + 'has blocks of a size', 'length': "has a length that is not the command's",
                'id': 'belongs to no outstanding command', 'twice': 'belongs to no outstanding command',
                'damaged': 'is damaged', 'cut': 'has another length',
                'long': 'local length', 'digest': 'another checksum than was sent',
                'place': 'no right to', 'gone': 'the target', 'silent': 'has not answered for 2 s'}
        target = self.false_target(['none'] + list(said))
        self.client('--rw', 'read', '--depth', '4', '--ios', '100')
        for lie, words in said.items():
            more = ['--wait', '2'] if lie == 'silent' else []
            # As many as the depth: no id is used again.
            client = self.start_client(['--rw', 'read', '--depth', '4', '--ios', '4', *more])
            rc, out, err = client.end()
            self.assertEqual(rc, 1, lie + out + err)
            self.assertIn(words, out + err, lie)
            self.assertNotIn('Sanitizer', err)
            self.assertNotIn('runtime error', err)
        rc, out, err = target.end()
        self.assertEqual(rc, 0, out + err)

    @long
    def test_file_cut_short(self):
        # The file shrinks under a serving target: an error, and never invented data.
        target = self.target('--size', str(SIZE), *self.io())
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

    def test_file_is_none(self):
        for size, args, words in ((0, [], 'give its size'), (BS - 1, [], 'give its size'),
                                  (BS, ['--read-only', '--size', str(2 * BS)], 'the options ask for more')):
            with open(self.disk, 'wb') as f:
                f.truncate(size)
            rc, out, err = self.run_target(args + self.io()).end()
            self.assertEqual(rc, 1, out + err)
            self.assertIn(words, err)
            # The file was not changed.
            self.assertEqual(os.path.getsize(self.disk), size)
        # Bytes after the last whole block are not served.
        with open(self.disk, 'wb') as f:
            f.truncate(2 * BS + 1)
        target = self.target(*self.io())
        r, _ = self.client('--rw', 'read')
        self.assertEqual(r['reads'], 2)
        self.stop(target)

    @long
    def test_results_have_no_room(self):
        target = self.target('--size', str(SIZE), *self.io())
        for option in ('--json', '--journal'):
            rc, out, err = self.start_client(['--rw', 'write', option, '/dev/full']).end()
            self.assertEqual(rc, 1, out + err)
            self.assertIn(option + ' /dev/full: No space left', err)
        self.stop(target)

    def test_file_may_not_grow(self):
        io = self.io()
        # Far above the shared memory of the devices, which the kernel counts as files, too.
        limit = 256 << 20
        with open(self.disk, 'wb') as f:
            f.truncate(2 * limit)
        target = self.target(*io)
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
        target = self.target('--size', str(SIZE), *self.io())
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
