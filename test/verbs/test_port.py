#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Verbs programs on a DPDK port, net_memif: two bb_verbs, and bb_verbs with bb_perf. No verdict depends on speed."""

import os
import re
import signal
import subprocess
import sys
import time

from verbstest import NOBODY, RPING, WAIT, VerbsTest, clocked, free_ports, main, patient, pinged

UTILS, PERFTEST = 'ibverbs-utils', 'perftest'
SERVER, CLIENT = ('server', '192.0.2.1'), ('client', '192.0.2.2')
SERVER_6, CLIENT_6 = ('server', '2001:db8::1'), ('client', '2001:db8::2')
# Programs by librdmacm over IPv6: further options of the server and of the client; what the client prints, how often.
OVER_IPV6 = (
    ('rping -V -C 20', '-s -a ::', '-c -v -a ' + SERVER_6[1], r'^ping data: rdma-ping-', 20),
    ('ucmatose -c 16', '-b ' + SERVER_6[1], '-s ' + SERVER_6[1], r'^data transfers complete$', 1),
    ('udaddy -c 8', '-b ' + SERVER_6[1], '-s ' + SERVER_6[1], r'^data transfers complete$', 1),
    ('rstream -I 10 -C 10 -S 4096', '-b ' + SERVER_6[1], '-s ' + SERVER_6[1], r'^custom +4k ', 1),
)
FORKED = r'process \d+ was forked after process \d+ had started DPDK: such a child of fork\(\) cannot use net_'
LISTEN = 'verbs: rdma_cm command 0x7 '  # RDMA_USER_CM_CMD_LISTEN


class Base(VerbsTest):
    port = 'net_memif0'
    uid = None
    tcp = 'localhost'     # the server's address for TCP

    def vdev(self, role):
        return 'net_memif0,role=%s,socket=%s' % (role, self.network)

    def at(self, end, *args):
        role, address = end
        return [self.program, '--vdev', self.vdev(role), '--device', 'soft0,port=' + self.port, '--address',
                address, '--', *patient(args)]

    def both(self, *args):
        port = free_ports()
        args += ('-p', str(port))
        return self.pair_of(self.at(SERVER, *args), self.at(CLIENT, *args, self.tcp), port, self.uid)

    def utils(self, program, *args):
        self.need(program, UTILS)
        text = self.both(program, '-g', '1', '-n', '50', *args)
        self.assertEqual(len(re.findall(r'^50 iters in ', text, re.M)), 2, text)
        self.assertIn('GID ::ffff:192.0.2.2', text)
        self.until_removed()

    def listening(self, *args, end=SERVER):
        """Starts a server of rdma_cm, and returns it when it listens: the list of its calls says so."""
        log = os.path.join(self.folder, 'server.log')
        with open(log, 'w') as f:
            server = subprocess.Popen(self.at(end, *args), stdout=f, stderr=subprocess.STDOUT, cwd=self.folder,
                                      env=dict(self.env, BB_VERBS_TRACE='1'))
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        until = time.monotonic() + WAIT
        while time.monotonic() < until and server.poll() is None:
            with open(log, errors='replace') as f:
                if LISTEN in f.read():
                    break
            time.sleep(0.05)
        return server

    def ended(self, server):
        """Returns exit status and output of a server of listening()."""
        try:
            rc = server.wait(WAIT)
        except subprocess.TimeoutExpired:
            rc = None
        with open(os.path.join(self.folder, 'server.log'), errors='replace') as f:
            return rc, f.read()


class Programs:
    """Tests of every kind of port."""

    def test_rc_pingpong(self):
        self.utils('ibv_rc_pingpong')

    def test_rc_pingpong_with_events(self):
        self.utils('ibv_rc_pingpong', '-e')

    def test_ud_pingpong(self):
        self.utils('ibv_ud_pingpong')

    def test_write_bw(self):
        self.need('ib_write_bw', PERFTEST)
        text = self.both('ib_write_bw', '-x', '1', '-n', '50', '-s', '16384')
        self.assertRegex(text, re.compile(r'^ *16384 +50 +\d', re.M))

    def test_rping(self):
        self.need('rping', 'rdmacm-utils')
        server = self.listening('rping', '-s', '-C', '20', '-V')
        rc, out = self.run_one(self.at(CLIENT, 'rping', '-c', '-a', SERVER[1], '-C', '20', '-V', '-v'))
        server_rc, server_out = self.ended(server)
        self.assertTrue(pinged(rc, out, 20), (rc, out + server_out))
        self.assertIn(server_rc, RPING, server_out)
        self.assertIn('server DISCONNECT EVENT', server_out)

    def test_programs_of_rdma_cm_over_ipv6(self):
        self.need('rping', 'rdmacm-utils')
        for program, server, client, sign, count in OVER_IPV6:
            with self.subTest(program):
                proc = self.listening(*program.split(), *server.split(), end=SERVER_6)
                rc, out = self.run_one(self.at(CLIENT_6, *program.split(), *client.split()))
                server_rc, server_out = self.ended(proc)
                for status in rc, server_rc:
                    self.assertIn(status, RPING if program.startswith('rping') else (0,), out + server_out)
                self.assertEqual(len(re.findall(sign, out, re.M)), count, out + server_out)
                self.assertIn('address %s, GID index 1 (RoCE v2)' % SERVER_6[1], server_out)


class Port(Programs, Base):
    bb_perf = own_eal = None

    def held(self, end=SERVER, case='hold'):
        """Starts a program that holds the device until a signal."""
        proc = self.start(self.at(end, self.hostile, case))
        out = ''
        while 'holds' not in out:
            line = proc.stdout.readline()
            self.assertNotEqual(line, '', out)
            out += line
        return proc

    def test_rc_pingpong_without_rights(self):
        self.usable_by_nobody()
        self.uid = NOBODY
        self.utils('ibv_rc_pingpong')

    def test_program_sees_port(self):
        self.need('ibv_devinfo', UTILS)
        rc, out = self.run_one(self.at(SERVER, 'ibv_devinfo', '-v'))
        self.assertEqual(rc, 0, out)
        self.assertRegex(out, r'mlx5_0 is soft0,port=net_memif0, address 192\.0\.2\.1, GID index 1 \(RoCE v2\)\n')
        for line in ('state:\t\t\tPORT_ACTIVE', r'GID\[  1\]:\t+::ffff:192\.0\.2\.1, RoCE v2'):
            self.assertRegex(out, line)

    def test_bb_perf_is_the_client_of_perftest(self):
        self.need('ib_write_bw', PERFTEST)
        status, out = clocked(self.perf_as_client)
        self.assertEqual(status, (0, 0), out)
        self.assertRegex(out, re.compile(r'^ *\d+ +100 +\d', re.M))

    def perf_as_client(self):
        server = self.listening('ib_write_bw', '-R', '-n', '100')
        cpu = str(min(os.sched_getaffinity(0)))
        rc, out = self.run_one([self.bb_perf, '-l', cpu, '--no-huge', '-m', '128', '--no-shconf', '--no-pci',
                                '--no-telemetry', '--vdev=' + self.vdev('client'), '--', '-d',
                                'soft0,port=net_memif0,ip=192.0.2.2/24', '-P', 'write_bw', '-R', '--check',
                                '--silence', str(WAIT), '-n', '100', SERVER[1]])
        server_rc, server_out = self.ended(server)
        return (rc, server_rc), out + server_out

    def test_killed_server(self):
        """The client's requests fail, and the next pair can use the same socket."""
        self.need('ib_write_bw', PERFTEST)
        port = free_ports()
        args = ('stdbuf', '-oL', 'ib_write_bw', '-x', '1', '-n', '1000000', '-p', str(port))
        server = self.start(self.at(SERVER, *args))
        self.until_listening(server, port)
        client = self.start(self.at(CLIENT, *args, 'localhost'))
        out = ''
        while '#bytes' not in out:
            line = client.stdout.readline()
            self.assertNotEqual(line, '', out)
            out += line
        server.kill()
        rc, rest = self.end(client)
        self.assertNotIn(rc, (0, None), out + rest)
        self.assertGreater(rc, 0, out + rest)     # not a signal
        self.assertRegex(rest, r'(?i)completion with (status|error)|failed status')
        self.utils('ibv_rc_pingpong')

    def test_client_without_server_is_refused(self):
        rc, out = self.run_one(self.at(CLIENT, self.hostile, 'closed'))
        self.assertEqual(rc, 1, out)
        self.assertIn('needs its role=server to run first', out)

    def test_programs_that_misuse_descriptors(self):
        for case in 'closed', 'lengths', 'replaced', 'vforked', 'range', 'duplicated', 'forked_port':
            with self.subTest(case):
                rc, out = self.run_one(self.at(SERVER, self.hostile, case))
                self.assertEqual(rc, 0, out)
                self.assertIn('%s: right' % case, out)
        self.assertRegex(out, FORKED)
        self.until_removed()

    def test_eal_that_does_not_start_returns_its_error_again(self):
        rc, out = self.run_one(self.at(SERVER, self.hostile, 'failed_eal'))
        self.assertEqual(rc, 0, out)
        self.assertEqual(out.count('EAL cannot start: '), 2, out)
        self.assertRegex(out, FORKED)

    def test_child_of_a_program_with_a_failed_port_is_refused(self):
        self.network += ',role=none'
        rc, out = self.run_one(self.at(SERVER, self.hostile, 'failed_port'))
        self.assertEqual(rc, 0, out)
        self.assertEqual(out.count('cannot be created'), 2, out)
        self.assertRegex(out, FORKED)

    def test_child_of_a_program_with_its_own_eal_is_refused(self):
        rc, out = self.run_one(self.at(SERVER, self.own_eal))
        self.assertEqual(rc, 0, out)
        self.assertIn('own_eal: right', out)
        self.assertRegex(out, FORKED)

    def test_second_process_of_one_launcher_is_refused(self):
        first = self.held()
        with open('/proc/%d/environ' % first.pid, 'rb') as f:
            env = dict(line.split(b'=', 1) for line in f.read().split(b'\0') if b'=' in line)
        second = subprocess.run([self.hostile, 'closed'], env=env, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, timeout=WAIT)
        self.assertEqual(second.returncode, 1, second.stdout)
        self.assertIn('process %d of this bb_verbs command has net_memif0: one process can use a port' % first.pid,
                      second.stdout)
        first.send_signal(signal.SIGTERM)
        self.end(first)

    def test_processes_one_after_another(self):
        rc, out = self.run_one(self.at(SERVER, 'sh', '-c', '"$0" closed && "$0" vforked', self.hostile))
        self.assertEqual(rc, 0, out)
        self.assertIn('vforked: right', out)

    def test_program_keeps_its_cpus_and_signals(self):
        """EAL neither binds the program's threads nor takes its signals: those of its threads are blocked."""
        proc = self.held()
        allowed = os.sched_getaffinity(0)
        folder = '/proc/%d/task/' % proc.pid
        for task in os.listdir(folder):
            self.assertEqual(os.sched_getaffinity(int(task)), allowed)
            with open(folder + task + '/status') as f:
                blocked = int(re.search(r'^SigBlk:\s+(\w+)', f.read(), re.M).group(1), 16)
            self.assertEqual(blocked >> (signal.SIGTERM - 1) & 1, int(int(task) != proc.pid), task)
        proc.send_signal(signal.SIGTERM)
        self.end(proc)

    @staticmethod
    def used(proc):
        """Returns the CPU time of a process in ns."""
        folder, ns = '/proc/%d/task/' % proc.pid, 0
        for task in os.listdir(folder):
            with open(folder + task + '/schedstat') as f:
                ns += int(f.read().split()[0])
        return ns

    def test_idle_program_does_not_spin(self):
        both = {'without a peer': self.held()}
        for state in 'without a peer', 'with a peer':
            time.sleep(2)   # until the threads nap
            before, start = self.used(both['without a peer']), time.monotonic()
            time.sleep(4)
            percent = (self.used(both['without a peer']) - before) / 1e7 / (time.monotonic() - start)
            print('idle %s: %.2f %% of a CPU' % (state, percent))
            self.assertLess(percent, 30)     # a thread that spins takes what the machine leaves it
            if len(both) == 1:
                both['with a peer'] = self.held(CLIENT)
        for proc in both.values():
            proc.send_signal(signal.SIGTERM)
            self.end(proc)


if __name__ == '__main__':
    Port.bb_perf, Port.own_eal = (os.path.abspath(sys.argv.pop(3)) for _ in range(2))
    main(sys.argv)
