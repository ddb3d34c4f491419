#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Processes that share one address, as the processes of a host share a card: bb_verbs --host.

No verdict depends on speed.
"""

import os
import re
import subprocess
import sys
import time

from verbstest import WAIT, VerbsTest, free_ports, listens, main, pinged

LISTEN = 'verbs: rdma_cm command 0x7 '  # RDMA_USER_CM_CMD_LISTEN
ADDRESS = {'a': '10.88.210.1', 'b': '10.88.210.2'}
UDADDY = 7174                           # port of udaddy
LOG_QPNS = 10                           # QP numbers of a process


class Host(VerbsTest):
    def at(self, host, *args):
        return VerbsTest.command(self, *args, options=('--host', host, '--address', ADDRESS[host] + '/16'))

    def log_until(self, text, cmd):
        """Starts a program that writes to a log, and returns it when the log has the text."""
        log = os.path.join(self.folder, '%d.log' % len(os.listdir(self.folder)))
        with open(log, 'w') as f:
            proc = subprocess.Popen(cmd, stdout=f, stderr=subprocess.STDOUT, cwd=self.folder,
                                    env=dict(self.env, BB_VERBS_TRACE='1'))
        self.addCleanup(proc.wait)
        self.addCleanup(proc.kill)
        proc.log = log
        end = time.monotonic() + WAIT
        while text not in self.text(proc) and proc.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        self.assertIn(text, self.text(proc))
        return proc

    @staticmethod
    def text(proc):
        with open(proc.log, errors='replace') as f:
            return f.read()

    def serve(self, host, port, *args):
        """Starts rping as a server for any number of clients."""
        self.need('rping', 'rdmacm-utils')
        return self.log_until(LISTEN, self.at(host, 'rping', '-s', '-P', '-p', str(port), *args))

    def ping(self, host, to, port):
        rc, out = self.run_one(self.at(host, 'rping', '-c', '-v', '-C', '20', '-V', '-a', ADDRESS[to], '-p', str(port)))
        self.assertTrue(pinged(rc, out, 20), '%s to %s, port %d: %s\n%s' % (host, to, port, rc, out))


class Ports(Host):
    def test_two_servers_of_a_host_have_clients_of_both_hosts(self):
        self.serve('a', 7001)
        self.serve('a', 7002)
        for host in 'ba':
            for port in 7002, 7001:
                with self.subTest(host=host, port=port):
                    self.ping(host, 'a', port)

    def test_port_is_in_use_as_in_linux(self):
        first = self.serve('a', 7001, '-a', ADDRESS['a'])
        for address, error in ((ADDRESS['a'], 'Address already in use'), ('0.0.0.0', 'Cannot assign requested address')):
            rc, out = self.run_one(self.at('a', 'rping', '-s', '-p', '7001', '-a', address))
            self.assertNotIn(rc, (0, None), out)
            self.assertIn(error, out)
        # Another host, and another port space.
        self.serve('b', 7001)
        self.serve('a', UDADDY)
        self.log_until(LISTEN, self.at('a', 'udaddy'))
        self.ping('b', 'a', 7001)
        first.kill()
        first.wait()
        self.serve('a', 7001)
        rc, out = self.run_one(self.at('a', 'rping', '-s', '-p', '7001', '-a', ADDRESS['a']))
        self.assertNotIn(rc, (0, None), out)
        self.assertIn('Cannot assign requested address', out)

    def test_killed_server_gives_its_port_back(self):
        keep = self.serve('a', 7000)
        for _ in range(5):
            server = self.serve('a', 7001)
            self.ping('b', 'a', 7001)
            server.kill()
            server.wait()
        rc, out = self.run_one(self.at('b', 'rping', '-c', '-a', ADDRESS['a'], '-p', '7001'))
        self.assertNotIn(rc, (0, None), out)
        # A process of the host that lives rejects it: invalid service ID.
        self.assertIn('RDMA_CM_EVENT_REJECTED, error 8', out)
        self.ping('b', 'a', 7000)
        self.assertIsNone(keep.poll())

    def test_client_learns_that_its_server_was_killed_while_the_host_lives(self):
        self.serve('a', 7000)
        server = self.serve('a', 7001)
        client = self.log_until('ping data', self.at('b', 'rping', '-c', '-v', '-C', '100000000', '-a', ADDRESS['a'], '-p', '7001'))
        server.kill()
        try:
            client.wait(WAIT)
        except subprocess.TimeoutExpired:
            self.fail('hangs after the end of its peer:\n' + self.text(client)[-2000:])
        self.assertIn('DISCONNECT EVENT', self.text(client))


class Qps(Host):
    def test_qpns_of_processes_are_separate(self):
        self.need('ibv_rc_pingpong', 'ibverbs-utils')
        first = free_ports(4)
        ports = range(first, first + 4)
        pingpong = [('ibv_rc_pingpong', '-g', '1', '-p', str(p)) for p in ports]
        servers = [self.start(self.at('a', *args)) for args in pingpong]
        end = time.monotonic() + WAIT
        while not all(listens(p) for p in ports) and time.monotonic() < end:
            time.sleep(0.05)
        qpns = []
        for i, (server, args) in enumerate(zip(servers, pingpong)):
            rc, out = self.run_one(self.at('ab'[i % 2], *args, 'localhost'))
            self.assertEqual(rc, 0, out)
            rc, out = self.end(server)
            self.assertEqual(rc, 0, out)
            qpns.append(int(re.search(r'local address.*QPN 0x(\w+)', out)[1], 16))
        self.assertEqual(len({q >> LOG_QPNS for q in qpns}), 4, qpns)

    def test_process_with_all_qpns_gets_no_further_qp(self):
        rc, out = self.run_one(self.at('a', self.hostile, 'all_qps'))
        self.assertEqual(rc, 0, out)
        self.assertIn('%d queue pairs' % (1 << LOG_QPNS), out)
        refused = 'all %d QP numbers that a process has with host= are in use' % (1 << LOG_QPNS)
        self.assertEqual(out.count(refused), 1, out)
        self.assertIn('all_qps: right', out)

    def test_data_of_processes_of_one_host(self):
        self.need('ib_write_bw', 'perftest')
        for args in (('ib_write_bw', '-x', '1', '-n', '100'), ('ib_send_lat', '-x', '1', '-n', '100'),
                     ('ib_send_bw', '-c', 'UD', '-x', '1', '-n', '100')):
            with self.subTest(args=args):
                self.pair_at('a', *args)

    def pair_at(self, host, *args):
        self.command = lambda *program: self.at(host, *program)
        try:
            self.pair(*args)
        finally:
            del self.command


class Forks(Host):
    def test_daemon_opens_the_device_that_its_parent_had_open(self):
        for options in ('--host', 'a'), ():
            with self.subTest(options=options):
                rc, out = self.run_one(self.command(self.hostile, 'daemonized', options=options))
                self.assertEqual(rc, 0, out)
                self.assertRegex(out, r'daemon has QPN 0x[1-9a-f]')
                self.assertIn('daemonized: right', out)
                self.until_removed()


class Names(Host):
    def test_address_follows_from_the_name(self):
        self.need('ibv_devices', 'ibverbs-utils')
        found = set()
        for name in 'x', 'x', 'y':
            rc, out = self.run_one(self.command('ibv_devices', options=('--host', name)))
            self.assertEqual(rc, 0, out)
            found.add(re.search(r'address (10\.88\.\d+\.\d+)', out)[1])
        self.assertEqual(len(found), 2, found)

    def test_two_hosts_cannot_have_one_address(self):
        self.serve('a', 7001)
        for options in ('--host', 'b'), ():
            rc, out = self.run_one(self.command('true', options=(*options, '--address', ADDRESS['a'] + '/16')))
            self.assertEqual(rc, 1, out)
            self.assertIn('already has an address of this device', out)


if __name__ == '__main__':
    main(sys.argv)
