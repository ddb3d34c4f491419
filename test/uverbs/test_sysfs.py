#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The folder that replaces /sys is removed with the program, however that ends."""

import fcntl
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROMPT = 60     # seconds for each step; a machine may be busy
PIPE = 4096     # bytes that a program may be ahead of its reader


class Sysfs(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.folder = tmp.name

    def there(self):
        return [e for e in os.listdir(self.folder) if e.startswith('bluebell-uverbs-')]

    def until(self, there):
        end = time.monotonic() + PROMPT
        while bool(self.there()) != there and time.monotonic() < end:
            time.sleep(0.02)
        self.assertEqual(bool(self.there()), there, self.there())

    def start(self, *args):
        program = subprocess.Popen([PROGRAM, *args], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True,
                                   env=dict(os.environ, TMPDIR=self.folder),
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE,
                                                                         (0, 0)))
        self.addCleanup(program.stdout.close)
        fcntl.fcntl(program.stdout, fcntl.F_SETPIPE_SZ, PIPE)
        return program

    def test_ends(self):
        for args, rc in ((['-d', 'mlx5_0', '--filter', 'device/query*'], 0),
                         (['-d', 'mlx5_9'], 77), (['--no-such-option'], 2)):
            program = self.start(*args)
            text, _ = program.communicate(timeout=PROMPT * 4)
            self.assertEqual(program.returncode, rc, text)
            self.until(False)

    def test_killed(self):
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGABRT, signal.SIGSEGV,
                    signal.SIGKILL):
            program = self.start('-d', 'mlx5_0', '--verbose', '--filter', 'data/*')
            self.until(True)
            # The program stays in the middle of its output: the pipe holds a few of its 1,500
            # lines.
            program.stdout.readline()
            program.send_signal(sig)
            program.communicate(timeout=PROMPT * 4)
            self.assertEqual(program.returncode, -sig)
            self.until(False)


if __name__ == '__main__':
    PROGRAM = sys.argv[1]
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
