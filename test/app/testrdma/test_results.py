#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""testrdma on the software device: every operation, its figures, and the ways of posting."""

import csv
import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import ATOMICS, CPUS, EAL, OPS, AppTest, lcores, long, main, needs_defects  # noqa: E402

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..')
GUIDE = os.path.join(TOP, 'doc', 'guides', 'tools', 'testrdma.rst')


class Results(AppTest):
    def check_row(self, row, opts):
        where = '%s %d' % (row['op'], row['size'])
        self.assertTrue(row['ok'] and row['complete'], where)
        self.assertEqual(row['errors'], 0, where)
        rate, lat, verified = row['rate'], row['latency_ns'], row['verified']
        self.assertGreater(rate['ops'], 0, where)
        self.assertGreater(rate['seconds'], 0, where)
        per_second = rate['ops'] / rate['seconds']
        for value, want in ((rate['mops'], per_second / 1e6),
                            (rate['gbytes_per_s'], per_second * row['size'] / 1e9),
                            (rate['gbits_per_s'], 8 * per_second * row['size'] / 1e9)):
            self.assertAlmostEqual(value, want, delta=1e-5 + want * 1e-3, msg=where)
        # Slower than one post in 30 s or faster than two per cycle is not a measurement.
        self.assertGreater(rate['cycles_per_op'], 0.5, where)
        self.assertLess(lat['min'], 3e10, where)
        self.assertGreater(lat['samples'], 0, where)
        order = [lat[k] for k in ('min', 'p50', 'p99', 'p99.9', 'max')]
        self.assertEqual(order, sorted(order), where)
        self.assertGreater(lat['min'], 0, where)
        # One doorbell per burst; short bursts can only raise the number.
        self.assertGreaterEqual(rate['doorbells_per_op'], 0.99 / row['burst'], where)
        self.assertLessEqual(rate['doorbells_per_op'], 1.0, where)
        if opts['verify']:
            self.assertGreaterEqual(verified['bytes'], row['size'] * row['slots'], where)
            self.assertGreater(verified['guard_bytes'], 0, where)
            self.assertGreater(verified['rounds'], 0, where)
        else:
            self.assertEqual(verified['bytes'], 0, where)
        if row['op'] in ('send', 'send_imm', 'write_imm'):
            self.assertEqual(verified['receives'], rate['ops'] + lat['samples'], where)

    def check(self, res, ops, sizes):
        """Checks that the rows are the requested ones and each is plausible."""
        want = [(op, s) for op in ops for s in ([8] if op in ATOMICS else sizes)]
        rows = res.json['rows']
        self.assertEqual([(r['op'], r['size']) for r in rows], want)
        self.assertEqual(res.json['result'], 'pass')
        self.assertEqual(res.json['rows_right'], len(want))
        self.assertEqual(res.json['verified_bytes'], sum(r['verified']['bytes'] for r in rows))
        for row in rows:
            self.check_row(row, res.json['options'])
        return rows

    def test_every_operation_verified(self):
        res = self.run_json(['--size', '1,8,100,4K,64K,1M', '--verify', '--duration', '0.05'])
        self.check(res, OPS, [1, 8, 100, 4096, 65536, 1 << 20])
        self.assertIn('%d of %d tests ran' % ((len(res.json['rows']),) * 2), res.out)
        for op in OPS:
            self.assertRegex(res.out, r'(?m)^%s ' % op)

    @long
    def test_range_of_the_documentation(self):
        res = self.run_json(['--device', 'soft0', '--op', 'write,read,fetch_add,cmp_swap,send',
                             '--size', '8..1M', '--depth', '128', '--burst', '32',
                             '--signal-every', '16', '--verify', '--duration', '0.02'])
        sizes = [8, 32, 128, 512, 2048, 8192, 32768, 131072, 524288, 1 << 20]
        self.check(res, ['write', 'read', 'fetch_add', 'cmp_swap', 'send'], sizes)

    def test_without_verify(self):
        res = self.run_json(['--size', '64..1K:x4', '--duration', '0.05'])
        rows = self.check(res, OPS, [64, 256, 1024])
        for row in rows:
            if row['op'] == 'write':
                # A steady stream of whole bursts.
                self.assertLess(row['rate']['doorbells_per_op'], 1.2 / row['burst'])

    def test_describes_itself(self):
        res = self.run_json(['--op', 'write', '--size', '8', '--duration', '0.01', '--seed', '7'])
        j = res.json
        self.assertEqual(j['program'], 'testrdma')
        self.assertRegex(j['version'], r'^\d+\.\d+\.\d+')
        self.assertIn('DPDK', j['dpdk'])
        self.assertGreater(j['tsc_hz'], 1e6)
        self.assertEqual(j['device']['name'], 'soft0')
        self.assertTrue(j['device']['software'])
        self.assertEqual(j['options']['seed'], 7)
        self.assertEqual(j['options']['op'], ['write'])

    def test_json_of_options_that_are_no_text(self):
        """Bytes that are not UTF-8, quotes and control characters: the result is still JSON."""
        device = 'soft0,x\udcff"\udce2\udc82\\\x01'
        res = self.run_json(['--device', device], rc=2)
        self.assertEqual(res.json['options']['device'], 'soft0,x\ufffd"\ufffd\ufffd\\\x01')

    def test_csv(self):
        res = self.run_program(['--csv', '--op', 'write,fetch_add', '--size', '8,64', '--verify',
                                '--duration', '0.02'])
        self.assertEqual(res.rc, 0, str(res))
        rows = list(csv.DictReader(io.StringIO(res.out)))
        self.assertEqual([(r['op'], r['size']) for r in rows],
                         [('write', '8'), ('write', '64'), ('fetch_add', '8')])
        for row in rows:
            self.assertEqual(row['status'], 'ok')
            self.assertGreater(float(row['mops']), 0)
            self.assertGreater(int(row['verified_bytes']), 0)

    @long
    def test_interval(self):
        """Statistics between the rows of a plain run; not with CSV."""
        for options in ((), ('--csv', '--verify')):
            for seconds in ('0.3', '3', '30'):  # for a machine without a free CPU
                res = self.run_json(['--op', 'write,read', '--size', '64', '--duration', seconds,
                                     '--interval', '0.1'] + list(options))
                said, other = (res.err, res.out) if options else (res.out, res.err)
                lines = re.findall(r'(?m)^(\d+) operations in ([\d.]+) s: [\d.]+ M ops/s; 0 errors; '
                                   r'latency (?:not measured|p50 \d+ ns, p99 \d+ ns)$', said)
                if len(lines) >= 3:
                    break
            self.assertGreaterEqual(len(lines), 3, str(res))
            self.assertGreaterEqual(min(float(s) for _, s in lines), 0.1)
            done = sum(r['rate']['ops'] + r['latency_ns']['samples'] for r in res.json['rows'])
            self.assertLessEqual(sum(int(n) for n, _ in lines), done)
            self.assertGreater(sum(int(n) for n, _ in lines), 0)
            self.assertNotIn('operations in', other)
            if options:
                self.assertEqual([r['op'] for r in csv.DictReader(io.StringIO(res.out))],
                                 ['write', 'read'])

    def vary(self, *options, ops=OPS, sizes=(3, 64, 5000)):
        res = self.run_json(list(options) + ['--op', ','.join(ops), '--size',
                                             ','.join(str(s) for s in sizes),
                                             '--verify', '--duration', '0.04'])
        return self.check(res, ops, list(sizes))

    def test_overload_of_an_open_loop(self):
        """Each operation that was due counts once, posted or not."""
        res = self.run_json(['--op', 'write', '--size', '1M', '--rate', '100000000', '--duration', '0.2'])
        row = res.json['rows'][0]
        self.assertGreater(row['open_loop']['unposted'], 1000000)
        self.assertEqual(row['latency_ns']['samples'], row['rate']['ops'] + row['open_loop']['unposted'])
        self.assertLessEqual(row['latency_ns']['mean'], row['latency_ns']['max'])
        self.assertGreater(row['latency_ns']['max'], 1e8)

    def test_inline(self):
        for row in self.vary('--inline', '64'):
            may = row['op'] in ('write', 'write_imm', 'send', 'send_imm') and row['size'] <= 64
            self.assertEqual(row['inline'], may)

    @long
    def test_inline_one_by_one_through_blueflame(self):
        self.vary('--inline', '28', '--db', 'blueflame', '--burst', '1', '--signal-every', '1',
                  sizes=(1, 28, 29))

    def test_doorbell(self):
        self.vary('--db', 'doorbell', '--burst', '1')

    @long
    def test_gather_and_scatter(self):
        self.vary('--sgl', '4', sizes=(3, 64, 5000, 100000))

    @long
    def test_unaligned_data(self):
        self.vary('--offset', '5', ops=['write', 'read', 'send', 'write_imm', 'send_imm'])

    @long
    def test_many_queue_pairs(self):
        self.vary('--qps', '33', '--depth', '16', '--burst', '5', '--signal-every', '7')

    @long
    def test_one_at_a_time(self):
        self.vary('--depth', '1')

    @long
    def test_odd_depths(self):
        self.vary('--depth', '77', '--burst', '13', '--signal-every', '77')

    @long
    def test_message_larger_than_the_pool(self):
        rows = self.vary('--depth', '4', '--signal-every', '4', ops=['write', 'read'],
                         sizes=(64 << 20,))
        self.assertEqual([r['window'] for r in rows], [1, 1])

    @long
    def test_the_time_is_looked_at_after_each_large_message(self):
        """A row ends with the message during which its time runs out, not many messages later."""
        for args in ([], ['--verify']):
            res = self.run_json(['--op', 'write,read,send,bidirectional,pingpong', '--size', '32M',
                                 '--duration', '0.001'] + args)
            for row in res.json['rows']:
                self.assertTrue(row['complete'])
                self.assertLessEqual(row['rate']['ops'] + row['latency_ns']['samples'], 6, row)

    @long
    def test_seeds_give_the_same_verdict(self):
        self.vary('--seed', '0', ops=['write', 'cmp_swap'])
        self.vary('--seed', str((1 << 64) - 1), ops=['write', 'fetch_add'])

    def test_device_in_a_thread(self):
        if len(CPUS) < 2:
            self.skipTest('the device would share the only processor')
        self.vary('--device', 'soft0,progress=thread')

    @long
    def test_device_on_its_own_lcore(self):
        if len(CPUS) < 2:
            self.skipTest('needs two processors')
        res = self.run_json(['--device', 'soft0,progress=lcore,lcore=%d' % CPUS[1], '--size',
                             '8,4K,1M', '--verify', '--duration', '0.05'], lcores(2) + EAL)
        self.check(res, OPS, [8, 4096, 1 << 20])

    @long
    def test_progress(self):
        """Progress of a row: a line every 10 s; at a terminal every second, in place."""
        line = r'\[1/1\] write 8, \w+: (\d+) s of about %d s'
        res = self.run_json(['--op', 'write', '--size', '8', '--duration', '12'])
        self.assertRegex(res.err, '(?m)^' + line % 12 + '$')
        self.assertEqual(len(re.findall('s of about', res.err)), 1, str(res))
        ours, theirs = pty.openpty()
        cmd = [self.program] + lcores() + EAL + ['--', '--op', 'write', '--size', '8', '--duration', '3.5']
        with subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=theirs) as proc:
            os.close(theirs)
            seen = ''
            try:
                while more := os.read(ours, 4096):
                    seen += more.decode()
            except OSError:  # EIO: no process has the other end open
                pass
        os.close(ours)
        self.assertEqual(proc.returncode, 0, seen)
        # The time at which it gets a processor is unknown.
        self.assertGreaterEqual(len(set(re.findall(r'\r' + line % 4, seen))), 2, repr(seen))
        # The next output overwrites the last progress line.
        self.assertRegex(seen, r'\r\x1b\[K$', repr(seen))

    def mode(self, op, *options, rc=0, sizes=(3, 64, 5000)):
        res = self.run_json(['--op', op, '--size', ','.join(str(s) for s in sizes), '--duration',
                             '0.04'] + list(options), rc=rc)
        self.assertEqual([(r['op'], r['size']) for r in res.json['rows']], [(op, s) for s in sizes])
        return res

    def test_pingpong(self):
        for options in ([], ['--qps', '5', '--sgl', '3'], ['--inline', '64']):
            res = self.mode('pingpong', '--verify', *options)
            for row in res.json['rows']:
                trips = row['rate']['ops'] + row['latency_ns']['samples']
                self.assertTrue(row['ok'], row)
                self.assertEqual(row['latency_ns']['of'], 'round trip')
                # A message out and one back: each is received once, and every byte is compared.
                self.assertEqual(row['verified']['receives'], 2 * trips)
                self.assertEqual(row['verified']['bytes'], 2 * trips * row['size'])
                self.assertEqual(row['window'], 1)
                self.assertEqual(row['rate']['doorbells_per_op'], 2)
                for key in ('min', 'p50', 'p99', 'max'):
                    self.assertAlmostEqual(row['half_round_trip_ns'][key] * 2,
                                           row['latency_ns'][key], delta=0.2)
            self.assertIn('half of them (one way)', res.out)

    def test_bidirectional(self):
        for options in ([], ['--qps', '5', '--sgl', '3', '--depth', '7']):
            for row in self.mode('bidirectional', '--verify', *options).json['rows']:
                self.assertTrue(row['ok'], row)
                # Both directions of single operations, one of which is timed.
                ops = row['rate']['ops'] + 2 * row['latency_ns']['samples']
                self.assertEqual(row['verified']['bytes'], ops * row['size'])

    @long
    def test_mixed(self):
        mixes = {'write:7,read:3': (7, 3, 0, 0), 'fetch_add:1,cmp_swap:2,write:3': (3, 0, 1, 2),
                 'cmp_swap:1': (0, 0, 0, 1), 'read:999,write:1': (1, 999, 0, 0)}
        for mix, weights in mixes.items():
            sizes = (8, 64, 5000)
            for row in self.mode('mixed', '--verify', '--mix', mix, '--qps', '2',
                                 sizes=sizes).json['rows']:
                self.assertTrue(row['ok'], row)
                kinds = [row['mix'][k] for k in ('write', 'read', 'fetch_add', 'cmp_swap')]
                ops = row['rate']['ops'] + row['latency_ns']['samples']
                self.assertEqual(sum(kinds), ops)
                for n, weight in zip(kinds, weights):
                    # Within one round of the weights on each of the two pairs.
                    self.assertAlmostEqual(n, ops * weight / sum(weights), delta=2 * weight)
                # Atomics: the old value and the new one.
                self.assertEqual(row['verified']['bytes'],
                                 (kinds[0] + kinds[1]) * row['size'] + 16 * sum(kinds[2:]))

    @long
    def test_rate(self):
        """An open loop posts exactly what is due, and all of it is in the latencies."""
        for op in ('write', 'send', 'mixed'):
            row = self.mode(op, '--rate', '20000', '--qps', '3', '--duration', '0.2',
                            sizes=(64,)).json['rows'][0]
            self.assertTrue(row['ok'], row)
            self.assertEqual(row['latency_ns']['of'], 'intended start')
            self.assertEqual(row['open_loop']['rate'], 20000)
            done = row['rate']['ops'] + row['open_loop']['unposted']
            self.assertEqual(row['latency_ns']['samples'], done)
            self.assertGreaterEqual(done, 20000 * 0.2 * 0.99)
            self.assertLessEqual(row['rate']['ops'], 20000 * row['rate']['seconds'] + 3)
        row = self.mode('write', '--rate', '1000', '--verify', sizes=(64,)).json['rows'][0]
        self.assertEqual(row['verified']['bytes'], 64 * row['rate']['ops'])
        # More than the device can do: the rest has waited from its due time to the end.
        row = self.mode('write', '--rate', '100000000', sizes=(4096,)).json['rows'][0]
        self.assertGreater(row['open_loop']['unposted'], 0)
        self.assertGreaterEqual(row['latency_ns']['max'], 0.01e9)
        self.usage_error(['--rate', '5', '--op', 'pingpong'], '--rate 5', 'pingpong')

    @long
    def test_modes_without_verify(self):
        for op in ('pingpong', 'mixed', 'bidirectional'):
            for row in self.mode(op, '--qps', '2', '--mix', 'write:1,fetch_add:1',
                                 sizes=(64,)).json['rows']:
                self.assertTrue(row['ok'], row)
                self.assertGreater(row['rate']['ops'], 0)

    @long
    @needs_defects
    def test_modes_find_damage(self):
        for op, defect in (('pingpong', 'recv_len'), ('pingpong', 'skip_cqe'),
                           ('bidirectional', 'flip_bit'), ('bidirectional', 'lose_write'),
                           ('mixed', 'flip_bit'), ('mixed', 'atomic_old')):
            res = self.mode(op, '--device', 'soft0,defect=' + defect, '--verify', '--mix',
                            'write:1,read:1,fetch_add:1', '--patience', '1', rc=1, sizes=(64,))
            self.assertEqual(res.json['result'], 'fail')
            self.assertGreater(res.json['errors'], 0)

    @long
    def test_payload_in_shuffled_order(self):
        self.vary('--device', 'soft0,shuffle=1', sizes=(8, 5000, 70000))

    def test_lines_have_the_form_that_the_guide_shows(self):
        res = self.run_program(['--op', 'write,send', '--size', '64', '--duration', '0.02',
                                '--verify'])
        self.assertEqual(res.rc, 0, str(res))
        with open(GUIDE) as f:
            shown = re.search(r'^   \[ *0s\] packages.*?^   \[ *\d+s\] done', f.read(), re.S | re.M).group(0)
        for line in res.out.splitlines():
            # Numbers and column widths depend on the run, everything else on the program.
            form = re.sub(r'\\ +', ' +', re.escape(re.sub(r' +', ' ', line.rstrip())))
            if not line.startswith('op '):
                form = re.sub(r'\d+(?:\\\.\d+)?', r'[0-9.]+', form)
            form = re.sub(r' \+([kMG]?B)\b', r' +[kMG]?B', form)
            self.assertRegex(shown, '(?m)^ *%s$' % form, line)

    def test_run_prints_its_command_as_the_guide_shows_it(self):
        stubs = {'bin/dpkg-query': 'echo installed', 'bin/ninja': ':', 'build/build.ninja': '',
                 'build/app/testrdma/testrdma': 'echo "ran: $0 $*"'}
        with tempfile.TemporaryDirectory() as top:
            shutil.copytree(os.path.join(TOP, 'devtools'),
                            os.path.join(top, 'devtools'))
            for path, text in stubs.items():
                path = os.path.join(top, path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, 'w') as f:
                    f.write('#!/bin/sh\n%s\n' % text)
                os.chmod(path, 0o755)
            path = os.path.join(top, 'bin') + os.pathsep + os.environ['PATH']
            out = subprocess.check_output([os.path.join(top, 'devtools/run')], text=True,
                                          env={**os.environ, 'PATH': path})
        with open(GUIDE) as f:
            shown = re.search(r'(?m)^   \[.*s\] run: (.*)$', f.read()).group(1)
        printed = re.search(r'(?m)^\[.*s\] run: (.*)$', out).group(1)
        self.assertEqual(re.search(r'(?m)^ran: (.*)$', out).group(1), printed)
        # Processors and memory depend on the machine.
        shown, printed = (re.sub(' -l .* --no-pci ', ' ', s) for s in (shown, printed))
        self.assertEqual(shown, printed)


if __name__ == '__main__':
    main()
