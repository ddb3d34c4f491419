#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""testrdma's help, and its messages for wrong usage."""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import EAL, LIMIT, OPS, AppTest, lcores, main, seeded_defects  # noqa: E402


class Usage(AppTest):
    def test_help(self):
        for eal in (['--help'], ['-h'], lcores() + EAL):
            res = self.run_program(['--help'], eal)
            self.assertEqual(res.rc, 0, str(res))
            self.assertEqual(res.err, '')
            for word in OPS + ['--device', '--op', '--size', '--depth', '--burst', '--inline',
                               '--signal-every', '--verify', '--duration', '--json', '--csv',
                               '--db', '--qps', '--interactive', '--cmdline-file', '--interval',
                               '--worker-lcores', '--listen', '--connect', '--sgl', '--seed', '--offset',
                               'Examples',
                               'Exit status', 'progress=lcore']:
                self.assertIn(word, res.out)

    def test_version(self):
        res = self.run_program(['--version'])
        self.assertEqual(res.rc, 0, str(res))
        self.assertRegex(res.out, r'^testrdma \d+\.\d+\.\d+, DPDK ')

    def test_printed_to_a_full_disk(self):
        for args in (['--help'], ['--op', 'write', '--size', '8', '--duration', '0.01']):
            with open('/dev/full', 'w') as full:
                proc = subprocess.run([self.program] + lcores() + EAL + ['--'] + args, stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=LIMIT)
            self.assertEqual(proc.returncode, 1, proc.stderr)
            self.assertIn('is the disk full?', proc.stderr)

    def test_no_eal(self):
        """Another program has EAL's files; EAL then fails without logging an error."""
        prefix = 'bb_usage_%d' % os.getpid()
        for run in ('/var/run', os.environ.get('XDG_RUNTIME_DIR', '/tmp')):
            self.addCleanup(shutil.rmtree, os.path.join(run, 'dpdk', prefix), ignore_errors=True)
        eal = lcores() + ['--no-huge', '-m', '256', '--no-pci', '--no-telemetry', '--file-prefix', prefix]
        first = subprocess.Popen([self.program] + eal + ['--', '-i'], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            first.stdin.write('show device\n')
            first.stdin.flush()
            first.stdout.readline()
            res = self.run_program(['--op', 'write'], eal)
        finally:
            first.communicate('quit\n', timeout=LIMIT)
        self.assertEqual(res.rc, 1, str(res))
        self.assertIn('--file-prefix NAME', res.err)
        self.assertNotIn('Success', res.err)
        res = self.run_program(['--op', 'write'], ['-l', '1023', '--no-huge'])
        self.assertEqual(res.rc, 1, str(res))
        self.assertIn('see the lines of EAL above', res.err)

    def test_plain_user(self):
        """A process of user nobody, which may lock almost no memory, runs the software device."""
        if os.geteuid() != 0:
            self.skipTest('not root: the other tests have shown it')

        def become_nobody():
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)

        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            # The program and its libraries may be in folders that nobody cannot read.
            for path in self.needed():
                shutil.copy(path, folder)
            how = {'preexec_fn': become_nobody, 'cwd': folder,
                   'env': dict(os.environ, LD_LIBRARY_PATH=folder, XDG_RUNTIME_DIR=folder)}
            program, self.program = self.program, os.path.join(folder, 'testrdma')
            try:
                res = self.run_program(['--size', '8..64K', '--duration', '0.02', '--verify'], **how)
            finally:
                self.program = program
        self.assertEqual(res.rc, 0, str(res))
        self.assertRegex(res.out, r'(\d+) of \1 tests ran, \1 right, 0 wrong')

    def needed(self):
        """Yields the program and the libraries of this build."""
        yield self.program
        out = subprocess.run(['ldd', self.program], stdout=subprocess.PIPE, text=True, check=True)
        for path in re.findall(r'=> (\S*libbluebell\S*)', out.stdout):
            yield path
            yield path.replace('libbluebell.so', 'libbluebell-soft.so')

    def test_unknown_option(self):
        self.usage_error(['--colour', 'blue'], '--colour', '--help')
        self.usage_error(['write'], '"write"', '--help')

    def test_option_on_the_wrong_side(self):
        res = self.run_program([], lcores() + EAL + ['--op', 'write'])
        self.assertEqual(res.rc, 2, str(res))
        self.assertIn('after --', res.err)

    def test_operations(self):
        for bad in ('wriet', 'write,', '', 'write,,read', 'WRITE'):
            self.usage_error(['--op', bad], '--op', *OPS)

    def test_sizes(self):
        for bad in ('0', '0..8', '8..0', '64..8', '', '8,', 'x', '8q', '-8', '2G', '8..2G', '8..',
                    '..8', '8..64:x1', '8..64:+0', '8..64:3', '8..64:x', '1..1000:+1',
                    '99999999999999999999', '18446744073709551615', '17179869184G'):
            self.usage_error(['--size', bad], '--size', '8..1M')

    def test_numbers(self):
        for option, bad in (('depth', '0'), ('depth', '32769'), ('burst', '0'), ('burst', 'many'),
                            ('signal-every', '0'), ('inline', '9999'), ('qps', '0'),
                            ('qps', '99999'), ('sgl', '0'), ('sgl', '17'), ('offset', '64'),
                            ('seed', '-1'), ('seed', ''), ('depth', '16x')):
            self.usage_error(['--' + option, bad], '--' + option, 'give a number from')
        # Text that is no number, and a number that is too large: bytes have suffixes up to T.
        self.usage_error(['--depth', '1P'], '--depth 1P is not a number')
        self.usage_error(['--depth', '1T'], '--depth 1T is out of range')
        self.usage_error(['--depth', '99999999T'], '--depth 99999999T is out of range')

    def test_duration(self):
        for bad in ('0', '-1', 'soon', 'nan', 'inf', '', '1e9'):
            self.usage_error(['--duration', bad], '--duration', 'seconds')

    def test_doorbell_mode(self):
        self.usage_error(['--db', 'bell'], '--db', 'doorbell', 'blueflame')

    def test_contradictions(self):
        self.usage_error(['--depth', '8', '--burst', '9'], '--burst 9', '--depth 8')
        self.usage_error(['--depth', '8', '--signal-every', '9'], '--signal-every 9', '--depth 8')
        self.usage_error(['--inline', '64', '--sgl', '2'], '--inline', '--sgl')
        self.usage_error(['--offset', '4', '--op', 'write,fetch_add'], '--offset 4', 'fetch_add',
                         'aligned')

    def test_defaults_give_way(self):
        res = self.run_json(['--depth', '8', '--op', 'write', '--size', '8', '--duration', '0.01'])
        self.assertEqual(res.json['options']['burst'], 8)
        self.assertEqual(res.json['options']['signal_every'], 8)

    def test_unknown_device(self):
        for bad in ('hard0', 'mlx5_77', '', '0000:ff:1f.7'):
            res = self.run_program(['--device', bad])
            self.assertEqual(res.rc, 2, str(res))
            self.assertIn('the devices are: ', res.err)
            self.assertIn('soft0', res.err)

    def test_device_options(self):
        # A build without seeded defects refuses every defect: this is no wrong usage.
        defects = seeded_defects(os.path.abspath(self.program))
        for bad in ('soft0,colour=blue', 'soft0,progress=maybe', 'soft0,defect=nonsense',
                    'soft0,progress=lcore,lcore=999', 'soft0,port=net_none0,ip=192.0.2.1/24'):
            res = self.run_program(['--device', bad])
            self.assertEqual(res.rc, 1 if 'defect=' in bad and not defects else 2, str(res))
            self.assertIn(bad, res.err)
            # The device exists.
            self.assertNotIn('no device', res.err)

    def test_device_without_atomics(self):
        self.usage_error(['--device', 'soft0,no_atomic=1', '--op', 'fetch_add'], 'fetch_add',
                         'atomics')

    def test_limits_of_the_device(self):
        device = ['--device', 'soft0,log_max_msg=12']
        self.usage_error(device + ['--size', '4096,8192'], '--size 8192', '4096 at most')
        res = self.run_json(device + ['--op', 'write', '--size', '4096', '--duration', '0.01',
                                      '--verify'])
        self.assertEqual(res.json['result'], 'pass')
        self.usage_error(['--qps', '1000', '--depth', '32768'], '--qps 1000', '--depth 32768')

    def test_memory(self):
        eal = lcores() + ['--no-huge', '-m', '64', '--no-pci', '--no-shconf', '--no-telemetry']
        # 32 MiB for each side are not available: it runs with fewer slots.
        res = self.run_json(['--op', 'write', '--size', '1M', '--verify', '--duration', '0.05'],
                            eal)
        self.assertLess(res.json['rows'][0]['window'], 31)
        res = self.run_json(['--op', 'write', '--size', '64M', '--duration', '0.05'], eal, rc=1)
        self.assertIn('no memory', res.err)
        self.assertIn('-m', res.err)
        self.assertEqual(res.json['result'], 'error')
        self.assertEqual(res.json['rows'], [])

    def test_json_file(self):
        self.usage_error(['--json', '/nonexistent/out.json'], '--json', 'can be written')
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, 'kept.json')
            res = self.run_program(['--json', path, '--op', 'nothing'])
            self.assertEqual(res.rc, 2, str(res))
            self.assertFalse(os.path.exists(path))


if __name__ == '__main__':
    main()
