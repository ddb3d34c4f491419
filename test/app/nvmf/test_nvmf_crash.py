#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/nvmf: targets killed under load. The next target has the data of all acknowledged writes.

usage: test_nvmf_crash.py NVMF_CRASH NVMF_TARGET KILLS
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import CPUS, LIMIT  # noqa: E402

CRASH, TARGET, KILLS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), int(sys.argv[3])
NQN = 'nqn.2026-01.org.example:disk'
EAL = ['--no-huge', '-m', '128', '--no-pci', '--no-shconf', '--no-telemetry', '--log-level=lib.eal:4']
SIZE = 512 * 4096


class Crash(unittest.TestCase):
    lcores, kills = 1, KILLS

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get('NVMF_TEST_DIR'))
        self.addCleanup(self.folder.cleanup)
        self.disk = os.path.join(self.folder.name, 'disk')
        self.log = open(os.path.join(self.folder.name, 'log'), 'w+')
        self.addCleanup(self.log.close)
        self.fabric = 'nvc%d_%s' % (os.getpid(), self.id().rsplit('.', 1)[1][-8:])
        self.io = []
        self.seed = random.randrange(1 << 32)
        print('seed %d' % self.seed, flush=True)

    def popen(self, args, cpus, out):
        proc = subprocess.Popen([args[0], '-l', ','.join(str(cpu) for cpu in cpus), *EAL, '--', *args[1:]], text=True, stdout=out,
                                stderr=self.log)
        self.addCleanup(self.end, proc)
        return proc

    def end(self, proc):
        if proc.poll() is None:
            proc.kill()
        proc.wait(LIMIT)
        if proc.stdout is not None:
            proc.stdout.close()

    def target(self, *how):
        """Starts a target; without io_uring, where that is forbidden."""
        how = how or ('--subsystem', NQN, '--namespace', 'file:%s,size=%d' % (self.disk, SIZE))
        proc = self.popen([TARGET, '--device', 'soft0,shm=%s,ip=192.0.2.9/24' % self.fabric, '--queues', '8', '--depth', '64',
                           '--max-io', '16K', *how, *self.io], CPUS[:self.lcores], subprocess.PIPE)
        for line in proc.stdout:
            if ' port ' in line:
                return proc
        self.log.seek(0)
        text = self.log.read()
        if 'refuses io_uring' in text and not self.io:
            self.io = ['--io', 'sync']
            return self.target(*how)
        self.fail(text)

    def until(self, proc, words):
        for line in proc.stdout:
            if line.startswith(words):
                return line
        self.log.seek(0)
        self.fail('%s\nexit status %s\n%s' % (words, proc.wait(LIMIT), self.log.read()[-4000:]))

    def writer(self, kills):
        return self.popen([CRASH, 'soft0,shm=%s,ip=192.0.2.10/24' % self.fabric, '192.0.2.9:4420', NQN, str(kills), str(self.seed)],
                          CPUS[-1:], subprocess.PIPE)

    def test_next_target_has_all_acknowledged_writes(self):
        target = self.target()
        writer = self.writer(self.kills)
        dice = random.Random(self.seed)
        for kill in range(self.kills):
            self.until(writer, 'busy %d' % kill)
            time.sleep(dice.random() * 0.05)
            target.kill()
            self.end(target)
            target = self.target()
        line = self.until(writer, 'round %d: ' % self.kills)
        self.assertEqual(writer.wait(LIMIT), 0)
        print('%d lcores, %d kills, %s' % (self.lcores, self.kills, line), flush=True)

    def configure(self, target, path, *nqns):
        """Writes the configuration file, and makes the target read it until it applies it."""
        with open(path, 'w') as f:
            for nqn in nqns:
                f.write('[subsystem %s]\nnamespace = %s\n' %
                        (nqn, 'file:%s,size=%d' % (self.disk, SIZE) if nqn == NQN else 'null:1M'))
        end = time.monotonic() + LIMIT
        while target is not None:
            lines = self.lines('nvmf.ini: ')
            target.send_signal(signal.SIGHUP)
            while self.lines('nvmf.ini: ') == lines:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
            if 'read again' in self.lines('nvmf.ini: ')[-1]:
                return
            # Hosts still use the subsystem that was removed.
            self.assertIn('not applied', self.lines('nvmf.ini: ')[-1])

    def lines(self, words):
        with open(self.log.name) as f:
            return [line for line in f if words in line]

    def test_subsystem_that_goes_and_comes_under_load_has_all_acknowledged_writes(self):
        path, rounds = os.path.join(self.folder.name, 'nvmf.ini'), max(self.kills // 10, 2)
        self.configure(None, path, NQN + '2', NQN)
        target = self.target('--config', path)
        writer = self.writer(rounds)
        for i in range(rounds):
            self.until(writer, 'busy %d' % i)
            self.configure(target, path, NQN + '2')
            self.configure(target, path, NQN + '2', NQN)
        self.until(writer, 'round %d: ' % rounds)
        self.assertEqual(writer.wait(LIMIT), 0)
        # The target prints at most one such line a second.
        self.assertNotEqual(self.lines('the host may not use the subsystem any more'), [])
        target.terminate()
        self.assertEqual(target.wait(LIMIT), 0)

    def test_lost_write_is_found(self):
        target = self.target()
        writer = self.writer(1)
        self.until(writer, 'busy 0')
        target.kill()
        self.end(target)
        with open(self.disk, 'r+b') as f:
            f.write(bytes(SIZE))
        self.target()
        self.until(writer, 'LOST: block ')
        self.assertEqual(writer.wait(LIMIT), 1)


@unittest.skipIf(len(CPUS) < 2, 'one processor')
class Workers(Crash):
    """The I/O queue is on another lcore than the admin queue."""
    lcores, kills = 2, max(KILLS // 10, 2)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
