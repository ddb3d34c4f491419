# SPDX-License-Identifier: BSD-3-Clause
"""Parts of the tests of bb_verbs: users, and two processes of a program."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'app'))
from apptest import free_ports  # noqa: E402

NOBODY = 65534
WAIT = 240          # seconds; a machine may be busy
LISTEN = '0A'       # state in /proc/net/tcp
RPING = 0, 255      # exit status of rping after all data were compared; see pinged()
NO_CLOCK = "Can't produce a report"


def as_user(uid):
    """Returns arguments of subprocess for a user; those of this process for None."""
    return {} if uid is None else {'user': uid, 'group': uid, 'extra_groups': []}


def listens(port, net='/proc/net'):
    """Returns whether a process of a network namespace listens at a TCP port; makes no connection."""
    for name in 'tcp', 'tcp6':
        with open(os.path.join(net, name)) as f:
            for line in f.readlines()[1:]:
                words = line.split()
                if words[3] == LISTEN and int(words[1].rsplit(':', 1)[1], 16) == port:
                    return True
    return False


def patient(args):
    """Lengthens perftest's ack timeout: its 67 ms and 7 retries are less than a busy machine suspends a process for."""
    return (*args, '-u', '20') if args[0].startswith('ib_') and '-R' not in args else args


def clocked(attempt):
    """Repeats what returns a status and an output, until perftest could measure the frequency of the CPU.

    perftest gives up if it is interrupted between two readings of its clocks (sample_get_cpu_mhz()).
    """
    for _ in range(5):
        status, out = attempt()
        if NO_CLOCK not in out:
            break
    return status, out


def pinged(rc, out, count):
    """Returns whether rping -c -v compared the data of @count messages and ended by itself.

    Its thread for events may start to read from their channel after its close: the exit status is 255 then.
    """
    return rc in RPING and len(re.findall(r'^ping data: rdma-ping-', out, re.M)) == count


class VerbsTest(unittest.TestCase):
    program = hostile = None
    net = '/proc/net'    # of the server's network namespace

    def setUp(self):
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.folder = tmp.name
        os.chmod(self.folder, 0o1777)
        self.network = 'test%d' % os.getpid()
        self.env = dict(os.environ, TMPDIR=self.folder)
        self.env.pop('LD_PRELOAD', None)

    def need(self, program, package):
        if shutil.which(program) is None:
            self.skipTest('%s is not here: install %s' % (program, package))

    def command(self, *args, options=()):
        return [self.program, '--device', 'soft0,shm=' + self.network, *options, '--', *patient(args)]

    def start(self, cmd, uid=None):
        proc = subprocess.Popen(cmd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env=self.env, cwd=self.folder, **as_user(uid))
        self.addCleanup(proc.stdout.close)
        self.addCleanup(proc.wait)
        self.addCleanup(proc.kill)
        return proc

    def end(self, proc, wait=WAIT):
        """Returns exit status and output. A process that does not end in @wait seconds is killed: status None."""
        try:
            out, _ = proc.communicate(timeout=wait)
            return proc.returncode, out
        except subprocess.TimeoutExpired:
            proc.kill()
            out, _ = proc.communicate()
            return None, out

    def run_one(self, cmd, uid=None, wait=WAIT):
        return self.end(self.start(cmd, uid), wait)

    def pair(self, *args, uid=None):
        """Runs a program as server and as client, which must both succeed. Returns both outputs."""
        port = free_ports()
        cmd = self.command(*args, '-p', str(port))
        return self.pair_of(cmd, cmd + ['localhost'], port, uid)

    def pair_of(self, server_cmd, client_cmd, port, uid=None):
        """Runs two commands, of which the first listens at a TCP port. Both must succeed. Returns both outputs."""
        def attempt():
            server = self.start(server_cmd, uid)
            self.until_listening(server, port)
            client = self.start(client_cmd, uid)
            done = {'client': self.end(client), 'server': self.end(server)}
            text = '\n'.join('--- %s, exit status %s:\n%s' % (side, rc, out) for side, (rc, out) in done.items())
            return [rc for rc, _ in done.values()], text
        status, text = clocked(attempt)
        self.assertEqual(status, [0, 0], '%s\n%s' % (' '.join(client_cmd), text))
        return text

    def until_listening(self, server, port):
        end = time.monotonic() + WAIT
        while not listens(port, self.net) and server.poll() is None and time.monotonic() < end:
            time.sleep(0.05)

    def usable_by_nobody(self):
        """Skips unless this user may become NOBODY, and that user may read the build folder."""
        if os.getuid() != 0:
            self.skipTest('needs root, to become nobody')
        try:
            subprocess.run([self.program, '--version'], check=True, stdout=subprocess.DEVNULL, **as_user(NOBODY))
        except (OSError, subprocess.CalledProcessError) as e:
            self.skipTest('nobody cannot run %s: %s' % (self.program, e))

    def until_removed(self):
        """The files for /sys are removed after the program's end, by a process of their own."""
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            left = [name for name in os.listdir(self.folder) if name.startswith('bb_verbs-')]
            if not left:
                return
            time.sleep(0.05)
        self.fail('left in TMPDIR: %s' % left)


def main(argv):
    VerbsTest.program, VerbsTest.hostile = (os.path.abspath(p) for p in argv[1:3])
    unittest.main(module='__main__', argv=argv[:1] + argv[3:], verbosity=2)
