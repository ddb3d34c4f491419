#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""testrdma's prompt: commands from a pipe, from a file and at a terminal."""

import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import CPUS, EAL, LIMIT, lcores, long, main, needs_defects  # noqa: E402
from prompttest import Scripted, Terminal  # noqa: E402

# Seconds of running time: for a machine with free CPUs, and for ones without.
WAITS = (0.5, 5, 50)


def table(text, first):
    """Returns the lines of the table whose head begins with @first, as {column: value}."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if re.match(first + r' .* of ', line))
    names, rows = lines[at].split(), []
    for line in lines[at + 1:]:
        # Two words are one field where they name an owner.
        cells = re.sub(r'(lcore|connection|the) ', r'\1_', line).split()
        if len(cells) != len(names):
            break
        rows.append({n: c.replace('_', ' ') for n, c in zip(names, cells)})
    return rows


class Prompt(Scripted):
    def test_two_runs_verified(self):
        res = self.script(['set op write,send,fetch_add  # a comment', 'set size 8,4K',
                           'set verify on', 'set duration 0.04', 'start', 'wait', 'show stats',
                           '', 'set op read', 'set size 64', 'set depth 8',
                           'set qps-per-lcore 3', 'start', 'wait', 'show latency', 'clear',
                           'show stats'])
        self.assertEqual(self.rows(res), [('write', 8, 1, 1), ('write', 4096, 1, 1),
                                          ('send', 8, 1, 1), ('send', 4096, 1, 1),
                                          ('fetch_add', 8, 1, 1), ('read', 64, 1, 3)])
        rows = res.json['rows']
        self.assertEqual(res.json['rows_right'], 6)
        self.assertEqual(res.json['verified_bytes'], sum(r['verified']['bytes'] for r in rows))
        for row in rows:
            self.assertTrue(row['ok'])
            self.assertGreaterEqual(row['verified']['bytes'], row['size'] * row['slots'])
            self.assertGreater(row['latency_ns']['samples'], 0)
        self.assertEqual(rows[5]['window'], 8)
        # Statistics count the operations of both phases, rows of the table those of one phase.
        done = [int(n) for n in re.findall(r'stopped; operations (\d+)', res.out)]
        self.assertEqual(done[0], sum(r['rate']['ops'] + r['latency_ns']['samples']
                                      for r in rows[:5]))
        self.assertEqual(done[1], 0)
        self.assertIn('%d samples' % rows[5]['latency_ns']['samples'], res.out)

    @long
    def test_settings_take_effect(self):
        """Settings change how operations are posted, as the device shows."""
        res = self.script(['set op write', 'set size 64,100', 'set duration 0.04', 'set inline 64',
                           'set signal-every 4', 'start', 'wait', 'show qp',
                           'set inline 0', 'set size 64', 'set rate 20000', 'start', 'wait',
                           'set rate 0', 'set sgl 4', 'fault drop 100', 'start', 'wait', 'show wqe',
                           'show config', 'show device'], rc=1)
        rows = res.json['rows']
        self.assertEqual([(r['size'], r['inline'], r['signal_every'], r['ok']) for r in rows],
                         [(64, True, 4, True), (100, False, 4, True), (64, False, 4, True),
                          (64, False, 4, False)])
        # Every operation of the latency phase is signalled, in the rate phase one of four.
        initiator = table(res.out, 'QP')[0]
        samples = sum(r['latency_ns']['samples'] for r in rows[:2])
        fast = int(initiator['posted']) - samples
        self.assertEqual(fast, sum(r['rate']['ops'] for r in rows[:2]))
        self.assertAlmostEqual((int(initiator['CQEs']) - samples) / fast, 1 / 4, delta=0.05)
        self.assertEqual([r['open_loop']['rate'] for r in rows if 'open_loop' in r], [20000])
        self.assertEqual(rows[2]['latency_ns']['of'], 'intended start')
        self.assertLess(rows[2]['rate']['ops'], 20000 * 0.04 * 2)
        # Segments: control, remote address, four pieces.
        self.assertRegex(res.out, r'RDMA_WRITE \(opcode 0x08\) .* ds 6 ')
        self.assertIn('\ninline 0\nsignal-every 4\n', res.out)
        self.assertIn('\nsgl 4\n', res.out)
        self.assertIn('\nrate 0\n', res.out)
        device = res.json['device']
        shown = res.out[res.out.index('soft0: driver '):]
        self.assertTrue(shown.startswith('soft0: driver %(driver)s (software), 1 port\n' % device), shown)
        for said in ('%(max_qp_wr)d WQEs each, %(max_sge)d SGEs (', '), %(max_inline)d bytes inline\n',
                     'in flight: %(max_rd_atomic)d as initiator', 'atomics: yes\n',
                     'BlueFlame registers of %(bf_size)d bytes; memory of its own: 131072 bytes\n'):
            self.assertIn(said % device, shown)

    def test_open_loop_without_end_has_one_schedule(self):
        """So an operation waits for all late ones before it, also longer than a round of the closed loop."""
        res = self.script(['set op write', 'set size 1M', 'set rate 100000000', 'start', 'wait 1', 'stop'])
        row = res.json['rows'][0]
        self.assertGreater(row['latency_ns']['max'], 0.5e9 * row['rate']['seconds'])
        self.assertEqual(row['latency_ns']['samples'], row['rate']['ops'] + row['open_loop']['unposted'])

    def test_until_stopped(self):
        for wait in WAITS:
            res = self.script(['set op write', 'set size 8', 'start', 'start', 'wait',
                               'wait %s' % wait, 'show stats', 'show latency', 'set depth 4',
                               'stop', 'stop'], rc=1)
            if re.search(r'[1-9]\d* samples', res.out):
                break
        self.assertEqual(self.rows(res), [('write', 8, 1, 1)])
        row = res.json['rows'][0]
        self.assertTrue(row['complete'])
        self.assertEqual(row['window'], 128)
        self.assertGreater(int(re.search(r'running; operations (\d+)', res.out).group(1)), 0)
        self.assertRegex(res.out, r'[1-9]\d* samples')
        self.assertIn('applies from the next start', res.out)
        for text in ('is already running; stop it first', 'has no end', 'stop: no test is running'):
            self.assertIn(text, res.err)

    def test_wrong_commands_lose_nothing(self):
        wrong = ['frob', 'set', 'set colour blue', 'set size 0', 'set op wriet', 'set depth x',
                 'set burst 99', 'set verify maybe', 'set verify', 'set duration -1',
                 'set size ' + '8' * 2000, 'show', 'show me', 'start now', 'wait', 'stop',
                 'help me', 'set device soft0', 'set op fetch_add', '\x00\x01\xff;',
                 ' '.join('x' * 30)]
        res = self.script(['set op write', 'set size 64', 'set depth 16', 'set offset 4'] + wrong +
                          ['set duration 0.02', 'show config', 'start', 'wait', 'quit', 'frob'],
                          rc=1)
        self.assertEqual(self.rows(res), [('write', 64, 1, 1)])
        self.assertEqual(res.json['rows'][0]['window'], 16)
        self.assertIn('op write\nsize 64\ndepth 16\nburst 16\n', res.out)
        self.assertIn('\noffset 4\n', res.out)
        lines = res.err.splitlines()
        self.assertEqual(sum('"frob" is not a command; the commands are: show set' in l for l in lines), 1)
        said = [l for l in lines if l.startswith('testrdma: ')]
        self.assertGreaterEqual(len(said), len(wrong), res.err)

    def test_limits_of_the_device(self):
        res = self.script(['set op write', 'set size 8192', 'start', 'set size 4096',
                           'set duration 0.02', 'start', 'wait'], rc=1,
                          args=['--device', 'soft0,log_max_msg=12', '--size', '64'])
        self.assertIn('4096 at most', res.err)
        self.assertEqual(self.rows(res), [('write', 4096, 1, 1)])

    @needs_defects
    def test_defects_are_found(self):
        res = self.script(['set op write', 'set size 64', 'set duration 0.05', 'start', 'wait'],
                          rc=1, args=['--device', 'soft0,defect=flip_bit', '--verify'])
        self.assertEqual(res.json['result'], 'fail')
        self.assertGreater(res.json['errors'], 0)

    def test_no_lcores(self):
        res = self.script(['set lcores 2', 'start', 'set lcores 1', 'set op read', 'set size 8',
                           'set duration 0.02', 'start', 'wait'], rc=1)
        self.assertIn('-l 0-2', res.err)
        self.assertEqual(self.rows(res), [('read', 8, 1, 1)])

    @long
    def test_lcores(self):
        """Two lcores of EAL on the available processors, beside the main one."""
        eal = ['--lcores', '0@%d,1@%d,2@%d' % (CPUS[0], CPUS[-1], CPUS[0])] + EAL
        res = self.script(['set op write,send', 'set size 64', 'set lcores 2', 'set verify on',
                           'set qps-per-lcore 2', 'set duration 0.05', 'start', 'wait', 'show qp'], eal=eal)
        self.assertEqual(set(re.findall(r'\n0x\w+ (lcore \d+) +\d initiator RTS', res.out)),
                         {'lcore 1', 'lcore 2'})
        self.assertEqual(self.rows(res), [('write', 64, 2, 2), ('send', 64, 2, 2)])
        batch = self.run_json(['--op', 'write', '--size', '64', '--worker-lcores', '2', '--verify',
                               '--duration', '0.05'], eal)
        self.assertEqual(self.rows(batch), [('write', 64, 2, 1)])
        self.assertTrue(batch.json['rows'][0]['ok'])

    def test_show_queues(self):
        res = self.script(['show qp', 'set op send', 'set size 64', 'set qps-per-lcore 2',
                           'set duration 0.05', 'start', 'show qp', 'wait', 'show qp', 'show cq',
                           'show mr', 'show wqe', 'show errors', 'show port'])
        row = res.json['rows'][0]
        self.assertIn('there are no queues', res.out)
        ended = res.out[res.out.rindex('testrdma> show qp'):]
        shown = table(ended, 'QP')
        self.assertEqual([(q['side'], q['state'], q['errors']) for q in shown],
                         2 * [('initiator', 'RTS', '0'), ('target', 'RTS', '0')])
        posted = [int(q['posted']) for q in shown[::2]]
        receives = [int(q['receives']) for q in shown[1::2]]
        self.assertLess(float(shown[0]['db/op']), 1)
        self.assertEqual(shown[1]['db/op'], '-')
        done = row['rate']['ops'] + row['latency_ns']['samples']
        self.assertEqual((len(posted), sum(posted), receives), (2, done, posted))
        self.assertEqual([(q['takes'], q['errors']) for q in table(ended, 'CQ')],
                         [('sends', '0'), ('receives', '0')])
        self.assertEqual(int(table(ended, 'CQ')[1]['CQEs']), done)
        self.assertEqual([(m['memory'], m['rkey'] == 'none') for m in table(ended, 'lkey')],
                         [("the initiator's", True), ("the target's", False)])
        self.assertIn('no WQE has failed', res.out)
        self.assertIn('errors found 0', res.out)
        self.assertIn(':ffff:c000:0201 192.0.2.1\n', res.out)

    def test_cut_short(self):
        """A row without latencies yet shows none."""
        res = self.script(['set op write', 'set size 64', 'set duration 600', 'start', 'show latency',
                           'stop', 'show latency', 'help start'])
        self.assertRegex(res.out, r'write +64 .* +- +- +- +- .*cut short')
        self.assertIn('no latencies yet; a test measures latencies in the second half', res.out)
        self.assertIn('no latencies yet; start a test', res.out)
        self.assertIn('\nstart: run every', res.out)

    def test_show_wqe(self):
        """A failed request: its WQE, its keys and the device's counter of the cause."""
        res = self.script(['set op write', 'set size 64', 'set duration 0.05', 'fault drop 100',
                           'start', 'wait', 'show wqe', 'show errors', 'show qp'], rc=1)
        shown = res.out[res.out.index('testrdma> show wqe'):]
        self.assertIn('transport retry counter exceeded', shown)
        self.assertIn('RDMA_WRITE', shown)
        self.assertRegex(shown, r'retries exceeded [1-9]')
        self.assertEqual(table(shown, 'QP')[0]['state'], 'ERR')
        self.assertGreater(int(table(shown, 'QP')[0]['errors']), 0)
        # Without an operation there is no figure.
        self.assertRegex(res.out, r'(?m)^write +64 +128 +0.000 +0.00( +-){7}  FAIL$')
        self.assertEqual((res.json['rows'][0]['rate']['ops'], res.json['rows'][0]['rate']['cycles_per_op']),
                         (0, 0))

    def test_fault(self):
        """Packets are lost and duplicated from the next start on, and no longer after "none"."""
        res = self.script(['set op write', 'set size 64', 'set duration 0.1', 'set verify on',
                           'fault drop 2', 'fault duplicate 5', 'fault', 'start', 'fault none',
                           'wait', 'show errors', 'fault none', 'start', 'wait', 'show errors',
                           'fault stall often', 'fault drop 1000', 'fault delay 1.5', 'fault drop',
                           'fault stall 1', 'fault', 'fault melt 1'], rc=1)
        self.assertEqual([r['ok'] for r in res.json['rows']], [True, True])
        self.assertIn('device soft0,wire=1,tx_drop=2,tx_dup=5\n', res.out)
        # The present faults and the possible ones.
        self.assertRegex(res.out, r'\ndrop +2 % +- +a percentage up to 100 +PERCENT of packets are lost\n')
        self.assertRegex(res.out, r'\nduplicate +5 % ')
        self.assertEqual(len(re.findall(r'\nduplicate +- ', res.out)), 1)  # after "none"
        for kind in ('reorder', 'corrupt', 'ecn', 'delay', 'stall', 'full', 'flap', 'seed'):
            self.assertEqual(len(re.findall(r'\n%s +- ' % kind, res.out)), 2, kind)
        self.assertIn('fault none ends all', res.out)
        lost = [int(n) for n in re.findall(r'out of sequence (\d+)', res.out)]
        twice = [int(n) for n in re.findall(r', duplicate (\d+)\n', res.out)]
        self.assertGreater(lost[0], 0)
        self.assertGreater(twice[0], 0)
        self.assertEqual((lost[1], twice[1]), (0, 0))
        self.assertIn('enter stop first', res.err)
        for wrong in ('stall often: give PERCENT:MILLISECONDS', 'drop 1000: give a percentage up to 100',
                      'delay 1.5: give microseconds', 'drop: give a percentage', 'stall 1: give PERCENT'):
            self.assertIn('testrdma: fault ' + wrong, res.err)
        self.assertIn('as in fault stall 1:20\n', res.err)
        self.assertEqual(res.err.count('give a kind of fault and its value'), 1)
        self.assertTrue(res.out.rstrip().endswith('testrdma> fault melt 1'), res.out)

    def test_fault_in(self):
        """Faults of incoming packets, and beside them one without direction."""
        res = self.script(['set op write', 'set size 64', 'set duration 0.1', 'set verify on',
                           'fault rx drop 2', 'fault rx duplicate 5', 'fault seed 7', 'fault', 'start', 'wait',
                           'show errors', 'fault drop 1', 'fault tx drop 3', 'fault none',
                           'fault rx', 'fault rx drop', 'fault rx flap 1:1', 'fault flap 0:1',
                           'fault seed -1', 'fault seed 99999999999999999999', 'fault'], rc=1)
        self.assertEqual([r['ok'] for r in res.json['rows']], [True])
        for spec in (',wire=1,rx_drop=2', ',wire=1,rx_drop=2,rx_dup=5', ',wire=1,rx_drop=2,rx_dup=5,seed=7',
                     ',wire=1,tx_drop=3,rx_drop=2,rx_dup=5,seed=7', ''):
            self.assertIn('\ndevice soft0%s\n' % spec, res.out)
        self.assertRegex(res.out, r'\ndrop +- +2 % +a percentage up to 100 ')
        self.assertRegex(res.out, r'\nseed +7 +a whole number ')
        self.assertEqual(len(re.findall(r'\ndrop +- +- ', res.out)), 1)  # after "none"
        self.assertRegex(res.out, r'out of sequence [1-9]\d*, duplicate [1-9]')
        for wrong in ('rx drop: give a percentage up to 100, as in fault rx drop 1', ': give a kind',
                      'rx flap: this fault is not one of packets', ': the device does not accept this value',
                      'seed -1: give a whole number of 64 bits, as in fault seed 7',
                      'seed 99999999999999999999: give a whole number'):
            self.assertIn('testrdma: fault' + ' ' * (wrong[0] != ':') + wrong, res.err)
        self.assertEqual(res.err.count('the device does not accept this value'), 1)  # a flap of 0

    def test_fault_full_ends_requests_by_retries_and_for_a_while_is_survived(self):
        """A link that accepts nothing any more, and one that accepts nothing for a while."""
        res = self.script(['set op write', 'set size 64', 'set duration 0.05', 'set patience 20',
                           'fault full 100', 'start', 'wait', 'fault none', 'fault rx full 100:2',
                           'set verify on', 'start', 'wait', 'fault full 0', 'fault full 1:',
                           'fault full x:1', 'fault'], rc=1)
        self.assertIn('\ndevice soft0,wire=1,tx_full=100\n', res.out)
        self.assertIn('\ndevice soft0,wire=1,rx_full=100:2\n', res.out)
        self.assertEqual([r['ok'] for r in res.json['rows']], [False, True])
        self.assertIn('completed at the initiator with "transport retry counter exceeded"', res.err)
        self.assertRegex(res.out, r'\nfull +- +100:2 \(n:ms\) +PACKETS or PACKETS:MILLISECONDS ')
        for wrong in ('full 1:', 'full x:1'):
            self.assertIn('testrdma: fault %s: give PACKETS or PACKETS:MILLISECONDS, as in fault full 1000:50'
                          % wrong, res.err)
        self.assertEqual(res.err.count('the device does not accept this value'), 1)  # 0 packets

    def test_fault_ecn_marks_packets(self):
        res = self.script(['set op write', 'set size 64', 'set duration 0.1', 'fault ecn 100', 'start', 'wait',
                           'show errors'])
        self.assertIn('\ndevice soft0,wire=1,tx_ecn=100\n', res.out)
        self.assertTrue(res.json['rows'][0]['ok'])

    @long
    def test_fault_flap(self):
        """The port goes down and comes back, and lost packets are sent again; also with an ethdev."""
        res = self.script(['set op write', 'set size 64', 'set duration 0.3', 'set verify on',
                           'fault flap 30:30', 'start', 'wait', 'show errors'])
        self.assertIn('\ndevice soft0,flap=30:30\n', res.out)
        self.assertTrue(res.json['rows'][0]['ok'])
        self.assertRegex(res.out, r'ack timeouts [1-9]')
        spec = 'soft0,port=net_ring0,ip=192.0.2.1/24'
        res = self.script(['set op write', 'set size 64', 'set duration 0.1', 'fault flap 30:30', 'start', 'wait',
                           'fault flap 30', 'fault'], rc=1, eal=lcores() + EAL + ['--vdev=net_ring0'],
                          args=['--device', spec])
        self.assertIn('\ndevice %s,flap=30:30\n' % spec, res.out)
        self.assertRegex(res.out, r'\nflap +30:30 ms +UP:DOWN in milliseconds')
        self.assertTrue(res.json['rows'][0]['ok'])
        self.assertIn('fault flap 30: give UP:DOWN in milliseconds', res.err)

    def test_show_drops(self):
        """Incoming packets that were dropped, by reason: as a packet, and as a frame at the port."""
        res = self.script(['set op write', 'set size 64', 'set duration 0.1', 'show errors', 'fault corrupt 5',
                           'start', 'wait', 'show errors'])
        self.assertIn('packets dropped: none\n', res.out)
        self.assertRegex(res.out, r'\npackets dropped: (\w+ \d+, )*drop_icrc [1-9]')
        self.assertIn('\ncongestion: marked packets 0, notifications sent 0, received 0\n', res.out)
        self.assertNotIn('frames', res.out)  # it has no port
        # A broadcast fragment.
        ip = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 28, 0, 0x2000, 64, 17, 0, bytes([192, 0, 2, 9]),
                         bytes([192, 0, 2, 1]))
        words = sum(struct.unpack('>10H', ip))
        ip = ip[:10] + struct.pack('>H', 0xffff ^ (words % 0xffff)) + ip[12:]
        frame = b'\xff' * 6 + b'\x02\0\0\0\0\x09\x08\0' + ip + bytes(26)
        with tempfile.NamedTemporaryFile(suffix='.pcap') as f, tempfile.NamedTemporaryFile() as out:
            f.write(struct.pack('<IHHIIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1) +
                    struct.pack('<IIII', 0, 0, len(frame), len(frame)) + frame)
            f.flush()
            vdev = '--vdev=net_pcap0,rx_pcap=%s,tx_pcap=%s' % (f.name, out.name)
            res = self.script(['set op write', 'set size 64', 'set duration 0.1', 'start', 'wait',
                               'show errors'], eal=lcores() + EAL + [vdev],
                              args=['--device', 'soft0,port=net_pcap0,ip=192.0.2.1/24'])
        self.assertIn('\npackets dropped: none\nframes dropped at the port: fragment 1\n', res.out)

    def test_file(self):
        with tempfile.NamedTemporaryFile('w', suffix='.cmd') as f:
            f.write('set op read\nset size 256\nset duration 0.02\nstart')  # without a final newline
            f.flush()
            res = self.run_json(['--cmdline-file=' + f.name])
            self.assertEqual(self.rows(res), [('read', 256, 1, 1)])
            # With -i the piped lines follow the file.
            res = self.script(['wait', 'set size 512', 'start'],
                              args=['--cmdline-file', f.name])
        self.assertEqual([r['size'] for r in res.json['rows']], [256, 512])
        res = self.run_program(['--cmdline-file', '/nonexistent'])
        self.assertEqual(res.rc, 2)
        self.assertIn('--cmdline-file /nonexistent', res.err)

    def test_interval(self):
        for wait in WAITS:
            res = self.script(['set op write', 'set size 8', 'start', 'wait %s' % wait, 'quit'],
                              args=['--interval', '0.05'])
            lines = re.findall(r'(?m)^(\d+) operations in ([\d.]+) s: [\d.]+ M ops/s; 0 errors',
                               res.out)
            if len(lines) >= 2:
                break
        self.assertGreaterEqual(len(lines), 2)
        self.assertGreaterEqual(min(float(s) for _, s in lines), 0.05)

    def test_interval_has_latencies_since_the_last_line(self):
        line = r'(?m)^(?:since .*: )?(\d+) operations in [\d.]+ s: .*; 0 errors; latency (.*)$'
        for seconds in WAITS:
            # The first half of a test measures the rate, the second half latencies.
            res = self.script(['set op write', 'set size 8', 'set duration %s' % (2 * seconds), 'start', 'wait',
                               'set interval 0', 'show stats', 'show stats', 'clear', 'show stats'],
                              args=['--interval', '0.05'])
            lines = re.findall(line, res.out)
            measured = [said != 'not measured' for ops, said in lines]
            if measured.index(True) > 0 and sum(measured) > 1:
                break
        # The last two lines follow a line after the end of the test.
        self.assertEqual(measured[:-3], sorted(measured[:-3]))
        self.assertEqual(measured[-2:], [False, False])
        self.assertGreater(sum(measured), 1)
        self.assertEqual([ops for ops, _ in lines[-2:]], ['0', '0'])
        row = res.json['rows'][0]['latency_ns']
        for _, said in lines:
            if said != 'not measured':
                p50, p99 = map(int, re.fullmatch(r'p50 (\d+) ns, p99 (\d+) ns', said).groups())
                self.assertLessEqual(p50, p99)
                self.assertLessEqual(p99, row['max'] + 1)

    def test_interval_of_an_open_loop_has_latencies_in_each_line_with_operations(self):
        for seconds in WAITS:
            res = self.script(['set op write,read', 'set size 8', 'set duration %s' % seconds, 'set rate 10000',
                               'start', 'wait'], args=['--interval', '0.05'])
            lines = re.findall(r'(?m)^(\d+) operations in [\d.]+ s: .*; latency (.*)$', res.out)
            if len(lines) > 2:
                break
        self.assertGreater(len(lines), 2)
        for _, said in lines:
            self.assertRegex(said, r'\Ap50 \d+ ns, p99 \d+ ns\Z')

    def test_signal(self):
        """SIGINT from another process: the summary, complete JSON, status 130."""
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            cmd = [self.program] + lcores() + EAL + ['--', '-i', '--json', f.name]
            with subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as proc:
                proc.stdin.write('set op write\nset size 8\nset interval 0.05\nstart\n')
                proc.stdin.flush()
                while ' operations in ' not in proc.stdout.readline():
                    self.assertIsNone(proc.poll())
                proc.send_signal(signal.SIGINT)
                out, err = proc.communicate(timeout=LIMIT)
            self.assertEqual(proc.returncode, 130, err)
            with open(f.name) as again:
                result = json.load(again)
        self.assertIn('1 of 1 tests ran, 1 right', out)
        self.assertIn('Ctrl-C', out)
        self.assertEqual(result['result'], 'interrupted')
        self.assertEqual(len(result['rows']), 1)

    def test_terminal(self):
        """Completion by TAB, history by arrow up; Ctrl-C ends the test and not the program."""
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            t = Terminal([self.program] + lcores() + EAL + ['--', '-i', '--json', f.name])
            t.until(r'testrdma> ')
            t.type('set siz\t')
            t.until(r'set size ')
            t.type('64\n')
            t.until(r'testrdma> ')
            t.type('set op cm\t')
            t.until(r'cmp_swap ')
            t.type('\n')
            t.until(r'testrdma> ')
            t.type('set v?')
            t.until('compare every byte')
            t.until('set v')
            t.type('\t')
            t.until('erify ')
            t.type('o\t\t')  # on and off: both are listed
            t.until(r'(?s)on .*off .*set verify o')
            t.type('n\n')
            t.until(r'testrdma> ')
            t.type('fault rx re\t')
            t.until('fault rx reorder ')
            t.type('\n')
            t.until(r'give a percentage')
            t.type('sta\t')
            t.until('start ')
            t.type('\n')
            t.until(r'op +size')
            t.type('show stats\n')
            t.until(r'running; operations')
            t.type('\x03')
            t.until(r'1 of 1 tests ran, 1 right')
            t.type('\x1b[A\x1b[A')  # show stats, start
            t.until(r'start')
            t.type('\n')
            t.until(r'op +size')
            t.type('\x03')
            t.until(r'1 of 1 tests ran, 1 right')
            t.type('frob\n')
            t.until(r'"frob" is not a command')
            t.type('show foo\n')
            t.until(r'show: give one of')
            t.type('\x04')  # Ctrl-D
            self.assertEqual(t.status(), 0)
            with open(f.name) as again:
                result = json.load(again)
        self.assertEqual([(r['op'], r['size']) for r in result['rows']], [('cmp_swap', 8)] * 2)
        self.assertEqual(result['rows_right'], 2)
        for row in result['rows']:
            self.assertGreater(row['verified']['bytes'], 0)

    def test_terminal_of_a_script(self):
        """At a terminal, too, an error in a script file gives exit status 1."""
        with tempfile.NamedTemporaryFile('w', suffix='.cmd') as cmd, \
                tempfile.NamedTemporaryFile(suffix='.json') as f:
            cmd.write('set size 64\nfrob\nset op write\nset duration 0.02\nstart\n')
            cmd.flush()
            for args, words, said in (
                    (['--worker-lcores', '2', '--connect', '127.0.0.1:1'], 'test was not started',
                     'error'),
                    (['--cmdline-file', cmd.name], 'is not a command', 'fail')):
                eal = ['--lcores', '0@%d,1@%d,2@%d' % (CPUS[0], CPUS[-1], CPUS[0])] + EAL
                t = Terminal([self.program] + eal + ['--'] + args + ['--json', f.name])
                t.until(words)
                self.assertEqual(t.status(), 1)
                with open(f.name) as again:
                    result = json.load(again)
                self.assertEqual((result['result'], result['exit_status']), (said, 1))


if __name__ == '__main__':
    main()
