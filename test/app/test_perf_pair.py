#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bb_perf against bb_perf: two processes, each with a software device, connected by shared memory.

Not over net_memif: with that of DPDK 22.11 a process sometimes crashes when the other end exits.
"""

import json
import os
import re
import signal
import subprocess
import tempfile

import perfpeer
from apptest import CPUS, EAL, AppTest, free_ports, long, main

WAIT = 150  # seconds; sanitizers are slow, and two processes may share a core
SERVER, CLIENT = 0, 1


class Pair(AppTest):
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

    def start(self, side, args):
        name = ('server', 'client')[side]
        # The EAL options of the test with less memory, as there are two processes.
        eal = ['128' if arg == '512' else arg for arg in EAL]
        cmd = [self.program, '-l', str(CPUS[side % len(CPUS)])] + eal + [
            '--', '-p', str(self.port), '-d',
            'soft0,shm=perf%d,ip=192.0.2.%d/24' % (os.getpid(), side + 1), '--qp-timeout', '18',
            '--json', '%s/%s' % (self.folder.name, name)] + args
        proc = subprocess.Popen(cmd + (['127.0.0.1'] if side == CLIENT else []), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.procs.append(proc)
        return proc

    def pair(self, *args):
        """Starts both, the client once the server listens."""
        server = self.start(SERVER, list(args))
        self.assertIn('TCP port', server.stdout.readline())
        return server, self.start(CLIENT, list(args))

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
        """Different sizes at both ends: both report it, or end because the other did."""
        for protocol, here, there in (('send_lat', '100', '200'), ('send_bw', '200', '100')):
            server = self.start(SERVER, ['-P', protocol, '-s', here])
            self.assertIn('TCP port', server.stdout.readline())
            client = self.start(CLIENT, ['-P', protocol, '-s', there])
            said = ''
            for side, proc in enumerate((server, client)):
                rc, _, text = self.end(proc, side)
                self.assertEqual(rc, 1, text)
                said += text
            self.assertRegex(said, "give the same -s|--size the same")
            self.tearDown()
            self.setUp()

    @long
    def test_peer_that_dies(self):
        for protocol in ('send_lat', 'write_lat', 'write_bw', 'rc_pingpong'):
            server, client = self.pair('-P', protocol, '-s', '64', '-n', '1000000000')
            # Both are in the middle of it once they have printed their addresses.
            while 'remote' not in server.stdout.readline():
                self.assertIsNone(server.poll(), 'no RDMA')
            while 'remote' not in client.stdout.readline():
                self.assertIsNone(client.poll(), 'no RDMA')
            client.kill()
            rc, report, text = self.end(server, SERVER)
            self.assertEqual(rc, 1, text)
            self.assertEqual(report['result'], 'fail')
            self.assertRegex(text, 'closed the connection|retry|no message in|peer died|'
                                   'peer has closed', protocol)
            self.tearDown()
            self.setUp()

    @long
    def test_stops_in_the_middle(self):
        server, client = self.pair('-P', 'send_lat', '-s', '64', '-n', '1000000000')
        while 'remote' not in client.stdout.readline():
            self.assertIsNone(client.poll(), 'no RDMA')
        client.send_signal(signal.SIGINT)
        rc, report, text = self.end(client, CLIENT)
        self.assertEqual(rc, 130, text)
        self.assertEqual(report['result'], 'interrupted')
        rc, _, text = self.end(server, SERVER)
        self.assertEqual(rc, 1, text)


if __name__ == '__main__':
    main()
