#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/hft_pipeline: results, seeded defects, damaged input, two processes."""

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import free_ports, long, main  # noqa: E402
from hfttest import EAL, TICKS, WAIT, HftTest, lcores  # noqa: E402


def no_room():
    """Limits file sizes of the program that is started, as a full disk would."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))


class HftPipeline(HftTest):
    def pipeline(self, *args, rc=0, places=2):
        return self.run_json(['--messages', str(TICKS), '--rate', '0', '--wait', '120'] +
                             list(args), lcores(places) + EAL, rc)

    @long
    def test_histogram_is_in_json_and_hgrm(self):
        """Both hold the times of all orders."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'day.hgrm')
            res = self.run_json(['--messages', str(TICKS), '--rate', '0', '--hgrm', path], lcores(2) + EAL)
            with open(path) as f:
                text = f.read()
        times = res.json['tick_to_trade_ns']
        self.assertEqual(times['samples'], res.json['orders'])
        self.assertEqual(sum(n for _, _, n in times['buckets']), times['samples'])
        ends = [end for low, high, _ in times['buckets'] for end in (low, high)]
        self.assertEqual(ends, sorted(ends))
        self.assertLessEqual(times['buckets'][0][0], times['min'])
        lines = [[float(word) for word in line.split()] for line in text.splitlines()[2:] if line[0] != '#']
        self.assertAlmostEqual(lines[-1][0] * 1000, times['max'], delta=1)
        self.assertEqual(lines[-1][1:], [1, times['samples'], float('inf')])
        self.assertAlmostEqual([line[0] for line in lines if line[1] == 0.5][0] * 1000, times['p50'], delta=1)
        self.assertRegex(text, r'Total count +=  +%d\]' % times['samples'])

    def test_places(self):
        digests = set()
        for places, stages in ((2, 'feed+gateway,book+strategy+risk'),
                               (3, 'feed,book+strategy,risk+gateway'),
                               (2, 'feed+strategy,book+risk+gateway'),
                               (5, 'feed,book,strategy,risk,gateway')):
            res = self.pipeline('--stages', stages, places=places)
            r = self.check(res)
            self.assertGreater(r['orders'], 100)
            self.assertEqual(r['orders'], r['orders_replayed'])
            digests.add((r['book_digest'], r['orders'], r['quotes']))
        self.assertEqual(len(digests), 1)

    @long
    def test_small_ring_and_pace(self):
        # With fewer CPUs than stages four messages pass per time slice. Both rings are full at
        # times; neither stage may then wait for the other one.
        for stages in ('feed+gateway,book+strategy+risk', 'feed+strategy,book+risk+gateway'):
            self.check(self.pipeline('--slots', '4', '--messages', '4000', '--stages', stages), 4000)
        self.check(self.run_json(['--messages', '2000', '--rate', '100000', '--seed', '9'],
                                 lcores(2) + EAL), 2000)

    @long
    def test_warm(self):
        warm, cold = (self.check(self.pipeline('--warm', w)) for w in '10')
        self.assertEqual(cold['warm'], 0)
        self.assertGreater(warm['warm'], warm['orders'])
        self.assertLessEqual(warm['warm'] + warm['decisions'], warm['quotes'])
        # The purpose of warm-up orders changes no other result.
        for key in ('orders', 'decisions', 'stopped', 'book_digest'):
            self.assertEqual(warm[key], cold[key])

    @long
    def test_pauses(self):
        """Each side is stopped for a while: the report counts exactly the delayed orders."""
        for side in (0, 1):
            # It is unknown whether the peer polls already when it is stopped, so this repeats.
            for _ in range(20):
                r = self.stopped(side)
                self.assertEqual(r['wrong'], 0)
                self.assertLess(r['quiet_ns'].get('max', 0), 150e6, r)
                longest = next(p['longest_us'] for p in r['pauses']
                               if ('book' in p['stages']) == (side == 1))
                if longest >= 290000 and r['quiet_ns']['samples'] > 0:
                    break
            else:
                self.fail('no pause was told of: %s' % r)
            self.assertGreater(r['tick_to_trade_ns']['max'], 200e6)
            # One tick in 90 is an order: 3,000 ticks were due meanwhile.
            self.assertLess(r['quiet_ns']['samples'], r['orders'] - 15)

    def stopped(self, side):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'result')
            procs = self.pair(['--messages', '10000', '--rate', '10000', '--json', path])
            self.until_connected(procs[0])
            time.sleep(0.2)
            procs[side].send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            procs[side].send_signal(signal.SIGCONT)
            for proc in procs:
                out, err = proc.communicate(timeout=WAIT)
                self.assertEqual(proc.returncode, 0, out + err)
            with open(path, encoding='utf-8') as f:
                return json.load(f)

    def test_kill_switch(self):
        r = self.check(self.pipeline('--kill-after', '20', '--slots', '16'))
        self.assertTrue(r['killed'])
        self.assertGreaterEqual(r['orders'], 20)
        self.assertLess(r['orders'], r['orders_replayed'])
        self.assertGreater(r['stopped']['kill switch'], 0)

    @long
    def test_defects_are_found(self):
        for defect, words in (('drop:500', '1 were lost'), ('drop:%d' % TICKS, '1 were lost'),
                              ('twice:500', '1 came twice'), ('swap:500', '1 were lost, 1 came twice'),
                              ('book:500', 'books differ from'), ('order:50', 'order 50 is for')):
            res = self.pipeline('--defect', defect, rc=1)
            self.assertGreater(res.json['wrong'], 0)
            self.assertIn('WRONG: ', res.out)
            self.assertIn(words, res.out)
            self.assertNotIn('arrived once', res.out)

    def test_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'day')
            res = self.run_program(['--generate', path, '--messages', '3000', '--seed', '5'], EAL)
            self.assertEqual(res.rc, 0, str(res))
            res = self.run_json(['--file', path, '--rate', '0'], lcores(2) + EAL)
            self.check(res, 3000)
            self.assertEqual(res.json['seed'], 5)
            with open(path, 'rb') as f:
                whole = f.read()
            # test_hft.c checks every byte. This checks that the message reaches the user.
            for bad, words in ((whole[:-1], 'message 3000'), (whole[:20], 'inside the header'),
                               (whole[:5000], 'cut short'), (b'', 'is not a market data file'),
                               (whole + b'x', 'longer'),
                               (whole[:100] + b'\xff' + whole[101:], 'damaged')):
                with open(path, 'wb') as f:
                    f.write(bad)
                self.usage_error(['--file', path], path, words, '--generate', eal=EAL)
            self.usage_error(['--file', folder + '/none'], 'No such file', eal=EAL)
            self.usage_error(['--file', folder], 'directory', eal=EAL)

    def test_usage(self):
        for args, words in ((['--stages', 'feed+gateway'], ['missing', 'comma']),
                            (['--stages', 'feed+gateway,book,risk,sales'], ['unknown stage']),
                            (['--slots', '100'], ['power of two']),
                            (['--slots', '1'], ['4 to 32768']),
                            (['--messages', 'many'], ['not a number']),
                            (['--listen', 'here'], ['192.0.2.1:18600']),
                            (['--listen', ':1', '--connect', ':1'], ['one end listens']),
                            (['--connect', ':1', '--stages', 'feed,book,strategy,risk+gateway'],
                             ['one clock']),
                            (['--connect', ':65533'], ['--connect', '1 to 65532']),
                            (['--listen', ':0'], ['--listen', '1 to 65532']),
                            (['--kill-after', '1', '--stages', 'feed+book+strategy,risk+gateway'],
                             ['link from risk to gateway']),
                            (['--worker', '1'], ['--listen']),
                            (['--listen', ':1', '--worker', '2'], ['--stages makes 2 workers']),
                            (['--listen', ':1', '--worker', '0'], ["does not run the feed"]),
                            (['--listen', ':1', '--json', '/dev/null'], ['end that connects']),
                            (['--listen', ':1', '--hgrm', '/dev/null'], ['end that connects']),
                            (['--symbols', '0'], ['1 to 4096']),
                            (['--json', '/nowhere/result'], ['/nowhere/result', 'can be written']),
                            (['--what'], ['--help'])):
            self.usage_error(args, *words, eal=EAL)
        res = self.run_program([], lcores(1) + EAL)
        self.assertEqual(res.rc, 2, str(res))
        self.assertIn('-l 0-1', res.err)
        res = self.run_program(['--device', 'hard0'], lcores(2) + EAL)
        self.assertEqual(res.rc, 1, str(res))
        self.assertIn('hard0', res.err)
        res = self.run_program(['--help'], EAL)
        self.assertEqual(res.rc, 0)
        for word in ('--kill-after', '--listen', '--stages', 'credit'):
            self.assertIn(word, res.out)
        self.assertNotIn('--defect', res.out)

    def test_short_day(self):
        """Ends before the ticks with a rate begin."""
        self.check(self.pipeline('--messages', '1000'), 1000)

    def test_generated_file_has_no_room(self):
        """No truncated file is left."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'feed')
            res = self.run_program(['--generate', path, '--messages', '100000'], EAL, preexec_fn=no_room)
            self.assertEqual(res.rc, 1, str(res))
            self.assertIn('give a file that has room', res.err)
            self.assertEqual(os.listdir(folder), [])

    def test_two_processes(self):
        r = self.run_pair('--messages', str(TICKS), '--rate', '0')
        self.assertGreater(r['orders'], 100)

    def test_stage_of_the_connecting_process_between_stages_of_the_peer_connects(self):
        stages = ['--stages', 'feed+gateway+strategy,book+risk']
        r = self.run_pair('--rate', '0', *stages, others=[stages])
        self.assertEqual(r['orders'], r['orders_replayed'])

    @long
    def test_stages_of_the_connecting_process_connect_to_each_process(self):
        stages = ['--stages', 'feed+gateway+risk,book,strategy']
        r = self.run_pair('--rate', '0', *stages,
                          others=[stages + ['--worker', '1'], stages + ['--worker', '2']])
        self.assertEqual(r['orders'], r['orders_replayed'])

    @long
    def test_more_places_there(self):
        """Three stages: two lcores of the listening process, and a process for each."""
        stages = ['--stages', 'feed+gateway,book,strategy+risk']
        digests = set()
        for others in ([stages], [stages + ['--worker', '1'], stages + ['--worker', '2']]):
            r = self.run_pair('--rate', '0', *stages, others=others)
            self.assertGreater(r['orders'], 100)
            self.assertEqual(r['orders'], r['orders_replayed'])
            digests.add((r['book_digest'], r['orders'], r['quotes']))
        self.assertEqual(len(digests), 1)

    @long
    def test_one_of_more_dies(self):
        """The death of the third process ends the other two."""
        both = ['--stages', 'feed+gateway,book,strategy+risk']
        here, book, risk = self.pair(both + ['--messages', '1M', '--rate', '1000'],
                                     both + ['--worker', '1'], both + ['--worker', '2'])
        self.until_connected(here)
        risk.kill()
        for side in (here, book):
            out, err = side.communicate(timeout=WAIT)
            self.assertEqual(side.returncode, 1, out + err)
            self.assertRegex(err, 'has exited|failed')

    def test_other_options_there(self):
        here, there = self.pair(['--messages', '1000', '--imbalance', '5'])
        _, err = here.communicate(timeout=WAIT)
        self.assertEqual(here.returncode, 1, err)
        self.assertIn('same options', err)
        there.send_signal(signal.SIGINT)
        _, err = there.communicate(timeout=WAIT)
        self.assertEqual(there.returncode, 1)
        self.assertIn('rejected', err)

    @long
    def test_second_caller(self):
        port = free_ports(4)
        there = self.start(1, [], port)
        self.assertIn('listening', there.stdout.readline())
        here = self.start(0, ['--messages', '1M', '--rate', '1000'], port)
        self.until_connected(here)
        second = self.start(0, ['--device', self.device(2)], port)
        _, err = second.communicate(timeout=WAIT)
        self.assertEqual(second.returncode, 1, err)
        self.assertIn('the link already has a peer', err)
        self.assertNotIn('same options', err)
        here.send_signal(signal.SIGINT)
        out, err = here.communicate(timeout=WAIT)
        self.assertEqual(here.returncode, 130, out + err)
        out, err = there.communicate(timeout=WAIT)
        self.assertEqual(there.returncode, 0, out + err)
        self.assertIn('rejected: the link already has a peer', err)

    @long
    def test_peer_dies(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, 'result')
        for dies in (0, 1):
            here, there = self.pair(['--messages', '1M', '--rate', '1000', '--json', path])
            first, second = (here, there) if dies == 0 else (there, here)
            # Connected: the feed prints its start.
            self.until_connected(here)
            first.kill()
            out, err = second.communicate(timeout=WAIT)
            self.assertEqual(second.returncode, 1, out + err)
            self.assertRegex(err, 'has exited|failed')
        # The feed did not come to its last tick.
        with open(path) as f:
            self.assertEqual(json.load(f)['seconds'], 0)

    @long
    def test_peer_lies(self):
        # Either side may lie; the deceived side reports what it saw, and on which link.
        for liar in (0, 1):
            for lie, link in (('seq', ('feed to book', 'risk to gateway')),
                              ('credit', ('risk to gateway', 'feed to book'))):
                more = [['--slots', '16'], ['--slots', '16']]
                more[liar] += ['--defect', lie + ':40']
                sides = self.pair(['--messages', '100K', '--rate', '0'] + more[0], more[1])
                said = [side.communicate(timeout=WAIT) for side in sides]
                words = 'the link from %s failed: Protocol error' % link[liar]
                self.assertIn(words, said[1 - liar][1], said)
                self.assertEqual([side.returncode for side in sides], [1, 1], said)

    @long
    def test_wrong_address_of_the_kill_switch_fails_the_run(self):
        for offset, words in (('4', 'invalid kill switch'), ('8', 'risk to gateway failed: remote access error')):
            sides = self.pair(['--messages', '100K', '--rate', '0', '--kill-after', '20'],
                              ['--defect', 'kill:' + offset])
            said = [side.communicate(timeout=WAIT) for side in sides]
            self.assertIn(words, said[0][1], said)
            self.assertEqual(sides[0].returncode, 1, said)

    @long
    def test_peer_does_not_end(self):
        """A side that has sent its last message waits until the peer reports that it has all."""
        for kill in (True, False):
            # Messages of the connecting side stay in the ring until the peer runs again.
            for nap in (0.3, 3, 20):
                here, there = self.connected_pair(['--messages', '1M', '--rate', '1000', '--slots', '32768'],
                                                  ['--slots', '32768', '--wait', '10'])
                time.sleep(nap)
                there.send_signal(signal.SIGSTOP)
                here.send_signal(signal.SIGINT)
                time.sleep(nap)
                here.send_signal(signal.SIGSTOP)
                there.send_signal(signal.SIGCONT)
                time.sleep(nap)
                if kill:
                    here.kill()
                try:
                    out, err = there.communicate(timeout=30 + nap)
                except subprocess.TimeoutExpired:
                    self.end(there)  # the last message has not been sent
                    continue
                finally:
                    self.end(here)
                self.assertEqual(there.returncode, 1, out + err)
                self.assertIn('not finished', out)
                self.assertIn('has exited' if kill else 'did not confirm the last messages within 10 s', err)
                break
            else:
                self.fail('it has not come so far')

    @long
    def test_killed_at_any_moment(self):
        # Dies while they connect; then while orders are in flight, with full rings in some cases,
        # as a dead process has not run for a while.
        for i, after in enumerate((0, 0.15, 0, 0.001, 0.01, 0.03)):
            both = ['--slots', '4', '--wait', '2' if i < 2 else '120']
            sides = self.pair(['--messages', '300K', '--rate', '30K', '--kill-after', '50'] + both, both)
            if i >= 2:
                self.until_connected(sides[0])
            time.sleep(after)
            if i // 2 == 1:
                sides[i % 2].send_signal(signal.SIGSTOP)
                time.sleep(0.05)
            sides[i % 2].kill()
            out, err = sides[1 - i % 2].communicate(timeout=WAIT)
            self.assertEqual(sides[1 - i % 2].returncode, 1, out + err)
            self.assertRegex(err, 'has exited|failed|the peer did not connect|cannot be connected|was not connected')
            self.assertNotIn('arrived once', out)

    @long
    def test_who_connects_waits(self):
        port = free_ports(4)
        here = self.start(0, ['--messages', str(TICKS), '--rate', '0'], port)
        time.sleep(1)
        self.assertIsNone(here.poll())
        there = self.start(1, [], port)
        out, err = here.communicate(timeout=WAIT)
        self.assertEqual(here.returncode, 0, out + err)
        self.assertIn('arrived once and in order', out)
        there.communicate(timeout=WAIT)
        self.assertEqual(there.returncode, 0)
        alone = self.start(0, ['--wait', '1'], port)
        out, err = alone.communicate(timeout=WAIT)
        self.assertEqual(alone.returncode, 1, err)
        self.assertEqual(out, 'hft_pipeline: connecting to %s:%d, for up to 1 s\n' % (self.LISTEN, port))
        self.assertIn('the peer did not connect within 1 s: Connection refused', err)

    @long
    def test_connection_closed_before_the_peer_is_up_is_tried_again(self):
        port = free_ports(4)
        with contextlib.ExitStack() as stack:
            proxy = [stack.enter_context(socket.create_server((self.LISTEN, port + link))) for link in range(4)]
            here = self.start(0, ['--messages', '2000', '--rate', '0'], port)
            proxy[0].accept()[0].close()
        there = self.start(1, [], port)
        out, err = here.communicate(timeout=WAIT)
        self.assertEqual(here.returncode, 0, out + err)
        there.communicate(timeout=WAIT)
        self.assertEqual(there.returncode, 0)

    @long
    def test_interrupted(self):
        here, there = self.pair(['--messages', '1M', '--rate', '1000'])
        self.until_connected(here)
        here.send_signal(signal.SIGINT)
        out, err = here.communicate(timeout=WAIT)
        self.assertEqual(here.returncode, 130, out + err)
        self.assertIn('arrived once and in order', out)
        out, err = there.communicate(timeout=WAIT)
        self.assertEqual(there.returncode, 0, out + err)


if __name__ == '__main__':
    main()
