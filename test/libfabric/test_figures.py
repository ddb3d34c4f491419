#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Speed of libfabric on the provider beside testrdma and other providers, in one run of two processes each.

usage: test_figures.py TESTRDMA [BB_VERBS [MPI-PINGPONG]]. The environment has FI_PROVIDER_PATH.

Prints medians of one-way times and their ratios. Judges them only on a machine with two CPUs or more that was idle
before and whose CPUs stay where they are: else the line "not judged" says why.
"""

import csv
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

SKIP = 77
REFERENCE, FI, MPI_WAY = 'testrdma, SEND', 'bluebell, msg', 'MPI, ofi_rxm'
ROUNDS = 3
ATTEMPTS = 9        # to get ROUNDS measurements during which the CPUs did not move
STEADY = 1.2        # ratio of two runs of testrdma that agree
WAIT = 120
MPI_OWN = 0.4       # us that MPI and ofi_rxm may add to a message of the provider, whatever the ratio
QUIET_LOAD = 0.5    # load average of the last minute, per CPU
ITERATIONS = {64: 200000, 65536: 20000}
EAL = ('--no-huge', '-m', '256', '--no-pci', '--no-shconf', '--no-telemetry', '--log-level=error')
MPI = ['mpirun', '--oversubscribe', '--bind-to', 'none', '--mca', 'pml', 'cm', '--mca', 'mtl', 'ofi',
       '--mca', 'mtl_ofi_provider_include', 'bluebell;ofi_rxm', '--mca', 'btl', '^openib']


def on_cpu(cpu, cmd):
    return cmd if shutil.which('taskset') is None else ['taskset', '-c', str(cpu % os.cpu_count()), *cmd]


def both(server, client, env):
    """Runs a server and a client on CPUs of their own; returns the client's output, or None if one failed."""
    with subprocess.Popen(on_cpu(0, server), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        try:
            end = time.monotonic() + WAIT
            while True:     # until the server listens
                done = subprocess.run(on_cpu(1, client), env=env, text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, timeout=WAIT)
                if done.returncode == 0 or first.poll() is not None or time.monotonic() > end:
                    break
                time.sleep(0.1)
            return done.stdout if done.returncode == 0 and first.wait(timeout=WAIT) == 0 else None
        except subprocess.TimeoutExpired:
            return None
        finally:
            if first.poll() is None:
                first.kill()


def native(testrdma):
    """Returns {bytes: one-way us} of testrdma's ping-pong of SENDs."""
    name = 'figures-%d' % os.getpid()

    def command(lcore, *more):
        return [testrdma, '-l', str(lcore % os.cpu_count()), *EAL, '--', '-d',
                'soft0,shm=%s,ip=192.0.2.%d/24' % (name, lcore + 1), *more]
    out = both(command(0, '--listen', '127.0.0.1:18599'),
               command(1, '--connect', '127.0.0.1:18599', '--op', 'pingpong', '--size', '64,64K', '--duration', '1',
                       '--csv'), os.environ)
    rows = list(csv.DictReader((out or '').splitlines()))
    return {size: float(row['p50_ns']) / 2e3 for size, row in zip(ITERATIONS, rows)}


def pingpong(provider, kind, launcher=()):
    """Returns {bytes: one-way us} of fi_pingpong."""
    env = dict(os.environ, FI_BLUEBELL_DEVICE='soft0,shm=figures-pp-%d' % os.getpid())
    us = {}
    for size, iterations in ITERATIONS.items():
        cmd = [*launcher, 'fi_pingpong', '-p', provider, '-e', kind, '-S', str(size), '-I', str(iterations)]
        out = both(cmd, [*cmd, '127.0.0.1'], env)
        line = re.search(r'^\S+ .*s +[\d.]+ +([\d.]+) +[\d.]+$', out or '', re.M)
        if line is not None:
            us[size] = float(line[1])
    return us


def mpi(program):
    """Returns {bytes: one-way us} of MPI through ofi_rxm."""
    env = dict(os.environ, FI_BLUEBELL_DEVICE='soft0,shm=figures-mpi-%d' % os.getpid(), OMPI_ALLOW_RUN_AS_ROOT='1',
               OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')
    ranks = ['-np', '1', *on_cpu(0, [program, '20000']), ':', '-np', '1', *on_cpu(1, [program, '20000'])]
    out = subprocess.run([*MPI, *ranks], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         timeout=WAIT).stdout
    return {int(size): float(us) for size, us in re.findall(r'^(\d+) bytes, ([\d.]+) us', out, re.M)}


def ways(bb_verbs, program):
    """Returns {way: function that returns {bytes: one-way us}}."""
    found = {
        FI: lambda: pingpong('bluebell', 'msg'),
        'bluebell;ofi_rxm, rdm': lambda: pingpong('bluebell;ofi_rxm', 'rdm'),
        'tcp, msg': lambda: pingpong('tcp', 'msg'),
        'tcp;ofi_rxm, rdm': lambda: pingpong('tcp;ofi_rxm', 'rdm'),
        'shm, rdm': lambda: pingpong('shm', 'rdm'),
    }
    if bb_verbs is not None:
        found['verbs on bb_verbs, msg'] = lambda: pingpong('verbs', 'msg', [bb_verbs, '--'])
    if program is not None:
        found[MPI_WAY] = lambda: mpi(program)
    return found


class Figures:
    """Medians of one-way times, in us and as multiples of testrdma's time at the same moment.

    The time that a cache line needs from one CPU to the other changes when a hypervisor moves the CPUs: 0.24 or 0.69 us
    on one machine. So testrdma runs before and after each measurement, which counts only if both runs agree.
    """

    def __init__(self, reference):
        self.reference = reference
        self.last = reference()
        self.us = {REFERENCE: {size: [us] for size, us in self.last.items()}}
        self.times = {REFERENCE: {size: [1] for size in self.last}}
        self.moved = []     # ways with fewer than ROUNDS measurements that count

    def measure(self, way, run):
        """Adds what a way needs. A way that fails is not on this machine: then it is absent."""
        us, times = ({size: [] for size in ITERATIONS} for _ in range(2))
        for _ in range(ATTEMPTS):
            before, values, self.last = self.last, run(), self.reference()
            if not values:
                return
            for size, value in values.items():
                pair = before[size], self.last[size]
                self.us[REFERENCE][size].append(pair[1])
                if max(pair) <= STEADY * min(pair):
                    us[size].append(value)
                    times[size].append(value / statistics.mean(pair))
            if all(len(us[size]) >= ROUNDS for size in values):
                self.us[way], self.times[way] = us, times
                return
        self.moved.append(way)


def medians(table):
    return {way: {size: statistics.median(values) for size, values in sizes.items() if values} for way, sizes in table.items()}


def main():
    if not shutil.which('fi_pingpong'):
        print('SKIP: libfabric-bin is not installed')
        return SKIP
    load = os.getloadavg()[0] / os.cpu_count()
    testrdma, bb_verbs, program = ([os.path.abspath(name) for name in sys.argv[1:]] + [None, None])[:3]
    figures = Figures(lambda: native(testrdma))
    for way, run in ways(bb_verbs, program).items():
        figures.measure(way, run)
    m, times = medians(figures.us), medians(figures.times)
    print('%-24s %12s %12s %14s %16s' % ('', '64 B, us', '64 KiB, us', '64 KiB, MB/s', '64 B / testrdma'))
    for way, us in m.items():
        print('%-24s %12.2f %12.2f %14.0f %16.2f' % (
            way, us.get(64, 0), us.get(65536, 0), 65536 / us.get(65536, float('inf')), times[way].get(64, 0)))
    fi, tcp, near, above = times.get(FI, {}), m.get('tcp, msg', {}), m.get(FI, {}), times.get(MPI_WAY, {})
    checks = [('bluebell 64 B / testrdma', fi.get(64), 1, '<=', 1.3),
              ('bluebell 64 B / tcp', near.get(64), tcp.get(64), '<=', 0.2),
              ('bluebell 64 KiB bandwidth / testrdma', 1, fi.get(65536), '>=', 0.9),
              ('MPI 64 B / bluebell', above.get(64), fi.get(64), '<=', 2)]
    mpi_us = m.get(MPI_WAY, {}).get(64, 0) - near.get(64, 0)
    missed = 0
    for name, value, base, sign, limit in checks:
        if value is None or base is None:
            print('%-38s not measured' % name)
            missed += name.startswith('bluebell')
            continue
        met = value / base <= limit if sign == '<=' else value / base >= limit
        # Open MPI and ofi_rxm, with its locks, add a fixed time; it is a larger part if the provider is fast.
        met |= name.startswith('MPI') and mpi_us <= MPI_OWN
        print('%-38s %6.2f %s %-4s %s' % (name, value / base, sign, limit, 'met' if met else 'missed'))
        missed += not met
    if load > QUIET_LOAD or os.cpu_count() < 2:
        print('SKIP: not judged: load %.1f per CPU before the run, %d CPUs' % (load, os.cpu_count()))
        return SKIP
    if figures.moved:
        print('SKIP: not judged: testrdma had no steady speed beside ' + '; '.join(figures.moved))
        return SKIP
    return missed != 0


if __name__ == '__main__':
    sys.exit(main())
