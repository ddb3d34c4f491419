#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""testrdma stopped by a signal ends soon, with a summary and complete JSON."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import EAL, LIMIT, AppTest, lcores, long, main  # noqa: E402


def cpu_time(pid):
    """Returns the CPU time of a process's threads, in seconds."""
    with open('/proc/%d/stat' % pid) as f:
        fields = f.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Stop(AppTest):
    def compute(self, pid, seconds):
        """Waits until the process has used @seconds more CPU time."""
        end = time.monotonic() + LIMIT
        start = cpu_time(pid)
        while cpu_time(pid) < start + seconds:
            self.assertLess(time.monotonic(), end, 'it does not compute')
            time.sleep(0.05)

    def stop(self, sig, args, rows=1):
        """Sends @sig once @rows rows are printed. Returns output and JSON."""
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            cmd = [self.program] + lcores() + EAL + ['--', '--json', f.name] + args
            with subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True) as proc:
                lines = []
                while len(lines) < 2 + rows:  # title and heading first
                    line = proc.stdout.readline()
                    self.assertNotEqual(line, '', 'ended by itself: %s' % lines)
                    lines.append(line)
                if rows == 0:
                    # The first row has printed nothing yet. Startup takes milliseconds of CPU time,
                    # which may be long on a busy machine.
                    self.compute(proc.pid, 1)
                proc.send_signal(sig)
                out, err = proc.communicate(timeout=LIMIT)
            self.assertEqual(proc.returncode, 128 + sig, err)
            with open(f.name) as again:
                result = json.load(again)
        return ''.join(lines) + out, result

    def check(self, sig, args):
        out, result = self.stop(sig, ['--op', 'write,read', '--duration', '0.3', '--size',
                                      '8..64K'] + args)
        self.assertIn('before the end', out)
        self.assertIn('tests ran', out)
        self.assertEqual(result['result'], 'interrupted')
        self.assertGreaterEqual(len(result['rows']), 1)
        self.assertLess(len(result['rows']), result['rows_planned'])
        self.assertTrue(result['rows'][0]['ok'])
        self.assertEqual(result['errors'], 0)

    def test_ctrl_c(self):
        self.check(signal.SIGINT, [])

    def test_ctrl_c_while_verifying(self):
        self.check(signal.SIGINT, ['--verify', '--qps', '4'])

    def test_terminate(self):
        self.check(signal.SIGTERM, [])

    @long
    def test_in_the_middle_of_a_long_row(self):
        out, result = self.stop(signal.SIGINT, ['--op', 'send', '--size', '64', '--duration',
                                                '1000'], rows=0)
        self.assertIn('Ctrl-C', out)
        self.assertEqual(len(result['rows']), 1)
        self.assertFalse(result['rows'][0]['complete'])
        self.assertEqual(result['rows'][0]['errors'], 0)

    def test_during_an_operation_that_takes_minutes(self):
        """A message of 16,384 packets, 0.1 s each, is given up and not waited for."""
        out, result = self.stop(signal.SIGTERM, [
            '--device', 'soft0,wire=1,window=1,tx_delay=100000', '--op', 'write', '--size', '64M',
            '--patience', '3600'], rows=0)
        self.assertIn('before the end', out)
        self.assertEqual([r['complete'] for r in result['rows']], [False])
        self.assertEqual(result['rows'][0]['errors'], 0)

    def test_killed(self):
        """SIGKILL cannot be caught: the rows so far are in complete JSON."""
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            cmd = [self.program] + lcores() + EAL + ['--', '--json', f.name, '--op', 'write', '--size',
                                                     '8..64K', '--duration', '0.3']
            with subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as proc:
                for _ in range(2 + 3):  # title, heading, rows
                    self.assertNotEqual(proc.stdout.readline(), '', 'ended by itself')
                proc.kill()
            with open(f.name) as again:
                result = json.load(again)
        self.assertEqual((result['result'], result['exit_status']), ('unfinished', None))
        # The last printed row may be missing in the file.
        self.assertGreaterEqual(len(result['rows']), 2)
        self.assertLess(len(result['rows']), result['rows_planned'])
        self.assertEqual(result['rows_right'], len(result['rows']))

    def test_nobody_reads(self):
        """As with "| head -2": it ends in time, with complete JSON."""
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            cmd = [self.program] + lcores() + EAL + ['--', '--json', f.name, '--op', 'write', '--size',
                                                     '8..64K', '--duration', '0.3']
            with subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as proc:
                proc.stdout.readline()
                proc.stdout.close()
                err = proc.stderr.read()
            self.assertGreater(proc.returncode, 0, err)
            with open(f.name) as again:
                result = json.load(again)
        self.assertEqual((result['result'], result['exit_status']), ('interrupted', 128 + signal.SIGPIPE))
        self.assertLess(len(result['rows']), result['rows_planned'])
        self.assertNotIn('printed', err)


if __name__ == '__main__':
    main()
