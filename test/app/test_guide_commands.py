#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the commands of the documents as printed, each block in a network namespace of its own.

usage: test_guide_commands.py DOCUMENT... -- PROGRAM...

A folder stands for all .rst files below it. Runs console and text blocks whose commands all need no
card, no interface and no other machine. A command that listens runs until the others of its block
have ended. A command that takes longer than a few seconds is stopped by SIGINT, and must then
exit with 130.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from apptest import CPUS, LIMIT

TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path += [TEST, os.path.join(TEST, 'check', 'docs')]
import netns
import snippets

BLOCK = re.compile(r'^\.\. code-block:: (?:console|text)\n(?: +:.*\n)*\n((?:(?:[ \t].*)?\n)+)', re.M)
INDENTED = re.compile(r'^\n((?: {4}.*\n)+)', re.M)
# Words of commands that need what this test does not have. The tests hft_memif and hft_hosts have net_memif.
ELSEWHERE = re.compile(r'mlx5_|rxe|siw|iface=|net_tap|net_memif|valgrind|fio|xdg-open|\bfor |&&| -i\b|cmdline-file|gdb|\$S|192\.0\.2\.\d+$')
LISTENS = re.compile(r'\blisten\b|^\S*nvmf_target\b')
SECONDS = 4
# Devices that do not exist: the guide shows the error.
FAILS = re.compile(r'soft9x')
UNTIL_STOPPED = [0, 130, 143, -signal.SIGINT, -signal.SIGTERM]


def commands(block, programs):
    """Returns the commands of a block that call a program, as lists of words."""
    found = []
    for line in re.sub(r'\\\n\s*', ' ', block).splitlines():
        line = re.sub(r'^\s*(\$ )?', '', line).partition(' # ')[0].strip()
        name = os.path.basename(line.partition(' ')[0])
        if name in programs and (' -' in line or line.startswith('build/')):
            found.append(line)
    return found


def cpus_of(words):
    numbers = words[words.index('-l') + 1] if '-l' in words else str(CPUS[0])
    return {int(n) for n in re.findall(r'\d+', numbers)}


def runnable(lines):
    """Returns why the commands cannot run here, '' if they can."""
    for line in lines:
        words = shlex.split(line)
        if ELSEWHERE.search(line):
            return 'needs a card, an interface or another program: ' + line
        if not cpus_of(words) <= set(CPUS):
            return 'needs more processors: ' + line
    return ''


def listening(pid):
    """Returns whether a TCP socket listens in the network namespace of the process @pid."""
    for table in 'tcp', 'tcp6':
        if os.path.exists('/proc/%d/net/%s' % (pid, table)):
            with open('/proc/%d/net/%s' % (pid, table)) as f:
                if any(line.split()[3] == '0A' for line in f.readlines()[1:]):
                    return True
    return False


class Namespace:
    """A network namespace with its loopback interface, and a folder for files."""

    def __init__(self, programs):
        self.programs = programs
        self.folder = tempfile.TemporaryDirectory()
        self.ns = netns.Netns()

    def start(self, line):
        words = shlex.split(line)
        words[0] = self.programs[os.path.basename(words[0])]
        return subprocess.Popen([*self.ns.enter, *words], cwd=self.folder.name,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def close(self):
        self.ns.close()
        self.folder.cleanup()


class Commands(unittest.TestCase):
    programs, blocks = {}, []

    def end(self, ns, line, seconds=SECONDS):
        """Runs a command, stopped after @seconds if it takes longer. Starts again with more time if
        it was stopped before it had started EAL."""
        proc = ns.start(line)
        self.addCleanup(proc.kill)
        try:
            out, _ = proc.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            proc.send_signal(signal.SIGINT)
            out, _ = proc.communicate(timeout=LIMIT)
            if proc.returncode == -signal.SIGINT and seconds < LIMIT / 2:
                return self.end(ns, line, 2 * seconds)
            # 0: it has ended by itself just before the signal.
            self.assertIn(proc.returncode, [0, 130], line + '\n' + out)
        else:
            self.assertEqual(proc.returncode != 0, FAILS.search(line) is not None, line + '\n' + out)
        self.assertNotIn('Sanitizer', out)
        return out

    def run_block(self, lines):
        try:
            ns = Namespace(self.programs)
        except netns.NetnsError as err:
            self.skipTest('no network namespace: %s' % err)
        self.addCleanup(ns.close)
        servers = []
        try:
            for line in lines:
                if not LISTENS.search(line):
                    self.end(ns, line)
                    continue
                servers.append((line, ns.start(line)))
                until = time.monotonic() + LIMIT
                # nvmf_target listens without a socket of the kernel.
                if 'nvmf_target' in line:
                    self.assertTrue(any(' port ' in said for said in servers[-1][1].stdout), line + ' ended early')
                    continue
                while not listening(ns.ns.pid) and time.monotonic() < until:
                    self.assertIsNone(servers[-1][1].poll(), line + ' ended early')
                    time.sleep(0.05)
        finally:
            for line, server in servers:
                server.terminate()
        for line, server in servers:
            out, _ = server.communicate(timeout=LIMIT)
            self.assertIn(server.returncode, UNTIL_STOPPED, line + '\n' + out)

    def test_every_program_prints_its_usage(self):
        for name, program in self.programs.items():
            with self.subTest(name):
                out = subprocess.run([program, '--help'], stdout=subprocess.PIPE, text=True, check=True, timeout=LIMIT)
                self.assertIn('usage: ' + name, out.stdout)

    def test_commands_run_as_printed(self):
        ran = 0
        for path, lines in self.blocks:
            why = runnable(lines)
            print('%s: %s' % (os.path.basename(path), why or 'run: ' + '; '.join(lines)), flush=True)
            if not why:
                with self.subTest(path, lines=lines):
                    self.run_block(lines)
                ran += len(lines)
        self.assertGreater(ran, 0)


def main():
    if '--' not in sys.argv:
        sys.exit(__doc__)
    split = sys.argv.index('--')
    Commands.programs = {os.path.basename(p): os.path.abspath(p) for p in sys.argv[split + 1:]}
    for path in snippets.expand(sys.argv[1:split]):
        with open(path) as f:
            text = f.read()
        for block in (BLOCK if path.endswith('.rst') else INDENTED).findall(text):
            lines = commands(block, Commands.programs)
            # Commands of a block without a listener do not depend on each other.
            together = [lines] if any(LISTENS.search(line) for line in lines) else [[line] for line in lines]
            Commands.blocks += [(path, part) for part in together if part]
    unittest.main(argv=sys.argv[:1], verbosity=2)


if __name__ == '__main__':
    main()
