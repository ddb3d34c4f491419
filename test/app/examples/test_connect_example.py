#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The connection example: two processes, and their messages when something is missing."""

import os
import re
import subprocess
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import EAL, LIMIT, AppTest, lcores, main  # noqa: E402


class Connect(AppTest):
    def args(self, name, host):
        return (lcores() + EAL + ['--file-prefix=bb_%s_%d' % (name, os.getpid()), '--',
                                  'soft0,shm=ex%d,ip=192.0.2.%d/24' % (os.getpid(), host)])

    def start(self, name, host, *more):
        return subprocess.Popen([self.program] + self.args(name, host) + list(more),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, proc):
        out, err = proc.communicate(timeout=LIMIT)
        self.assertNotIn('Sanitizer', err)
        return proc.returncode, out, err

    def test_two_processes(self):
        server = self.start('server', 1, 'listen', '127.0.0.1:0')
        line = ''
        while 'listening' not in line:
            line = server.stdout.readline()
            if not line:
                self.fail(self.end(server))
        port = re.search(r'at port (\d+)', line).group(1)
        client = self.end(self.start('client', 2, 'connect', '127.0.0.1:' + port))
        self.assertEqual(client[0], 0, client)
        self.assertIn('sent: success', client[1])
        res = self.end(server)
        self.assertEqual(res[0], 0, res)
        self.assertIn('hello from the other process, then written', res[1])

    def test_nobody_listens(self):
        res = self.end(self.start('client', 2, 'connect', '127.0.0.1:1'))
        self.assertEqual(res[0], 1, res)
        self.assertIn('Connection refused', res[2])

    def test_help(self):
        for args in (['--help'], lcores() + EAL + ['--', '--help']):
            res = self.end(subprocess.Popen([self.program] + args, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, text=True))
            self.assertEqual((res[0], res[2]), (0, ''))
            self.assertTrue(res[1].startswith('usage: connect'), res)

    def test_usage(self):
        res = self.end(self.start('client', 2, 'call', '127.0.0.1:1'))
        self.assertEqual(res[0], 2, res)
        self.assertIn('usage:', res[2])
        res = self.end(self.start('client', 2, 'connect', 'nowhere'))
        self.assertEqual(res[0], 1, res)
        self.assertIn('Invalid argument', res[2])


if __name__ == '__main__':
    main()
