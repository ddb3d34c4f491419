#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/rc_pingpong: the commands of doc/guides/start/porting.rst, on one host and on two network namespaces.

The commands are the guide's, except for the lcores, the fabric's name and the TCP port.
"""

import os
import re
import subprocess
import sys

APP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path += [APP, os.path.dirname(APP)]
import netns  # noqa: E402
from apptest import CPUS, LIMIT, SKIP, AppTest, free_ports, main  # noqa: E402

GUIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..', 'doc', 'guides', 'start',
                     'porting.rst')
RESULT = re.compile(r'^1000 rounds of 4096 bytes, [\d.]+ us each$', re.M)


def commands(section):
    """Returns the commands of a section of the guide, each in one line and without its prompt."""
    with open(GUIDE) as f:
        text = f.read().split('\n%s\n%s\n' % (section, '-' * len(section)))[1]
    text = re.sub(r'\\\n\s*', '', re.split(r'\n.*\n---', text)[0])
    return re.findall(r'^   (?:\w+#|[#$]) (.*)$', text, re.M)


class Pingpong(AppTest):
    ENTER = []

    def start(self, command):
        """Starts a command of the guide."""
        # Both ends poll: on one processor each round would wait for the scheduler.
        args = command.replace('-l 0', '-l %d' % CPUS[0]).replace('-l 1', '-l %d' % CPUS[-1])
        args = args.replace('shm=demo', 'shm=pp%d' % os.getpid())
        words = [os.path.abspath(self.program) if w.endswith('/rc_pingpong') else self.port if w == '18515' else w
                 for w in args.split()]
        return subprocess.Popen(self.ENTER + words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, proc):
        try:
            out, err = proc.communicate(timeout=LIMIT)
        finally:
            proc.kill()
        self.assertNotIn('Sanitizer', err)
        return proc.returncode, out, err

    def pair(self, server, client):
        """Runs both ends; returns what each printed."""
        server = self.start(server)
        try:
            line = server.stdout.readline()
            if 'waiting for a client' not in line:
                self.fail((line, self.end(server)))
            ends = self.end(self.start(client)), self.end(server)
        finally:
            server.kill()
        for status, out, err in ends:
            self.assertEqual(status, 0, (ends, err))
            self.assertRegex(out, RESULT)

    def setUp(self):
        self.port = str(free_ports())


class Host(Pingpong):
    def test_two_processes_of_one_host_exchange_all_messages(self):
        server, client = commands('ibv_rc_pingpong in both APIs')
        self.pair(server, client)

    def test_client_without_server_reports_connection_refused(self):
        _, client = commands('ibv_rc_pingpong in both APIs')
        status, _, err = self.end(self.start(client))
        self.assertEqual(status, 1)
        self.assertIn('Connection refused', err)

    def test_peer_that_is_no_rc_pingpong_is_rejected(self):
        server, _ = commands('ibv_rc_pingpong in both APIs')
        proc = self.start(server)
        self.assertIn('waiting', proc.stdout.readline())
        script = 'exec 3<>/dev/tcp/127.0.0.1/%s; printf %%28s >&3; cat <&3' % self.port
        subprocess.run(['bash', '-c', script], timeout=LIMIT, stderr=subprocess.DEVNULL)
        status, _, err = self.end(proc)
        self.assertEqual(status, 1)
        self.assertIn('bb_qp_addr_unpack', err)

    def test_wrong_arguments_print_usage(self):
        for args, status in ((['--help'], 0), (['--', '--help'], 0), (['-l', '0', '--no-huge', '-m', '64', '--no-pci'], 2)):
            res = subprocess.run([self.program] + args, capture_output=True, text=True, timeout=LIMIT)
            self.assertEqual(res.returncode, status, res)
            self.assertIn('usage: rc_pingpong', res.stdout if status == 0 else res.stderr)


class Hosts(Pingpong):
    """The namespaces have names, which are mounts in /run: the holder process has a /run of its own."""

    @classmethod
    def setUpClass(cls):
        try:
            cls.ns = netns.Netns(['--mount'], 'mount -t tmpfs none /run')
            cls.ns.ip('link', 'add', 'probe0', 'type', 'veth')
        except netns.NetnsError as err:
            # Skips the whole program, so that meson counts it.
            print('skipped: %s' % err, flush=True)
            os._exit(SKIP)
        cls.ENTER = cls.ns.enter

    @classmethod
    def tearDownClass(cls):
        cls.ns.close()

    def test_two_namespaces_exchange_all_messages(self):
        lines = commands('Two hosts on one machine')
        ends = [c for c in lines if 'rc_pingpong' in c]
        self.assertEqual(len(ends), 2)
        for command in lines[:lines.index(ends[0])]:
            subprocess.run(self.ENTER + command.split(), check=True)
        self.pair(*ends)
        for command in lines[lines.index(ends[1]) + 1:]:
            subprocess.run(self.ENTER + command.split(), check=True)
        left = subprocess.run(self.ENTER + ['ip', 'netns', 'list'], capture_output=True, text=True)
        self.assertEqual(left.stdout, '')

    def test_client_tries_each_address_of_the_server(self):
        server, client = commands('ibv_rc_pingpong in both APIs')
        hosts = '::1 two\n127.0.0.1 two\n'  # the server listens at 0.0.0.0 only
        subprocess.run(self.ENTER + ['sh', '-c', 'cat >/run/hosts; mount --bind /run/hosts /etc/hosts'], input=hosts,
                       text=True, check=True)
        self.pair(server, client.replace('127.0.0.1', 'two'))


del Pingpong  # not a test by itself

if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit('usage: %s PROGRAM Host|Hosts' % sys.argv[0])
    main()
