#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The life of bb_hca's card under Linux's own driver: resets, hot unplug, death of QEMU, faults.

usage: test_life.py BB_HCA PORT_EVENTS QUEUE_EVENTS [--suite NAME] [--vf] [--only NAME]

Each test names the lines of the kernel's log that its fault may cause; another warning fails it. The tests
of hca_life (suite model) do the same to the device, without a kernel and 50 times each.
"""

import argparse
import re
import sys
import unittest

sys.dont_write_bytecode = True

import card  # noqa: E402
import carry  # noqa: E402

PINGPONG = 'ibv_rc_pingpong -d mlx5_0 '
# Iterations of a pingpong that only the test ends.
ENDLESS = 10000000
# Requests after which the device fails. The driver's probe takes about 300, of which 255 are NOPs.
FAULT_AT = 1500
# Programs that run until the fault: a request may take 0.1 s on a busy host.
SECONDS = 600
# Linux's recovery: health.c prints the health buffer, then what it does.
FATAL = [r'mlx5_core .*(Fatal error|Health issue|assert_|fw_ver|hw_id|rfr|severity|irisc|synd|time \d)',
         r'mlx5_core .*(health|mlx5_error_sw_reset|mlx5_handle_bad_state|mlx5_pci_|mlx5_wait_for_pages)',
         r'^$', r'^, severity\(']  # its name of this syndrome ends with a line feed
# Whose events a program watches: the device by DEVX, and by verbs.
DEVICES = ['mlx5_0', 'verbs:mlx5_0']
ARGS = None


class Life(unittest.TestCase):
    maxDiff = None

    def boot(self, *devices):
        """Boots a guest with a function (and a bb_hca) of each device, loads the driver, and checks the kernel's log."""
        processes = [([], ['--device', device]) for device in devices or ['soft0']]
        self.there = card.Card(ARGS.bb_hca, ['--vf'] * ARGS.vf, ARGS.suite, functions=len(processes),
                               processes=processes)
        self.addCleanup(self.there.stop)
        self.there.boot()
        self.seen = len(self.there.kernel_lines())
        self.there.load()
        self.look()

    def again(self):
        """Boots the guest again, with the same server."""
        self.there.stop_guest()
        self.there.start()
        self.there.wait_ready()
        self.seen = len(self.there.kernel_lines())
        self.there.load()
        self.look()

    def look(self, expected=()):
        """Fails if the kernel has printed a warning that is not in @expected. Returns all lines."""
        lines = self.there.kernel_lines(self.seen)
        self.seen += len(lines)
        for level, text in lines:
            if level <= 4:
                print('  ' + text, flush=True)
        self.assertEqual(card.warnings(lines, [*card.EXPECTED, *expected]), [], 'warnings of the kernel')
        return '\n'.join(text for _, text in lines)

    def pingpong(self, options='-n 100'):
        self.assertIn('iters in', self.there.pair(PINGPONG + options))

    def traffic(self):
        """Starts a pingpong that does not end, and waits until it is under way."""
        command = PINGPONG + '-e -n %d' % ENDLESS
        server = self.there.serve_tcp(command, seconds=SECONDS)
        client = self.there.begin(command + ' 127.0.0.1', SECONDS)
        self.there.wait_for("awk '/mlx5_comp/ { for (i = 2; i < 4; i++) n += $i } END { exit n < 200 }' "
                            '/proc/interrupts', card.SECONDS)
        return server, client

    def test_flr(self):
        self.boot()
        self.pingpong()
        path = self.there.run('readlink -f /sys/class/infiniband/mlx5_0/device').strip()
        for _ in range(3):
            self.there.unload()
            self.there.run('grep -q flr %s/reset_method && echo 1 >%s/reset' % (path, path))
            self.there.load()
            self.pingpong()
            self.look()
        print('3 function-level resets')

    def test_qemu_killed_under_traffic(self):
        self.boot()
        for _ in range(2):
            self.traffic()
            self.again()
            self.pingpong()
            self.look()
        self.assertEqual(self.there.server_text().count('client disconnected'), 2)
        print('QEMU killed twice; the same bb_hca serves the next')

    def test_unplugged_under_traffic(self):
        self.boot()
        for _ in range(2):
            requests = self.traffic()
            # QEMU 11.1 dies of an assertion of its own if it unplugs a vfio-user device (device_del), so
            # that the kernel must unplug the card.
            self.there.run('echo 1 >$(readlink -f /sys/class/infiniband/mlx5_0/device)/remove', card.SECONDS)
            self.there.run('killall -9 ibv_rc_pingpong || true')
            for request in requests:
                self.assertNotEqual(request.wait(), 0)
            self.there.run('echo 1 >/sys/bus/pci/rescan', card.SECONDS)
            self.there.wait_active()
            self.pingpong()
            self.look()
        print('unplugged twice under traffic, and plugged in again')

    def watch(self):
        """Starts a program that prints the events of mlx5_0, by DEVX and by verbs. Returns its request."""
        program, eal = carry.carry(self.there, ARGS.port_events)
        # EAL waits for no second process, so the two devices are in one.
        events = self.there.begin('mkdir -p /var/run; exec env %s %s %s -- %s' % (
            program, carry.EAL, eal, ' '.join(DEVICES)), SECONDS)
        while 'ready' not in events.output:
            self.assertIsNone(events.poll(1), events.output)
        return events

    def await_events(self, events, count):
        """Waits until both devices have @count events. Ends the program. Returns its events by device."""
        found = {}
        while any(len(found.get(device, '')) < count for device in DEVICES):
            self.assertIsNone(events.poll(1), events.output)
            found = {device: re.findall('^%s: (.*)$' % device, events.output, re.M) for device in DEVICES}
        self.there.run('killall port_events')
        events.wait()
        return found

    def test_fatal(self):
        self.boot('soft0,fault=dev_fatal:%d' % FAULT_AT)
        events = self.watch()
        requests = self.traffic()
        for device, names in self.await_events(events, 1).items():
            self.assertRegex(names[0], 'fatal', device)
        self.there.wait_for("dmesg | grep -q 'health recovery'", card.SECONDS)
        self.there.run('killall -9 ibv_rc_pingpong || true')
        for request in requests:
            self.assertNotEqual(request.wait(), 0)
        self.there.wait_active()
        self.pingpong()
        text = self.look(FATAL)
        self.assertRegex(text, 'Fatal error')
        self.assertRegex(text, 'synd 0xb: HW fatal error')
        self.assertRegex(text, 'health recovery succeeded')
        self.there.unload()
        self.look()
        print('the driver recovers from a fatal error')

    def test_port_events(self):
        self.boot('soft0,fault=port_down:%d' % FAULT_AT)
        events = self.watch()
        self.pingpong('-n %d' % FAULT_AT)
        found = self.await_events(events, 2)
        self.look()
        for device in DEVICES:
            self.assertEqual([re.sub('.*(down|active).*', r'\1', name) for name in found[device]],
                             ['down', 'active'], device)
        print('the port went down and up, seen by DEVX and by verbs')

    def test_cq_error(self):
        """A CQ that fails, and its QPs: a CQ of a program that uses DEVX, and one of libibverbs."""
        self.boot(*('soft%d,fault=cq_error:%d' % (i, FAULT_AT) for i in range(2)))
        devices = ['mlx5_0', 'verbs:mlx5_1']
        program, eal = carry.carry(self.there, ARGS.queue_events)
        output = self.there.run('mkdir -p /var/run; %s %s %s -- %s' % (program, carry.EAL, eal, ' '.join(devices)),
                                SECONDS)
        for device in devices:
            self.assertEqual(sorted(re.findall('^%s: (.*)$' % device, output, re.M)),
                             ['CQ error: CQ', 'QP fatal: QP 0', 'QP fatal: QP 1'], output)
        # Linux prints the syndrome of the event: 1 is an overrun.
        text = self.look([r'mlx5_core .*CQ error on CQN 0x[0-9a-f]+, syndrome 0x1$'])
        self.assertEqual(text.count('CQ error on CQN'), len(devices), text)
        self.pingpong()
        self.there.unload()
        self.look()
        print('events of failed CQs and QPs, by DEVX and by verbs')


def main():
    global ARGS
    p = argparse.ArgumentParser(usage=__doc__.split('usage: ')[1].split('\n\n')[0])
    p.add_argument('bb_hca')
    p.add_argument('port_events')
    p.add_argument('queue_events')
    p.add_argument('--suite', default='bookworm', help='whose kernel (see test/interop/vm/build)')
    p.add_argument('--vf', action='store_true', help='the card is a virtual function')
    p.add_argument('--only', default='', help='tests with this in the name')
    ARGS = p.parse_args()
    card.enter_or_skip(ARGS.bb_hca, ARGS.suite)
    names = [name for name in vars(Life) if name.startswith('test_') and ARGS.only in name]
    done = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(unittest.TestSuite(map(Life, names)))
    return 0 if done.wasSuccessful() else 1


class Result(unittest.TextTestResult):
    """Shows both logs with each failure."""

    def addFailure(self, test, err):
        super().addFailure(test, err)
        print(test.there.context(), flush=True)

    def addError(self, test, err):
        super().addError(test, err)
        print(test.there.context(), flush=True)


if __name__ == '__main__':
    sys.exit(main())
