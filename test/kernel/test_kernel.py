#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Linux's own mlx5 driver, unmodified, on bb_hca: a ConnectX of the software device for a QEMU guest.

usage: test_kernel.py BB_HCA CONFORM [--suite NAME] [--long] [--vf] [--link ib|eth] [--odp] [--device SPEC]
                      [--only NAMES] [--rows LIST] [--flood PROGRAM] [--odp-access PROGRAM] [--hw-build FOLDER]
                      [--logs FOLDER]

One boot serves all tests, which run in the order of this file. The kernel must not print a warning: neither
while it finds the card, nor in a test, nor while the driver is unloaded. Both ends of all traffic are in the
guest. A failure shows the kernel's log and that of bb_hca.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'conform', 'page'))

import card  # noqa: E402
import carry  # noqa: E402
import machine  # noqa: E402
import namespace  # noqa: E402
import paths  # noqa: E402
import rdmacore  # noqa: E402
import recorded  # noqa: E402

RECORDS = os.path.join(card.HERE, 'conformance.json')
SKIPS = [os.path.join(card.HERE, '..', part, 'allowed-skips') for part in ('conform', 'uverbs', 'kernel')]
TARBALL = os.path.join(card.HERE, '..', '..', 'devtools', 'hw', 'tarball.sh')
CONFORM_SECONDS = 900
HW_CHECK_SECONDS = 3000
RELOADS = 50
# Of conform, by device: as its option --json writes them.
RESULTS = []
ARGS = None
THERE = None


def only_long(test):
    """Marks a test that runs with --long only."""
    test.only_long = True
    return test


class Kernel(unittest.TestCase):
    maxDiff = None
    seen = 0            # lines of the kernel's log that a test has looked at
    probed = False
    passed = ()         # rdma-core's tests that passed on the card
    active = 0.0        # seconds from the start of QEMU until mlx5_0 was active

    def setUp(self):
        self.assertTrue(self.probed or self._testMethodName == 'test_probe', 'there is no mlx5_0')

    def look(self, expected=()):
        """Fails if the kernel has printed a warning since the last look, except those with a pattern of @expected."""
        lines = THERE.kernel_lines(Kernel.seen)
        Kernel.seen += len(lines)
        self.assertEqual(card.warnings(lines, card.EXPECTED + list(expected)), [], 'warnings of the kernel')
        return lines

    def conform(self, device):
        rows = carry.conform(THERE, ARGS.conform, device, "-t 30 -f '%s'" % ARGS.rows, CONFORM_SECONDS, SKIPS)
        RESULTS.append({'device': device, 'rows': rows})
        count = {what: [r for r in rows if r['result'] == what] for what in ('pass', 'fail', 'skip')}
        print('conform on %s: %s' % (device, ', '.join('%s %d' % (k, len(v)) for k, v in count.items())), flush=True)
        self.assertEqual(['%s: %s' % (r['name'], r.get('why', '')) for r in count['fail']], [])
        self.assertGreater(len(count['pass']), 2000 if ARGS.rows == '*' else 0)
        if ARGS.odp:
            self.assertEqual([r['name'] for r in count['skip'] if '/on-demand/' in r['name']], [])
        self.look()
        if (ARGS.rows, ARGS.suite, ARGS.device, ARGS.link, ARGS.vf, ARGS.odp) == (
                '*', 'bookworm', 'soft0', 'ib', False, False):
            self.check_record(recorded.compact('guest:' + device.split(',')[0], rows))

    def check_record(self, found):
        """Compares results with those that the guide on conformance shows (conformance.json)."""
        records = recorded.load(RECORDS)
        if ARGS.record:
            records = [r for r in records if r['device'] != found['device']] + [found]
            recorded.save(RECORDS, sorted(records, key=lambda r: r['device']))
        else:
            self.assertIn(found, records, 'test_kernel.py --record, then: ninja -C BUILD conformance-table')

    # In this order.

    def test_probe(self):
        Kernel.seen = len(THERE.kernel_lines())
        THERE.load()
        Kernel.active = time.monotonic() - THERE.began
        for _, text in self.look():
            print('  ' + text)
        Kernel.probed = True

    def test_devinfo(self):
        text = THERE.run('ibv_devinfo -v')
        for pattern in (r'hca_id:\s+mlx5_0', r'vendor_id:\s+0x02c9', r'vendor_part_id:\s+41\d\d',
                        r'state:\s+PORT_ACTIVE', r'max_mtu:\s+4096', r'GID\[\s*0\]:'):
            self.assertRegex(text, pattern)
        print('\n'.join(line for line in text.split('\n') if re.search('fw_ver|part_id|link_layer|GID', line)))

    def test_pingpong(self):
        gid = THERE.gid()
        for kind in 'rc', 'uc', 'ud', 'srq':
            for events in '', ' -e':
                # A datagram is as long as the MTU at most, pingpong's default is 2048.
                command = 'ibv_%s_pingpong -d mlx5_0 -n 100%s%s' % (kind, events, gid)
                with self.subTest(command):
                    text = THERE.pair(command)
                    print('%s: %s' % (command, text.strip().split('\n')[-1]), flush=True)
                    self.assertRegex(text, r'\d+ iters in')
        self.look()

    def test_pages(self):
        """The card asks the driver for pages while programs create QPs, and gives them back."""
        folder = '$(echo /sys/kernel/debug/mlx5/*/pages)'
        before, total = THERE.counters(), 'cat %s/fw_pages_total' % folder
        had = int(THERE.run(total))
        THERE.pair('ibv_srq_pingpong -d mlx5_0 -q 64 -n 128' + THERE.gid())
        until = time.monotonic() + card.SECONDS
        while True:
            after, has = THERE.counters(), int(THERE.run(total))
            # The device may keep a block of 16 pages more.
            if (has == after['pages'] and has <= had + 16) or time.monotonic() > until:
                break
        self.assertEqual(has, after['pages'])
        self.assertLessEqual(has, had + 16)
        # The device asks again only after an answer, so the first request was served.
        requests = after['page_requests'] - before['page_requests']
        self.assertGreaterEqual(requests, 2)
        failed = THERE.run('cd %s && cat /dev/null $(ls | grep -E "fail|drop|discard")' % folder)
        self.assertEqual(set(failed.split()) - {'0'}, set())
        self.look()
        print('%d page requests; the driver had lent %d pages, then %d' % (requests, had, has))

    @only_long
    def test_perftest(self):
        gid = THERE.gid().replace('-g', '-x')
        for program, kinds in (('ib_write_bw', 'RC UC'), ('ib_write_lat', 'RC UC'), ('ib_read_bw', 'RC'),
                               ('ib_read_lat', 'RC'), ('ib_send_bw', 'RC UC UD'), ('ib_send_lat', 'RC UC UD'),
                               ('ib_atomic_bw', 'RC'), ('ib_atomic_lat', 'RC')):
            for kind in kinds.split():
                # ib_write_bw refuses -e: a WRITE has no completion at its target.
                for events in ('', ' -e') if program in ('ib_read_bw', 'ib_send_bw', 'ib_atomic_bw') and kind == 'RC' else ('',):
                    # -F: the guest's /proc/cpuinfo may differ between its CPUs.
                    command = '%s -d mlx5_0 -F -n 100 -c %s%s%s' % (program, kind, events, gid)
                    with self.subTest(command):
                        self.assertIn('100', THERE.pair(command))
                        print(command, flush=True)
        self.look()

    def test_doorbell_flood(self):
        if not ARGS.flood:
            self.skipTest('no --flood')
        THERE.flood(ARGS.flood)
        self.look()

    def test_conform_devx(self):
        self.conform('mlx5_0,cq_resize')

    @only_long
    def test_conform_verbs(self):
        self.conform('verbs:mlx5_0')

    def test_odp_access(self):
        if not ARGS.odp or not ARGS.odp_access:
            self.skipTest('no --odp and --odp-access')
        command, _ = carry.carry(THERE, ARGS.odp_access)
        print(THERE.run(command + ' mlx5_0', CONFORM_SECONDS).strip(), flush=True)
        self.look()

    def count_rdma_core(self, device, results):
        """Prints how many of rdma-core's tests came out how. Returns their names by outcome."""
        count = {what: rdmacore.names(results, what) for what in ('passed', 'failed', 'skipped')}
        print('rdma-core on %s: %s' % (device, ', '.join('%s %d' % (k, len(v)) for k, v in count.items())), flush=True)
        return count

    @only_long
    def test_rdma_core(self):
        """rdma-core's own tests: each failure and each skip has a known cause."""
        if paths.pyverbs() is None:
            self.skipTest('no pyverbs: run test/interop/vm/build --qemu')
        rdmacore.install(THERE)
        results, out = rdmacore.run(THERE, CONFORM_SECONDS)
        count = self.count_rdma_core('mlx5_0', results)
        Kernel.passed = count['passed']
        print('\n'.join(rdmacore.report(results)), flush=True)
        self.assertGreater(len(count['passed']), 50, out)
        if ARGS.link == 'ib':
            self.assertEqual({n: results[n][1] for n in count['failed'] if n not in rdmacore.FAILURES}, {}, out)
            # A newer kernel returns EOPNOTSUPP where an older one returns EINVAL, and the test skips.
            self.assertEqual([n for n in rdmacore.FAILURES if n in count['passed']], [], 'take them out of FAILURES')
        self.assertEqual({n: results[n][1] for n in count['skipped'] if rdmacore.kind_of(n, results[n][1]) is None}, {},
                         'skips of no known kind')
        self.look(rdmacore.EXPECTED)

    @only_long
    def test_hw_check(self):
        """hw-check runs in the guest as on a machine with a card: from its archive, without a compiler or DPDK."""
        if not ARGS.hw_build or paths.pyverbs() is None:
            self.skipTest('no --hw-build, or no Python for the guest: run test/interop/vm/build --qemu')
        rdmacore.install(THERE)  # brings Python
        with tempfile.TemporaryDirectory() as work:
            archive = os.path.join(work, 'hw-check.tar.gz')
            subprocess.run([TARBALL, ARGS.hw_build, archive], check=True)
            THERE.put(archive, '/tmp/hw-check.tar.gz')
        # The guest has no KVM, and the host may be busy.
        request = THERE.begin('mkdir -p /var/run; tar -xzf /tmp/hw-check.tar.gz -C / && cd /bluebell-hw-check && '
                              'HOME=/root ./hw-check mlx5_0 --patience 10', HW_CHECK_SECONDS)
        status = request.wait()
        print(request.output, flush=True)
        self.assertEqual(status, 0)
        report = json.loads(THERE.get('/bluebell-hw-check/hw-check.json'))
        self.assertTrue(report['complete'])
        self.assertEqual({s['name']: s['result'] for s in report['steps'] if s['result'] != 'done'},
                         {'bisect': 'not run'})
        for name in 'mlx5', 'verbs', 'software':
            self.assertGreater(list(report['conform'][name].values()).count('pass'), 2000, name)
        self.look()

    def test_unload(self):
        pages = int(THERE.run('cat /sys/kernel/debug/mlx5/*/pages/fw_pages_total'))
        self.assertGreater(pages, 0)
        THERE.unload()
        # The kernel warns if the card keeps a page.
        self.look()
        print('the driver is unloaded; all of %d pages are back' % pages)

    def test_reload(self):
        times = RELOADS if ARGS.long else 3
        for _ in range(times):
            THERE.load()
            THERE.unload()
            self.look()
        THERE.load()
        THERE.pair('ibv_rc_pingpong -d mlx5_0 -n 100' + THERE.gid())
        self.look()
        print('loaded and unloaded %d times, then a pingpong' % times)

    @only_long
    def test_rdma_core_on_rxe(self):
        """Of rdma-core's own tests at least as many pass on the card as on rxe in the same guest."""
        if not self.passed:
            self.skipTest('no results of the card to compare with')
        # The GIDs of rxe that the tests choose need the netdev's IPv6 address, without a check for duplicates.
        THERE.run('cd /proc/sys/net/ipv6/conf/eth1 && echo 0 >accept_dad && echo 0 >disable_ipv6 && '
                  'modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth1', card.SECONDS)
        try:
            results, out = rdmacore.run(THERE, CONFORM_SECONDS, 'rxe0')
        finally:
            THERE.run('rdma link delete rxe0; echo 1 >/proc/sys/net/ipv6/conf/eth1/disable_ipv6', card.SECONDS)
        passed = self.count_rdma_core('rxe0', results)['passed']
        for name in passed:
            if name not in self.passed:
                print('passed on rxe0 only: ' + name, flush=True)
        self.assertGreater(len(passed), 50, out)
        self.assertGreaterEqual(len(self.passed), len(passed))
        self.look(['rxe', 'eth1 speed is unknown'])

    def test_server_ends(self):
        keep_log()
        THERE.qemu.kill()
        THERE.qemu.wait()
        THERE.qemu = None
        self.assertEqual(THERE.stop_server(), 0, 'exit status of bb_hca after SIGTERM')


class Result(unittest.TextTestResult):
    """Shows both logs with each failure."""

    def addFailure(self, test, err):
        super().addFailure(test, err)
        print(THERE.context(), flush=True)

    def addError(self, test, err):
        super().addError(test, err)
        print(THERE.context(), flush=True)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            print(THERE.context(), flush=True)


def keep_log():
    """Prints the times of this run, and writes a file with them and the kernel's log to the folder of --logs."""
    release = THERE.run('uname -r').strip()
    text = 'Linux %s, %s: guest up after %.1f s, mlx5_0 active after %.1f s, tests done after %.1f s' % (
        release, THERE.about(), THERE.up, Kernel.active, time.monotonic() - THERE.began)
    print(text, flush=True)
    if ARGS.logs:
        os.makedirs(ARGS.logs, exist_ok=True)
        path = os.path.join(ARGS.logs, '-'.join(['linux', release, ARGS.link] + ['vf'] * ARGS.vf + ['odp'] * ARGS.odp) + '.txt')
        with open(path, 'w') as f:
            f.write(text + '\n\n' + THERE.run('dmesg'))
        print('its log: ' + path, flush=True)


def boot():
    """Boots. If the guest does not boot, ends the test and reports whether one without the card does."""
    try:
        THERE.boot()
    except machine.GuestError as err:
        print(err, THERE.server_text()[-4000:], sep='\n', flush=True)
        try:
            with card.Card(None, [], ARGS.suite):
                pass
        except machine.GuestError as without:
            sys.exit('no guest boots here, with the card or without: ' + str(without).split('\n')[0])
        sys.exit('a guest boots without the card, but not with it')


def main():
    global ARGS, THERE
    p = argparse.ArgumentParser(usage=__doc__.split('usage: ')[1].split('\n\n')[0])
    p.add_argument('bb_hca')
    p.add_argument('conform')
    p.add_argument('--suite', default='bookworm', help='whose kernel (see test/interop/vm/build)')
    p.add_argument('--long', action='store_true', help='every test; without, those of a minute')
    p.add_argument('--rows', default='*', help='of conform, as its option --filter')
    p.add_argument('--only', default='', help='tests with one of these in the name, and test_probe')
    p.add_argument('--record', action='store_true', help="keep conform's results in conformance.json")
    p.add_argument('--json', help="file for conform's results")
    p.add_argument('--flood', help='the program doorbell_flood')
    p.add_argument('--odp-access', help='the program odp_access')
    p.add_argument('--hw-build', help='build folder with the target hw-static')
    p.add_argument('--logs', help="folder for a file with the times and the kernel's log")
    p.add_argument('--device', default='soft0', help='behind the card (default: soft0)')
    p.add_argument('--vf', action='store_true', help='the card is a virtual function')
    p.add_argument('--link', default='ib', choices=['ib', 'eth'], help='of its port')
    p.add_argument('--odp', action='store_true', help='the guest may register memory on demand')
    ARGS = p.parse_args()
    card.enter_or_skip(ARGS.bb_hca, ARGS.suite)
    options = ['--device', ARGS.device, '--link', ARGS.link] + ['--vf'] * ARGS.vf + ['--odp'] * ARGS.odp
    THERE = card.Card(ARGS.bb_hca, options, ARGS.suite, telemetry=True)
    boot()
    names = [name for name, test in vars(Kernel).items() if name.startswith('test_') and
             (ARGS.long or not hasattr(test, 'only_long')) and
             (name == 'test_probe' or any(only in name for only in ARGS.only.split(',')))]
    try:
        suite = unittest.TestSuite(map(Kernel, names))
        done = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(suite)
    finally:
        THERE.stop()
    if ARGS.json:
        with open(ARGS.json, 'w') as f:
            json.dump({'devices': RESULTS}, f)
    return 0 if done.wasSuccessful() else 1


if __name__ == '__main__':
    sys.exit(main())
