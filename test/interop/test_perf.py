#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ibv_*_pingpong and perftest, unchanged, on Linux's rdma_rxe, against bb_perf, in both roles.

bb_perf runs at the host's end of the guest's tap, on DPDK's af_packet. TCP goes between the two
kernels, 192.0.2.1 and 192.0.2.2; RDMA between 192.0.2.9, which is bb_perf's device, and 192.0.2.2.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import paths  # noqa: E402, F401
import guest  # noqa: E402
import namespace  # noqa: E402
from apptest import own_cpu  # noqa: E402

WAIT = 300      # seconds; the guest is slow, and slower on a busy machine
ITERS = 100
# perftest reads its clock rate from /proc/cpuinfo and fails without -F; the guest is slow to ack.
PERFTEST = '-F -u 18'
TIMEOUT = 1.1   # seconds; equal to -u 18


# Seconds that bb_perf waits for a pingpong to continue; the guest retransmits after 67 ms.
SILENCE = 30
TRIES = 4


class Failed(Exception):
    pass


class Stuck(Exception):
    """The guest's rdma_rxe has stopped forever, whatever the peer does; see stuck()."""


class BbPerf:
    """A bb_perf on the tap, as server unless `host` is given."""

    def __init__(self, program, there, args, host=None):
        self.report = tempfile.NamedTemporaryFile(suffix='.json')
        device = 'soft0,port=net_af_packet0,ip=192.0.2.9/24,ip=2001:db8::9/64'
        self.command = [
            program, '-l', str(own_cpu()), '--no-huge', '-m', '512', '--no-pci', '--no-shconf',
            '--no-telemetry', '--vdev=net_af_packet0,iface=' + there.tap,
            '--', '-d', device, '--qp-timeout', '18',
            '--silence', str(SILENCE), '--json', self.report.name] + args + ([host] if host else [])
        self.out = tempfile.TemporaryFile(mode='w+')
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=self.out,
                                        text=True)
        if host is None:
            line = self.process.stdout.readline()
            if 'TCP port' not in line:
                self.stop()
                raise Failed('bb_perf does not listen: %s%s' % (line, self.text()))

    def text(self):
        self.out.seek(0)
        return self.out.read()

    def stop(self):
        self.process.kill()
        self.process.wait()

    def result(self):
        """Returns its JSON after a successful end."""
        try:
            out, _ = self.process.communicate(timeout=WAIT)
        except subprocess.TimeoutExpired:
            self.stop()
            raise Failed('%s: no end\n%s' % (' '.join(self.command), self.text())) from None
        if self.process.returncode:
            raise Failed('%s: status %d\n%s%s' % (' '.join(self.command), self.process.returncode,
                                                  out, self.text()))
        return json.load(self.report)


class Case:
    """One program with its options, and bb_perf's options for it."""

    def __init__(self, program, size, connection=None, extra='', ours=(), gid=1, qps=1, both=False, sizes=False,
                 seconds=0):
        """qps, both, sizes and seconds are perftest's -q, -b, -a and -D."""
        self.program = program
        self.qps, self.both, self.sizes, self.seconds = qps, both, sizes, seconds
        # The guest takes minutes for 100 messages of 8 MiB.
        self.iters = 5 if sizes else ITERS
        self.size = size
        self.connection = connection
        self.gid = gid
        self.pingpong = program.startswith('ibv_')
        self.protocol = program.split('_', 1)[1]
        if self.pingpong:
            self.theirs = '%s -d rxe0 -g %d -n %d -s %d -c' % (program, gid, ITERS, size)
            if program != 'ibv_ud_pingpong':
                self.theirs += ' -m 1024'
        else:
            self.theirs = '%s -d rxe0 -x %d %s' % (program, gid, PERFTEST)
            self.theirs += ' -D %d' % seconds if seconds else ' -n %d' % self.iters
            if 'atomic' not in program and not sizes:
                self.theirs += ' -s %d' % size
            if connection:
                self.theirs += ' -c ' + connection
        options = (['-q', str(qps)] if qps > 1 else []) + ['-b'] * both + ['-a'] * sizes
        self.theirs += extra + ''.join(' ' + option for option in options)
        self.ours = ['-P', self.protocol] + options + list(ours)
        self.ours += ['-D', str(seconds)] if seconds else ['-n', str(self.iters)]
        if not sizes:
            self.ours += ['-s', str(size)]
        if not seconds:
            self.ours += ['--check']
        if connection:
            self.ours += ['--connection', connection]
        if gid == 2:
            self.ours += ['-g', '2']

    def __str__(self):
        return self.theirs

    def check(self, role, report, output):
        """Checks the output of both."""
        assert report['result'] == 'pass', report
        rows = [line.split()[:2] for line in output.split('\n')]
        if self.seconds:
            self.check_duration(report, rows)
            return
        if self.sizes or self.both or self.qps > 1:
            self.check_counts(role, report, rows)
            return
        if self.pingpong:
            assert 'invalid data' not in output, output
            assert '%d iters in' % ITERS in output, output
        elif role == 'server' or self.protocol not in ('read_lat', 'atomic_lat'):
            # Servers of one-sided bandwidth tests print the values that bb_perf sent them.
            assert [str(self.size), str(ITERS)] in rows, output
        one_sided = self.protocol.split('_')[0] in ('read', 'atomic') or \
            self.protocol == 'write_bw'
        if role == 'server' and one_sided:
            assert report['served'] >= ITERS, report
            if self.protocol.startswith('atomic'):
                assert report['words_grown'] == ITERS, report
            if self.protocol.endswith('bw'):
                assert report['peer_report']['iters'] == ITERS, report
                assert report['peer_report']['size'] == self.size, report
        else:
            assert report['messages'] == ITERS, report
        if role == 'server' or self.protocol not in ('write_bw', 'send_bw'):
            assert report['checked_bytes'] > 0, report


    def check_counts(self, role, report, rows):
        """-a, -b and -q: messages of each size and each queue pair, in each direction."""
        send, bw = 'send' in self.program, self.program.endswith('_bw')
        sizes = [2 << i for i in range(23)] if self.sizes else [self.size]
        messages = self.iters * self.qps
        total = messages * len(sizes)
        # perftest prints each size, except as the target of one-sided operations.
        passive = role == 'client' and not self.both and not send
        expected = [] if passive and not bw else sizes[-1:] if passive else sizes
        if 'read_lat' not in self.program or role == 'server':
            assert [row for row in rows if row in [[str(s), str(messages)] for s in sizes]] == [
                [str(s), str(messages)] for s in expected], (expected, rows)
        sends = role == 'client' or self.both or not bw and self.program != 'ib_read_lat'
        receives = send and (role == 'server' or self.both or not bw)
        served = not send and (role == 'server' or self.both or not bw and self.program != 'ib_read_lat')
        assert len(report['queue_pairs']) == self.qps, report
        for pair in report['queue_pairs']:
            assert pair['sent'] >= (total // self.qps if sends else 0), report
            if 'read' not in self.program:  # --check repeats READs
                assert pair['sent'] == (total // self.qps if sends else 0), report
            if send:
                assert pair['received'] == (total // self.qps if receives else 0), report
        if sends or send:
            assert [s['size'] for s in report['sizes']] == sizes, report
            assert {s['messages'] for s in report['sizes']} == {messages}, report
        if served:
            assert report['served'] >= total, report
        if self.protocol.startswith('atomic') and served:
            assert report['words_grown'] == total, report
        if self.both:
            assert [(s['peer_report']['size'], s['peer_report']['iters']) for s in report['sizes']] == [
                (s, messages) for s in sizes], report
        if receives or self.protocol == 'write_bw' and served:
            assert report['checked_bytes'] > 0, report

    def check_duration(self, report, rows):
        """-D: half of the time is measured, and both ends have a result that is not 0."""
        for size in report['sizes']:
            assert size['seconds'] >= self.seconds / 2, report
            assert size['messages'] > 0, report
        # Latency tests print the iterations, too.
        assert [row for row in rows if len(row) == 2 and row[0] == str(self.size) and int(row[1]) > 0], rows


# Message sizes: the first list of each pair in every run, the second with --all.
SIZES = {
    'rc': ((1, 4096), (61, 1024, 65536)),
    'uc': ((1024,), (1, 4096)),
    'ud': ((1024,), (1, 61)),
    'lat': ((2, 65536), (1, 220, 1025)),
    'bw': ((65536,), (2, 1500)),
}
UC = (('ib_write_lat', 'ib_send_bw'), ('ib_write_bw', 'ib_send_lat'))
UD = ((('ib_send_lat', 1024), ('ib_send_bw', 2)), (('ib_send_lat', 2), ('ib_send_bw', 1024)))


def cases(everything):
    def sizes(kind):
        return SIZES[kind][0] + (SIZES[kind][1] if everything else ())

    for kind in ('rc', 'uc', 'ud'):
        for size in sizes(kind):
            yield Case('ibv_%s_pingpong' % kind, size)
    for kind in ('lat', 'bw'):
        for verb in ('write', 'read', 'send'):
            for size in sizes(kind):
                yield Case('ib_%s_%s' % (verb, kind), size)
        yield Case('ib_atomic_' + kind, 8)
    for program in UC[0] + (UC[1] if everything else ()):
        yield Case(program, 1500, 'UC')
    for program, size in UD[0] + (UD[1] if everything else ()):
        yield Case(program, size, 'UD')
    # IPv6, and fewer requests in flight than by default.
    yield Case('ibv_rc_pingpong', 3000, gid=2)
    yield Case('ib_write_bw', 3000, gid=2)
    yield Case('ib_read_bw', 5000, extra=' -o 1', ours=('--outs', '1'))
    yield Case('ib_send_bw', 1000, extra=' -r 2 -t 5', ours=('--tx-depth', '5', '--rx-depth', '2'))
    # Several queue pairs, both directions, all sizes, by time.
    yield Case('ib_write_bw', 3000, both=True, qps=2)
    yield Case('ib_send_bw', 3000, both=True, qps=3)
    yield Case('ib_send_bw', 8388608, sizes=True)
    yield Case('ib_write_bw', 3000, seconds=4)
    yield Case('ib_send_bw', 3000, seconds=4, both=True)
    if everything:
        yield Case('ib_read_bw', 3000, qps=4)
        yield Case('ib_read_bw', 3000, both=True)
        yield Case('ib_atomic_bw', 8, both=True, qps=2)
        yield Case('ib_write_bw', 8388608, sizes=True, both=True)
        yield Case('ib_send_bw', 8388608, sizes=True, both=True, qps=2)
        for verb in ('write', 'read', 'send'):
            yield Case('ib_%s_lat' % verb, 8388608, sizes=True)
        yield Case('ib_read_bw', 3000, seconds=4, both=True, qps=2)
        yield Case('ib_send_bw', 3000, seconds=4, qps=2)
        for verb in ('write', 'read', 'send'):
            yield Case('ib_%s_lat' % verb, 64, seconds=4)


def stuck(there, case, text):
    """Returns whether the guest's queue pair is one that rdma_rxe has forgotten. ibv_rc_pingpong
    has a timeout of 67 ms, which the guest often exceeds. perftest has one of 1.1 s, which it
    exceeds on a busy machine. Both then retransmit messages that were ACKed. If such an ACK
    arrives during that, Linux 6.1 completes the request but leaves its PSN inside the message.
    Afterwards it neither sends nor runs its timer. A correct peer cannot cause this state: a
    queue pair in RTS with half a message sent sends the rest, or retransmits after its timeout."""
    began = re.search(r'remote +LID .* QPN 0x(\w+), PSN 0x(\w+)', text)
    if not began or case.connection or '_ud_' in case.program or '_uc_' in case.program:
        return False
    shown = 'rdma resource show qp lqpn %d' % int(began[1], 16)
    first = there.run(shown)
    state = re.search(r'state RTS .*sq-psn (\d+)', first)
    if not state or there.run('sleep %d; %s' % (6 * TIMEOUT, shown)) != first:
        return False
    packets = max(1, -(-case.size // 1024))
    return (int(state[1]) - int(began[2], 16)) % (1 << 24) % packets != 0


def result(there, case, ours, theirs):
    """Returns bb_perf's report after a successful end."""
    try:
        return ours.result()
    except Failed as err:
        lost = stuck(there, case, str(err))
        theirs.poll()
        print(theirs.output)
        theirs.socket.close()
        if not lost:
            raise
        there.run('killall -9 ' + case.program)
        raise Stuck from None


def as_client(program, there, case):
    """The guest is the server, bb_perf the client."""
    server = there.serve_tcp(case.theirs, seconds=WAIT)
    ours = BbPerf(program, there, case.ours, there.ipv4)
    case.check('client', result(there, case, ours, server), server.check())


def as_server(program, there, case):
    """bb_perf is the server, the guest the client."""
    ours = BbPerf(program, there, case.ours)
    client = there.begin(case.theirs + ' 192.0.2.1', seconds=WAIT)
    case.check('server', result(there, case, ours, client), client.check())


def attempt(run, program, there, case):
    """Runs a case, again if the guest got stuck."""
    for _ in range(TRIES):
        try:
            return run(program, there, case)
        except Stuck:
            print('%s: rdma_rxe stopped in the middle of a message; once more' % case)
    raise Failed('rdma_rxe stopped in the middle of a message, %d times' % TRIES)


def main():
    p = argparse.ArgumentParser(prog='test/interop/test_perf.py', description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('program', help='bb_perf')
    p.add_argument('--suite', default='bookworm', help='whose kernel (see vm/build)')
    p.add_argument('--all', action='store_true', help='every size: twice as long')
    p.add_argument('--only', help='cases whose command line this pattern matches')
    args = p.parse_args()
    reason = guest.missing(args.suite)
    if reason:
        namespace.skip(reason)
    namespace.enter_or_skip()
    done = 0
    with guest.Guest(suite=args.suite) as there:
        guest.host_address(there.tap)
        for case in cases(args.all):
            if args.only and not re.search(args.only, str(case)):
                continue
            for role, run in (('client', as_client), ('server', as_server)):
                try:
                    attempt(run, args.program, there, case)
                except Exception:
                    print('%s, bb_perf as %s:' % (case, role), flush=True)
                    raise
                print('%s, bb_perf as %s: right' % (case, role), flush=True)
                done += 1
    assert done > 0, 'no such case'
    print('%d runs' % done)
    return 0


if __name__ == '__main__':
    sys.exit(main())
