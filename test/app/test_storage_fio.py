#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/storage_plane from fio: its own verify= over storage_target, and what it says of errors."""

import json
import os
import subprocess
import sys

ENGINE = os.path.abspath(sys.argv.pop())  # the third argument that meson gives

from apptest import main  # noqa: E402
from storagetest import WAIT, StorageTest  # noqa: E402

SIZE = 2 << 20


class Fio(StorageTest):
    def fio(self, *args, port=None):
        cmd = ['fio', '--output-format=json', '--name=t', '--ioengine=external:' + ENGINE,
               '--device=' + self.device(), '--target=127.0.0.1:%d' % (port or self.port),
               '--size=%d' % SIZE, '--bs=4k', '--iodepth=32'] + list(args)
        return subprocess.run(cmd, timeout=WAIT, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, cwd=self.folder.name)

    def good(self, *args):
        """Run it without an error; what it did is shown by the stage of devtools/test."""
        res = self.fio(*args)
        self.assertEqual(res.returncode, 0, res.stdout + res.stderr)
        job = json.loads(res.stdout[res.stdout.index('{'):])['jobs'][0]
        self.assertEqual(job['error'], 0)
        print('fio: %s: %d reads, %d writes, no error' % (
            ' '.join(args), job['read']['total_ios'], job['write']['total_ios']), flush=True)
        return job

    def test_for_a_while(self):
        """Each block is read again behind the last write to it, at random, for two seconds."""
        target = self.target('--size', str(SIZE), *self.io())
        print('fio: target by %s' % self.way)
        job = self.good('--rw=randwrite', '--verify=crc32c', '--verify_backlog=64', '--time_based',
                        '--runtime=2')
        self.assertGreater(job['read']['total_ios'], 0)
        counts, _ = self.stop(target)
        self.assertEqual((counts['reads'], counts['writes']),
                         (job['read']['total_ios'], job['write']['total_ios']))

    def test_verify(self):
        target = self.target('--io', 'sync', '--buffered', '--size', str(SIZE))
        job = self.good('--rw=randwrite', '--verify=crc32c', '--do_verify=1', '--fsync=64')
        self.assertEqual((job['write']['total_ios'], job['read']['total_ios']),
                         (SIZE // 4096, SIZE // 4096))
        job = self.good('--rw=randrw', '--verify=sha256', '--sync=1', '--thread')
        fuas = job['write']['total_ios']
        counts, _ = self.stop(target)
        self.assertEqual(counts['fua'], fuas)
        self.assertEqual(counts['writes'], fuas + SIZE // 4096)
        self.assertGreaterEqual(counts['flushes'], SIZE // 4096 // 64)

    def test_defect_is_found(self):
        target = self.target('--io', 'sync', '--size', str(SIZE), '--defect', 'flip-write')
        res = self.fio('--rw=write', '--verify=crc32c', '--do_verify=1')
        self.assertNotEqual(res.returncode, 0)
        self.assertIn('verify failed', res.stdout + res.stderr)
        self.stop(target)

    def test_errors(self):
        target = self.target('--io', 'sync', '--size', str(SIZE // 2))
        res = self.fio('--rw=read')
        self.assertNotEqual(res.returncode, 0)
        self.assertIn('size= asks for more', res.stdout + res.stderr)
        self.stop(target)
        res = self.fio('--rw=read', port=1)
        self.assertNotEqual(res.returncode, 0)
        self.assertIn('Connection refused; does storage_target run', res.stdout + res.stderr)


if __name__ == '__main__':
    main()
