#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs that connect by librdmacm, unchanged, between two processes with an address each.

No verdict depends on speed.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time

from verbstest import NOBODY, RPING, WAIT, VerbsTest, as_user, main, pinged

UTILS, PERFTEST = 'rdmacm-utils', 'perftest'
LISTEN = 'verbs: rdma_cm command 0x7 '  # RDMA_USER_CM_CMD_LISTEN
ATTACH = 'verbs: command 0x1e '  # IB_USER_VERBS_CMD_ATTACH_MCAST
PORT = 7471  # of rdmacm.c
SERVER, CLIENT, NOT_THERE = '10.88.200.1', '10.88.200.2', '10.88.200.9'


class Base(VerbsTest):
    uid = None

    device = ''      # further options of the device

    def at(self, address, *args):
        return self.command(*args, options=('--device', 'soft0,shm=%s%s' % (self.network, self.device),
                                            '--address', address + '/16'))

    def listening(self, *args):
        """Starts a server, and returns it when it listens: the list of its calls says so."""
        return self.until(LISTEN, self.at(SERVER, *args), 'server.log')

    def until(self, call, cmd, name, times=1):
        """Starts a process, and returns it when the list of its calls has a call that often."""
        log = os.path.join(self.folder, name)
        with open(log, 'w') as f:
            server = subprocess.Popen(cmd, stdout=f, stderr=subprocess.STDOUT, cwd=self.folder,
                                      env=dict(self.env, BB_VERBS_TRACE='1'), **as_user(self.uid))
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        server.log = log
        end = time.monotonic() + WAIT
        while self.output(server).count(call) < times and server.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        return server

    @staticmethod
    def output(server):
        with open(server.log, errors='replace') as f:
            return f.read()

    def ended(self, server):
        """Returns exit status and output of a server. One that does not end is killed: status None."""
        try:
            rc = server.wait(WAIT)
        except subprocess.TimeoutExpired:
            server.kill()
            rc = None
        return rc, self.output(server)

    def once(self, server, client):
        proc = self.listening(*server)
        rc, out = self.run_one(self.at(CLIENT, *client), self.uid)
        if rc != 0:
            proc.kill()
        server_rc, server_out = self.ended(proc)
        text = '%s\n--- client, exit status %s:\n%s\n--- server, exit status %s:\n%s' % (
            ' '.join(client), rc, out, server_rc, server_out)
        return (rc, server_rc) == (0, 0), out, text

    def both(self, server, client, package=UTILS, attempts=1):
        """Runs a server and a client, which must both succeed. Returns the client's output."""
        self.need(server[0], package)
        for _ in range(attempts):
            ok, out, text = self.once(server, client)
            if ok:
                break
        self.assertTrue(ok, text)
        return out

    def served(self, server, client):
        """Runs a client of a server that serves any number of clients. Returns the client's output."""
        self.need(server, UTILS)
        proc = self.listening(server)
        rc, out = self.run_one(self.at(CLIENT, *client), self.uid)
        self.assertEqual(rc, 0, '%s\n--- server:\n%s' % (out, self.output(proc)))
        self.assertIsNone(proc.poll(), self.output(proc))
        return out

    def perf(self, *args):
        """perftest's server destroys its listener and listens again between two connections of its
        client, which does not repeat a connection that is rejected meanwhile."""
        out = self.both(args, (*args, SERVER), PERFTEST, attempts=20)
        self.assertRegex(out, re.compile(r'^ *\d+ +50 +\d', re.M))


class Rdmacm(Base):
    def test_rdma_server_and_client(self):
        self.assertIn(': end 0', self.both(('rdma_server',), ('rdma_client', '-s', SERVER)))

    def test_rdma_xserver_and_xclient(self):
        self.assertIn(': end 0', self.both(('rdma_xserver',), ('rdma_xclient', '-s', SERVER)))

    def test_cmtime(self):
        out = self.served('cmtime', ('cmtime', '-c', '100', '-s', SERVER))
        for step in 'resolve addr', 'connect', 'disconnect', 'destroy':
            self.assertRegex(out, re.compile(r'^%s *: +[0-9.]+ ' % step, re.M))

    def test_rcopy(self):
        source, copy = (os.path.join(self.folder, name) for name in ('source', 'copy'))
        data = os.urandom(3000001)
        with open(source, 'wb') as f:
            f.write(data)
        self.served('rcopy', ('rcopy', source, '%s:%s' % (SERVER, copy)))
        with open(copy, 'rb') as f:
            self.assertTrue(f.read() == data, 'the copy differs')

    def test_ucmatose(self):
        out = self.both(('ucmatose', '-c', '100'), ('ucmatose', '-c', '100', '-s', SERVER))
        self.assertIn('data transfers complete', out)

    def test_ucmatose_migrates_ids_to_other_channels(self):
        out = self.both(('ucmatose', '-c', '20', '-m'), ('ucmatose', '-c', '20', '-m', '-s', SERVER))
        self.assertIn('data transfers complete', out)

    def test_rping(self):
        self.need('rping', UTILS)
        server = self.listening('rping', '-s', '-C', '50', '-V')
        rc, out = self.run_one(self.at(CLIENT, 'rping', '-c', '-C', '50', '-V', '-v', '-a', SERVER), self.uid)
        server_rc, server_out = self.ended(server)
        self.assertTrue(pinged(rc, out, 50), (rc, out + server_out))
        self.assertIn(server_rc, RPING, server_out)

    def test_udaddy(self):
        out = self.both(('udaddy', '-c', '20'), ('udaddy', '-c', '20', '-s', SERVER))
        self.assertIn('return status 0', out)

    def test_rsockets(self):
        sizes = ('-I', '10', '-C', '10', '-S', '4096')
        for flags in ((), ('-T', 'b'), ('-T', 'v')):
            with self.subTest(flags=flags):
                out = self.both(('rstream', *sizes, *flags), ('rstream', *sizes, *flags, '-s', SERVER))
                self.assertRegex(out, re.compile(r'^custom +4k ', re.M))
        self.both(('riostream', *sizes), ('riostream', *sizes, '-s', SERVER))

    def test_perftest(self):
        for tool in 'ib_write_bw', 'ib_read_bw', 'ib_send_lat', 'ib_atomic_lat':
            with self.subTest(tool=tool):
                self.perf(tool, '-R', '-n', '50')

    def test_datagrams_of_perftest(self):
        self.perf('ib_send_lat', '-R', '-c', 'UD', '-n', '50')


class Multicast(Base):
    """rdma_join_multicast(): each receiver gets each datagram that is sent after its attach."""

    GROUP, COUNT = '239.200.1.1', '50'

    def receivers(self, *cmds, queue_pairs=1):
        self.need('mckey', UTILS)
        return [self.until(ATTACH, cmd, 'receiver%d.log' % i, queue_pairs) for i, cmd in enumerate(cmds)]

    def mckey(self, *args):
        return ('mckey', '-m', self.GROUP, '-C', self.COUNT, *args)

    def check(self, receivers, cmd):
        rc, out = self.run_one(cmd)
        self.assertEqual(rc, 0, out)
        for receiver in receivers:
            rc, out = self.ended(receiver)
            self.assertEqual(rc, 0, out)

    def test_mckey_between_processes(self):
        self.check(self.receivers(*(self.at(ip, *self.mckey('-b', ip)) for ip in (SERVER, NOT_THERE))),
                   self.at(CLIENT, *self.mckey('-s', '-b', CLIENT)))

    def test_mckey_between_processes_of_a_host(self):
        def at(*args):
            return self.command(*args, options=('--host', 'h', '--address', SERVER + '/16'))

        self.check(self.receivers(at(*self.mckey('-b', SERVER)), at(*self.mckey('-b', SERVER))),
                   at(*self.mckey('-s', '-o', '-b', SERVER)))

    def test_mckey_with_several_queue_pairs(self):
        self.check(self.receivers(self.at(SERVER, *self.mckey('-b', SERVER, '-c', '4')), queue_pairs=4),
                   self.at(CLIENT, *self.mckey('-s', '-b', CLIENT, '-c', '4')))


class Captures(Base):
    """tshark has its own decoder of the CM's messages."""

    FIELDS = ('infiniband.mad.attributeid', 'infiniband.cm.req.serviceid.dport', 'infiniband.cm.req.ip_cm.sip4',
              'infiniband.cm.req.ip_cm.dip4', 'infiniband.cm.rep.remotecommid', 'infiniband.cm.rtu.localcommid',
              'infiniband.cm.dreq.localcommid', 'infiniband.cm.drsp.remotecommid', '_ws.malformed')
    REQ, REP, RTU, DREQ, DREP = 0x10, 0x13, 0x14, 0x15, 0x16

    def test_tshark_reads_the_messages_of_a_connection(self):
        self.need('tshark', 'tshark')
        capture = os.path.join(self.folder, 'cm.pcapng')
        self.device = ',capture=' + capture
        server = self.listening(self.hostile, 'serve', '1')
        self.device = ''
        rc, out = self.run_one(self.at(CLIENT, self.hostile, 'open', SERVER, '1'))
        self.assertEqual(rc, 0, out)
        self.assertEqual(self.ended(server)[0], 0)
        out = subprocess.run(['tshark', '-n', '-r', capture, '-T', 'fields',
                              *(arg for field in self.FIELDS for arg in ('-e', field))],
                             check=True, capture_output=True, text=True).stdout
        seen = {}
        for line in out.splitlines():
            kind, *fields = line.split('\t')
            self.assertEqual(fields[-1], '', out)
            seen.setdefault(int(kind, 16), fields)
        self.assertLessEqual({self.REQ, self.REP, self.RTU, self.DREQ, self.DREP}, set(seen), out)
        self.assertEqual(int(seen[self.REQ][0], 16), PORT)
        self.assertEqual(seen[self.REQ][1:3], [CLIENT, SERVER])
        self.assertEqual(seen[self.REP][3], seen[self.RTU][4])
        self.assertEqual(seen[self.DREQ][5], seen[self.DREP][6])


class Signals(Base):
    def restart(self, *args):
        return self.run_one(self.at(SERVER, os.path.join(os.path.dirname(self.hostile), 'verbs_restart'), SERVER, *args))

    def test_handler_may_call_exit_during_a_call(self):
        for call in 'exit_cm', 'exit_command', 'exit_poll':
            with self.subTest(call=call):
                rc, out = self.restart(call)
                self.assertEqual(rc, 0, out)

    def test_file_at_the_number_of_a_descriptor_that_a_handler_has_closed(self):
        for call in 'close_poll', 'close_fork':
            with self.subTest(call=call):
                rc, out = self.restart(call)
                self.assertEqual(rc, 0, out)

    def test_handlers_with_sa_restart_do_not_end_a_call_that_waits(self):
        rc, out = self.restart()
        self.assertEqual(rc, 0, out)
        self.assertEqual(out.splitlines()[-3:], ['rdma_get_cm_event', 'ibv_get_async_event', 'ibv_get_cq_event'])


class RdmacmOfNobody(Rdmacm):
    uid = NOBODY

    def setUp(self):
        super().setUp()
        self.usable_by_nobody()


class Many(Base):
    """verbs_rdmacm: many connections, each with a queue pair."""

    def many(self, count, *client):
        out = self.both((self.hostile, 'serve', str(count)), (self.hostile, *client))
        print('%s: %s' % (client[0], out.splitlines()[-1]), file=sys.stderr)
        return out

    def test_1000_connections_at_a_time(self):
        self.assertIn('1000 connections, at most 1000 open', self.many(1000, 'open', SERVER, '1000'))

    def test_5000_connections_one_after_another(self):
        self.assertIn('5000 connections, at most', self.many(5000, 'cycle', SERVER, '5000', '8'))

    def test_connections_over_a_network_that_loses_packets(self):
        """The client repeats its messages whose answers are lost, and the server drops the repeated ones."""
        self.device = ',tx_drop=5'
        self.assertIn('100 connections, at most 100 open', self.many(100, 'open', SERVER, '100'))
        with open(os.path.join(self.folder, 'server.log')) as f:
            self.assertRegex(f.read(), r'verbs: rdma_cm has dropped [1-9]\d* messages: duplicate\n')

    def test_server_outlives_killed_clients(self):
        server = self.listening(self.hostile, 'serve', '1000000')
        for i in range(20):
            address = '10.88.201.%d/16' % (i + 1)
            client = self.start(self.command(self.hostile, 'cycle', SERVER, '1000000', '50', options=('--address', address)))
            time.sleep(0.02 * i)
            client.kill()
            self.end(client)
        rc, out = self.run_one(self.at(CLIENT, self.hostile, 'open', SERVER, '200'))
        self.assertEqual(rc, 0, out)
        self.assertIn('200 connections, at most 200 open', out)
        self.assertIsNone(server.poll(), self.output(server))


# Runs a server and a client in a network namespace whose loopback interface has both addresses.
NAMESPACE = '''ip link set lo up && ip addr add {server_ip}/32 dev lo && ip addr add {client_ip}/32 dev lo || exit 1
{server} > server.log 2>&1 & pid=$!
until grep -q ':{port:04X} .* 0A ' /proc/net/tcp || ! kill -0 $pid; do sleep 0.1; done
{client}; rc=$?
[ $rc = 0 ] || kill $pid
wait $pid && exit $rc
cat server.log
exit 1'''


class Libfabric(Base):
    """libfabric's provider verbs. fi_pingpong also opens a TCP connection to the address of its peer."""

    PORT = 47592
    TRIES = 8
    # Errors of libfabric in a process that waits for a CPU: the resolution of an address ends after 2 s; and where the
    # peer's end is handled before the last completion, the queue pair is destroyed with that completion.
    LATE = re.compile(r'fi_getinfo\(\): .*No data available|cq_readerr: Work Request Flushed Error')

    def pingpong(self, *args):
        self.need('fi_pingpong', 'libfabric-bin')
        unshare = ['unshare', '--net', *([] if os.getuid() == 0 else ['--map-root-user'])]
        if subprocess.run([*unshare, 'ip', 'link', 'set', 'lo', 'up'], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest('no network namespace here: needs root or user namespaces, and iproute2')
        cmd = ('fi_pingpong', *args, '-I', '20', '-S', '1024')
        script = NAMESPACE.format(server_ip=SERVER, client_ip=CLIENT, port=self.PORT,
                                  server=shlex.join(self.at(SERVER, *cmd)), client=shlex.join(self.at(CLIENT, *cmd, SERVER)))
        for _ in range(self.TRIES):
            rc, out = self.run_one([*unshare, 'sh', '-c', script])
            if rc == 0 or self.LATE.search(out) is None:
                break
        self.assertEqual(rc, 0, out)
        self.assertRegex(out, re.compile(r'^1k +20 +=20 ', re.M))

    def test_connections(self):
        self.pingpong('-p', 'verbs', '-e', 'msg')

    def test_reliable_datagrams_over_connections(self):
        self.pingpong('-p', 'verbs;ofi_rxm', '-e', 'rdm')


class Ends(Base):
    """The peer is not there, does not listen, or is killed."""

    def setUp(self):
        super().setUp()
        self.need('rping', UTILS)

    def test_address_that_no_process_has(self):
        rc, out = self.run_one(self.at(CLIENT, 'ucmatose', '-s', NOT_THERE))
        self.assertNotIn(rc, (0, None), out)
        self.assertIn('event: RDMA_CM_EVENT_ADDR_ERROR, error: -113', out)

    def test_process_that_does_not_listen(self):
        self.listening('rping', '-s', '-P', '-p', '7000')
        rc, out = self.run_one(self.at(CLIENT, 'ucmatose', '-s', SERVER))
        self.assertNotIn(rc, (0, None), out)
        self.assertIn('event: RDMA_CM_EVENT_REJECTED, error: 8', out)

    def killed(self, victim):
        """Kills one of two connected processes. The other one must learn of it, and end."""
        ping = ('rping', '-v', '-C', '100000000')
        procs = {'server': self.listening(*ping, '-s'), 'client': self.start(self.at(CLIENT, *ping, '-c', '-a', SERVER))}
        line = procs['client'].stdout.readline()
        while line and 'ping data' not in line:
            line = procs['client'].stdout.readline()
        procs[victim].kill()
        rc, out = self.ended(procs['server']) if victim == 'client' else self.end(procs['client'])
        self.assertIsNotNone(rc, 'hangs after the end of its peer')
        self.assertIn('DISCONNECT EVENT', out)

    def test_client_sees_that_the_server_was_killed(self):
        self.killed('server')

    def test_server_sees_that_the_client_was_killed(self):
        self.killed('client')

    def test_idle_client_sees_that_another_process_took_the_address_of_its_server(self):
        """The client does not run in the meantime, so the address has an owner whenever it looks."""
        server = self.listening(self.hostile, 'serve', '100')
        client = self.start(self.at(CLIENT, self.hostile, 'idle', SERVER, '3'))
        line = client.stdout.readline()
        while line and line != 'open\n':
            line = client.stdout.readline()
        self.assertTrue(line, 'the client has ended')
        client.send_signal(signal.SIGSTOP)
        server.kill()
        server.wait()
        self.listening(self.hostile, 'serve', '100')
        client.send_signal(signal.SIGCONT)
        rc, out = self.end(client)
        self.assertEqual(rc, 0, out)


if __name__ == '__main__':
    main(sys.argv)
