#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The endpoint file for DPDK's Prometheus exporter: its metrics of a running testrdma agree with the
replies of the telemetry socket. If the exporter is installed (Debian 13: dpdk), it serves the same.

usage: test_exporter.py TESTRDMA ENDPOINT_FILE
"""

import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import unittest
import urllib.request

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import LIMIT, AppTest, free_ports, lcores  # noqa: E402

EXPORTER = shutil.which('dpdk-telemetry-exporter.py')
QPS = 2  # pairs


class Socket:
    """The interface that the exporter gives to endpoint files."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(LIMIT)
        try:
            self.sock.connect(path)
        except OSError:
            self.sock.close()
            raise
        self.size = json.loads(self.sock.recv(1024))['max_output_len']

    def cmd(self, uri, arg=None):
        self.sock.send((uri if arg is None else '%s,%s' % (uri, arg)).encode())
        return json.loads(self.sock.recv(self.size))[uri]


class Replies:
    """Fixed replies in place of a program."""

    def __init__(self, replies):
        self.replies = replies

    def cmd(self, uri, arg=None):
        return self.replies.get((uri, None if arg is None else str(arg)))


def key(name, labels):
    return name, tuple(sorted((k, str(v)) for k, v in labels.items()))


class Fixed(unittest.TestCase):
    def test_a_program_without_bluebell_has_no_metrics(self):
        self.assertEqual(PLUGIN.metrics(Replies({})), [])

    def test_an_object_destroyed_after_the_list_has_no_metrics(self):
        gone = {'error': 'the device has no QP of that number: see /bluebell/qp/list'}
        replies = {('/bluebell/device/list', None): ['d'],
                   ('/bluebell/device/info', 'd'): gone,
                   ('/bluebell/qp/list', 'd'): {'qps': [7, 8], 'total': 2},
                   ('/bluebell/qp/info', 'd,7'): gone,
                   ('/bluebell/qp/info', 'd,8'): {'posted': 5, 'state': 'ERR'}}
        self.assertEqual(PLUGIN.metrics(Replies(replies)),
                         [('qp_posted_total', 5, {'device': 'd', 'qpn': 8}),
                          ('qp_error_state', 1, {'device': 'd', 'qpn': 8})])

    def test_all_pages_of_a_list_are_read_up_to_the_limit(self):
        def replies(pages):
            found = {('/bluebell/device/list', None): ['d']}
            for i in range(pages):
                page = {'qps': list(range(500 * i, 500 * i + 500)), 'total': 500 * pages}
                if i + 1 < pages:
                    page['next'] = 500 * i + 500
                found['/bluebell/qp/list', 'd,%d' % (500 * i) if i else 'd'] = page
            found.update({('/bluebell/qp/info', 'd,%d' % n): {'posted': n}
                          for n in range(500 * pages)})
            return Replies(found)
        self.assertEqual(sum(v for _, v, _ in PLUGIN.metrics(replies(2))), sum(range(1000)))
        self.assertEqual(len(PLUGIN.metrics(replies(3))), PLUGIN.MOST_QUEUES)


class Running(AppTest):
    def setUp(self):
        self.prefix = 'bb_exporter_%d' % os.getpid()
        folder = os.environ.get('RUNTIME_DIRECTORY', '/var/run') if os.geteuid() == 0 else \
            os.environ.get('XDG_RUNTIME_DIR', '/tmp')
        self.path = '%s/dpdk/%s/dpdk_telemetry.v2' % (folder, self.prefix)
        self.proc = subprocess.Popen(
            [self.program, *lcores(), '--no-huge', '-m', '256', '--no-pci', '--file-prefix=' + self.prefix,
             '--', '-i', '--op', 'write', '--size', '64', '--qps', str(QPS)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end)

    def end(self):
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.communicate()

    def until(self, what, true):
        end = time.monotonic() + LIMIT
        while True:
            self.assertIsNone(self.proc.poll(), 'testrdma ended')
            try:
                value = what()
                if true(value):
                    return value
            except (OSError, json.JSONDecodeError):
                value = 'no socket'
            self.assertLess(time.monotonic(), end, value)
            time.sleep(0.05)

    def collect(self, sock):
        """Returns {(metric, labels): value}, after a check of the rules of the exporter."""
        found = PLUGIN.metrics(sock)
        known = PLUGIN.info()
        for name, value, labels in found:
            self.assertIn(name, known)
            self.assertRegex(name, '^[a-z][a-z0-9_]*$')
            self.assertEqual(name.endswith('_total'), known[name][1] == 'counter', name)
            self.assertIsInstance(value, int)
            self.assertTrue(labels)
        metrics = {key(name, labels): value for name, value, labels in found}
        self.assertEqual(len(metrics), len(found), 'a metric twice')
        return metrics

    def test_metrics_agree_with_the_replies_and_advance(self):
        sock = self.until(lambda: Socket(self.path), lambda s: s.cmd('/bluebell/device/list') == ['soft0'])
        self.proc.stdin.write('start\n')
        self.proc.stdin.flush()
        self.until(lambda: sock.cmd('/bluebell/qp/list', 'soft0'), lambda a: a.get('total') == 2 * QPS)
        rx_write = key('roce_total', {'device': 'soft0', 'counter': 'rx_write'})
        first = self.until(lambda: self.collect(sock), lambda m: m[rx_write] > 1000)
        self.assertEqual(first[key('device_qps', {'device': 'soft0'})], 2 * QPS)
        self.assertEqual(first[key('port_active', {'device': 'soft0', 'port': 1})], 1)
        self.assertGreaterEqual(first[key('port_mtu_bytes', {'device': 'soft0', 'port': 1})], 256)
        self.assertEqual(first[key('memory_bytes', {'device': 'soft0'})],
                         sock.cmd('/bluebell/mr/stats', 'soft0')['bytes'])
        drops = [v for (name, _), v in first.items() if name == 'roce_drops_total']
        self.assertEqual(len(drops), len(sock.cmd('/bluebell/roce/drops', 'soft0')))
        before = {}
        for qpn in sock.cmd('/bluebell/qp/list', 'soft0')['qps']:
            qp = sock.cmd('/bluebell/qp/info', 'soft0,%d' % qpn)
            labels = {'device': 'soft0', 'qpn': qpn}
            self.assertEqual(first[key('qp_sq_depth', labels)], qp['sq_depth'])
            self.assertEqual(first[key('qp_error_state', labels)], 0)
            before[key('qp_posted_total', labels)] = qp['posted']
        self.assertEqual(len([v for v in before.values() if v > 0]), QPS)
        # Every reply counts at least what an earlier reply counted.
        for (name, labels), value in self.collect(sock).items():
            if name.endswith('_total'):
                self.assertGreaterEqual(value, first[name, labels], (name, labels))
        second = self.until(lambda: self.collect(sock),
                            lambda m: all(m[k] > v for k, v in before.items() if v > 0))
        cqes = [k for k in second if k[0] == 'cq_cqes_total']
        self.assertTrue(any(second[k] > first[k] for k in cqes))
        self.serve(rx_write)
        out, err = self.proc.communicate('stop\nquit\n', timeout=LIMIT)
        self.assertEqual(self.proc.returncode, 0, out + err)

    def serve(self, rx_write):
        """Reads the metrics from the real exporter."""
        if EXPORTER is None:
            print('dpdk-telemetry-exporter.py is not installed: the stand-in only')
            return
        port = free_ports()
        exporter = subprocess.Popen(
            [sys.executable, EXPORTER, '-s', self.path, '-p', os.path.dirname(FILE), '-o',
             'prometheus://127.0.0.1:%d' % port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            text = self.until(lambda: urllib.request.urlopen(  # pylint: disable=consider-using-with
                'http://127.0.0.1:%d/metrics' % port, timeout=LIMIT).read().decode(), bool)
        finally:
            exporter.kill()
            exporter.wait()
        self.assertIn('# TYPE dpdk_bluebell_qp_posted_total counter', text)
        labels = ', '.join('%s="%s"' % pair for pair in reversed(rx_write[1]))
        self.assertTrue(re.search(r'^dpdk_bluebell_roce_total\{%s\} [1-9]\d*$' % re.escape(labels), text, re.M),
                        text)


def load(path):
    spec = importlib.util.spec_from_file_location('bluebell', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == '__main__':
    AppTest.program, FILE = sys.argv[1:3]
    PLUGIN = load(FILE)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
