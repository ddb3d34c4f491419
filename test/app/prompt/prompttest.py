# SPDX-License-Identifier: BSD-3-Clause
"""Drives testrdma's prompt: by lines from a pipe, and key by key at a pseudo terminal."""

import json
import os
import pty
import re
import select
import tempfile
import time

from apptest import LIMIT, AppTest


class Terminal:
    """The program at a pseudo terminal, driven key by key."""

    def __init__(self, cmd):
        self.seen = ''
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(cmd[0], cmd)

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def until(self, pattern):
        """Reads up to a match. Returns the match and all output before it."""
        end = time.monotonic() + LIMIT
        while True:
            found = re.search(pattern, self.seen)
            if found:
                text, self.seen = self.seen[:found.end()], self.seen[found.end():]
                return text
            if time.monotonic() > end:
                raise AssertionError('no %r in %r' % (pattern, self.seen))
            if select.select([self.fd], [], [], 1)[0]:
                self.seen += os.read(self.fd, 4096).decode()

    def status(self):
        """Waits for its end, reading the remaining output."""
        try:
            while os.read(self.fd, 4096):
                pass
        except OSError:  # EIO: no process has the other end open
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Scripted(AppTest):
    def script(self, lines, rc=0, args=(), eal=None):
        """Runs lines piped in. Returns the result with its JSON."""
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            res = self.run_program(['-i', '--json', f.name] + list(args), eal,
                                   input='\n'.join(lines))
            self.assertEqual(res.rc, rc, str(res))
            with open(f.name) as again:
                res.json = json.load(again)
        self.assertEqual(res.json['exit_status'], rc)
        return res

    def rows(self, res):
        return [(r['op'], r['size'], r['lcores'], r['qps']) for r in res.json['rows']]
