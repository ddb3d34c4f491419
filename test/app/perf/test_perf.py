#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bb_perf and scripted peers: its messages, RDMA with itself, and misbehaving peers."""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import perfpeer  # noqa: E402
from apptest import EAL, AppTest, Result, free_ports, lcores, long, main  # noqa: E402

LATENCY = ['rc_pingpong', 'uc_pingpong', 'ud_pingpong', 'read_lat', 'atomic_lat', 'send_lat']
BANDWIDTH = ['write_bw', 'read_bw', 'atomic_bw', 'send_bw']
GID = b':00:00:00:00:00:00:00:00:00:00:ff:ff:c0:00:02:01:'


class Perf(AppTest):
    def client(self, talk, *args, rc=0):
        """Runs bb_perf as client of a scripted server; its JSON is in .json."""
        server = perfpeer.Server(talk)
        res = self.run_json(['-p', str(server.port), '127.0.0.1'] + list(args), rc=rc)
        server.end()
        if rc == 0:
            self.assertIsNone(server.error, str(res))
        return res

    def serve(self, talk, *args, rc=0, port=None):
        """Runs bb_perf as server; `talk(conn)` is its client. Returns the result and the value of talk."""
        port = port or free_ports()
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            proc = subprocess.Popen([self.program] + lcores() + EAL +
                                    ['--', '-p', str(port), '--json', f.name] + list(args),
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                line = proc.stdout.readline()
                self.assertIn('TCP port %d' % port, line)
                with socket.create_connection(('127.0.0.1', port), timeout=perfpeer.WAIT) as conn:
                    heard = talk(conn)
                proc.out, proc.err = proc.communicate(timeout=perfpeer.WAIT)
            finally:
                proc.kill()
                proc.wait()
                proc.stdout.close()
                proc.stderr.close()
            proc.stdout, proc.stderr = line + proc.out, proc.err
            res = Result(proc, f.name)
        self.assertEqual(res.rc, rc, str(res))
        self.assertNotIn('Sanitizer', res.err, str(res))
        self.assertEqual(res.json['exit_status'], rc)
        return res, heard

    def check_latency(self, res, size, iters):
        lat = res.json['latency_us']
        self.assertEqual(lat['samples'], iters - 1)
        order = [lat[k] for k in ('min', 'median', 'p99', 'max')]
        self.assertEqual(order, sorted(order))
        self.assertGreater(lat['min'], 0)
        self.assertGreaterEqual(lat['avg'], lat['min'])
        self.assertLessEqual(lat['avg'], lat['max'])
        self.assertRegex(res.out, r'(?m)^ %d +%d +\d' % (size, iters))

    def check_bandwidth(self, res, size, iters):
        bw = res.json['bandwidth']
        self.assertGreater(bw['rate_mpps'], 0)
        self.assertAlmostEqual(bw['average_mib_s'], bw['rate_mpps'] * 1e6 * size / (1 << 20),
                               delta=1e-3 + bw['average_mib_s'] * 1e-3)
        self.assertGreater(bw['peak_mib_s'], 0)
        self.assertRegex(res.out, r'(?m)^ %d +%d +\d' % (size, iters))

    @long
    def test_latency_with_itself(self):
        for protocol in LATENCY:
            for size in (8,) if protocol == 'atomic_lat' else (1, 8, 1000, 5000):
                if protocol == 'ud_pingpong' and size > 1024:
                    continue
                res = self.client(perfpeer.echo, '-P', protocol, '-s', str(size), '-n', '50',
                                  '--check')
                self.assertEqual(res.json['messages'], 50)
                self.check_latency(res, size, 50)
                self.assertGreaterEqual(res.json['checked_bytes'], 2 * size, protocol)
                if protocol not in ('read_lat', 'atomic_lat'):
                    self.assertEqual(res.json['received'], 50)
                    self.assertEqual(res.json['checked_bytes'], 50 * size)

    def test_bandwidth_with_itself(self):
        for protocol in BANDWIDTH:
            for size in (8,) if protocol == 'atomic_bw' else (1, 64, 1500, 70000):
                res = self.client(perfpeer.echo, '-P', protocol, '-s', str(size), '-n', '300',
                                  '--check')
                self.assertEqual(res.json['messages'], 300)
                self.check_bandwidth(res, size, 300)
                if protocol == 'atomic_bw':
                    self.assertEqual(res.json['checked_bytes'], 300 * 8)

    def test_other_queue_pairs(self):
        for protocol, connection, size in (('write_bw', 'UC', 3000), ('send_bw', 'uc', 3000),
                                           ('send_lat', 'UC', 3000), ('send_lat', 'ud', 700)):
            res = self.client(perfpeer.echo, '-P', protocol, '--connection', connection, '-s',
                              str(size), '-n', '100', '--check')
            self.assertEqual(res.json['connection'], connection.upper())
            self.assertEqual(res.json['messages'], 100)

    @long
    def test_depths(self):
        for args in (('--tx-depth', '1'), ('--tx-depth', '7', '--cq-mod', '7'),
                     ('--cq-mod', '1'), ('--tx-depth', '33', '--cq-mod', '10')):
            for protocol in ('write_bw', 'read_bw', 'send_bw'):
                res = self.client(perfpeer.echo, '-P', protocol, '-s', '100', '-n', '123',
                                  '--check', *args)
                self.assertEqual(res.json['messages'], 123)

    def test_cmp_swap(self):
        for protocol in ('atomic_lat', 'atomic_bw'):
            self.client(perfpeer.echo, '-P', protocol, '--atomic', 'cmp_swap', '-n', '100',
                        '--check')

    @long
    def test_write_lat_server_with_itself(self):
        for size in ('1', '2', '300', '70000'):
            res, heard = self.serve(lambda conn: perfpeer.client(conn, 'write_lat'), '-P',
                                    'write_lat', '-s', size, '-n', '300', '--check')
            self.check_latency(res, int(size), 300)
            self.assertEqual(res.json['checked_bytes'], 300 * int(size))
            self.assertEqual(len(set(heard.keys)), 1)

    def test_words_of_a_server(self):
        """Every byte of a server in the handshake equals perftest's."""
        for protocol in ('read_lat', 'read_bw', 'write_bw', 'atomic_lat', 'atomic_bw'):
            res, heard = self.serve(lambda conn: perfpeer.client(conn, protocol, perfpeer.keys()),
                                    '-P', protocol, '-n', '1000')
            self.assertEqual(heard.hello[0], b'6.06'.ljust(16, b'\0'))
            self.assertEqual(heard.hello[1], (4096).to_bytes(4, 'big'))
            self.assertIn(int.from_bytes(heard.hello[2], 'big'), (64, 128))
            self.assertRegex(heard.hello[3], rb'\A[1-5]\0\Z')
            self.assertEqual(len(set(heard.keys)), 1)
            self.assertRegex(heard.keys[0], rb'\A0000:00..:[0-9a-f]{6}:[0-9a-f]{6}:[0-9a-f]{8}:'
                                            rb'[0-9a-f]{16}' + GID + rb'00000000:\0\Z')
            reads = int(heard.keys[0][5:9], 16)
            self.assertEqual(reads, 1 if protocol == 'write_bw' else 16)
            self.assertEqual(heard.done, b'done\0')
            self.assertEqual(res.json['mtu'], 1024)
            self.assertEqual(res.json['peer_version'], '6.06')
            if protocol.endswith('bw'):
                self.assertEqual(res.json['peer_report'],
                                 {'size': 64, 'iters': 1000, 'peak_mib_s': 3.5,
                                  'average_mib_s': 2.5, 'rate_mpps': 0.25})
                self.assertRegex(res.out, r'(?m)^ 64 +1000 +3.50 +2.50 +0.250000')

    def test_report_that_is_none(self):
        res, _ = self.serve(lambda conn: perfpeer.client(conn, 'read_bw', perfpeer.keys(),
                                                         [b'\xff' * 8] * 5), '-P', 'read_bw')
        self.assertNotIn('peer_report', res.json)

    def test_check_of_a_target_can_fail(self):
        for protocol, why in (('atomic_bw', 'increased the local words by 0, not by 1000'),
                              ('write_bw', 'nothing was written')):
            res, _ = self.serve(lambda conn: perfpeer.client(conn, protocol, perfpeer.keys()),
                                '-P', protocol, '-n', '1000', '--check', rc=1)
            self.assertIn(why, res.err)

    @long
    def test_words_of_pingpong(self):
        def talk(conn):
            conn.sendall(perfpeer.address())
            answer = perfpeer.read(conn, perfpeer.PINGPONG)
            conn.sendall(b'done\0')
            return answer, conn.recv(1)
        # Neither end sends then.
        answer, end = self.serve_silent(talk, r'no message in \d+ s', '-P', 'rc_pingpong')
        self.assertRegex(answer, rb'\A0000:[0-9a-f]{6}:[0-9a-f]{6}:0{20}ffffc0000201\0\Z')
        self.assertEqual(end, b'')

    def serve_silent(self, talk, pattern, *args):
        """Runs bb_perf as server of a client that stops, which its error must report: @pattern. Returns the value of
        talk. A busy machine delays the client before it stops: the next try has more time."""
        for seconds in 1, 10, 100:
            began = time.monotonic()
            try:
                res, heard = self.serve(talk, *args, '--silence', str(seconds), rc=1)
                said = res.err
            except ConnectionError as err:
                said = str(err)
            if re.search(pattern, said):
                break
        self.assertRegex(said, pattern)
        self.assertGreater(time.monotonic() - began, seconds)
        return heard

    @long
    def test_silent_peers(self):
        """The peer stops at each point in turn; the program ends and reports where."""
        said = [perfpeer.hello()[0], perfpeer.hello()[1], perfpeer.hello()[2],
                perfpeer.hello()[3], perfpeer.keys(), perfpeer.keys(), perfpeer.keys()]
        names = ['version', 'cycle buffer', 'cache line', 'MTU', 'keys', 'keys, round 2',
                 'keys, round 3']
        for stop, name in enumerate(names):
            def talk(conn, stop=stop):
                for part in said[:stop]:
                    perfpeer.exchange(conn, part)
                conn.sendall(said[stop][:-1])
                perfpeer.read(conn, 1)
            self.serve_silent(talk, r'message "%s.* %d of %d bytes' % (name, len(said[stop]) - 1, len(said[stop])), '-P',
                              'read_bw')

    def test_peers_that_close(self):
        for data in (b'', b'0000', perfpeer.address()[:-1]):
            res, _ = self.serve(lambda conn: conn.sendall(data), '-P', 'rc_pingpong', rc=1)
            self.assertIn("closed the TCP connection before its message \"address\"", res.err)

    @long
    def test_peers_that_talk_nonsense(self):
        good = perfpeer.hello() + [perfpeer.keys(), perfpeer.keys()]
        for place, data, why in (
                (0, b'GET / HTTP/1.1\r\n', 'not a version'),
                (0, b'5.69'.ljust(16, b'\0'), 'install a newer perftest'),
                (0, b'\xff' * 16, 'not a version'),
                (1, b'\x7f\xff\xff\xff', '"cycle buffer" is not a power of two'),
                (2, b'\0\0\0\3', '"cache line" is not a power of two'),
                (3, b'6\0', '"MTU" is not one of'),
                (4, b'\0' * perfpeer.KEYS, '"keys" is not of the form'),
                (4, b'%n' * (perfpeer.KEYS // 2), '"keys" is not of the form'),
                (4, perfpeer.keys(gid='0' * 32), 'start the peer with -g N (perftest: -x N)'),
                (4, perfpeer.keys(gid='fe80' + '0' * 27 + '1'), 'select another GID with -g'),
                (4, perfpeer.keys(reads=0), 'allows no READs'),
                (5, perfpeer.keys(qpn=0x78), 'more than 1 queue pair (--qp); give the same -q')):
            def talk(conn, place=place, data=data):
                for part in good[:place]:
                    perfpeer.exchange(conn, part)
                conn.sendall(data)
                perfpeer.read(conn, perfpeer.KEYS)
            res, _ = self.serve(talk, '-P', 'read_bw', rc=1)
            self.assertIn(why, res.err)

    def test_pingpong_nonsense(self):
        for data, why in ((b'x' * 52, 'not of the form LID:QPN:PSN:GID'),
                          (perfpeer.address(gid='0' * 32), 'start the peer with -g'),
                          (perfpeer.address() + b'DONE\0', 'is not "done"')):
            def talk(conn, data=data):
                conn.sendall(data)
                perfpeer.read(conn, perfpeer.PINGPONG)
            res, _ = self.serve(talk, '-P', 'rc_pingpong', rc=1)
            self.assertIn(why, res.err)

    def test_client_without_server(self):
        res = self.run_json(['-P', 'write_bw', '-p', str(free_ports()), '--silence', '1',
                             '127.0.0.1'], rc=1)
        self.assertIn('no server listens yet; start ib_write_bw', res.err)
        self.assertIn('first start ib_write_bw on that host', res.err)
        res = self.run_json(['-P', 'write_bw', 'no-such-host.invalid'], rc=1)
        self.assertIn('give the name or the IP address', res.err)

    def start_server(self, *args):
        """Returns a listening server and its port."""
        port = free_ports()
        proc = subprocess.Popen([self.program] + lcores() + EAL + ['--', '-p', str(port)] + list(args),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(proc.communicate)
        self.addCleanup(proc.kill)
        self.assertIn('TCP port %d' % port, proc.stdout.readline())
        return proc, port

    def test_server_ends_after_a_client_that_refuses_its_own_options(self):
        for args, why in ((['--size', '2G'], '--size'), (['--tx-depth', '65536'], '--tx-depth'),
                          (['--connection', 'UD'], '--connection'),
                          (['--gid-index', '200'], 'no such GID'), (['-d', 'none0'], 'none0')):
            server, port = self.start_server('-P', 'write_bw', '--silence', '3600')
            res = self.run_program(['-P', 'write_bw', '-p', str(port)] + args + ['127.0.0.1'])
            self.assertNotEqual(res.rc, 0, args)
            self.assertIn(why, res.err)
            _, err = server.communicate(timeout=perfpeer.WAIT)
            self.assertEqual(server.returncode, 1, err)
            self.assertIn('has closed the TCP connection', err)

    def test_server_without_client_ends(self):
        server, _ = self.start_server('-P', 'rc_pingpong', '--silence', '1')
        _, err = server.communicate(timeout=perfpeer.WAIT)
        self.assertEqual(server.returncode, 1, err)
        self.assertIn('no client has connected in 1 s', err)

    def test_port_in_use(self):
        with socket.socket() as s:
            s.bind(('0.0.0.0', 0))
            s.listen(1)
            port = s.getsockname()[1]
            res = self.run_json(['-P', 'write_bw', '-p', str(port)], rc=1)
        self.assertIn('--port %d: cannot listen' % port, res.err)

    def test_stops(self):
        """Ctrl-C while it waits for a client: it ends in order, with the shell's status."""
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            proc = subprocess.Popen([self.program] + lcores() + EAL + [
                '--', '-P', 'write_bw', '-p', str(free_ports()), '--json', f.name],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertIn('waiting', proc.stdout.readline())
            proc.terminate()
            out, err = proc.communicate(timeout=perfpeer.WAIT)
            self.assertEqual(proc.returncode, 143, err)
            self.assertGreater(os.path.getsize(f.name), 0)
            with open(f.name) as again:
                self.assertEqual(json.load(again)['result'], 'interrupted')
        self.assertIn('stopped while waiting', err)

    def test_usage(self):
        for args, words in ((['-s', '8'], ['--protocol NAME is missing', 'ib_write_lat']),
                            (['-P', 'nope'], ['unknown protocol', 'rc_pingpong']),
                            (['-P', 'read_bw', '--connection', 'UC'], ['ib_read_bw']),
                            (['-P', 'read_bw', '--connection', 'XRC'], ['RC, UC or UD']),
                            (['-P', 'write_lat', '-n', '1'], ['give 2 or more']),
                            (['-P', 'write_lat', '-n', '0'], ['--iters', '1 to']),
                            (['-P', 'write_bw', '-s', '0'], ['--size', '1 to']),
                            (['-P', 'write_bw', '-s', '4x'], ['--size', 'not a number']),
                            (['-P', 'write_bw', '-m', '1000'], ['256, 512, 1024']),
                            (['-P', 'atomic_bw', '-s', '16'], ['8 bytes']),
                            (['-P', 'atomic_bw', '--atomic', 'xor'], ['fetch_add or cmp_swap']),
                            (['-P', 'rc_pingpong', '--tx-depth', '2'], ['one message']),
                            (['-P', 'read_lat', '--report-gbits'], ['measures no bandwidth']),
                            (['-P', 'write_bw', '--tx-depth', '8', '--cq-mod', '9'], ['--cq-mod']),
                            (['-P', 'write_bw', '-p', '65536'], ['--port']),
                            (['-P', 'rc_pingpong', '-R'], ['--rdma-cm', 'by TCP only']),
                            (['-P', 'send_bw', '-R', '--connection', 'UD'], ['--rdma-cm', 'only RC']),
                            (['-P', 'write_lat', '-R', '-D', '1'], ['--rdma-cm', '--iters']),
                            (['-P', 'write_bw', '-a', '-s', '8'], ['leave out --size']),
                            (['-P', 'write_bw', '-a', '-D', '1'], ['leave out --duration']),
                            (['-P', 'atomic_bw', '-a'], ['only one size']),
                            (['-P', 'write_lat', '-b'], ['--bidirectional: only for bandwidth']),
                            (['-P', 'send_lat', '-q', '2'], ['--qp: only for bandwidth']),
                            (['-P', 'write_bw', '-q', '0'], ['--qp', '1 to']),
                            (['-P', 'write_bw', '-q', '1025'], ['--qp', '1 to']),
                            (['-P', 'write_bw', '-D', '1', '-n', '5'], ['leave out --iters']),
                            (['-P', 'write_bw', '-D', '1', '--check'], ['leave out --check']),
                            (['-P', 'rc_pingpong', '-D', '1'], ['--duration', 'counts messages']),
                            (['-P', 'write_bw', '-g', '200'], ['no such GID']),
                            (['-P', 'write_bw', '-d', 'nope'], ['cannot be opened', 'soft0']),
                            (['-P', 'write_bw', 'a', 'b'], ['only one HOST']),
                            (['-P', 'write_bw', '--json', '/nope/x'], ['can be written'])):
            self.usage_error(args, *words)
        res = self.run_program([], eal=['--protocol', 'write_bw'])
        self.assertEqual(res.rc, 2, str(res))
        self.assertIn('put it after --', res.err)

    def test_help(self):
        res = self.run_program(['--help'])
        self.assertEqual(res.rc, 0, str(res))
        for word in LATENCY + BANDWIDTH + ['write_lat', 'ib_atomic_bw', '--qp-timeout', 'Examples']:
            self.assertIn(word, res.out)
        self.assertEqual([line for line in res.out.split('\n') if len(line) > 100], [])
        res = self.run_program(['--version'])
        self.assertRegex(res.out, re.compile(r'bb_perf \d+\.\d+\.\d+, DPDK'))


if __name__ == '__main__':
    main()
