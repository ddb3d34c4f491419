#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bb_perf against bb_perf: two processes, each with a software device, connected by shared memory.

Not over net_memif: with that of DPDK 22.11 a process sometimes crashes when the other end exits.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import perfpeer  # noqa: E402
from apptest import CPUS, EAL, AppTest, free_ports, long, main  # noqa: E402

WAIT = 150  # seconds; sanitizers are slow, and two processes may share a core
SERVER, CLIENT = 0, 1


class Pair(AppTest):
    options = ('', '')  # more options of the devices

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.port = free_ports()
        self.procs = []

    def tearDown(self):
        for proc in self.procs:
            proc.kill()
            proc.wait()
            proc.stdout.close()
            proc.stderr.close()
        self.folder.cleanup()

    def start(self, side, args, host='127.0.0.1'):
        name = ('server', 'client')[side]
        # The EAL options of the test with less memory, as there are two processes.
        eal = ['128' if arg == '512' else arg for arg in EAL]
        cmd = [self.program, '-l', str(CPUS[side % len(CPUS)])] + eal + [
            '--', '-p', str(self.port), '-d',
            'soft0,shm=perf%d,ip=192.0.2.%d/24%s' % (os.getpid(), side + 1, self.options[side]),
            '--json', '%s/%s' % (self.folder.name, name)] + args
        proc = subprocess.Popen(cmd + ([host] if side == CLIENT else []), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.procs.append(proc)
        return proc

    def pair(self, *args):
        """Starts both, the client once the server listens."""
        server = self.start(SERVER, list(args))
        if '-R' in args:
            self.assertIn('of rdma_cm', server.stdout.readline())
            return server, self.start(CLIENT, list(args), '192.0.2.1')
        self.assertIn('TCP port', server.stdout.readline())
        return server, self.start(CLIENT, list(args))

    def running_pair(self, *args):
        """Starts both. Each is in the middle of the test once it has printed the peer's address."""
        procs = self.pair(*args)
        for proc in procs:
            while 'remote' not in proc.stdout.readline():
                self.assertIsNone(proc.poll(), 'no RDMA')
        return procs

    def end(self, proc, side):
        """Returns exit status, JSON and the output on stderr."""
        out, err = proc.communicate(timeout=WAIT)
        self.assertNotIn('Sanitizer', err)
        with open('%s/%s' % (self.folder.name, ('server', 'client')[side])) as f:
            return proc.returncode, json.load(f), out + err

    def run_both(self, *args):
        results = []
        for side, proc in enumerate(self.pair(*args)):
            rc, report, text = self.end(proc, side)
            self.assertEqual(rc, 0, '%s\n%s' % (args, text))
            self.assertNotIn('died', text)
            self.assertEqual(report['result'], 'pass')
            results.append(report)
        self.tearDown()
        self.setUp()
        return results

    @long
    def test_latency(self):
        for protocol, size in (('rc_pingpong', 5000), ('uc_pingpong', 5000), ('ud_pingpong', 1024),
                               ('write_lat', 1), ('write_lat', 70000), ('read_lat', 3000),
                               ('send_lat', 3000), ('atomic_lat', 8)):
            server, client = self.run_both('-P', protocol, '-s', str(size), '-n', '200', '--check')
            passive = protocol in ('read_lat', 'atomic_lat')
            for report in (client,) if passive else (server, client):
                self.assertEqual(report['messages'], 200)
                self.assertEqual(report['latency_us']['samples'], 199)
                self.assertGreater(report['checked_bytes'], 0)
            if passive:
                self.assertGreaterEqual(server['served'], 200)
            elif protocol in ('write_lat', 'send_lat'):
                # Between two of these programs all bytes are known.
                self.assertEqual(server['checked_bytes'], 200 * size)
                self.assertEqual(client['checked_bytes'], 200 * size)

    def test_end_of_pingpong_waits_for_the_peer(self):
        """A relay of TCP holds back what both ends say when their messages are complete."""
        for protocol in ('rc_pingpong', 'uc_pingpong', 'ud_pingpong'):
            args = ['-P', protocol, '-s', '1000', '-n', '20']
            server = self.start(SERVER, args)
            self.assertIn('TCP port', server.stdout.readline())
            with socket.create_server(('127.0.0.1', 0)) as listener:
                client = self.start(CLIENT, args + ['-p', str(listener.getsockname()[1])])
                listener.settimeout(WAIT)
                to_client = listener.accept()[0]
            to_server = socket.create_connection(('127.0.0.1', self.port))
            with to_client, to_server:
                to_server.sendall(perfpeer.read(to_client, perfpeer.PINGPONG))
                to_client.sendall(perfpeer.read(to_server, perfpeer.PINGPONG))
                to_server.sendall(perfpeer.read(to_client, 5))
                self.assertEqual(perfpeer.read(to_server, 5), b'done\0')
                self.assertEqual(perfpeer.read(to_client, 5), b'done\0')
                self.assertEqual([server.poll(), client.poll()], [None, None])
                to_server.sendall(b'done\0')
                to_client.sendall(b'done\0')
                # The client destroys its queue pair first, and the server closes its device first.
                self.assertEqual(perfpeer.read(to_client, 1), b'')
                self.assertEqual([server.poll(), client.poll()], [None, None])
                to_server.shutdown(socket.SHUT_WR)
                self.assertEqual(perfpeer.read(to_server, 1), b'')
            for side, proc in enumerate((server, client)):
                rc, report, text = self.end(proc, side)
                self.assertEqual((rc, report['result']), (0, 'pass'), text)
                self.assertNotIn('died', text)
            self.tearDown()
            self.setUp()

    def test_bandwidth(self):
        for protocol, size in (('write_bw', 100), ('write_bw', 70000), ('read_bw', 100),
                               ('read_bw', 70000), ('send_bw', 100), ('send_bw', 70000),
                               ('atomic_bw', 8)):
            server, client = self.run_both('-P', protocol, '-s', str(size), '-n', '500', '--check')
            self.assertEqual(client['messages'], 500)
            if protocol == 'send_bw':
                self.assertEqual(server['received'], 500)
                self.assertEqual(server['checked_bytes'], 500 * size)
            else:
                self.assertGreaterEqual(server['served'], 500)
                for mine, its in (('average_mib_s', 'average_mib_s'), ('rate_mpps', 'rate_mpps'),
                                  ('peak_mib_s', 'peak_mib_s')):
                    self.assertAlmostEqual(client['bandwidth'][mine], server['peer_report'][its],
                                           delta=1e-5)
            if protocol == 'atomic_bw':
                self.assertEqual(server['words_grown'], 500)

    def test_connections_of_rdma_cm(self):
        for args, sent in ((('-P', 'write_bw', '-s', '70000', '-q', '3', '--check'), 600),
                           (('-P', 'read_bw', '-b', '--check'), 200),
                           (('-P', 'write_lat', '--check'), 200),
                           (('-P', 'send_lat', '--check'), 200),
                           (('-P', 'send_bw', '-a'), 200),
                           (('-P', 'atomic_lat', '--check'), 200)):
            server, client = self.run_both('-R', '-n', '200', *args)
            self.assertTrue(server['rdma_cm'] and client['rdma_cm'])
            self.assertEqual(client['messages'], sent)
            if '--check' in args:
                self.assertGreater(client['checked_bytes'] + server['checked_bytes'], 0)

    def test_client_of_rdma_cm_waits_for_its_server(self):
        args = ['-R', '-P', 'write_bw', '-n', '200']
        other = self.start(SERVER, args + ['-p', str(free_ports())])
        self.assertIn('of rdma_cm', other.stdout.readline())
        client = self.start(CLIENT, args, '192.0.2.1')
        line = client.stderr.readline()
        while line and 'no server listens yet (no listener)' not in line:
            line = client.stderr.readline()
        self.assertTrue(line)
        other.kill()
        other.wait()
        server = self.start(SERVER, args)
        for side, proc in enumerate((server, client)):
            rc, report, text = self.end(proc, side)
            self.assertEqual((rc, report['result']), (0, 'pass'), text)

    def test_peer_of_rdma_cm_that_differs_or_dies(self):
        # One end has more queue pairs: the other rejects or misses a connection.
        server = self.start(SERVER, ['-R', '-P', 'write_bw', '-q', '2', '--silence', '5'])
        self.assertIn('of rdma_cm', server.stdout.readline())
        client = self.start(CLIENT, ['-R', '-P', 'write_bw', '-q', '1', '--silence', '5'], '192.0.2.1')
        for side, proc in enumerate((server, client)):
            rc, report, text = self.end(proc, side)
            self.assertEqual((rc, report['result']), (1, 'fail'), text)
        self.tearDown()
        self.setUp()
        server, client = self.pair('-R', '-P', 'send_bw', '-n', '1000000000', '--silence', '10')
        time.sleep(2)
        client.kill()
        rc, report, text = self.end(server, SERVER)
        self.assertEqual((rc, report['result']), (1, 'fail'), text)

    def test_last_acknowledgement_of_write_lat_is_repeated(self):
        # The server's last WRITE is repeated if its ACK is lost, and the client must still be there.
        # With these seeds the server lost it, and failed, when the client ended at once.
        for seed in (8, 9, 11):
            self.options = (',wire=1,rx_drop=40,seed=%d' % seed, ',wire=1')
            self.run_both('-P', 'write_lat', '-n', '2', '--qp-timeout', '15')

    def check_all_sizes(self, protocol, n, qps, both, server, client):
        """Counters of each size and queue pair at both ends. Returns the bytes of one direction."""
        sizes = [2 << i for i in range(23)]
        send = protocol.startswith('send')
        for report, other, sends in ((server, client, both), (client, server, True)):
            self.assertEqual(len(report['queue_pairs']), qps)
            for pair in report['queue_pairs']:
                if not protocol.startswith('read'):     # --check reads again
                    self.assertEqual(pair['sent'], n * 23 if sends else 0)
                self.assertEqual(pair['received'], n * 23 if send and (both or not sends) else 0)
            self.assertEqual({(pair['qpn'], pair['peer_qpn']) for pair in report['queue_pairs']},
                             {(pair['peer_qpn'], pair['qpn']) for pair in other['queue_pairs']})
            if not sends and not send:
                continue
            self.assertEqual([row['size'] for row in report['sizes']], sizes)
            for row, at_peer in zip(report['sizes'], other['sizes'] if both else report['sizes']):
                self.assertEqual(row['messages'], n * qps)
                rate = row['bandwidth']['rate_mpps'] * 1e6
                # A receiver that finds all messages by its first poll measures a few cycles: 0 ns when rounded.
                seconds = n * qps / rate
                self.assertAlmostEqual(row['seconds'], seconds, delta=1e-3 * seconds + 2e-9)
                self.assertAlmostEqual(row['bandwidth']['average_mib_s'], rate * row['size'] / 2 ** 20,
                                       delta=1e-5 + rate * row['size'] / 2 ** 30)
                if both:
                    self.assertEqual(row['peer_report']['iters'], n * qps)
                    self.assertEqual(row['peer_report']['size'], row['size'])
                    self.assertAlmostEqual(row['peer_report']['average_mib_s'],
                                           at_peer['bandwidth']['average_mib_s'], delta=1e-5)
        return sum(sizes) * n * qps

    def test_all_sizes(self):
        for protocol, n, qps, both in (('write_bw', 5, 3, True), ('send_bw', 5, 2, False)):
            args = ['-P', protocol, '-a', '-n', str(n), '-q', str(qps), '--check'] + ['-b'] * both
            server, client = self.run_both(*args)
            total = self.check_all_sizes(protocol, n, qps, both, server, client)
            if protocol == 'send_bw':
                self.assertEqual((server['checked_bytes'], client['checked_bytes']), (total, 0))
            else:
                for report in (server, client):
                    self.assertGreaterEqual(report['served'], n * qps * 23)
                    self.assertEqual(report['checked_bytes'], qps * 2 ** 23)

    @long
    def test_all_sizes_of_other_tests(self):
        for protocol in ('write_lat', 'read_lat', 'send_lat'):
            server, client = self.run_both('-P', protocol, '-a', '-n', '5', '--check')
            self.assertEqual([row['size'] for row in client['sizes']], [2 << i for i in range(23)])
            for row in client['sizes']:
                self.assertEqual((row['messages'], row['latency_us']['samples']), (5, 4))
            if protocol != 'read_lat':
                self.assertEqual(server['checked_bytes'], 5 * (2 ** 24 - 2))
                self.assertEqual(client['checked_bytes'], 5 * (2 ** 24 - 2))
        for both, protocol in ((True, 'send_bw'), (True, 'read_bw')):
            args = ['-P', protocol, '-a', '-n', '5', '--check'] + ['-b'] * both
            self.check_all_sizes(protocol, 5, 1, both, *self.run_both(*args))
        # Datagrams: up to the MTU.
        server, _ = self.run_both('-P', 'send_bw', '-a', '-n', '20', '--connection', 'UD', '--check')
        self.assertEqual([row['size'] for row in server['sizes']], [2 << i for i in range(12)])
        self.assertEqual(server['checked_bytes'], 20 * (2 ** 13 - 2))

    def test_queue_pairs_in_both_directions(self):
        """Both ends are client and target at the same time, on each queue pair."""
        for protocol, size in (('atomic_bw', 8), ('send_bw', 3000), ('read_bw', 3000), ('write_bw', 70000)):
            for report in self.run_both('-P', protocol, '-b', '-q', '4', '-n', '200', '-s', str(size), '--check'):
                self.assertEqual(report['messages'], 800)
                self.assertEqual(report['peer_report']['iters'], 800)
                for pair in report['queue_pairs']:
                    self.assertGreaterEqual(pair['sent'], 200)
                    self.assertEqual(pair['received'], 200 if protocol == 'send_bw' else 0)
                if protocol == 'send_bw':
                    self.assertEqual(report['checked_bytes'], 800 * size)
                else:
                    self.assertGreaterEqual(report['served'], 800)
                if protocol == 'atomic_bw':
                    self.assertEqual(report['words_grown'], 800)

    def check_duration(self, seconds, depth, *args):
        server = self.start(SERVER, list(args) + ['-D', str(seconds)])
        self.assertIn('TCP port', server.stdout.readline())
        began = time.monotonic()
        client = self.start(CLIENT, list(args) + ['-D', str(seconds)])
        reports = []
        for side, proc in ((CLIENT, client), (SERVER, server)):
            rc, report, text = self.end(proc, side)
            self.assertEqual(rc, 0, '%s\n%s' % (args, text))
            self.assertNotIn('died', text)
            reports.append(report)
        took = time.monotonic() - began
        self.assertGreaterEqual(took, seconds)
        for report, other in (reports, reversed(reports)):
            for row in report['sizes']:
                self.assertGreater(row['messages'], 0)
                self.assertLessEqual(row['seconds'], took)
                if args[1] != 'write_lat':  # the peer may end before
                    self.assertGreaterEqual(row['seconds'], seconds / 2)
                if 'bandwidth' in row:
                    self.assertAlmostEqual(row['bandwidth']['rate_mpps'] * 1e6 * row['seconds'] / row['messages'], 1,
                                           delta=1e-3)
                    self.assertLessEqual(row['messages'], report['sent'] + report['received'])
            # Requests that are not complete at the end can have arrived.
            self.assertLessEqual(report['received'], other['sent'] + depth)
            if report['served'] and args[1] != 'write_lat':
                self.assertGreaterEqual(report['served'], other['sent'])
        self.assertEqual(sum(pair['sent'] for pair in reports[0]['queue_pairs']), reports[0]['sent'])
        self.assertGreater(reports[0]['sent'], 0)
        self.tearDown()
        self.setUp()

    def test_duration(self):
        self.check_duration(1, 2 * 128, '-P', 'write_bw', '-q', '2', '-b')
        self.check_duration(1, 128, '-P', 'send_bw', '-s', '4096')

    @long
    def test_duration_of_other_tests(self):
        self.check_duration(2, 128, '-P', 'send_bw', '-s', '4096', '-b')
        for protocol in ('read_lat', 'send_lat', 'write_lat', 'atomic_lat'):
            self.check_duration(1, 1, '-P', protocol)

    def test_report_in_gbits(self):
        """Tables and reports to the peer are in Gb/s; JSON stays in MiB/s. Reports name no unit."""
        head = (r'#bytes +#iterations +BW peak\[Gb/sec\] +BW average\[Gb/sec\] +MsgRate\[Mpps\]\n'
                r' 4096 +500 +([\d.]+) +([\d.]+) +([\d.]+)\n')
        gbits = 8 * 2 ** 20 / 1e9
        for both in (True, False):
            args = ['-P', 'write_bw', '-s', '4096', '-n', '500']
            server = self.start(SERVER, args + ['--report-gbits'] * both)
            self.assertIn('TCP port', server.stdout.readline())
            client = self.start(CLIENT, args + ['--report-gbits'])
            rc, mine, text = self.end(client, CLIENT)
            self.assertEqual(rc, 0, text)
            self.assertRegex(text, head)
            shown = [float(v) for v in re.search(head, text).groups()]
            for at, name in enumerate(('peak_mib_s', 'average_mib_s')):
                self.assertAlmostEqual(shown[at], mine['bandwidth'][name] * gbits, delta=0.006)
            self.assertAlmostEqual(shown[2], mine['bandwidth']['rate_mpps'], delta=1e-5)
            rc, theirs, text = self.end(server, SERVER)
            self.assertEqual(rc, 0, text)
            self.assertEqual(re.search(head, text) is not None, both)
            sent = mine['bandwidth']['average_mib_s'] * (1 if both else gbits)
            self.assertAlmostEqual(theirs['peer_report']['average_mib_s'], sent, delta=1e-4)
            self.tearDown()
            self.setUp()

    @long
    def test_unreliable(self):
        for protocol, connection, size in (('send_lat', 'UC', 3000), ('send_lat', 'UD', 1024),
                                           ('write_lat', 'UC', 3000)):
            server, client = self.run_both('-P', protocol, '--connection', connection, '-s',
                                           str(size), '-n', '100', '--check')
            for report in (server, client):
                self.assertEqual(report['checked_bytes'], 100 * size)

    def test_what_does_not_agree(self):
        """Different sizes or numbers of queue pairs at both ends: both report it, or end because the other did."""
        for protocol, option, here, there in (('send_lat', '-s', '100', '200'), ('send_bw', '-s', '200', '100'),
                                              ('read_bw', '-q', '1', '2'), ('send_bw', '-q', '3', '1')):
            server = self.start(SERVER, ['-P', protocol, option, here])
            self.assertIn('TCP port', server.stdout.readline())
            client = self.start(CLIENT, ['-P', protocol, option, there])
            said = ''
            for side, proc in enumerate((server, client)):
                rc, _, text = self.end(proc, side)
                self.assertEqual(rc, 1, text)
                said += text
            self.assertRegex(said, r"give the same -s|--size the same|queue pairs? \(--qp\); give the same -q")
            self.tearDown()
            self.setUp()

    @long
    def test_peer_that_dies(self):
        for protocol in ('send_lat', 'write_lat', 'write_bw', 'rc_pingpong'):
            server, client = self.running_pair('-P', protocol, '-s', '64', '-n', '1000000000')
            client.kill()
            rc, report, text = self.end(server, SERVER)
            self.assertEqual(rc, 1, text)
            self.assertEqual(report['result'], 'fail')
            self.assertRegex(text, 'closed the connection|retry|no message in|peer died|'
                                   'peer has closed', protocol)
            self.tearDown()
            self.setUp()

    @long
    def test_peer_that_is_suspended_for_seconds(self):
        """As a busy machine does. The default timeout and retries last longer; perftest's 14 does not."""
        for protocol, args in (('send_lat', ()), ('write_bw', ('-s', '4096', '-b'))):
            server, client = self.running_pair('-P', protocol, '-D', '4', *args)
            server.send_signal(signal.SIGSTOP)
            time.sleep(3)
            server.send_signal(signal.SIGCONT)
            for side, proc in ((CLIENT, client), (SERVER, server)):
                rc, _, text = self.end(proc, side)
                self.assertEqual(rc, 0, text)
            self.tearDown()
            self.setUp()

    @long
    def test_stops_in_the_middle(self):
        # No poll of read_lat is idle: a READ over shared memory completes in the next poll.
        for protocol in ('send_lat', 'read_lat'):
            server, client = self.running_pair('-P', protocol, '-s', '64', '-n', '1000000000')
            client.send_signal(signal.SIGINT)
            rc, report, text = self.end(client, CLIENT)
            self.assertEqual(rc, 130, text)
            self.assertEqual(report['result'], 'interrupted')
            rc, _, text = self.end(server, SERVER)
            self.assertEqual(rc, 1, text)
            self.tearDown()
            self.setUp()

    @long
    def test_server_that_counts_no_requests_waits_for_its_client(self):
        self.options = (',no_counters', '')
        self.run_both('-P', 'write_bw', '-D', '12', '--silence', '8')


if __name__ == '__main__':
    main()
