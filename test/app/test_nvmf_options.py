#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/nvmf: its options, its files, start and stop. The interop test has the hosts.

usage: test_nvmf_options.py NVMF_TARGET
"""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

from apptest import LIMIT, lcores

TARGET = os.path.abspath(sys.argv[1])
EAL = ['--no-huge', '-m', '128', '--no-pci', '--no-telemetry', '--no-shconf', '--log-level=lib.eal:4']
SMALL = ['--queues', '4', '--depth', '8']
NQN = ['--subsystem', 'nqn.2026-01.org.example:disk']


class Options(unittest.TestCase):
    def start(self, args, folder=None):
        proc = subprocess.Popen([TARGET, *lcores(1), *EAL, '--', *SMALL, *args], cwd=folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(proc.stdout.close)
        self.addCleanup(proc.kill)
        return proc

    def refused(self, args, text, status=2, folder=None):
        proc = self.start(args, folder)
        out, _ = proc.communicate(timeout=LIMIT)
        self.assertEqual(proc.returncode, status, out)
        self.assertIn(text, out)

    def serving(self, args, folder=None):
        proc = self.start(args, folder)
        out = ''
        while ' port ' not in out:
            line = proc.stdout.readline()
            self.assertNotEqual(line, '', out)
            out += line
        return proc, out

    def test_wrong_options_are_refused(self):
        space = ['--namespace', 'null:1M']
        for args, text in (([], '--subsystem NQN is missing'),
                           (NQN, 'give it a --namespace'),
                           (space, '--namespace: give --subsystem first'),
                           (['--host', 'nqn.2026-01.org.example:a'], '--host: give --subsystem first'),
                           (NQN + NQN, 'the name occurs twice'),
                           (['--subsystem', 'disk'], 'give a qualified name'),
                           (['--subsystem', 'nqn.2014-08.org.nvmexpress.discovery'], 'give a qualified name'),
                           (NQN + ['--namespace', 'disk'], 'give file:PATH, malloc:SIZE or null:SIZE'),
                           (NQN + ['--namespace', 'null:0'], '--namespace'),
                           (NQN + ['--namespace', 'null:1M,size=1M'], '"size=1M" is no word of it'),
                           (NQN + ['--namespace', 'null:5000'], 'no multiple of --block 4096'),
                           (NQN + space + ['--max-io', '4K'], '--max-io'),
                           (NQN + space + ['--max-io', '12288'], 'powers of two'),
                           (NQN + space + ['--in-capsule', '24'], 'a multiple of 16'),
                           (NQN + space + ['--queues', '4096', '--depth', '1024'], 'at most 32768'),
                           (NQN + space + ['--serial', 'x' * 21], '20 characters at most'),
                           (NQN + space + ['--io', 'aio'], 'give uring or sync'),
                           (NQN + space + ['--listen', 'there'], 'give an address and a port'),
                           (NQN + space + ['rest'], '"rest" is not an option')):
            with self.subTest(args):
                self.refused(args, text)

    def test_target_ends_by_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            proc, _ = self.serving(NQN + ['--namespace', 'malloc:1M', '--namespace', 'null:1T,ro'])
            proc.send_signal(number)
            self.assertEqual(proc.wait(LIMIT), 0)
            self.assertIn('0 reads, 0 writes', proc.stdout.read())

    def test_file_is_created_and_locked(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refused(NQN + ['--namespace', 'file:disk', '--io', 'sync'], 'give its size to create it', 1, folder)
            proc, _ = self.serving(NQN + ['--namespace', 'file:disk,size=1M', '--io', 'sync'], folder)
            state = os.stat(os.path.join(folder, 'disk'))
            self.assertEqual((state.st_size, state.st_mode & 0o777), (1 << 20, 0o600))
            self.refused(NQN + ['--namespace', 'file:disk', '--io', 'sync'], 'another target serves it', 1, folder)
            proc.send_signal(signal.SIGTERM)
            self.assertEqual(proc.wait(LIMIT), 0)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
