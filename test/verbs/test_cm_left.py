#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Connections by librdmacm between processes of hosts, 10,000 in all and with 100 killed processes: nothing is left.

The table of a host is the kernel's table of abstract socket names (soft_shm_slot.h). Each QPN range, MAD agent,
address and port of a process is a name there.

No verdict depends on speed.
"""

import os
import random
import sys
import time

from test_host import ADDRESS, LISTEN, Host
from verbstest import WAIT, main

CYCLES, CLIENTS, WINDOW = 2500, 'abab', 8   # the hosts of the clients
KILLS = 100
OPEN = 50   # connections of a client that is killed; 50 clients have more than the 1024 queue pairs of a process


class Left(Host):
    def entries(self):
        """Returns the names of the network in the kernel's table."""
        with open('/proc/net/unix') as f:
            words = [line.split() for line in f]
        return {w[-1] for w in words if w[-1].startswith('@bluebell/%s/' % self.network)}

    def until_entries(self, expected):
        """The kernel takes the names of a process back one after another."""
        end = time.monotonic() + WAIT
        while self.entries() != expected and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(self.entries(), expected)

    def serve_many(self, count):
        server = self.log_until(LISTEN, self.at('a', self.hostile, 'serve', str(count)))
        self.assertIsNone(server.poll(), self.text(server))
        return server

    @staticmethod
    def until_executed(proc):
        """Waits until bb_verbs has executed the program. Before, it may have made a folder that no process watches."""
        end = time.monotonic() + WAIT
        while proc.poll() is None and time.monotonic() < end:
            try:
                if os.path.basename(os.readlink('/proc/%d/exe' % proc.pid)) != 'bb_verbs':
                    return
            except OSError:
                pass    # the process has ended
            time.sleep(0.01)

    def client(self, host, *args):
        return self.start(self.at(host, self.hostile, args[0], ADDRESS['a'], *(str(n) for n in args[1:])))

    def test_10000_connections_one_after_another(self):
        count = CYCLES * len(CLIENTS)
        server = self.serve_many(count)
        self.assertTrue(self.entries())
        for client in [self.client(host, 'cycle', CYCLES, WINDOW) for host in CLIENTS]:
            rc, out = self.end(client)
            self.assertEqual(rc, 0, out)
            self.assertIn('%d connections' % CYCLES, out)
        self.assertEqual(server.wait(WAIT), 0, self.text(server))
        self.assertIn('%d connections' % count, self.text(server))
        print(self.text(server).splitlines()[-2:], file=sys.stderr)
        self.until_entries(set())
        self.until_removed()

    def test_100_killed_processes(self):
        """Kills clients, with all their connections open or in the middle of connections, and servers."""
        dice = random.Random(1)
        survivor = self.serve_many(1000000)
        before = self.entries()
        for i in range(KILLS // 2):
            client = self.client('ab'[i % 2], 'idle', OPEN)
            text = line = client.stdout.readline()
            while line and line != 'open\n':
                line = client.stdout.readline()
                text += line
            self.assertTrue(line, 'client %d has ended:\n%s--- server:\n%s' % (i, text, self.text(survivor)[-3000:]))
            client.kill()
            self.end(client)
        self.until_entries(before)
        rc, out = self.end(self.client('b', 'open', 10 * OPEN))
        self.assertEqual(rc, 0, out)
        self.assertIsNone(survivor.poll(), self.text(survivor))
        survivor.kill()
        survivor.wait()
        self.until_entries(set())
        for i in range(KILLS // 4):
            server = self.serve_many(1000000)
            clients = [self.client(host, 'cycle', 1000000, OPEN) for host in 'ab']
            for client in clients:
                self.until_executed(client)
            time.sleep(dice.uniform(0, 0.5))
            clients[i % 2].kill()
            time.sleep(dice.uniform(0, 0.5))
            server.kill()
            server.wait()
            # The other client gets an error of its connections, and ends.
            for client in clients:
                rc, out = self.end(client)
                self.assertNotIn(rc, (0, None), out)
        self.until_entries(set())
        self.until_removed()


if __name__ == '__main__':
    main(sys.argv)
