#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Scripts of devtools/: with false programs a slow and a silent mirror, and a build; plots of latencies; hugepages of
the suite."""

import fcntl
import math
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
sys.path.append(os.path.join(TOP, 'devtools', 'suite'))
import stages  # noqa: E402


class Scripts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.bin = os.path.join(self.folder, 'bin')
        os.mkdir(self.bin)

    def program(self, name, text):
        path = os.path.join(self.bin, name)
        with open(path, 'w') as f:
            f.write('#!/bin/sh\n' + text)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

    def run_script(self, *command, **env):
        return subprocess.run(command, env={**os.environ, 'PATH': self.bin + ':' + os.environ['PATH'], **env},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)

    def fio_source(self, update, stall):
        """Runs devtools/fio-source; @update is the script of apt-get update, in the folder of apt."""
        for name in 'fio', 'cc', 'dpkg-source':
            self.program(name, 'exit 1\n')
        self.program('dpkg-query', 'echo 1.0-1\n')
        self.program('apt-get', '''case "$*" in
            *indextargets*) . /etc/os-release; echo "http://mirror.invalid/debian ${VERSION_CODENAME:-} main"; exit ;;
            esac
            cd %s/fio.apt
            %s
            ''' % (self.folder, update))
        return self.run_script(os.path.join(TOP, 'devtools/fio-source'), os.path.join(self.folder, 'fio'),
                               STALL_SECONDS=stall)

    def test_silent_mirror_is_given_up(self):
        res = self.fio_source('exec sleep 200', '2')
        self.assertEqual(res.returncode, 77, res.stdout)
        self.assertRegex(res.stdout, r'update of deb-src failed: gave up after \d+ s: nothing arrived for 2 s')

    def test_slow_mirror_has_its_time(self):
        res = self.fio_source('for i in 1 2 3 4 5 6 7; do echo more >>lists/partial/x; sleep 1; done; echo bad file; exit 1',
                              '5')
        self.assertEqual(res.returncode, 77, res.stdout)
        self.assertIn('update of deb-src failed: bad file', res.stdout)

    def test_files_of_others_stay(self):
        for script in 'fio-source', 'fabtests':
            folder = os.path.join(self.folder, 'home')
            os.makedirs(os.path.join(folder, 'bin'), exist_ok=True)
            open(os.path.join(folder, 'log'), 'w', encoding='utf-8').close()
            res = self.run_script(os.path.join(TOP, 'devtools', script), folder)
            self.assertEqual(res.returncode, 2, res.stdout)
            self.assertIn('home has files of others: give a new folder', res.stdout)
            self.assertEqual(sorted(os.listdir(folder)), ['bin', 'log'])

    def test_fabtests_without_their_repository(self):
        for tool in 'autoreconf', 'libtoolize':
            self.program(tool, 'exit 1\n')
        self.program('pkg-config', 'echo 1.17.0\n')
        res = self.run_script(os.path.join(TOP, 'devtools/fabtests'), os.path.join(self.folder, 'out'),
                              FABTESTS_GIT=os.path.join(self.folder, 'none'))
        self.assertEqual(res.returncode, 77, res.stdout)
        self.assertIn('fabtests cannot be had: git fetch of ', res.stdout)
        self.assertFalse(os.path.exists(os.path.join(self.folder, 'out', 'made')))

    def progress(self, ninja):
        self.program('ninja', ninja)
        return self.run_script('sh', '-euc', 'TOP=%s; . "$TOP/devtools/lib.sh"; build_progress %s target; say built'
                               % (TOP, self.folder), BUILD_INTERVAL='1')

    def test_build_shows_its_progress(self):
        res = self.progress('echo "[3/7] Compiling"; sleep 2.5; echo "[7/7] Linking"\n')
        self.assertEqual(res.returncode, 0, res.stdout)
        self.assertRegex(res.stdout, r'build: 3/7 steps\n')
        self.assertIn('built', res.stdout)
        self.assertNotIn('Compiling', res.stdout)

    def test_failed_build_shows_its_log(self):
        res = self.progress('echo "[1/7] Compiling"; echo "main.c: error"; exit 1\n')
        self.assertEqual(res.returncode, 1, res.stdout)
        self.assertIn('main.c: error', res.stdout)
        self.assertNotIn('built', res.stdout)


class Hugepages(unittest.TestCase):
    """stages.more_hugepages(), with a file instead of the kernel's setting."""

    def setUp(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        self.setting, self.record = (os.path.join(folder, name) for name in ('nr_hugepages', 'record'))
        stages.write_int(self.setting, 3)

    def more(self):
        return stages.more_hugepages(128, self.setting, self.record)

    def now(self):
        return stages.read_int(self.setting)

    def killed(self):
        """Reserves hugepages in a process that is killed meanwhile."""
        pid = os.fork()
        if pid == 0:
            try:
                with self.more():
                    os.kill(os.getpid(), signal.SIGKILL)
            finally:
                os._exit(1)
        os.waitpid(pid, 0)
        self.assertEqual(self.now(), 3 + 128)

    def test_reserved_hugepages_are_given_back_after_a_failure(self):
        with self.assertRaises(KeyError), self.more() as got:
            self.assertEqual((got, self.now()), (128, 3 + 128))
            raise KeyError
        self.assertEqual(self.now(), 3)

    def test_run_after_a_killed_one_restores_the_number_before_both(self):
        self.killed()
        self.killed()
        with self.more() as got:
            self.assertEqual((got, self.now()), (128, 3 + 128))
        self.assertEqual(self.now(), 3)

    def test_number_that_was_set_since_a_killed_run_stays(self):
        for number in 2, 3 + 129:
            self.killed()
            stages.write_int(self.setting, number)
            with self.more():
                self.assertEqual(self.now(), number + 128)
            self.assertEqual(self.now(), number)
            stages.write_int(self.setting, 3)

    def test_second_run_waits_for_the_first(self):
        with self.more(), open(self.record) as f:
            with self.assertRaises(BlockingIOError):
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_setting_that_cannot_be_written_leaves_no_record(self):
        with unittest.mock.patch.object(stages, 'write_int', side_effect=PermissionError):
            with self.assertRaises(PermissionError), self.more():
                self.fail('reserved')
        self.assertEqual(os.path.getsize(self.record), 0)


class PlotLatency(unittest.TestCase):
    FILE = """       Value     Percentile TotalCount 1/(1-Percentile)

       1.000 0.000000000000          1           1.00
       2.000 0.900000000000         90          10.00
       50.000 0.990000000000        99         100.00
      100.000 1.000000000000        100            inf
#[Mean    =        1.000, StdDeviation   =        1.000]
"""

    def plot(self, text, *args):
        with tempfile.NamedTemporaryFile('w', suffix='.hgrm') as f:
            f.write(text)
            f.flush()
            return subprocess.run([os.path.join(TOP, 'devtools/plot-latency'), *args, 'a<b=' + f.name],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)

    def points(self, *args):
        """Returns the places of the curve, from the left."""
        res = self.plot(self.FILE, *args)
        self.assertEqual(res.returncode, 0, res.stderr)
        root = xml.etree.ElementTree.fromstring(res.stdout)
        curve = [e for e in root.iter() if e.tag.endswith('polyline')]
        self.assertEqual(len(curve), 1)
        self.assertIn('a<b', [e.text for e in root.iter()])
        self.assertIn('99 %', [e.text for e in root.iter()])
        return [tuple(map(float, p.split(','))) for p in curve[0].get('points').split()]

    def test_percentiles_are_spaced_by_their_nines(self):
        (x0, y0), (x90, y90), (x99, y99) = self.points()
        self.assertAlmostEqual(x99 - x90, x90 - x0, delta=0.2)
        # The y axis is linear: 1 to 2 is a 48th of 2 to 50, upwards.
        self.assertAlmostEqual((y90 - y99) / (y0 - y90), 48, delta=2)

    def test_logarithmic_axis(self):
        (_, y0), (_, y90), (_, y99) = self.points('--log')
        self.assertAlmostEqual((y90 - y99) / (y0 - y90), math.log(25) / math.log(2), delta=0.1)

    def test_file_without_percentiles(self):
        for text in '', '{"samples": 3}\n', 'Value Percentile\n#[Mean = 0]\n':
            res = self.plot(text)
            self.assertEqual((res.returncode, res.stdout), (1, ''))
            self.assertIn('plot-latency: ', res.stderr)


if __name__ == '__main__':
    unittest.main(verbosity=2)
