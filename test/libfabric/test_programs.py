# SPDX-License-Identifier: BSD-3-Clause
"""Programs of others on the provider: fi_info and fi_pingpong of libfabric, and Open MPI.

usage: test_programs.py [MPI-PROGRAM]. The environment has FI_PROVIDER_PATH, the folder of the provider.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SKIP = 77
WAIT = 240  # seconds; a machine may be busy
COLL = None
# Without a shared memory of its own, so that every message takes the provider.
MPI = ['mpirun', '--oversubscribe', '--mca', 'pml', 'cm', '--mca', 'mtl', 'ofi',
       '--mca', 'mtl_ofi_provider_include', 'bluebell;ofi_rxm', '--mca', 'btl', '^openib']


# Two mpiruns that start at once must not share a folder: each makes /tmp/ompi.HOST.UID if it is not there.
FOLDERS = tempfile.TemporaryDirectory(prefix='fi.')


def environment(name):
    """Returns the environment of a job: its devices find each other by a name of their own."""
    return dict(os.environ, TMPDIR=tempfile.mkdtemp(dir=FOLDERS.name),
                FI_BLUEBELL_DEVICE='soft0,shm=%s-%d' % (name, os.getpid()),
                OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1', OMPI_MCA_rmaps_base_oversubscribe='1')


@unittest.skipUnless(shutil.which('fi_pingpong'), 'libfabric-bin is not installed')
class Programs(unittest.TestCase):
    def run_one(self, args, env):
        res = subprocess.run(args, env=env, capture_output=True, text=True, timeout=WAIT)
        self.assertEqual(res.returncode, 0, res.stdout + res.stderr)
        return res.stdout

    def test_fi_info_lists_the_provider(self):
        out = self.run_one(['fi_info', '-p', 'bluebell', '-t', 'FI_EP_MSG'], environment('info'))
        self.assertIn('provider: bluebell\n', out)
        out = self.run_one(['fi_info', '-p', 'bluebell', '-t', 'FI_EP_RDM'], environment('info'))
        self.assertIn('provider: bluebell;ofi_rxm\n', out)
        out = self.run_one(['fi_info', '-e'], environment('info'))
        self.assertIn('FI_BLUEBELL_DEVICE', out)

    def pair(self, args, env):
        """Runs a server and a client. Returns the client, the server's exit status and its error output."""
        with tempfile.TemporaryFile('w+') as err, \
                subprocess.Popen(args, env=env, stdout=subprocess.DEVNULL, stderr=err, text=True) as server:
            try:
                end = time.monotonic() + WAIT
                while True:  # the server has no line that says it is ready
                    res = subprocess.run([*args, '127.0.0.1'], env=env, capture_output=True, text=True, timeout=WAIT)
                    if res.returncode == 0 or 'Interrupted' in res.stderr or time.monotonic() > end or \
                            server.poll() is not None:
                        break
                    time.sleep(0.2)
                rc = server.wait(timeout=WAIT)
            finally:
                if server.poll() is None:
                    server.kill()
            err.seek(0)
            return res, rc, err.read()

    def pingpong(self, *args):
        env = environment('pp')
        end = time.monotonic() + WAIT
        while True:
            res, rc, err = self.pair(['fi_pingpong', '-c', *args], env)
            # It does not repeat a read() of its own TCP connection that SIGCONT interrupts: signal(7), SO_RCVTIMEO.
            if 'Interrupted system call' not in res.stderr + err or time.monotonic() > end:
                break
        self.assertEqual((res.returncode, rc), (0, 0), res.stdout + res.stderr + err)
        lines = [line.split() for line in res.stdout.splitlines()]
        self.assertEqual([line[0] for line in lines[1:]], ['64', '256', '1k', '4k', '64k', '1m'], res.stdout)

    def test_pingpong_of_connected_endpoints(self):
        self.pingpong('-p', 'bluebell', '-e', 'msg', '-I', '100')

    def test_pingpong_of_reliable_datagrams_by_ofi_rxm(self):
        self.pingpong('-p', 'bluebell;ofi_rxm', '-e', 'rdm', '-I', '100')


@unittest.skipUnless(shutil.which('mpirun'), 'openmpi-bin is not installed')
class Mpi(unittest.TestCase):
    def setUp(self):
        if COLL is None:
            self.skipTest('libopenmpi-dev is not installed, so there is no MPI program')

    def test_collectives_on_two_and_four_ranks(self):
        for ranks in '2', '4':
            res = subprocess.run([*MPI, '-np', ranks, COLL, '2'], env=environment('mpi' + ranks),
                                 capture_output=True, text=True, timeout=WAIT)
            self.assertEqual(res.returncode, 0, res.stdout + res.stderr)
            self.assertIn('%s ranks, 0 wrong' % ranks, res.stdout)

    def test_collectives_with_connections_by_messages_of_librdmacm(self):
        script = 'FI_BLUEBELL_DEVICE=soft0,shm=mpi-%d,ip=10.88.1.$((OMPI_COMM_WORLD_RANK+1))/24 exec %s 2' % (
            os.getpid(), os.path.abspath(COLL))
        res = subprocess.run([*MPI, '-np', '4', 'sh', '-c', script], env=environment('cm'), capture_output=True,
                             text=True, timeout=WAIT)
        self.assertEqual(res.returncode, 0, res.stdout + res.stderr)
        self.assertIn('4 ranks, 0 wrong', res.stdout)

    def test_two_jobs_at_once(self):
        jobs = [subprocess.Popen([*MPI, '-np', '2', COLL, '2'], env=environment('job%d' % i), stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True) for i in range(2)]
        for job in jobs:
            out, _ = job.communicate(timeout=WAIT)
            self.assertEqual(job.returncode, 0, out)
            self.assertIn('2 ranks, 0 wrong', out)

    def test_a_killed_rank_ends_the_job(self):
        with tempfile.TemporaryDirectory() as folder:
            pids = os.path.join(folder, 'pid')
            script = 'echo $$ >> %s; exec %s 100000' % (pids, COLL)
            with subprocess.Popen([*MPI, '-np', '2', 'sh', '-c', script], env=environment('kill'),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as job:
                try:
                    for line in job.stdout:
                        if line.startswith('round 1'):
                            break
                    with open(pids) as f:
                        os.kill(int(f.readline()), signal.SIGKILL)
                    job.communicate(timeout=WAIT)
                    self.assertNotEqual(job.returncode, 0)
                finally:
                    if job.poll() is None:
                        job.kill()


if __name__ == '__main__':
    if len(sys.argv) > 1:
        COLL = sys.argv.pop(1)
    if not shutil.which('fi_pingpong') and not shutil.which('mpirun'):
        print('SKIP: neither libfabric-bin nor openmpi-bin is installed')
        sys.exit(SKIP)
    unittest.main(verbosity=2)
