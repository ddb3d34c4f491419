#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/nvmf and the medium: kernel calls of a flush and a FUA write, promises after the
kernel has failed, and a block device that counts its flushes.
"""

import errno
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import main  # noqa: E402
from nvmftest import BS, NvmfTest, refuse  # noqa: E402

SIZE = 1 << 20
RWF_DSYNC = 2
FLUSHES = 15  # field of /sys/block/*/stat: flush requests completed


class Medium(NvmfTest):
    def test_flush_fails(self):
        """Linux reports a lost page once: after that no flush and no FUA write succeeds."""
        target = self.target('size=%d' % SIZE, io='sync', preexec_fn=refuse('fdatasync', errno.EIO))
        r, _ = self.client('--rw', 'write', '--fua')
        self.assertEqual((r['writes'], r['failed']), (SIZE // BS, 0))
        r, text = self.client('--rw', 'write', rc=1)
        self.assertEqual((r['writes'], r['flushes'], r['failed']), (SIZE // BS, 0, 1))
        self.assertIn('Input/output error', text)
        # The kernel would accept these; the target does not.
        r, _ = self.client('--rw', 'write', '--fua', '--ios', '10', rc=1)
        self.assertEqual((r['writes'], r['failed']), (0, 10))
        r, _ = self.client('--rw', 'read', '--verify', '--seed', '1')
        self.assertEqual(r['wrong'], 0)
        _, _, err = self.stop(target)
        self.assertEqual(err.count('all later flushes and FUA writes fail'), 1, err)
        # After a restart it promises again.
        target = self.target(io='sync')
        r, _ = self.client('--rw', 'write')
        self.assertEqual((r['flushes'], r['failed']), (1, 0))
        self.stop(target)

    def test_fua_writes_through(self):
        """Only a FUA write makes the kernel write to the medium."""
        for error, words, later in ((errno.EIO, 'Input/output error', 1),
                                    (errno.ENOSPC, 'No space left', 0)):
            target = self.target('size=%d' % SIZE, io='sync',
                                 preexec_fn=refuse('pwritev2', error, RWF_DSYNC))
            r, _ = self.client('--rw', 'write')
            self.assertEqual((r['writes'], r['flushes'], r['failed']), (SIZE // BS, 1, 0))
            r, text = self.client('--rw', 'write', '--fua', '--ios', '10', rc=1)
            self.assertEqual((r['writes'], r['failed']), (0, 10))
            self.assertIn(words, text)
            # A write without room has lost no earlier data.
            r, _ = self.client('--rw', 'write', rc=later)
            self.assertEqual((r['flushes'], r['failed']), (1 - later, later))
            self.stop(target)

    def test_a_link_or_a_file_of_another_user_is_not_written(self):
        """The served file must belong to this user; a link is neither created through nor changed."""
        other = self.disk + '.other'

        def refused(words):
            target = self.run_target('size=%d' % SIZE, io='sync')
            for line in target.proc.stdout:
                self.assertNotIn(' port ', line)  # it serves
            rc, _, err = target.end()
            self.assertEqual(rc, 1, err)
            self.assertIn(words, err)

        os.symlink(other, self.disk)
        refused('symbolic link')
        self.assertFalse(os.path.exists(other))
        with open(other, 'wb') as f:
            f.write(b'data')
        refused('symbolic link')
        os.unlink(self.disk)
        os.link(other, self.disk)
        refused('hard links')
        os.unlink(self.disk)
        self.assertEqual(os.path.getsize(other), 4)
        if os.getuid() == 0:
            os.chown(other, 65534, 65534)
            os.rename(other, self.disk)
            refused('another user')
            self.assertEqual(os.path.getsize(self.disk), 4)
            os.truncate(self.disk, SIZE)
            os.symlink(self.disk, other)
            self.disk, folder_file = other, self.disk
            self.stop(self.target('ro', io='sync'))
            os.unlink(folder_file)


def loop(path, *options):
    """Returns a block device on a file, or None and the reason."""
    if os.getuid() != 0 or shutil.which('losetup') is None:
        return None, 'not root, or no losetup'
    got = subprocess.run(['losetup', '--find', '--show', *options, path], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    return got.stdout.strip() or None, got.stderr.strip()


def detach(dev):
    subprocess.run(['losetup', '--detach', dev], check=True)


class Block(NvmfTest):
    def flushes(self, dev):
        with open('/sys/block/%s/stat' % os.path.basename(dev)) as f:
            return int(f.read().split()[FLUSHES])

    def test_block_smaller_than_the_blocks_of_the_device_is_refused(self):
        backing = self.disk
        with open(backing, 'wb') as f:
            f.truncate(SIZE)
        self.disk, why = loop(backing, '--sector-size', '4096')
        self.assertIsNotNone(self.disk, why)
        self.addCleanup(detach, self.disk)
        rc, _, err = self.run_target(more=('--block', '512')).end()
        self.assertEqual(rc, 1)
        self.assertIn('has blocks of 4096 bytes: give --block 4096', err)
        self.stop(self.target())

    def test_block_device(self):
        ios, one = 40, ['--depth', '1', '--ios', '40']
        backing = self.disk + '.backing'
        with open(backing, 'wb') as f:
            f.truncate(SIZE)
        dev, why = loop(backing)
        self.assertIsNotNone(dev, why)
        self.addCleanup(detach, dev)
        self.disk = dev
        target = self.target()
        r, _ = self.client('--rw', 'randrw', '--verify', '--ios', '1000')
        self.assertEqual((r['reads'] + r['writes'], r['verified'], r['wrong']), (1000, r['reads'], 0))
        r, _ = self.client('--rw', 'write')
        self.assertEqual(r['writes'], SIZE // BS)
        self.disk = backing
        self.assertEqual(self.stamps(), {i * BS: i + 1 for i in range(SIZE // BS)})
        self.disk = dev
        rc, _, err = self.run_target(more=('--device', self.device(), '--listen', ':4420')).end()
        self.assertEqual(rc, 1)
        self.assertIn('another target serves it', err)
        # One at a time, so that the block layer cannot merge flushes.
        for more, least, most in ((['--flush-every', '1000'], 1, ios - 1), (['--fua'], ios, None),
                                  (['--flush-every', '1'], ios, None)):
            before = self.flushes(dev)
            self.client('--rw', 'write', *one, *more)
            done = self.flushes(dev) - before
            self.assertGreaterEqual(done, least, more)
            if most is not None:
                self.assertLessEqual(done, most, more)
        target.proc.kill()
        target.end()
        target = self.target()
        r, _ = self.client('--rw', 'read', '--verify')
        self.assertEqual((r['reads'], r['unwritten'], r['wrong']), (SIZE // BS, 0, 0))
        self.stop(target)


def no_loop():
    """Returns why there is no block device to serve, or None."""
    with tempfile.NamedTemporaryFile() as f:
        f.truncate(SIZE)
        dev, why = loop(f.name)
        if dev is None:
            return why
        detach(dev)
    return None


if __name__ == '__main__':
    if 'Block' in sys.argv:
        missing = no_loop()
        if missing:
            print('skipped: no loop device: ' + missing)
            sys.exit(77)
    main()
