#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reports what a card can do, and whether Bluebell handles it correctly.

Runs these steps, each with a time limit, about two minutes in all:

  expected  reads capabilities, commands, WQEs and CQEs of the software device.
  card      reads those of the card.
  rings     tries each way to ring a doorbell: uncached, by 8-byte stores, by wider copies.
  mlx5      runs the conformance suite on the card by the mlx5 driver (DEVX).
  verbs     runs the suite by libibverbs, whose queues are libmlx5's.
  software  runs the suite on the software device.
  traffic   runs testrdma: verified data, rates and latencies.
  bisect    repeats the failed rows of the step mlx5 with other device options.

Lists differences from the software device, the probable cause of each fault, and what to try next.
Writes one report, anew after each step, so that a report exists even if a step hangs or you stop it. It
has no names, addresses or serial numbers of the host. Traffic stays in the device: both ends of each
connection are on it.
"""

import argparse
import json
import os
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import anonymous  # noqa: E402
import bisect_rows  # noqa: E402
import compare  # noqa: E402
import host  # noqa: E402
import programs  # noqa: E402
import unproven  # noqa: E402

SEND_TO = 'bluebell@example.org'
SOFT = 'soft0'
VERBS = host.VERBS
EXTRA_BITS = '--force-max-simd-bitwidth=512'    # EAL allows AVX-512 then
STEPS = {'expected': 3, 'card': 5, 'rings': 15, 'mlx5': 30, 'verbs': 30, 'software': 20, 'traffic': 10,
         'bisect': 30}  # typical seconds


def say(text):
    print('hw-check: ' + text, flush=True)


class Stopped(Exception):
    def __init__(self, number):
        super().__init__()
        self.number = number


def stop(number, _):
    raise Stopped(number)


def count(rows):
    results = list(rows.values())
    return '%d rows passed, %d failed, %d skipped, %d assumptions differ' % tuple(
        results.count(r) for r in ('pass', 'fail', 'skip', 'differs'))


def heading(text, lines):
    lines = list(lines)
    print('\n%s: %s' % (text, 'none' if not lines else len(lines)))
    for line in lines[:60]:
        print('  ' + line)
    if len(lines) > 60:
        print('  and %d more, in the report' % (len(lines) - 60))
    sys.stdout.flush()
    return lines


class Check:
    def __init__(self, args):
        self.args = args
        self.device = host.with_resize(args.device)
        self.verbs = args.device if args.device.startswith(VERBS) else VERBS + args.device.split(',')[0]
        self.devx = not args.device.startswith(VERBS)
        self.run = programs.Programs(args.build, args.eal.split(), args.suffix, args.patience)
        self.secrets = anonymous.known_secrets()
        self.report = {'format': 2, 'complete': False, 'machine': host.facts(args.device), 'steps': [],
                       'conform': {'mlx5': None, 'verbs': None, 'software': None}, 'failures': {},
                       'findings': []}
        self.steps = [s for s in STEPS if self.devx or s not in ('rings', 'mlx5', 'bisect')]

    def write(self):
        """Writes the anonymous report; a reader never sees a part of it."""
        clean = anonymous.Anonymizer(self.secrets).report(self.report)
        with open(self.args.report + '.part', 'w') as f:
            json.dump(clean, f, indent=1, sort_keys=True)
            f.write('\n')
        os.replace(self.args.report + '.part', self.args.report)

    def finding(self, text, what=None):
        self.report['findings'].append({'what': text, 'next': what})
        say('  ' + text)
        if what is not None:
            say('    next: ' + what)

    def has_options(self):
        """Returns whether the mlx5 driver opened the device: others have no options for doorbells."""
        return self.report['device']['attr']['driver'] == 'mlx5'

    # Each step returns its result: a word, and why if it is not "done".

    def expected(self):
        self.report['software'], why = self.run.report(SOFT)
        return ('failed', why) if why else ('done', None)

    def card(self):
        self.report['device'], why = self.run.report(self.device)
        if why:
            print('\n'.join(self.run.tail))
            self.finding('%s cannot be used: %s' % (self.device, why),
                         'the lines above say why; then %s %s' % (host.NAME, self.verbs) if self.devx else
                         'the lines above say why; does ibv_devinfo show an active port?')
            return 'failed', why
        return 'done', None

    def rings(self):
        """Posts each kind of request with each way to ring; they must complete as on the software device."""
        if not self.has_options():
            say('  not run: libibverbs rings for this device')
            return 'not run', 'not the mlx5 driver'
        found = self.report['rings'] = {}
        for ring in bisect_rows.RINGS:
            report, why = self.run.report(bisect_rows.option(self.args.device, ring), EXTRA_BITS)
            if report is None:
                found[ring] = 'not on this CPU' if self.run.said('does not support these copies') else why
            else:
                found[ring] = compare.first_fault(report, self.report['software']) or 'works'
            say('  %s: %s' % (ring, found[ring]))
        reason = bisect_rows.rings_conclusion(found, self.args.device)
        if reason is not None:
            self.finding(*reason)
            return 'differs', reason[0]
        return 'done', None

    def conform(self, name, device):
        rows, failures = {}, {}
        self.report['conform'][name] = rows
        self.report['failures'][name] = failures
        why = self.run.conform(device, rows, failures, self.args.filter)
        if why == programs.ABSENT:
            self.report['conform'][name] = None
            say('  not run: %s is no device that this driver can open' % device)
            return 'not run', 'no such device'
        say('  ' + count(rows))
        for row in [r for r in rows if rows[r] == 'fail'][:10]:
            say('  FAIL %s: %s' % (row, failures[row]['why']))
        if why is not None:
            self.finding('conform on %s %s, after the row %s' % (device, why, list(rows)[-1] if rows else
                                                                 '(none)'),
                         'run conform -v -d %s; the next row of conform --list is the cause' % device)
            return 'failed', why
        failed = sum(v == 'fail' for v in rows.values())
        return ('failed', '%d rows failed' % failed) if failed else ('done', None)

    def mlx5(self):
        return self.conform('mlx5', self.device)

    def verbs_rows(self):
        return self.conform('verbs', self.verbs)

    def software(self):
        return self.conform('software', SOFT)

    def traffic(self):
        tests, why = self.run.traffic(self.device if self.devx else self.verbs)
        self.report['traffic'] = tests
        if tests is None and why == programs.ABSENT:
            return 'not run', 'testrdma is missing'
        for t in (tests or {}).get('rows', []):
            say('  %-10s %6d bytes: %7.2f Gb/s, %6.2f Mpps, latency %8.0f ns%s' % (
                t['op'], t['size'], t['rate']['gbits_per_s'], t['rate']['mops'], t['latency_ns']['p50'],
                '' if t['ok'] else ', FAILED'))
        if why is not None:
            self.finding('testrdma on %s %s' % (self.device, why),
                         'testrdma -d %s,no_bf, then bf_copy=none, then --db doorbell' % self.args.device
                         if self.devx else None)
            return 'failed', why
        return 'done', None

    def bisect(self):
        rows = self.report['conform']['mlx5'] or {}
        failed = bisect_rows.choose([r for r in rows if rows[r] == 'fail'])
        if failed and not self.has_options():
            return 'not run', 'not the mlx5 driver'
        if not failed:
            say('  no row failed')
            return 'not run', 'no row of mlx5 failed'
        found = self.report['bisect'] = {}
        for switch in bisect_rows.SWITCHES:
            again = {}
            self.run.conform(bisect_rows.option(self.device, switch), again, {}, ','.join(failed))
            found[switch or 'again'] = again
            say('  %s: %d of %d rows pass' % (switch or 'the same options', sum(
                again.get(r) == 'pass' for r in failed), len(failed)))
        by_verbs = self.report['conform']['verbs'] or {}
        reasons = {row: bisect_rows.conclusion(
            row, [s for s in bisect_rows.SWITCHES if found[s or 'again'].get(row) == 'pass'],
            by_verbs.get(row), self.args.device) for row in failed}
        for meaning, what, group in bisect_rows.groups(reasons):
            self.finding('%d rows, such as %s: %s' % (len(group), group[0], meaning), what)
        return 'done', None

    def differences(self):
        """Lists what differs from the software device, as far as the steps got."""
        ours, soft = self.report.get('device'), self.report.get('software')
        rows = self.report['conform']
        self.report['differences'] = found = {}
        if ours and soft:
            found['attr'] = heading('Capabilities that differ', compare.compare_attr(ours['attr'], soft['attr']))
            if 'commands' in ours:
                found['commands'] = heading('Commands that came out differently',
                                            compare.compare_commands(ours, soft))
                found['ops'] = heading('WQEs and CQEs that differ', compare.compare_ops(ours, soft))
        for name in ('mlx5', 'verbs'):
            if rows[name] is not None and rows['software'] is not None:
                found[name] = list(compare.compare_rows(rows[name], rows['software'], name))
                heading('Rows of conform that differ, %s driver' % name, compare.brief(found[name]))
        proven = unproven.judge(rows['mlx5' if self.devx else 'verbs'] or {})
        self.report['unproven'] = proven
        ran = [p for p in proven if p['result'] != 'not tested']
        if ran and self.args.device.split(',')[0] != SOFT:
            heading('Parts that no card had run, the largest risk first', (
                '%s %s (%d rows hold, %d do not)' % (p['result'], p['part'], p['passed'], p['failed']) for p in ran))
            print('  not tested: ' + '; '.join(p['part'] for p in proven if p not in ran))

    def one(self, number, name):
        say('%d/%d %s (about %d s)' % (number, len(self.steps), name, STEPS[name]))
        step = {'name': name, 'result': 'stopped'}
        self.report['steps'].append(step)
        start = time.monotonic()
        try:
            step['result'], step['why'] = getattr(self, 'verbs_rows' if name == 'verbs' else name)()
        finally:
            step['seconds'] = round(time.monotonic() - start, 1)
            step['log'] = self.run.tail[-40:] if step['result'] in ('failed', 'stopped') else []
            self.write()
        return step['result']

    def all(self):
        """Runs the steps. Returns the exit status."""
        rc, stopped = 0, None
        say('%s, %d steps, about %d minutes; the report %s is written after each step' % (
            self.args.device, len(self.steps), round(sum(STEPS[s] for s in self.steps) / 60), self.args.report))
        try:
            for number, name in enumerate(self.steps, 1):
                result = self.one(number, name)
                if result in ('failed', 'differs'):
                    rc = 1
                if result == 'failed' and name in ('expected', 'card'):
                    break
            else:
                self.report['complete'] = True
        except Stopped as why:
            stopped = why.number
            rc = 128 + stopped
        self.differences()
        self.write()
        return self.verdict(rc, stopped)

    def verdict(self, rc, stopped):
        rows = self.report['conform']
        bad = [name for name in rows if rows[name] is not None and
               ('fail' in rows[name].values() or 'pass' not in rows[name].values())]
        print()
        if stopped is not None:
            say('stopped in the step %s; %s has the steps before it' % (
                self.report['steps'][-1]['name'], self.args.report))
        elif rc == 0:
            say('right: every row that ran holds')
        else:
            say('FAILED: ' + ('conform on ' + ', '.join(bad) if bad else ', '.join(
                s['name'] for s in self.report['steps'] if s['result'] in ('failed', 'differs'))))
        for f in self.report['findings']:
            say('  ' + f['what'] + ('' if f['next'] is None else '; next: ' + f['next']))
        say('all of it is in %s, without names or addresses of this host: please send it to %s' % (
            self.args.report, SEND_TO))
        return rc or (1 if bad else 0)


def arguments():
    tail = 'exit status: 0 every row of conform that ran holds, whatever differs; 1 one does not, another\n'
    tail += 'step failed, or the device cannot be used; 2 wrong usage; 130 stopped by Ctrl-C (143: by\n'
    tail += 'SIGTERM), with a report of the steps before\n\nexamples:\n'
    tail += '  {0}                 the first device of /sys/class/infiniband\n'
    tail += '  {0} mlx5_1 --eal "-l 2 -a 0000:00:00.0"\n'
    tail += '  {0} mlx5_0,no_bf    all steps without BlueFlame\n'
    tail += '  {0} soft0           how it looks without a card\n'
    tail += '  {0} --tarball       for a machine without a compiler or DPDK'
    p = argparse.ArgumentParser(prog=host.NAME, description=__doc__, epilog=tail.format(host.NAME),
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('device', nargs='?', help='device, named as for bb_dev_open(): mlx5_0, 0000:3b:00.0')
    p.add_argument('--report', metavar='FILE', default='hw-check.json', help='file for the report (default: %(default)s)')
    p.add_argument('--filter', metavar='LIST', help='run only these rows of conform, as with its --filter')
    p.add_argument('--eal', metavar='ARGS', help='arguments for EAL; default: lcores 0 and 1 on two CPUs, '
                   'plain pages, no PCI', default=host.eal())
    p.add_argument('--patience', metavar='N', type=int, default=1,
                   help='multiply the time limit of each step, for a slow machine (default: %(default)s)')
    p.add_argument('--tarball', metavar='FILE', nargs='?', const='bluebell-hw-check.tar.gz',
                   help='only make an archive of hw-check with static programs (default: %(const)s)')
    p.add_argument('--build', metavar='DIR', default='build',
                   help='build folder to use (default: build in build/)')
    p.add_argument('--suffix', default='', help='of the names of programs: _libmlx5 has a kernel '
                   'in place of the machine\'s in them, with a mlx5_0')
    p.add_argument('--look', action='store_true', help='only check that the device can be opened')
    return p.parse_args()


def main():
    args = arguments()
    if args.tarball is not None:
        say('the archive is made in the source tree only, by devtools/hw-check --tarball')
        return 2
    if args.device is None:
        if not host.devices():
            say('no device in /sys/class/infiniband: load mlx5_ib, or try %s' % SOFT)
            return 2
        args.device = host.devices()[0]
    if args.patience < 1:
        say('--patience %d: it must be 1 or more' % args.patience)
        return 2
    why = host.missing(args.device) if not args.suffix else None
    if why is not None:
        say('%s cannot be used: %s' % (args.device, why))
        return 1
    if args.look:
        return 0
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    return Check(args).all()


if __name__ == '__main__':
    sys.exit(main())
