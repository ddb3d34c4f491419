#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/storage_plane through io_uring; skipped where the kernel or a container refuses it."""

import os
import sys

from apptest import SKIP, main
from storagetest import StorageTest


class Uring(StorageTest):
    def setUp(self):
        super().setUp()
        if self.uring_refused():
            # Skips the whole program, so that meson counts it.
            print('skipped: ' + self.refused, flush=True)
            self.doCleanups()
            os._exit(SKIP)

    def test_round_trip(self):
        self.round_trip(1 << 20)

    def test_way(self):
        target = self.target('--size', '4096')
        self.assertIn('io_uring', self.way)
        self.stop(target)


if __name__ == '__main__':
    main()
