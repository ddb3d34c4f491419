# SPDX-License-Identifier: BSD-3-Clause
"""Two processes of testrdma, one of which listens."""

import os
import re
import subprocess
import tempfile

from apptest import CPUS, EAL, LIMIT, AppTest


class PairTest(AppTest):
    def eal(self, name):
        cpu = CPUS[-1] if name == 'server' else CPUS[0]
        return ['-l', str(cpu)] + EAL + ['--file-prefix=tr_%s_%d' % (name, os.getpid())]

    def listen(self, device, eal=(), args=()):
        """Starts a listening process. Returns it with its port."""
        proc = subprocess.Popen([self.program] + self.eal('server') + list(eal) +
                                ['--', '--device', device, '--listen', '127.0.0.1:0'] + list(args),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = proc.stdout.readline()
        self.addCleanup(proc.stdout.close)
        self.addCleanup(proc.stderr.close)
        self.addCleanup(proc.kill)
        if 'listening' not in line:
            self.fail(str(proc.communicate(timeout=LIMIT)))
        return proc, '127.0.0.1:' + re.search(r'port (\d+)', line).group(1)

    def end(self, proc, rc=0):
        out, err = proc.communicate(timeout=LIMIT)
        self.assertEqual(proc.returncode, rc, err)
        self.assertNotIn('Sanitizer', err)
        self.assertNotIn('runtime error', err)
        return out, err

    def shm(self, host, options=''):
        return 'soft0,shm=tr%d,ip=192.0.2.%d/24%s' % (os.getpid(), host, options)

    def port_of(self, proc):
        """Reads up to the line with the port. Returns the port and the lines read."""
        seen = ''
        while True:
            line = proc.stdout.readline()
            self.assertTrue(line, 'it does not listen: ' + seen)
            seen += line
            found = re.match(r'listening at port (\d+)', line)
            if found:
                return seen, found.group(1)

    def commands(self, host, lines, options=''):
        """Starts a process with commands from a file."""
        with tempfile.NamedTemporaryFile('w', suffix='.cmd', delete=False) as f:
            f.write('\n'.join(lines))
        self.addCleanup(os.remove, f.name)
        proc = subprocess.Popen([self.program] + self.eal('server' if host == 1 else 'client') +
                                ['--', '--device', self.shm(host, options), '--cmdline-file',
                                 f.name],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(proc.stdout.close)
        self.addCleanup(proc.stderr.close)
        self.addCleanup(proc.kill)
        return proc
