#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A listening testrdma with hostile peers: they send garbage, cut messages short, lie about sizes, keys
and queue pairs, stay silent, or disconnect in the middle. It reports the error and goes on, and a
peer that works with it meanwhile loses nothing.
"""

import os
import socket
import struct
import subprocess
import sys
import threading

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import LIMIT, long, main  # noqa: E402
from cmtest import END, HEADER, REJ, REP, RTU, message  # noqa: E402
from pairtest import PairTest  # noqa: E402

QPN = HEADER + 8 + 1  # after the version of the packed address
HELLO = HEADER + END  # app/testrdma/remote/remote.h: struct remote_hello; a REQ of testrdma has no regions
FIELD = {'magic': ('>I', 0), 'version': ('>I', 4), 'token': ('>Q', 8), 'bytes': ('>Q', 16),
         'addr': ('>Q', 24), 'rkey': ('>I', 32), 'index': ('>I', 36), 'conns': ('>I', 40),
         'depth': ('>I', 44), 'sgl': ('>I', 48), 'max_inline': ('>I', 52)}


def lie(request, **fields):
    data = bytearray(request)
    for name, value in fields.items():
        if name == 'qpn':
            data[QPN:QPN + 3] = value.to_bytes(3, 'big')
        else:
            form, at = FIELD[name]
            struct.pack_into(form, data, HELLO + at, value)
    return bytes(data)


class Hostile(PairTest):
    def setUp(self):
        self.server = subprocess.Popen([self.program] + self.eal('server') +
                                       ['--', '-i', '--device', self.shm(1)],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.server.stdout.close)
        self.addCleanup(self.server.stderr.close)
        self.addCleanup(self.server.kill)
        self.server.stdin.write('listen 127.0.0.1:0\n')
        self.server.stdin.flush()
        _, port = self.port_of(self.server)
        self.where = ('127.0.0.1', int(port))

    def over(self):
        """Ends the listening process and returns its output."""
        out, err = self.server.communicate('show stats\ndisconnect\nquit\n', timeout=LIMIT)
        self.assertEqual(self.server.returncode, 0, err)
        self.assertNotIn('Sanitizer', err)
        self.assertNotIn('runtime error', err)
        return out, err

    def client(self, port, *args):
        return [self.program] + self.eal('client') + [
            '--', '--device', self.shm(2), '--connect', '127.0.0.1:%d' % port, '--verify',
            *args]

    def through(self, change, *args):
        """Runs a testrdma whose connection request is changed on its way."""
        with socket.create_server(('127.0.0.1', 0)) as s:
            cmd = self.client(s.getsockname()[1], '--patience', '1', *args)
            proc = subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(proc.kill)
            s.settimeout(LIMIT)
            near, _ = s.accept()
        request = message(near)
        if change is not None:
            far = socket.create_connection(self.where)
            far.sendall(lie(request, **change))

            def carry(a, b):
                try:
                    while data := a.recv(65536):
                        b.sendall(data)
                except OSError:
                    pass
                for end in (a, b):
                    try:
                        end.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass
            both = [threading.Thread(target=carry, args=ends) for ends in
                    ((near, far), (far, near))]
            for thread in both:
                thread.start()
        else:
            near.close()
        out, err = proc.communicate(timeout=LIMIT)
        if change is not None:
            for thread in both:
                thread.join(LIMIT)
            far.close()
            near.close()
        self.assertNotIn('Sanitizer', err)
        return request, proc.returncode, err

    def honest(self, *args):
        proc = subprocess.Popen(self.client(self.where[1], *args), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        self.addCleanup(proc.kill)
        return proc

    def test_requests(self):
        """Lies in a connection request, while another peer works with the same process."""
        request, rc, _ = self.through(None, '--op', 'write', '--size', '64')
        self.assertEqual(rc, 1)
        self.assertEqual(len(request), HELLO + 56)
        worker = self.honest('--op', 'write,send,pingpong', '--size', '64', '--duration', '0.7')
        # Its device exists, and so does the GID of the request.
        self.assertIn('testrdma', worker.stdout.readline())
        silent = [socket.create_connection(self.where) for _ in range(8)]
        self.addCleanup(lambda: [s.close() for s in silent])
        for i, s in enumerate(silent):
            s.sendall(request[:i * 15])  # and not the remaining bytes
        for data in (b'GET / HTTP/1.0\r\n\r\n', os.urandom(4096), b'\xff' * 16,
                     request[:4] + b'\xff' * 200, request[:5] + b'\x09' + request[6:],
                     request[:8] + b'\xff\xff\xff\xff' + request[12:]):
            with socket.create_connection(self.where) as s:
                s.sendall(data)
        for cut in range(0, len(request), 11):
            with socket.create_connection(self.where) as s:
                s.sendall(request[:cut])
        for fields, says in (
                ({'magic': 7}, 'program is not testrdma'), ({'version': 1}, 'has another version'),
                ({'conns': 0}, 'number of connections'), ({'index': 9}, 'number of connections'),
                ({'conns': 0xffffffff}, 'number of connections'), ({'bytes': 0}, 'too small or'),
                ({'bytes': (1 << 64) - 8}, 'too small or'), ({'bytes': 8193}, 'too small or'),
                ({'bytes': 1 << 32, 'token': 5}, 'no memory for the connection'),
                ({'depth': 0}, 'support this --depth'), ({'depth': 0xffffffff}, 'support this --depth'),
                ({'sgl': 0}, 'support this --depth'), ({'sgl': 99}, 'support this --depth'),
                ({'max_inline': 1 << 31}, 'support this --depth')):
            with self.subTest(**fields), socket.create_connection(self.where) as s:
                s.settimeout(LIMIT)
                s.sendall(lie(request, **fields))
                answer = message(s)
                self.assertEqual(answer[5], REJ, answer)
                self.assertIn(says, answer.decode('latin-1'))
        # Accepted, as no error is visible; then no data come, or the connection ends.
        for i, fields in enumerate(({'addr': 0}, {'rkey': 0xffffffff}, {'qpn': 0xfffffe},
                                    {'token': 1, 'bytes': 8192}, {'token': 1, 'bytes': 16384})):
            s = socket.create_connection(self.where)
            s.settimeout(LIMIT)
            s.sendall(lie(request, **fields))
            answer = message(s)
            self.assertEqual(answer[5], REP, answer)
            if i % 2 == 0:
                s.sendall(request[:5] + bytes([RTU]) + request[6:8] + bytes(8))
                silent.append(s)
            else:
                s.close()
        out, err = worker.communicate(timeout=LIMIT)
        self.assertEqual(worker.returncode, 0, err)
        self.assertIn('3 of 3 tests ran, 3 right', out)
        for s in silent:
            s.close()
        last = self.honest('--op', 'write,send', '--size', '64', '--duration', '0.1')
        out, err = last.communicate(timeout=LIMIT)
        self.assertEqual(last.returncode, 0, err)
        out, err = self.over()
        self.assertRegex(out, r'listening at .*; connections \d+, 0 of them open')
        for text in ('rejected: the connecting program is not testrdma',
                     'rejected: the connecting testrdma has another version',
                     'rejected: no memory for the connection', 'broke'):
            self.assertIn(text, err)

    @long
    def test_rows(self):
        """A peer whose rows and memory are not those that it announced."""
        for change, args, says in (
                ({'version': 9}, ['--op', 'write'], 'the target rejected the connection: the '
                                                    'connecting testrdma has another version'),
                ({'depth': 4}, ['--op', 'send'], 'rejected the test'),
                ({'bytes': 8192 + 64}, ['--op', 'send'], 'offers too little memory'),
                ({'conns': 2}, ['--op', 'send', '--depth', '128'], ''),
                ({'rkey': 0xdead00}, ['--op', 'pingpong'], ''),
                ({'addr': 0x1000}, ['--op', 'send'], '')):
            with self.subTest(**change):
                _, rc, err = self.through(change, *args, '--size', '64', '--duration', '0.1')
                self.assertEqual(rc, 1, err)
                self.assertIn(says, err)
                self.assertRegex(err, 'testrdma: ')
        last = self.honest('--op', 'pingpong,send', '--size', '64', '--duration', '0.1')
        out, err = last.communicate(timeout=LIMIT)
        self.assertEqual(last.returncode, 0, err)
        _, err = self.over()
        self.assertIn('a test of connection 0 was rejected', err)
        self.assertEqual(err.count('a control message to the initiator, of pair 0'), 2)


if __name__ == '__main__':
    main()
