#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/nvmf/client with fio: its own verify= over nvmf_target, and its error messages."""

import json
import os
import re
import subprocess
import sys

ENGINE = os.path.abspath(sys.argv.pop())  # meson passes it as the third argument

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import main  # noqa: E402
from nvmftest import ADDR, NQN, WAIT, NvmfTest  # noqa: E402

SIZE = 2 << 20


class Fio(NvmfTest):
    def fio(self, *args, jobs=((),)):
        """Runs fio with @args for all of @jobs, which have options of their own."""
        cmd = ['fio', '--output-format=json']
        for i, own in enumerate(jobs):
            cmd += ['--name=t%d' % i, '--ioengine=external:' + ENGINE, '--device=' + self.device(i),
                    '--target=' + ADDR, '--subsystem=' + NQN, '--size=%d' % SIZE, '--bs=4k',
                    '--iodepth=32', *args, *own]
        return subprocess.run(cmd, timeout=WAIT, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, cwd=self.folder.name)

    def all_good(self, *args, jobs=((),)):
        """Runs it without an error. The stage of devtools/test shows what it did."""
        res = self.fio(*args, jobs=jobs)
        self.assertEqual(res.returncode, 0, res.stdout + res.stderr)
        did = json.loads(res.stdout[res.stdout.index('{'):])['jobs']
        self.assertEqual([job['error'] for job in did], [0] * len(jobs))
        for job, own in zip(did, jobs):
            print('fio: %s: %d reads, %d writes, no error' % (
                ' '.join([*args, *own]), job['read']['total_ios'], job['write']['total_ios']), flush=True)
        return did, res.stderr

    def good(self, *args):
        """Runs one job without an error."""
        return self.all_good(*args)[0][0]

    def test_for_a_while(self):
        """Reads each block again after the last write to it, at random, for two seconds."""
        target = self.target('size=%d' % SIZE)
        print('fio: target by %s' % self.io())
        job = self.good('--rw=randwrite', '--verify=crc32c', '--verify_backlog=64', '--time_based',
                        '--runtime=2')
        self.assertGreater(job['read']['total_ios'], 0)
        reads, writes, _ = self.stop(target)
        self.assertEqual((reads, writes), (job['read']['total_ios'], job['write']['total_ios']))

    def test_verify(self):
        target = self.target('size=%d' % SIZE, 'buffered', io='sync')
        job = self.good('--rw=randwrite', '--verify=crc32c', '--do_verify=1', '--fsync=64')
        self.assertEqual((job['write']['total_ios'], job['read']['total_ios']),
                         (SIZE // 4096, SIZE // 4096))
        job = self.good('--rw=randrw', '--verify=sha256', '--sync=1', '--thread')
        fuas = job['write']['total_ios']
        _, writes, _ = self.stop(target)
        self.assertEqual(writes, fuas + SIZE // 4096)

    def test_trim(self):
        target = self.target('size=%d' % SIZE, io='sync')
        self.good('--rw=write')
        job = self.good('--rw=trim')
        self.assertEqual(job['trim']['total_ios'], SIZE // 4096)
        self.stop(target)

    def test_jobs(self):
        """Two threads of a process, each with a device and half of the target. A third one starts
        when they have ended and gets the lcore that the second one released."""
        target = self.target('size=%d' % SIZE, io='sync')
        half = SIZE // 2
        eal = '--no-huge -m 256 --no-pci --no-shconf --no-telemetry --log-level=lib.eal:debug'
        did, err = self.all_good('--thread', '--rw=randwrite', '--verify=crc32c', '--do_verify=1',
                                 '--size=%d' % half, '--eal=' + eal,
                                 jobs=((), ('--offset=%d' % half,), ('--offset=%d' % half, '--stonewall')))
        for job in did:
            self.assertEqual((job['write']['total_ios'], job['read']['total_ios']), (half // 4096,) * 2)
        reads, writes, _ = self.stop(target)
        self.assertEqual((writes, reads), (3 * half // 4096,) * 2)
        self.assertEqual(re.findall(r'Registered non-EAL thread as lcore (\d+)', err), ['1', '1'])
        self.assertEqual(re.findall(r'Unregistered non-EAL thread \(was lcore (\d+)\)', err), ['1', '1'])

    def test_defect_is_found(self):
        # A namespace that acknowledges writes without storing them.
        target = self.target('size=4096', io='sync', more=('--namespace', 'null:2M'))
        res = self.fio('--rw=write', '--verify=crc32c', '--do_verify=1', '--nsid=2')
        self.assertNotEqual(res.returncode, 0)
        self.assertIn('verify: bad', res.stdout + res.stderr)
        self.stop(target)

    def test_errors(self):
        target = self.target('size=%d' % (SIZE // 2), io='sync')
        res = self.fio('--rw=read')
        self.assertNotEqual(res.returncode, 0)
        self.assertIn('size= asks for more', res.stdout + res.stderr)
        res = self.fio('--rw=read', '--target=192.0.2.1:4421')
        self.assertNotEqual(res.returncode, 0)
        self.assertIn('nvmf: 192.0.2.1:4421: ', res.stdout + res.stderr)
        self.stop(target)


if __name__ == '__main__':
    main()
