# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the smoke tests of the programs. Uses only Python's standard library."""

import fcntl
import functools
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import unittest

SKIP = 77
CPUS = sorted(os.sched_getaffinity(0))
EAL = ['--no-huge', '-m', '512', '--no-pci', '--no-shconf', '--no-telemetry']
OPS = ['write', 'read', 'fetch_add', 'cmp_swap', 'send', 'write_imm', 'send_imm']
ATOMICS = ['fetch_add', 'cmp_swap']
LIMIT = 240  # seconds; sanitizers are slow
LEASE = []  # of own_cpu(): the processor and its lock


def own_cpu():
    """Returns a processor that no other test of this machine uses, if there is one."""
    if not LEASE:
        for cpu in CPUS:
            lock = open(os.path.join(tempfile.gettempdir(), 'bb_test_cpu%d.%d' % (cpu, os.getuid())), 'w')
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                continue
            LEASE.extend((cpu, lock))  # held until this process ends
            break
        else:
            LEASE.append(CPUS[os.getpid() % len(CPUS)])
    return LEASE[0]


def lcores(n=1):
    """Returns EAL's -l for one processor, or for the first @n that this process may use."""
    return ['-l', str(own_cpu()) if n == 1 else ','.join(str(c) for c in CPUS[:n])]


def free_ports(n=1):
    """Returns the first of @n consecutive free TCP ports. They are outside the range from which the
    kernel assigns ports, so that no other program gets one before the program under test."""
    for _ in range(1000):
        port = random.randrange(10000, 32768 - n)
        socks = [socket.socket() for _ in range(n)]
        try:
            for i, s in enumerate(socks):
                s.bind(('127.0.0.1', port + i))
            return port
        except OSError:
            pass
        finally:
            for s in socks:
                s.close()
    raise OSError('no free ports')


class Result:
    def __init__(self, proc, path):
        self.rc = proc.returncode
        self.out = proc.stdout
        self.err = proc.stderr
        self.json = None
        if path is not None and os.path.getsize(path) > 0:
            with open(path) as f:
                self.json = json.load(f)

    def __str__(self):
        return 'exit status %s\n--- stdout\n%s\n--- stderr\n%s' % (self.rc, self.out, self.err)


class AppTest(unittest.TestCase):
    program = None
    maxDiff = None

    def run_program(self, args, eal=None, limit=LIMIT, **how):
        """Runs the program with @args after "--", at most @limit seconds; a sanitizer's report is a failure."""
        cmd = [self.program] + (lcores() + EAL if eal is None else eal) + ['--'] + args
        proc = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors='backslashreplace', timeout=limit, **how)
        res = Result(proc, None)
        self.assertNotIn('Sanitizer', res.err, str(res))
        self.assertNotIn('runtime error', res.err, str(res))
        return res

    def run_json(self, args, eal=None, rc=0):
        """Runs with --json and checks that the result agrees with the exit status."""
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            res = self.run_program(args + ['--json', f.name], eal)
            self.assertEqual(res.rc, rc, str(res))
            with open(f.name) as again:
                res.json = json.load(again)
        self.assertEqual(res.json['exit_status'], rc)
        return res

    def usage_error(self, args, *words, eal=None):
        """Expects exit status 2, one line with all of @words, and no standard output."""
        res = self.run_program(args, eal)
        self.assertEqual(res.rc, 2, str(res))
        self.assertEqual(res.out, '', str(res))
        for word in words:
            self.assertIn(word, res.err, str(res))
        return res


def long(test):
    """Marks a test function that runs only in the full form of its program."""
    test.long = True
    return test


def seeded_defects(path):
    """Returns whether the build with @path compiles the software device's seeded defects."""
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        options = os.path.join(path, 'meson-info', 'intro-buildoptions.json')
        if os.path.exists(options):
            with open(options) as f:
                return any(o['name'] == 'defects' and o['value'] for o in json.load(f))
    return True  # Not in a build folder: the program reports what is missing.


def needs_defects(test):
    """Marks a test function that needs a device with a seeded defect."""
    @functools.wraps(test)
    def run(self):
        if not seeded_defects(os.path.abspath(self.program)):
            self.skipTest('the build has no seeded defects: configure it with -Ddefects=true')
        test(self)
    return run


class ShortForm(unittest.TestLoader):
    def getTestCaseNames(self, case):
        return [name for name in super().getTestCaseNames(case) if not hasattr(getattr(case, name), 'long')]


def main():
    """meson passes the program under test as the first argument; --short leaves out long tests."""
    if len(sys.argv) < 2:
        sys.exit('usage: %s PROGRAM [--short] [unittest options]' % sys.argv[0])
    AppTest.program = sys.argv[1]
    short = '--short' in sys.argv
    unittest.main(argv=[sys.argv[0]] + [a for a in sys.argv[2:] if a != '--short'], verbosity=2,
                  testLoader=ShortForm() if short else unittest.defaultTestLoader)
