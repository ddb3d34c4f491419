#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hw-check on devices with faults, by programs that stand in for the real ones: the report is complete and
anonymous, a fault leads to the option that avoids it, and a stopped run leaves a report.

usage: test_hw_faults.py CHECK_PY CONFORM
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
CARD = 'mlx5_7'
OP = {'name': 'write', 'wqe': '00' * 64, 'sender': {'cqe': '00' * 64, 'status': 'success'}}
GOOD = {'attr': {'driver': 'mlx5'}, 'ops': [OP], 'commands': [],
        'values': {'buffer': 4096, 'lkey': 1, 'rkey': 1}}
ROWS = ['data/rc/write/64', 'srq/rc/limit', 'list/rc/2']
PASS = ['pass DEVICE %s over RoCE v2' % row for row in ROWS]
FAILED = 'FAIL DEVICE data/rc/write/64: over RoCE v2: no completion in 3 s'


def lost():
    """Returns hw_report's JSON of a device that completes no request."""
    return dict(GOOD, ops=[dict(OP, sender='none in time')])


class Faults(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ('hw_report', 'conform', 'testrdma'):
            path = os.path.join(self.folder, name + '_fake')
            shutil.copy(os.path.join(HERE, 'fake_program.py'), path)
            os.chmod(path, 0o755)
        self.plan = {'hw_report': [['*', {'json': GOOD}]], 'conform': [['*', {'lines': PASS}]],
                     'testrdma': [['*', {'json': {'rows': [], 'dpdk': 'DPDK 22.11.11'}}]]}
        self.path = os.path.join(self.folder, 'report.json')

    def start(self, device=CARD):
        with open(os.path.join(self.folder, 'plan.json'), 'w') as f:
            json.dump(self.plan, f)
        return subprocess.Popen([sys.executable, SCRIPT, '--build', self.folder, '--suffix', '_fake', '--report',
                                 self.path, device], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def report(self):
        with open(self.path) as f:
            return json.load(f)

    def check(self, rc, device=CARD):
        child = self.start(device)
        out, _ = child.communicate(timeout=120)
        self.assertEqual(child.returncode, rc, out)
        return self.report(), out

    def called(self, name):
        try:
            with open(os.path.join(self.folder, 'calls')) as f:
                return name in f.read()
        except FileNotFoundError:
            return False

    def step(self, report, name):
        return next(s for s in report['steps'] if s['name'] == name)

    def finding(self, report):
        self.assertEqual(len(report['findings']), 1, report['findings'])
        return report['findings'][0]['what'], report['findings'][0]['next']

    def test_a_good_device_has_all_steps_and_no_findings(self):
        report, out = self.check(0)
        self.assertTrue(report['complete'])
        self.assertEqual([s['name'] for s in report['steps']],
                         ['expected', 'card', 'rings', 'mlx5', 'verbs', 'software', 'traffic', 'bisect'])
        self.assertEqual(report['findings'], [])
        self.assertIn('right: every row that ran holds', out)
        self.assertIn('bluebell@', out)
        parts = {p['part']: p['result'] for p in report['unproven']}
        self.assertEqual(parts['Shared receive queues'], 'holds')
        self.assertEqual(parts['Device memory (ibv_alloc_dm)'], 'not tested')
        for key in ('kernel', 'libibverbs', 'libmlx5', 'fw_ver', 'hca_type', 'libdpdk', 'bluebell'):
            self.assertIn(key, report['machine'])

    def test_failed_rows_lead_to_the_switch_that_helps(self):
        for helps, meaning, what in (
                (['bf_copy=plain', 'bf_copy=none', 'no_bf'], 'copies by wide stores fail', CARD + ',bf_copy=plain'),
                (['bf_copy=none', 'no_bf'], 'BlueFlame copies fail', CARD + ',bf_copy=none'),
                (['no_bf'], 'write-combining register', CARD + ',no_bf'),
                ([], 'a mailbox, WQE or CQE of Bluebell is wrong', 'verbs:' + CARD)):
            self.plan['conform'] = [['*' + switch + '*', {'lines': PASS}] for switch in helps + ['verbs:', 'soft']]
            self.plan['conform'].append(['*', {'lines': PASS[1:] + [FAILED, 'BLUEBELL: a log line'], 'rc': 1}])
            report, out = self.check(1)
            found = self.finding(report)
            self.assertIn('1 rows, such as data/rc/write/64: ', found[0])
            self.assertIn(meaning, found[0])
            self.assertIn(what, found[1])
            self.assertIn(found[1], out)
            self.assertEqual(report['failures']['mlx5'], {'data/rc/write/64': {
                'why': 'over RoCE v2: no completion in 3 s', 'log': ['BLUEBELL: a log line']}})
            part = next(p for p in report['unproven'] if p['part'].startswith('Positions'))
            self.assertEqual((part['result'], part['failed']), ('FAILS', 1))
            # Only the failed rows ran again, once with each switch.
            with open(os.path.join(self.folder, 'calls')) as f:
                again = [line for line in f if '--filter data/rc/write/64 ' in line]
            os.remove(os.path.join(self.folder, 'calls'))
            self.assertEqual(len(again), 4)

    def test_a_fault_of_libmlx5_too_is_no_fault_of_bluebell_alone(self):
        line = FAILED.replace('data/rc/write/64', 'srq/rc/limit')
        self.plan['conform'] = [['soft*', {'lines': PASS}], ['*', {'lines': [PASS[0], line], 'rc': 1}]]
        what, what_next = self.finding(self.check(1)[0])
        self.assertIn('libmlx5\'s own queues fail, too', what)
        self.assertIn('give each queue pair its own receives', what_next)

    def test_each_ring_is_tried_and_a_faulty_one_is_named(self):
        self.plan['hw_report'] = [['*avx*', {'rc': 1, 'lines': [
            'BLUEBELL: x: bf_copy=avx2: this CPU or build does not support these copies: leave bf_copy out']}],
            ['*movdir64b', {'json': lost()}], ['*', {'json': GOOD}]]
        report, _ = self.check(1)
        rings = report['rings']
        if 'bf_copy=avx2' in rings:
            self.assertEqual(rings['bf_copy=avx2'], 'not on this CPU')
            self.assertEqual(rings['bf_copy=movdir64b'], 'write: CQE of the sender: none in time')
            self.assertEqual(report['findings'][0]['next'], 'open the device as %s,bf_copy=plain' % CARD)
        self.assertEqual([rings[r] for r in ('no_bf', 'bf_copy=none', 'bf_copy=plain')], ['works'] * 3)

    def test_a_device_of_another_driver_has_no_ways_to_ring(self):
        self.plan['hw_report'] = [['rxe0,*', {'rc': 1}], ['*', {'json': dict(GOOD, attr={'driver': 'verbs'})}]]
        self.plan['conform'] = [['soft*', {'lines': PASS}], ['*', {'lines': PASS[1:] + [FAILED], 'rc': 1}]]
        report, out = self.check(1, 'rxe0')
        self.assertEqual([self.step(report, s)['result'] for s in ('rings', 'mlx5', 'bisect')],
                         ['not run', 'failed', 'not run'])
        self.assertEqual(report['findings'], [])
        self.assertIn('FAILED: conform on mlx5, verbs', out)

    def test_no_ring_works(self):
        self.plan['hw_report'] = [['soft0', {'json': GOOD}], ['*', {'json': lost()}]]
        report, _ = self.check(1)
        self.assertIn('the cause is not the doorbell', report['findings'][0]['what'])
        self.assertIn('verbs:' + CARD, report['findings'][0]['next'])

    def test_a_device_that_does_not_open_ends_the_run_with_the_reason(self):
        self.plan['hw_report'] = [['soft0', {'json': GOOD}], ['*', {'rc': 1, 'lines': [
            'BLUEBELL: mlx5_7: no DEVX (Operation not supported): DEVX needs kernel 4.20', 'hw_report: x']}]]
        report, out = self.check(1)
        self.assertIn('no DEVX', self.finding(report)[0])
        self.assertIn('devtools/hw-check verbs:' + CARD, self.finding(report)[1])
        self.assertFalse(report['complete'])
        self.assertNotIn('3/8', out)

    def test_a_crash_keeps_the_rows_before_it(self):
        self.plan['conform'] = [['verbs*', {'lines': PASS}], ['soft*', {'lines': PASS}],
                                ['*', {'lines': PASS[:2], 'signal': signal.SIGSEGV}]]
        report, _ = self.check(1)
        self.assertEqual(report['conform']['mlx5'], {ROWS[0]: 'pass', ROWS[1]: 'pass'})
        self.assertIn('was ended by signal 11, after the row ' + ROWS[1], report['findings'][0]['what'])
        self.assertEqual(self.step(report, 'mlx5')['result'], 'failed')
        self.assertTrue(report['complete'])

    def test_a_program_that_hangs_is_ended(self):
        sys.path.insert(0, os.path.dirname(SCRIPT))
        import programs     # pylint: disable=import-outside-toplevel,import-error
        self.plan['conform'] = [['*', {'lines': PASS[:1], 'sleep': 600}]]
        with open(os.path.join(self.folder, 'plan.json'), 'w') as f:
            json.dump(self.plan, f)
        # A busy machine delays the program, too, and may end it before its first line.
        for limit in 2, 20, 200:
            rows = {}
            with unittest.mock.patch.dict(programs.LIMITS, conform=limit):
                why = programs.Programs(self.folder, [], '_fake').conform(CARD, rows, {}, None)
            if rows:
                break
        self.assertEqual((why, rows), ('did not end in %d s' % limit, {ROWS[0]: 'pass'}))

    def test_a_stopped_run_leaves_a_report_of_the_steps_before(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            self.plan['conform'] = [['*', {'lines': PASS[:2], 'sleep': 600}]]
            child = self.start()
            calls = os.path.join(self.folder, 'calls')
            for line in child.stdout:
                if 'mlx5 (about' in line:
                    break
            while not self.called('conform'):
                time.sleep(0.02)
            time.sleep(0.5)
            child.send_signal(number)
            out, _ = child.communicate(timeout=60)
            self.assertEqual(child.returncode, 128 + number, out)
            self.assertIn('stopped in the step mlx5', out)
            report = self.report()
            self.assertFalse(report['complete'])
            self.assertEqual([s['result'] for s in report['steps']], ['done', 'done', 'done', 'stopped'])
            self.assertIn('attr', report['differences'])
            self.assertEqual(report['conform']['mlx5'].get(ROWS[0], 'pass'), 'pass')
            os.remove(calls)

    def test_the_report_has_no_secret_of_the_host(self):
        host, mac, gid = self.secrets()
        texts = [host, host.upper() + '.corp.example', mac, gid, '0000:3b:00.0', '10.20.30.40', 'fd00::17:2',
                 '506b:4b03:00aa:cd12', '/home/alice/bluebell/x', 'MT1912X05437', mac.replace(':', '')]
        line = 'BLUEBELL: mlx5_7: ' + ' | '.join(texts)
        raw = bytes.fromhex('0503') + bytes(40) + bytes.fromhex(mac.replace(':', '')) + bytes(40)
        self.plan['conform'] = [['soft*', {'lines': PASS}],
                                ['*', {'lines': PASS[1:] + [FAILED + ' of ' + texts[4], line], 'rc': 1}]]
        self.plan['hw_report'] = [['*', {'json': dict(GOOD, commands=[
            {'call': 'obj_modify', 'in': raw.hex(), 'out': '00', 'ret': 0}])}]]
        self.plan['testrdma'] = [['*', {'rc': 1, 'lines': [line]}]]
        report, _ = self.check(1)
        with open(self.path) as f:
            text = f.read().lower()
        for secret in texts + ['corp.example', 'alice']:
            self.assertIsNone(re.search(r'(?<![a-z0-9])%s(?![a-z0-9])' % re.escape(secret.lower()), text), secret)
        # The rest of the line is there, and the same value has the same number.
        log = report['failures']['mlx5'][ROWS[0]]['log'][0]
        self.assertRegex(log, r'BLUEBELL: mlx5_7: host#1 \| host#1 \| mac#\d+ \| gid#\d+ \| pci#\d+ \| ip#1')
        self.assertIn('serial#', log)
        self.assertIn('path#', log)
        sent = bytes.fromhex(report['device']['commands'][0]['in'])
        self.assertEqual((len(sent), sent[:2].hex(), set(sent[2:])), (len(raw), '0503', {0}))
        self.assertEqual(report['machine']['kernel'], os.uname().release)

    def secrets(self):
        """Returns this host's name, and a MAC address and an address with link-local prefix of it."""
        for name in sorted(os.listdir('/sys/class/net')):
            with open('/sys/class/net/%s/address' % name) as f:
                mac = f.read().strip()
            if re.fullmatch(r'([0-9a-f]{2}:){5}[0-9a-f]{2}', mac) and len(set(mac.split(':'))) > 2:
                break
        else:
            self.skipTest('no network interface with a MAC address')
        part = bytes.fromhex(mac.replace(':', ''))
        half = bytes([part[0] ^ 2]) + part[1:3] + b'\xff\xfe' + part[3:]
        gid = 'fe80:0000:0000:0000:' + ':'.join(half[i:i + 2].hex() for i in range(0, 8, 2))
        return os.uname().nodename, mac, gid

    def test_rows_of_all_areas_are_repeated(self):
        sys.path.insert(0, os.path.dirname(SCRIPT))
        import bisect_rows  # pylint: disable=import-outside-toplevel,import-error
        failed = ['data/rc/write/%d' % i for i in range(30)] + ['srq/rc/limit', 'cq/resize/grow']
        self.assertEqual(bisect_rows.choose(failed), ['data/rc/write/0', 'srq/rc/limit', 'cq/resize/grow'] +
                         failed[1:6])
        self.assertEqual(bisect_rows.choose(failed[:2]), failed[:2])

    def test_every_part_that_names_rows_names_existing_ones(self):
        sys.path.insert(0, os.path.dirname(SCRIPT))
        import unproven     # pylint: disable=import-outside-toplevel,import-error
        listed = subprocess.run([CONFORM, '--list'], stdout=subprocess.PIPE, text=True, check=True).stdout
        rows = dict.fromkeys((line.split()[0] for line in listed.splitlines() if '/' in line), 'pass')
        parts = unproven.parts()
        self.assertGreater(len(parts), 30)
        self.assertEqual(parts[0][0], 'Positions of mailbox fields, WQEs, CQEs')
        for title, patterns in parts:
            for pattern in patterns or []:
                found = unproven.judge(rows, [(title, [pattern])])[0]
                self.assertEqual(found['result'], 'holds', '%s: no row matches %s' % (title, pattern))
        self.assertGreater(len([p for _, p in parts if p]), 25)


if __name__ == '__main__':
    SCRIPT, CONFORM = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
