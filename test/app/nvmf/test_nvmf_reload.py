#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/nvmf: a running target reads its configuration again, and telemetry shows the result.

usage: test_nvmf_reload.py NVMF_TARGET
"""

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import CPUS, LIMIT, lcores  # noqa: E402

TARGET = os.path.abspath(sys.argv[1])
A, B, H = 'nqn.2026-01.org.example:a', 'nqn.2026-01.org.example:b', 'nqn.2026-01.org.example:h'
HEAD = '[target]\nqueues = 4\ndepth = 8\nio = sync\n'


class Target(unittest.TestCase):
    cores, head = 1, HEAD

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, 'nvmf.ini')
        self.prefix = 'bb_nvmf_reload_%d' % os.getpid()
        self.log = open(os.path.join(self.folder.name, 'log'), 'w+')
        self.addCleanup(self.log.close)
        self.file = os.path.join(self.folder.name, 'disk')
        self.write('[subsystem %s]\nnamespace = malloc:1M\nnamespace = file:%s,size=1M\n' % (A, self.file))
        self.proc = subprocess.Popen([TARGET, *lcores(self.cores), '--no-huge', '-m', '128', '--no-pci', '--file-prefix', self.prefix,
                                      '--log-level=lib.eal:4', '--', '--config', self.path],
                                     stdout=self.log, stderr=subprocess.STDOUT)
        self.addCleanup(self.end)
        self.wait(lambda: 'port 4420' in self.text())
        base = '/var/run/dpdk' if os.getuid() == 0 else os.environ.get('XDG_RUNTIME_DIR', '/tmp') + '/dpdk'
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(self.sock.close)
        self.sock.settimeout(LIMIT)
        self.sock.connect('%s/%s/dpdk_telemetry.v2' % (base, self.prefix))
        self.sock.recv(4096)

    def end(self):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait(LIMIT)

    def text(self):
        with open(self.log.name) as f:
            return f.read()

    def wait(self, true):
        end = time.monotonic() + LIMIT
        while not true():
            self.assertIsNone(self.proc.poll(), self.text())
            self.assertLess(time.monotonic(), end, self.text())
            time.sleep(0.02)

    def write(self, text, head=None):
        with open(self.path, 'w') as f:
            f.write((head or self.head) + text)

    def ask(self, command):
        self.sock.send(('/bluebell/nvmf/' + command).encode())
        answer = json.loads(self.sock.recv(1 << 16))
        return answer['/bluebell/nvmf/' + command.split(',')[0]]

    def reload(self, text, head=None):
        self.write(text, head)
        return self.ask('reload')

    def refused(self, text, words, head=None):
        before = [self.ask(what) for what in ('list', 'info,0')]
        failed = self.ask('stats')['failed_reloads']
        self.assertIn('not applied', self.reload(text, head)['error'])
        self.assertIn(words, self.text())
        self.assertEqual([self.ask(what) for what in ('list', 'info,0')], before)
        self.assertEqual(self.ask('stats')['failed_reloads'], failed + 1)


class Reload(Target):
    def test_subsystems_and_namespaces_come_and_go(self):
        self.assertEqual(self.ask('list'), {'0': A})
        info = self.ask('info,0')
        self.assertEqual((info['nqn'], info['any_host']), (A, 1))
        self.assertRegex(info['serial'], '^BB[0-9A-F]{16}$')
        self.assertEqual({k: (v['kind'], v['blocks'], v['block']) for k, v in info['namespaces'].items()},
                         {'1': ('malloc', 256, 4096), '2': ('file', 256, 4096)})
        self.assertEqual(info['namespaces']['2']['path'], self.file)
        # A file that grows, a namespace without storage in place of the first, a host, a subsystem.
        self.assertEqual(self.reload('[subsystem %s]\nhost = %s\nnamespace = file:%s,size=2M,nsid=2\nnamespace = null:1G,nsid=9\n'
                                     '[subsystem %s]\nnamespace = null:1M,ro\n' % (A, H, self.file, B)), {'reloads': 1})
        self.assertEqual(self.ask('list'), {'0': A, '1': B})
        info = self.ask('info,0')
        self.assertEqual((info['any_host'], info['hosts']), (0, 1))
        self.assertEqual({k: (v['kind'], v['blocks']) for k, v in info['namespaces'].items()},
                         {'2': ('file', 512), '9': ('null', 262144)})
        self.assertEqual(os.stat(self.file).st_size, 2 << 20)
        self.assertEqual(self.ask('info,1')['namespaces']['1']['read_only'], 1)
        # The subsystem and the file are free again.
        self.assertEqual(self.reload('[subsystem %s]\nnamespace = null:1M,ro\n' % B)['reloads'], 2)
        self.assertEqual(self.ask('list'), {'1': B})
        self.assertIn('wrong parameters', self.ask('info,0')['error'])
        self.reload('[subsystem %s]\nnamespace = file:%s\n[subsystem %s]\nnamespace = null:1M,ro\n' % (A, self.file, B))
        self.assertEqual(self.ask('list'), {'0': A, '1': B})
        self.assertEqual(self.ask('info,0')['namespaces']['1']['blocks'], 512)

    def test_change_that_is_refused_changes_nothing(self):
        same = 'namespace = malloc:1M\nnamespace = file:%s,size=1M\n' % self.file
        a, other = '[subsystem %s]\n' % A, os.path.join(self.folder.name, 'other')
        self.refused(a + same + 'x', ':8: the line is neither')
        self.refused(a + 'namespace = null:1M\n', ':6: namespace = %s, nsid 1: other storage needs another number' % A)
        self.refused(a + 'namespace = malloc:2M\n', 'the size of malloc cannot change')
        self.refused(a + same.replace('1M\n', '8K\n'), 'cannot become smaller')
        self.refused(a + 'serial = X\n' + same, 'the serial number cannot change')
        self.refused(a + same, 'a change of depth needs a restart', HEAD.replace('8', '16'))
        self.refused(a + same, 'a change of listen needs a restart', HEAD + 'listen = :4421\n')
        self.refused(a + same, 'a change of sleep needs a restart', HEAD + 'sleep = 50\n')
        # The last file cannot be opened: the one before it, which was, is closed and unlocked.
        self.refused('%s%snamespace = file:%s,size=1M\nnamespace = file:/none/x,size=1M\n' % (a, same, other),
                     '/none/x: cannot be opened')
        self.refused('%s%snamespace = file:/none/x,size=1M\n' % (a, same.replace('size=1M', 'size=2M')), '/none/x: cannot be opened')
        self.assertEqual(os.stat(self.file).st_size, 1 << 20)
        self.assertEqual(self.reload('%s%snamespace = file:%s\n' % (a, same, other))['reloads'], 1)
        os.truncate(self.file, 4096)
        self.refused('%s%snamespace = file:%s\n' % (a, same.replace(',size=1M', ''), other), 'cannot become smaller')
        os.unlink(self.path)
        self.assertIn('not applied', self.ask('reload')['error'])
        self.assertIn('the configuration cannot be read', self.text())

    def test_refused_change_leaves_the_sizes_of_files(self):
        other = os.path.join(self.folder.name, 'other')
        both = '[subsystem %s]\nnamespace = malloc:1M\nnamespace = file:%s,size=%%s\nnamespace = file:%s%%s\n' % (A, self.file, other)
        self.assertEqual(self.reload(both % ('1M', ',size=1M'))['reloads'], 1)
        # The second file cannot become larger than the limit of the process.
        resource.prlimit(self.proc.pid, resource.RLIMIT_FSIZE, (3 << 20, resource.RLIM_INFINITY))
        self.refused(both % ('2M', ',size=4M'), 'other cannot be made 4194304 bytes long')
        self.assertEqual([os.stat(path).st_size for path in (self.file, other)], [1 << 20, 1 << 20])
        # The second file became smaller.
        os.truncate(other, 4096)
        self.refused(both % ('2M', ''), 'cannot become smaller')
        self.assertEqual(os.stat(self.file).st_size, 1 << 20)
        self.assertEqual(self.reload(both % ('2M', ',size=1M'))['reloads'], 2)
        self.assertEqual([os.stat(path).st_size for path in (self.file, other)], [2 << 20, 1 << 20])

    def test_hangup_reads_the_file_again(self):
        self.write('[subsystem %s]\nnamespace = null:1M\n' % B)
        self.proc.send_signal(signal.SIGHUP)
        self.wait(lambda: self.ask('list') == {'1': B})
        self.write('x')
        self.proc.send_signal(signal.SIGHUP)
        self.wait(lambda: self.ask('stats')['failed_reloads'] == 1)
        self.assertEqual(len(re.findall('read again', self.text())), 1)
        self.proc.send_signal(signal.SIGTERM)
        self.assertEqual(self.proc.wait(LIMIT), 0)

    def test_wrong_parameters_are_refused(self):
        for command in ('info', 'info,', 'info,16', 'info,1', 'info,0,0', 'info,x', 'controller', 'controller,0', 'controller,1',
                        'controller,5', 'controller,' + 'x' * 200, 'queue', 'queue,1', 'queue,1,0', 'controllers,x'):
            with self.subTest(command):
                self.assertIn('error', self.ask(command))
        self.assertEqual(self.ask('controllers'), {'controllers': [], 'total': 0})
        stats = self.ask('stats')
        self.assertEqual((stats['queues_connected'], stats['queues_refused'], stats['status']), (0, 0, {}))
        self.assertLess(stats['paused_ms'], 1000 * LIMIT)


@unittest.skipIf(len(CPUS) < 2, 'needs two processors')
class Worker(Target):
    cores, head = 2, HEAD.replace('io = sync\n', '')

    def setUp(self):
        try:
            super().setUp()
        except AssertionError:
            if 'refuses io_uring' in self.text():
                self.skipTest('the kernel refuses io_uring')
            raise

    def test_worker_without_io_uring_refuses_the_change(self):
        text = '[subsystem %s]\nnamespace = malloc:1M\nnamespace = file:%s,size=1M\n' % (A, self.file)
        more = text + 'namespace = file:%s,size=1M\n' % os.path.join(self.folder.name, 'other')
        limit = resource.prlimit(self.proc.pid, resource.RLIMIT_NOFILE)
        used = self.descriptors()
        # At first there is no descriptor for the file, later none for the io_uring of the second lcore.
        for more_fds in range(12):
            resource.prlimit(self.proc.pid, resource.RLIMIT_NOFILE, (used[-1] + more_fds, limit[1]))
            if 'error' not in self.reload(more):
                break
            self.assertEqual(list(self.ask('info,0')['namespaces']), ['1', '2'])
        resource.prlimit(self.proc.pid, resource.RLIMIT_NOFILE, limit)
        self.assertGreater(more_fds, 2)
        self.assertEqual(self.text().count('not applied'), more_fds, self.text()[-1000:])
        self.assertEqual(list(self.ask('info,0')['namespaces']), ['1', '2', '3'])
        self.assertGreaterEqual(len(self.descriptors()), len(used) + 3)
        self.reload(text)
        self.wait(lambda: len(self.descriptors()) <= len(used))

    def descriptors(self):
        return sorted(int(fd) for fd in os.listdir('/proc/%d/fd' % self.proc.pid))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
