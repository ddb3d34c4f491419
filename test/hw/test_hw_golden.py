#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Recordings of devices are valid; hw-golden makes one from a report and detects changes.

usage: test_hw_golden.py HW_GOLDEN BUILD FOLDER
"""

import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest


class HwGolden(unittest.TestCase):
    def run_golden(self, args, rc=0):
        done = subprocess.run([sys.executable, HW_GOLDEN, '--build', BUILD] + args,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, rc, done.stdout)
        return done.stdout

    def record(self, folder, device):
        """Makes a report as hw-check writes it, for @device, without conform's rows, which are not stored."""
        path = os.path.join(folder, 'report.json')
        part = os.path.join(folder, 'part.json')
        done = subprocess.run([os.path.join(BUILD, 'test/hw/hw_report'), '--lcores=0,1',
                               '--no-huge', '-m', '512', '--no-pci', '--no-shconf',
                               '--no-telemetry', '--', device, part], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout)
        with open(part) as f, open(path, 'w') as to:
            json.dump({'format': 1, 'machine': {'fw_ver': '1.2.3'}, 'device': json.load(f)}, to)
        return path

    def make(self, folder, device):
        text = self.run_golden(['--data', folder, self.record(folder, device), 'card'])
        return os.path.join(folder, 'card.json'), text

    def changed(self, path, change):
        """Returns the output of --check after @change to the recording, which is then restored."""
        with open(path) as f:
            was = f.read()
        data = json.loads(was)
        change(data)
        with open(path, 'w') as f:
            json.dump(data, f)
        text = self.run_golden(['--check', path], 1)
        with open(path, 'w') as f:
            f.write(was)
        return text

    def test_recordings(self):
        self.assertIn('soft0.json', [os.path.basename(f) for f in FILES])
        print(self.run_golden(['--check'] + FILES), end='')

    def test_a_device_that_differs(self):
        """Its differences are listed by field, and are expected from then on."""
        with tempfile.TemporaryDirectory() as folder:
            path, text = self.make(folder, 'soft0,log_max_msg=12,no_atomic')
            for line in ('INIT2RTR_QP qpc.log_msg_max: 12, software 30',
                         'RST2INIT_QP qpc.rae: 0, software 1'):
                self.assertIn(line, text)
            self.assertIn('3 known differences: as recorded', self.run_golden(['--check', path]))
            text = self.changed(path, lambda d: d['differences']['mailboxes'].pop())
            self.assertRegex(text, 'new: RST2INIT_QP')
            text = self.changed(path, lambda d: d['differences']['ops'].append('of old'))
            self.assertIn('gone: of old', text)

    def test_what_changed(self):
        """Changes a byte of each kind."""
        def op(data, name):
            return next(o for o in data['ops'] if o['name'] == name)

        def flip(where, key, byte):
            digit = int(where[key][2 * byte + 1], 16) ^ 1
            where[key] = '%s%x%s' % (where[key][:2 * byte + 1], digit, where[key][2 * byte + 2:])

        def command(data, opcode):
            return next(c for c in data['commands'] if c.get('in', '').startswith(opcode))

        with tempfile.TemporaryDirectory() as folder:
            path, _ = self.make(folder, 'soft0')
            for change, said in (
                    (lambda d: flip(op(d, 'write'), 'wqe', 35), 'new: write, WQE at 0x20'),
                    (lambda d: flip(op(d, 'wrong_rkey')['sender'], 'cqe', 55),
                     'wrong_rkey, CQE of the sender: recorded remote access error, read now'),
                    (lambda d: flip(command(d, '0500'), 'in', 24 + 10),
                     'new: CREATE_QP qpc.retry_mode: 1, software 0'),
                    (lambda d: flip(command(d, '0100'), 'out', 16 + 0x1b),
                     'attribute max_cq: recorded'),
                    (lambda d: command(d, '0503').update(ret=-5), 'new: command 0x0503'),
                    (lambda d: d['attr'].update(max_cq=7), 'attribute max_cq: recorded 7')):
                self.assertIn(said, self.changed(path, change))
            self.run_golden(['--check', path])

    def test_no_bytes(self):
        """A report of another driver has no bytes."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'report.json')
            with open(path, 'w') as f:
                json.dump({'machine': {}, 'device': {'device': 'rxe0', 'ops': [],
                                                     'attr': {'driver': 'verbs'}}}, f)
            self.assertIn('report of the verbs driver',
                          self.run_golden(['--data', folder, path, 'card'], 1))


if __name__ == '__main__':
    HW_GOLDEN, BUILD = sys.argv[1:3]
    FILES = sorted(glob.glob(os.path.join(sys.argv[3], '*.json')))
    unittest.main(argv=sys.argv[:1], verbosity=2)
