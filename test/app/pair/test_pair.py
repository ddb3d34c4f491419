#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""testrdma --listen and --connect: initiators and target in two processes."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import ATOMICS, CPUS, LIMIT, OPS, long, main, needs_defects  # noqa: E402
from pairtest import PairTest  # noqa: E402

RECEIVED = ['send', 'send_imm', 'write_imm', 'pingpong']


class Pair(PairTest):
    def check(self, res, ops, sizes, qps):
        self.assertEqual([(r['op'], r['size']) for r in res.json['rows']],
                         [(op, s) for op in ops for s in ([8] if op in ATOMICS else sizes)])
        for row in res.json['rows']:
            self.assertTrue(row['ok'], row)
            self.assertGreaterEqual(row['verified']['bytes'], row['size'] * row['slots'] * qps)
            self.assertGreater(row['verified']['guard_bytes'], 0)
            self.assertGreater(row['latency_ns']['samples'], 0)

    def served(self, proc, res, qps):
        """Checks that the target counted at least the operations that the initiator reports."""
        out, _ = self.end(proc)
        found = re.search(r'(\d+) connections? served; requests of peers: (\d+) writes, (\d+) '
                          r'reads, (\d+) atomics; (\d+) receives checked', out)
        counts = [int(n) for n in found.groups()]
        self.assertEqual(counts[0], qps)
        self.assertEqual(counts[4], sum(r['rate']['ops'] + r['latency_ns']['samples']
                                        for r in res.json['rows'] if r['op'] in RECEIVED))
        for i, names in enumerate((['write'], ['read'], ['fetch_add', 'cmp_swap'])):
            done = sum(r['rate']['ops'] + r['latency_ns']['samples'] for r in res.json['rows']
                       if r['op'] in names)
            self.assertGreaterEqual(counts[1 + i], done)

    def both(self, options, *args, rc=0, server_options=None):
        """Runs rows of one process against another one. Returns the result and the listening process."""
        server, where = self.listen(self.shm(1, options + (server_options or '')))
        res = self.run_json(['--device', self.shm(2, options), '--connect', where, '--verify',
                             '--duration', '0.05'] + list(args), self.eal('client'), rc=rc)
        return res, server

    def test_operations(self):
        res, server = self.both('', '--size', '8,1000,64K', '--qps', '3')
        self.check(res, OPS, [8, 1000, 65536], 3)
        self.served(server, res, 3)

    def test_memif(self):
        """Over net_memif; the end is clean, after a connection and without one."""
        for talk in (True, False) * 3:
            vdev = '--vdev=net_memif0,socket=@tr%d%s,role=' % (os.getpid(), talk)
            server, where = self.listen('soft0,port=net_memif0,ip=192.0.2.1/24',
                                        [vdev + 'server'])
            if not talk:
                server.send_signal(signal.SIGINT)
                self.end(server, 130)
                continue
            res = self.run_json(['--device', 'soft0,port=net_memif0,ip=192.0.2.2/24', '--connect',
                                 where, '--op', 'write', '--size', '1000', '--verify',
                                 '--duration', '0.02'], self.eal('client') + [vdev + 'client'])
            self.check(res, ['write'], [1000], 1)
            self.served(server, res, 1)

    @long
    def test_memif_two_lcores(self):
        """Two lcores poll queue pairs of one device; only one of them has the port at a time."""
        vdev = '--vdev=net_memif0,socket=@trl%d,role=' % os.getpid()
        server, where = self.listen('soft0,port=net_memif0,ip=192.0.2.1/24', [vdev + 'server'])
        places = ['--lcores', '0@%d,1@%d,2@%d' % (CPUS[0], CPUS[0], CPUS[-1])]
        res = self.run_json(['--device', 'soft0,port=net_memif0,ip=192.0.2.2/24', '--connect',
                             where, '--op', 'write,fetch_add', '--size', '8,3000', '--qps',
                             '2', '--worker-lcores', '2', '--verify', '--duration', '0.1'],
                            places + self.eal('client')[2:] + [vdev + 'client'])
        self.check(res, ['write', 'fetch_add'], [8, 3000], 4)
        for row in res.json['rows']:
            self.assertEqual(row['lcores'], 2)
        self.served(server, res, 4)

    @long
    def test_memif_peer_goes(self):
        """The rings vanish under a sending process: its requests fail, and no more happens."""
        for i in range(2):
            vdev = '--vdev=net_memif0,socket=@trg%d_%d,role=' % (os.getpid(), i)
            server, where = self.listen('soft0,port=net_memif0,ip=192.0.2.1/24',
                                        [vdev + 'server'])
            client = subprocess.Popen(
                [self.program] + self.eal('client') + [vdev + 'client', '--', '--device',
                 'soft0,port=net_memif0,ip=192.0.2.2/24', '--connect', where, '--op', 'write',
                 '--size', '1000', '--duration', '60'],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(client.stdout.close)
            self.addCleanup(client.stderr.close)
            self.addCleanup(client.kill)
            self.assertTrue(client.stdout.readline())
            server.send_signal((signal.SIGINT, signal.SIGKILL)[i])
            self.end(server, (130, -signal.SIGKILL)[i])
            self.assertIn('transport retry counter exceeded', self.end(client, 1)[1])

    @long
    def test_modes(self):
        """The target posts receives, answers and writes; with packets each needs the target's progress."""
        modes = ['pingpong', 'mixed', 'bidirectional', 'send']
        for options, args in (('', []), (',shm_packets=1', ['--sgl', '3', '--depth', '7']),
                              ('', ['--inline', '64', '--depth', '1'])):
            res, server = self.both(options, '--op', ','.join(modes), '--size', '64,3000', '--qps',
                                    '2', *args)
            self.check(res, modes, [64, 3000], 2)
            for row in res.json['rows']:
                if row['op'] == 'pingpong':
                    trips = row['rate']['ops'] + row['latency_ns']['samples']
                    self.assertEqual(row['verified']['receives'], trips)
                    self.assertEqual(row['verified']['bytes'], 2 * trips * row['size'])
                if row['op'] == 'bidirectional':
                    ops = row['rate']['ops'] + 2 * row['latency_ns']['samples']
                    self.assertEqual(row['verified']['bytes'], ops * row['size'])
            self.served(server, res, 2)

    @long
    def test_modes_without_verify(self):
        server, where = self.listen(self.shm(1))
        modes = ['pingpong', 'bidirectional', 'send_imm', 'mixed']
        res = self.run_json(['--device', self.shm(2), '--connect', where, '--op', ','.join(modes),
                             '--size', '64', '--mix', 'read:3,fetch_add:1', '--duration', '0.1'],
                            self.eal('client'))
        self.assertEqual([(r['op'], r['ok']) for r in res.json['rows']], [(m, True) for m in modes])
        out, _ = self.end(server)
        # There are no other reads, so the device's counters are those of the mix.
        mix = res.json['rows'][3]['mix']
        self.assertIn(' %d reads, %d atomics' % (mix['read'], mix['fetch_add']), out)

    @needs_defects
    def test_the_target_finds_errors(self):
        res, server = self.both('', '--op', 'send', '--size', '64', rc=1,
                                server_options=',defect=recv_len')
        self.assertIn('the target found errors', res.err)
        out, err = self.end(server, 1)
        self.assertIn('bytes, expected 64', err)
        self.assertRegex(out, r'receives checked; [1-9]\d* errors\n')

    @needs_defects
    def test_the_target_at_a_prompt_finds_errors(self):
        listen = self.commands(1, ['listen 127.0.0.1:0', 'wait'], ',defect=recv_len')
        _, port = self.port_of(listen)
        res = self.run_json(['--device', self.shm(2), '--connect', '127.0.0.1:' + port, '--op',
                             'send', '--size', '64'], self.eal('client'), rc=1)
        self.assertIn('the target found errors', res.err)
        self.end(listen, 1)

    @long
    def test_stalled_target(self):
        """An open loop: operations due while the target stood still have waited as long."""
        server, where = self.listen(self.shm(1))
        cmd = [self.program] + self.eal('client') + [
            '--', '--device', self.shm(2), '--connect', where, '--op', 'send', '--size', '8',
            '--rate', '2000', '--duration', '3', '-i', '--interval', '0.05']
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            with subprocess.Popen(cmd + ['--json', f.name], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True) as client:
                client.stdin.write('start\nwait\n')
                client.stdin.flush()
                while not re.match(r'[1-9]\d* operations', client.stdout.readline()):
                    self.assertIsNone(client.poll())
                server.send_signal(signal.SIGSTOP)
                time.sleep(0.5)
                server.send_signal(signal.SIGCONT)
                _, err = client.communicate(timeout=LIMIT)
            self.assertEqual(client.returncode, 0, err)
            with open(f.name) as again:
                row = json.load(again)['rows'][0]
        self.end(server)
        self.assertTrue(row['ok'])
        lat = row['latency_ns']
        self.assertEqual(lat['of'], 'intended start')
        # All due operations count, and a sixth became due in the stall, with waits from 0 to half a
        # second. Without a free processor the schedule starts later than the row's time.
        self.assertGreaterEqual(lat['samples'], 4000)
        # The first waiting operation may have become due a little after the stop.
        self.assertGreaterEqual(lat['max'], 0.45e9)
        self.assertGreaterEqual(lat['p99'], 0.4e9)

    def test_initiator_killed(self):
        """The listening process survives its death, also in the middle of a row that it takes part in."""
        server, where = self.listen(self.shm(1))
        cmd = [self.program] + self.eal('client') + [
            '--', '--device', self.shm(2), '--connect', where, '--op', 'pingpong', '--size', '8',
            '--duration', '60', '-i']
        with subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as client:
            client.stdin.write('set interval 0.05\nstart\n')
            client.stdin.flush()
            while not re.match(r'[1-9]\d* operations', client.stdout.readline()):
                self.assertIsNone(client.poll())
            client.kill()
        out, err = self.end(server)
        self.assertIn('1 connection served', out)
        self.assertIn('broke', err)

    @needs_defects
    def test_defect_is_found(self):
        """The verified copy comes from the other process."""
        for name, op, says in (('atomic_old', 'fetch_add', 'the old value returned'),
                               ('flip_bit', 'write', 'one bit is wrong'),
                               ('lose_write', 'write', 'was written'),
                               ('misplace', 'write', '8 bytes')):
            server, where = self.listen(self.shm(1, ',defect=' + name))
            res = self.run_json(['--device', self.shm(2), '--connect', where, '--op', op, '--size',
                                 '256', '--verify', '--duration', '0.02'], self.eal('client'),
                                rc=1)
            self.assertEqual(res.json['result'], 'fail')
            self.assertIn(says, res.err)
            self.end(server)

    @long
    @needs_defects
    def test_lost_completion(self):
        """A device loses a completion of the initiator or the target: --patience ends the row. The
        report names the outstanding request and possible causes. With one operation at a time no
        later completion would show the loss."""
        for ours, theirs, op, causes in (
                (',defect=skip_cqe', '', 'write', ['or its completion is lost', 'RDMA_WRITE',
                                                   "the peer's rkey"]),
                (',defect=skip_cqe', '', 'fetch_add', ['or its completion is lost', 'FETCH_ADD']),
                ('', ',defect=skip_cqe', 'send', ['the target reports no receive']),
                ('', ',defect=skip_cqe', 'pingpong', ['no completion for 1 s'])):
            with self.subTest(ours=ours, theirs=theirs, op=op):
                server, where = self.listen(self.shm(1, theirs))
                res = self.run_json(['--device', self.shm(2, ours), '--connect', where, '--op', op,
                                     '--size', '64', '--depth', '1', '--duration', '0.5',
                                     '--patience', '1'], self.eal('client'), rc=1)
                self.assertRegex(res.err, r'no completion for 1 s: pair 0 posted \d+ operations')
                for cause in causes:
                    self.assertIn(cause, res.err)
                self.assertIn('ended early', res.out)
                self.end(server)

    def test_prompt(self):
        """A session connects at start and can return to one process."""
        server, where = self.listen(self.shm(1))
        script = ['set op write,send', 'set size 256', 'set verify on', 'set duration 0.05',
                  'connect ' + where, 'start', 'wait', 'show config', 'disconnect', 'set op send',
                  'start', 'wait', 'connect nowhere']
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            res = self.run_program(['-i', '--device', self.shm(2), '--json', f.name],
                                   self.eal('client'), input='\n'.join(script))
            with open(f.name) as again:
                rows = json.load(again)['rows']
        self.assertEqual(res.rc, 1, str(res))
        self.assertEqual([(r['op'], r['ok']) for r in rows],
                         [('write', True), ('send', True), ('send', True)])
        self.assertIn('connect ' + where, res.out)
        self.assertIn('connect nowhere: give an address', res.err)
        self.end(server)

    @long
    def test_two_prompts(self):
        """listen and connect as commands: each wait of the one is for a start of the other."""
        server = self.commands(1, ['listen 127.0.0.1:0', 'start', 'connect :1',
                                   'listen :1', 'fault drop 1', 'wait', 'wait',
                                   'show stats', 'disconnect', 'disconnect', 'set op write',
                                   'set size 8', 'set duration 0.02', 'start', 'wait',
                                   'show stats', 'listen 127.0.0.1:0', 'stop'])
        seen, port = self.port_of(server)
        client = self.commands(2, ['set op write,pingpong', 'set size 64', 'set verify on',
                                   'set duration 0.05', 'connect 127.0.0.1:' + port, 'start',
                                   'listen :0', 'wait', 'listen :0', 'set op read', 'start',
                                   'wait', 'disconnect', 'start', 'wait'])
        out, err = self.end(client, 1)
        self.assertEqual(re.findall(r'tests? ran, (\d) right, (\d) wrong', out),
                         [('2', '0'), ('1', '0'), ('1', '0')])
        self.assertIn('listen: a test is running; enter stop first', err)
        self.assertIn('listen: the tests of this program use the target 127.0.0.1:' + port, err)
        out, err = self.end(server, 1)
        self.assertRegex(out, r'connections 2, 0 of them open\nrequests of peers: [1-9]')
        self.assertIn('2 connections served', out)
        self.assertIn('1 of 1 test', out)
        # Its own requests in between are not counted as a peer's.
        self.assertIn('0 connections served; requests of peers: 0 writes, 0 reads, 0 atomics; 0 rec', out)
        for text in ('start: this program listens', 'connect: this program listens at port ' + port,
                     'listen: this program listens',
                     'fault: this program listens', 'disconnect: there is no listener'):
            self.assertIn(text, err)

    @long
    def test_faults_of_a_direction(self):
        """Answers to READs come in, so corrupted ones are found here. Outgoing packets are missed there."""
        server = self.commands(1, ['listen 127.0.0.1:0', 'wait', 'wait', 'show errors', 'disconnect'],
                               ',shm_packets=1')
        where = '127.0.0.1:' + self.port_of(server)[1]
        run = ['connect ' + where, 'start', 'wait', 'show errors', 'disconnect', 'fault none']
        client = self.commands(2, ['set op read', 'set size 64', 'set depth 16', 'set verify on',
                                   'set duration 0.05', 'fault rx corrupt 3'] + run +
                               ['fault corrupt 3'] + run, ',shm_packets=1')
        out, _ = self.end(client)
        self.assertEqual(len(re.findall('1 right, 0 wrong', out)), 2)
        dropped = re.findall(r'\npackets dropped: (.*)', out)
        self.assertEqual(['drop_icrc' in line for line in dropped], [True, False], dropped)
        self.assertRegex(self.end(server)[0], r'out of sequence [1-9]')

    @long
    def test_interval_of_a_target(self):
        """Requests served since the previous line; alone, and at a prompt."""
        for session in (False, True):
            if session:
                server = self.commands(1, ['set interval 0.05', 'listen 127.0.0.1:0'])
                where = '127.0.0.1:' + self.port_of(server)[1]
            else:
                server, where = self.listen(self.shm(1), args=['--interval', '0.05'])
            res = self.run_json(['--device', self.shm(2), '--connect', where, '--op', 'read,send',
                                 '--size', '64', '--duration', '0.4'], self.eal('client'))
            self.check_row_ops(res, *self.end(server))

    def check_row_ops(self, res, out, _):
        lines = re.findall(r'(?m)^(\d) connections?, in ([\d.]+) s: requests of peers: \d+ writes, (\d+) '
                           r'reads, \d+ atomics; (\d+) receives checked; 0 errors$', out)
        self.assertGreaterEqual(len(lines), 3, out)
        self.assertGreaterEqual(min(float(l[1]) for l in lines), 0.05)
        for column, row in zip((2, 3), res.json['rows']):
            done = row['rate']['ops'] + row['latency_ns']['samples']
            served = sum(int(l[column]) for l in lines)
            self.assertIn(served, range(1, done + 1), row['op'])

    def test_listen_as_the_last_command(self):
        """Without a wait it runs until the peer has gone."""
        server = self.commands(1, ['listen nowhere', 'listen 127.0.0.1:0'])
        _, port = self.port_of(server)
        client = self.commands(2, ['connect 127.0.0.1:' + port, 'set op send', 'set size 8',
                                   'set duration 0.05', 'start', 'wait', 'show qp'])
        out, _ = self.end(client)
        self.assertRegex(out, r'initiator RTS +[1-9]')
        out, err = self.end(server, 1)
        self.assertIn('1 connection served', out)
        self.assertIn('listen nowhere: give an address', err)

    def limit(self, proc):
        """Ends the process after LIMIT, so that a reader of its output does not wait forever."""
        watch = threading.Timer(LIMIT, proc.kill)
        watch.daemon = True
        watch.start()
        self.addCleanup(watch.cancel)

    def test_shown_while_it_listens(self):
        """Its queue pairs are those of the connected peer; Ctrl-C ends it with the summary."""
        server = subprocess.Popen([self.program] + self.eal('server') +
                                  ['--', '-i', '--device', self.shm(1)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.kill)
        self.limit(server)
        lines = iter(server.stdout.readline, '')

        def say(text, pattern):
            server.stdin.write(text + '\n')
            server.stdin.flush()
            found = next((m for m in (re.search(pattern, l) for l in lines) if m), None)
            self.assertIsNotNone(found, '%s: no line with %s' % (text, pattern))
            return found

        port = say('listen 127.0.0.1:0', r'at port (\d+)').group(1)
        seen = say('show qp', 'there are no queues; a connection creates.*')
        client = subprocess.Popen([self.program] + self.eal('client') +
                                  ['--', '-i', '--device', self.shm(2), '--connect',
                                   '127.0.0.1:' + port, '--op', 'send', '--size', '8'],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(client.kill)
        self.limit(client)
        client.stdin.write('set interval 0.05\nstart\n')
        client.stdin.flush()
        while not re.match(r'[1-9]\d* operations', client.stdout.readline()):
            self.assertIsNone(client.poll())
        self.assertIn('a connection creates', seen.group())
        found = say('show qp', r'connection 0 +0 target +(\w+) +\d+ +[\d.-]+ +\d+ +\d+ +(\d+)')
        self.assertEqual(found.group(1), 'RTS')
        self.assertGreater(int(found.group(2)), 0)
        self.assertGreater(int(say('show cq', r'connection 0 +receives +\d+ +(\d+)').group(1)), 0)
        say('show mr', r"0x\w+ 0x\w+ connection 0 +the target's +\d+ 0x")
        say('show wqe', r'pair 0: no WQE has failed')
        say('show stats', r'connections 1, 1 of them open')
        client.send_signal(signal.SIGINT)
        self.end(client, 130)
        say('wait\nshow stats', r'connections 1, 0 of them open')
        server.send_signal(signal.SIGINT)
        out, _ = server.communicate(timeout=LIMIT)
        self.assertEqual(server.returncode, 130)
        self.assertIn('1 connection served', out)

    def test_nobody_listens(self):
        res = self.run_json(['--device', self.shm(2), '--connect', '127.0.0.1:1', '--op', 'write'],
                            self.eal('client'), rc=1)
        self.assertIn("no process answers at the peer's address and port; start testrdma -- --listen at the target", res.err)

    def test_usage(self):
        self.usage_error(['--connect', '127.0.0.1:1', '--listen', ':1'], '--listen', '--connect')
        res = self.run_program(['--listen', 'nowhere'])
        self.assertEqual(res.rc, 1, str(res))
        self.assertIn('--listen nowhere', res.err)

    def test_strangers_and_stop(self):
        """Other protocols do not disturb it; Ctrl-C ends the listening process with the summary."""
        server, where = self.listen(self.shm(1))
        host, port = where.split(':')
        for data in (b'GET / HTTP/1.0\r\n\r\n', b'\0' * 4096, b''):
            with socket.create_connection((host, int(port))) as s:
                s.sendall(data)
        res = self.run_json(['--device', self.shm(2), '--connect', where, '--op', 'read',
                             '--size', '8', '--duration', '0.02'], self.eal('client'))
        self.assertTrue(res.json['rows'][0]['ok'])
        self.end(server)
        server, _ = self.listen(self.shm(1))
        server.send_signal(signal.SIGINT)
        out, _ = self.end(server, 130)
        self.assertIn('0 connections served', out)


if __name__ == '__main__':
    main()
