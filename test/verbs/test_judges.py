#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Libraries of others above verbs, unchanged: UCX by ucx_perftest, and Open MPI over UCX by mpi_judge.c.

The environment variable JUDGED names UCX's transports: "verbs" (the default) or "mlx5". No verdict depends on speed.
"""

import os
import shutil
import subprocess
import sys
import time

from verbstest import WAIT, VerbsTest, free_ports, listens, main

HERE = os.path.dirname(os.path.abspath(__file__))
UCX = {'UCX_NET_DEVICES': 'mlx5_0:1', 'UCX_IB_GID_INDEX': '1', 'UCX_LOG_LEVEL': 'warn'}
JUDGED = os.environ.get('JUDGED', 'verbs')
# Transports by UCX's aliases, each with what it needs to connect: rc_verbs, ud_verbs, rc_mlx5, ud_mlx5. The last two
# write WQEs, doorbells and registers themselves, and rc_mlx5 makes and connects its queues by DEVX.
TRANSPORTS = {'verbs': ('rc_v', 'ud_v'), 'mlx5': ('rc_x', 'ud_x')}[JUDGED]
ITERATIONS, WARMUP = '100', '10'
if JUDGED == 'mlx5':
    # The device's thread runs these transports. With fewer CPUs than busy threads a message takes milliseconds. And
    # ud_mlx5 sends datagrams again after a pause that grows if the machine is very busy.
    ITERATIONS, WARMUP = '10', '2'
ATOMICS = 'ucp_add', 'ucp_fadd', 'ucp_swap', 'ucp_cswap'
TESTS = ('tag_lat', 'tag_bw', 'tag_sync_lat', 'tag_sync_bw', 'ucp_put_lat', 'ucp_put_bw', 'ucp_get', 'stream_lat', 'stream_bw',
         'ucp_am_lat', 'ucp_am_bw')
RANKS = 4


class Ucx(VerbsTest):
    def run_test(self, transport, test, size):
        self.env.update(UCX, UCX_TLS=transport + ',self')
        port = free_ports()
        cmd = self.command('ucx_perftest', '-t', test, '-s', str(size), '-n', ITERATIONS, '-w', WARMUP, '-p', str(port))
        server = self.start(cmd)
        end = time.monotonic() + WAIT
        while not listens(port) and server.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        client = self.start(cmd + ['127.0.0.1'])
        for side, (rc, out) in ('client', self.end(client)), ('server', self.end(server)):
            self.assertEqual(rc, 0, '%s: %s' % (side, out))
            self.assertNotIn('ERROR', out)

    def test_ucx_perftest(self):
        self.need('ucx_perftest', 'ucx-utils')
        for transport in TRANSPORTS:
            for test in TESTS + ATOMICS:
                for size in (8,) if test in ATOMICS else (8, 1000, 65536):
                    with self.subTest(transport=transport, test=test, size=size):
                        self.run_test(transport, test, size)

    def test_rc_mlx5_with_queue_pairs_of_verbs(self):
        """UCX makes its queue pairs by verbs and connects them by commands (uct_ib_mlx5_devx_modify_qp())."""
        self.need('ucx_perftest', 'ucx-utils')
        self.env['UCX_IB_MLX5_DEVX_OBJECTS'] = 'dct'
        for test in ('tag_lat', 'ucp_put_bw', 'ucp_add') if 'rc_x' in TRANSPORTS else ():
            with self.subTest(test=test):
                self.run_test('rc_x', test, 8)


class Mpi(VerbsTest):
    def setUp(self):
        super().setUp()
        self.need('mpirun', 'openmpi-bin')
        self.need('mpicc', 'libopenmpi-dev')
        self.judge = os.path.join(self.folder, 'mpi_judge')
        subprocess.run(['mpicc', '-O1', '-o', self.judge, os.path.join(HERE, 'programs', 'mpi_judge.c')], check=True)

    def test_messages_and_collectives(self):
        # Not ud_mlx5: its four ranks and four threads of devices need more CPUs than test machines have.
        for transport in (t for t in TRANSPORTS if t != 'ud_x'):
            with self.subTest(transport=transport):
                self.env.update(UCX, UCX_TLS=transport + ',self', OMPI_ALLOW_RUN_AS_ROOT='1',
                                OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')
                rc, out = self.run_one([shutil.which('mpirun'), '--oversubscribe', '-np', str(RANKS), '--mca', 'pml', 'ucx',
                                        '--mca', 'osc', 'ucx', '--mca', 'btl', '^openib',
                                        *self.command(self.judge, options=('--quiet',))])
                self.assertEqual(rc, 0, out)
                self.assertRegex(out, r'(?m)^right$')
                print(out)


if __name__ == '__main__':
    main(sys.argv)
