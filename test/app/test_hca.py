#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bb_hca as a program: its socket, its clients, its errors. usage: test_hca.py BB_HCA

The clients speak vfio-user without a virtual machine.
"""

import json
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

SECONDS = 180
CLIENT = shutil.which('dpdk-telemetry.py')
VERSION, DEVICE_INFO, REGION_READ = 1, 4, 9


class Client:
    """A connection of vfio-user."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS)
        self.sock.connect(path)

    def call(self, command, body=b''):
        """Returns the body of the reply, or None if the server closed the connection."""
        try:
            self.sock.sendall(struct.pack('<HHIII', 1, command, 16 + len(body), 0, 0) + body)
            head = self.sock.recv(16, socket.MSG_WAITALL)
        except (BrokenPipeError, ConnectionResetError):
            return None
        if len(head) < 16:
            return None
        size = struct.unpack('<HHIII', head)[2]
        return self.sock.recv(size - 16, socket.MSG_WAITALL)

    def start(self):
        return self.call(VERSION, struct.pack('<HH', 0, 0) + b'{}\0')

    def config(self, offset):
        """Returns a dword of configuration space."""
        return struct.unpack('<QIII', self.call(REGION_READ, struct.pack('<QII', offset, 7, 4)))[3]


def state(pid):
    """Returns the state of a process's main thread: R if it runs, S if it sleeps."""
    with open('/proc/%d/stat' % pid, encoding='ascii') as stat:
        return stat.read().rpartition(')')[2].split()[0]


def lowest_free(pid):
    """Returns the lowest free descriptor of a process that has started.

    One look is not enough: its threads have files open for a moment, and on a busy machine the look can meet one.
    """
    lowest = []
    for _ in range(10):
        used = {int(fd) for fd in os.listdir('/proc/%d/fd' % pid)}
        lowest.append(min(set(range(len(used) + 1)) - used))
        time.sleep(.05)
    return min(lowest)


class Hca(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.path = os.path.join(self.dir.name, 'cx.sock')

    def serve(self, *options, eal=()):
        """Starts bb_hca, and waits until all its functions listen."""
        command = [HCA, *eal, *['--'] * bool(eal), '--socket', self.path, *options]
        proc = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(proc.stdout.close)
        self.addCleanup(proc.wait)
        self.addCleanup(proc.kill)
        left = command.count('--socket')
        for line in proc.stdout:
            left -= 'listens at' in line
            if left == 0:
                return proc
        return self.fail('bb_hca ended with %s' % proc.wait(SECONDS))

    def refused(self, *options):
        """Runs bb_hca with options that it refuses. Returns its exit status and output."""
        done = subprocess.run([HCA, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=SECONDS, check=False)
        return done.returncode, done.stdout

    def client(self, path=None):
        client = Client(path or self.path)
        self.addCleanup(client.sock.close)
        return client

    def stop(self, proc, sig=signal.SIGTERM):
        proc.send_signal(sig)
        self.assertEqual(proc.wait(SECONDS), 0)

    def test_signals_end_it_and_remove_the_socket(self):
        for sig in (signal.SIGTERM, signal.SIGINT):
            proc = self.serve()
            self.assertTrue(os.path.exists(self.path))
            self.stop(proc, sig)
            self.assertFalse(os.path.exists(self.path))

    def test_clients_come_one_after_the_other(self):
        proc = self.serve('--vf')
        for _ in range(3):
            client = self.client()
            self.assertIn(b'max_msg_fds', client.start())
            self.assertEqual(client.config(0), 0x101c15b3)
            second = self.client()
            self.assertIsNone(second.start())
            self.assertIsNotNone(client.call(DEVICE_INFO))
            client.sock.close()
        self.stop(proc)

    def test_client_waits_asleep_until_a_descriptor_is_free(self):
        # The telemetry thread of DPDK logs an error and ends if it finds no free descriptor.
        proc = self.serve(eal=('--no-huge', '-m', '128', '--no-pci', '--no-telemetry'))
        limit = resource.prlimit(proc.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(proc.pid, resource.RLIMIT_NOFILE, (lowest_free(proc.pid), limit[1]))
        client = self.client()
        self.assertIn('accept4() failed: Too many open files', proc.stdout.readline())
        # A loop that cannot sleep is never seen asleep. Later attempts fail, too, and log nothing.
        until = time.monotonic() + SECONDS
        for _ in range(20):
            while state(proc.pid) != 'S':
                self.assertLess(time.monotonic(), until, 'bb_hca does not sleep')
            time.sleep(.1)
        resource.prlimit(proc.pid, resource.RLIMIT_NOFILE, limit)
        self.assertIn(b'max_msg_fds', client.start())
        self.assertIn('client connected', proc.stdout.readline())
        self.stop(proc)

    def test_functions_of_one_process_have_a_client_each(self):
        other = self.path + '2'
        proc = self.serve('--socket', other, '--device', 'soft3', '--vf', '--link', 'eth')
        first, second = self.client(), self.client(other)
        for client, device, code in (first, 0x101b, 0x0207), (second, 0x101c, 0x0200):
            self.assertIn(b'max_msg_fds', client.start())
            self.assertEqual(client.config(0), device << 16 | 0x15b3)
            self.assertEqual(client.config(8) >> 16, code)
        first.sock.close()
        self.assertIsNotNone(second.call(DEVICE_INFO))
        self.assertIn(b'max_msg_fds', self.client().start())
        self.stop(proc)
        self.assertFalse(os.path.exists(self.path) or os.path.exists(other))

    @unittest.skipUnless(CLIENT, 'no dpdk-telemetry.py')
    def test_telemetry_counts_by_function(self):
        prefix = 'bb_hca_%d' % os.getpid()
        proc = self.serve('--socket', self.path + '2', '--link', 'eth',
                          eal=('--no-huge', '-m', '128', '--no-pci', '--file-prefix=' + prefix))
        for _ in range(2):
            client = self.client(self.path + '2')
            client.start()
            client.sock.close()
        requests = ['/bluebell/hca/list', '/bluebell/hca/stats,soft0', '/bluebell/hca/stats,soft1',
                    '/bluebell/hca/stats,soft2', '/bluebell/hca/stats']
        until = time.monotonic() + SECONDS
        while True:
            done = subprocess.run([CLIENT, '-f', prefix], input='\n'.join([*requests, 'quit', '']), text=True,
                                  stdout=subprocess.PIPE, timeout=SECONDS, check=True)
            answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')]
            names, soft0, soft1, *wrong = [list(answer.values())[0] for answer in answers]
            if soft1['resets'] == 2 or time.monotonic() > until:
                break
        self.assertEqual(names, ['soft0', 'soft1'])
        self.assertEqual(set(soft0.values()), {0})
        self.assertEqual({k: v for k, v in soft1.items() if v}, {'clients': 2, 'resets': 2})
        self.assertEqual(set(soft0), {'clients', 'commands', 'command_errors', 'doorbells', 'shared_stores', 'events',
                                      'interrupts', 'resets', 'fatal_errors', 'page_requests', 'pages'})
        self.assertEqual(set(soft1) - set(soft0),
                         {'tx_frames', 'tx_bytes', 'rx_frames', 'rx_bytes', 'rx_dropped_steering',
                          'rx_dropped_no_wqe', 'rx_dropped_too_long', 'rx_dropped_error'})
        self.assertEqual([list(answer) for answer in wrong], [['error'], ['error']])
        self.stop(proc)

    def test_link_layer_sets_the_class(self):
        for link, code in (('ib', 0x0207), ('eth', 0x0200)):
            proc = self.serve('--link', link)
            client = self.client()
            client.start()
            self.assertEqual(client.config(8) >> 16, code)
            self.stop(proc)

    def test_socket_of_a_process_that_died_is_replaced(self):
        proc = self.serve()
        proc.kill()
        proc.wait(SECONDS)
        self.assertTrue(os.path.exists(self.path))
        self.stop(self.serve())

    def test_path_in_use_is_refused(self):
        proc = self.serve()
        self.assertEqual(self.refused('-s', self.path)[0], 1)
        self.assertIn('another process listens there', self.refused('-s', self.path)[1])
        self.stop(proc)
        with open(self.path, 'w', encoding='ascii'):
            pass
        self.assertIn('the file exists and is not a socket', self.refused('-s', self.path)[1])
        self.assertTrue(os.path.exists(self.path))

    def test_wrong_options_are_refused(self):
        for options, text in (([], '--socket PATH is missing'),
                              (['-s', 'x' * 108], '108 bytes'),
                              (['-s', self.path, '-d', 'mlx5_0'], 'give a software device'),
                              (['-s', self.path, '-d', 'soft0,link=ib'], 'give --link'),
                              (['-s', self.path, '--link', 'fc'], 'give ib or eth'),
                              (['-s', self.path, '--doorbell', 'mapped'], 'give trap or shared'),
                              (['--odp', '-s', self.path, '-d', 'soft0,shm=a'], 'remove shm='),
                              (['-s', self.path, '--guid', '0'], 'hexadecimal'),
                              (['-s', self.path, '--guid', '12x'], 'hexadecimal'),
                              (['-s', self.path, '-s', self.path + '2', '-d', 'soft0'], 'of two functions'),
                              (['-d', 'soft0', '-s', self.path, '-s', self.path + '2'], 'of two functions'),
                              (['--guid', 'ffffffffffffffff', '-s', self.path, '-s', self.path + '2'], 'is 0'),
                              (['--link', 'eth', '-s', self.path, '-s', self.path + '2', '--guid', '00bb0001'],
                               'the lower 32 bits'),
                              (['-s', self.path, '-s', self.path + '2', '--guid', '0200000000bb0001'],
                               'give each function its own'),
                              (['-s', self.path] * 9, 'more than 8 functions'),
                              (['-s', self.path, 'more'], 'is not an option'),
                              (['-s', self.path, '--what'], 'see bb_hca --help')):
            status, output = self.refused(*options)
            self.assertEqual(status, 2, output)
            self.assertIn(text, output)
        status, output = self.refused('-s', self.path, '-d', 'soft0,nonsense')
        self.assertEqual(status, 1)
        self.assertIn('cannot open soft0,nonsense', output)


if __name__ == '__main__':
    HCA = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1], verbosity=2)
