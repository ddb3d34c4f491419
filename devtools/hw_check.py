#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reports what a card can do, and whether Bluebell handles it correctly.

Reads the device's capabilities. Runs the conformance suite on it with the mlx5 driver (DEVX) and
with the verbs driver, and on the software device. Records the command mailboxes of a pair of queue
pairs, and the bytes of a WQE and its CQEs for each kind of request. Lists the differences from the
software device. Writes all of this to one report file, for golden tests of Bluebell. Traffic stays
in the device: both ends of each connection are on it.
"""

import argparse
import json
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile

ABSENT = 77     # exit status of conform: no such device
BUFFER = 8192   # bytes that hw_report registers
MASKED_KEY = 0xffff00   # hw_report's wrong keys are valid ones with these bits inverted
SOFT = 'soft0'
VERBS = 'verbs:'    # prefix of a device for the verbs driver


def say(text):
    print('hw-check: ' + text, flush=True)


def read(path):
    try:
        with open(path) as f:
            return f.read().strip()
    except OSError:
        return None


def devices():
    try:
        return sorted(os.listdir('/sys/class/infiniband'))
    except OSError:
        return []


def plain(device):
    """Returns the name without options and without the prefix of the verbs driver."""
    name = device.split(',')[0]
    return name[len(VERBS):] if name.startswith(VERBS) else name


def kernel_driver(name):
    """Returns the kernel's driver of a device, by its name or PCI address."""
    for path in ('/sys/class/infiniband/%s/device/driver', '/sys/bus/pci/devices/%s/driver'):
        try:
            return os.path.basename(os.readlink(path % name))
        except OSError:
            pass
    return None


def with_resize(device):
    """Adds the option for CQ resize, which is untested and off by default, to a card used by DEVX."""
    if device.startswith(VERBS) or ',' in device:
        return device
    card = device.startswith('mlx5') or kernel_driver(device) == 'mlx5_core'
    return device + ',cq_resize' if card else device


def bus(name):
    """Returns the PCI address of a device, which also opens it."""
    try:
        return os.path.basename(os.readlink('/sys/class/infiniband/%s/device' % name))
    except OSError:
        return None


def missing(device):
    """Returns why the device cannot be opened, as far as /sys shows; None: it may work."""
    name, there = plain(device), devices()
    if name.startswith('soft') or name in there or name in [bus(d) for d in there]:
        return None
    if there:
        return 'there is no %s here, but %s' % (name, ', '.join(there))
    return 'there is no %s: no device in /sys/class/infiniband; load mlx5_ib, or try %s' % (
        name, SOFT)


def machine(device):
    """Returns facts about the machine that affect the results."""
    name = plain(device)
    facts = {'kernel': platform.release(), 'machine': platform.machine(),
             'memlock': resource.getrlimit(resource.RLIMIT_MEMLOCK)[0],
             'hugepages': read('/proc/sys/vm/nr_hugepages')}
    for key in ('fw_ver', 'hca_type', 'board_id', 'node_type'):
        facts[key] = read('/sys/class/infiniband/%s/%s' % (name, key))
    for package in ('libibverbs', 'libmlx5', 'libdpdk'):
        done = subprocess.run(['pkg-config', '--modversion', package], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
        facts[package] = done.stdout.strip() or None
    return facts


class Programs:
    def __init__(self, build, eal, suffix):
        self.build = build
        self.eal = eal
        self.suffix = suffix

    def path(self, name):
        return os.path.join(self.build, name + self.suffix)

    def run(self, command, **how):
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              **how)

    def report(self, device):
        """Returns hw_report's JSON, or None."""
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            done = self.run([self.path('test/hw/hw_report')] + self.eal + ['--', device, f.name])
            if done.returncode != 0:
                print(done.stdout, end='')
                return None
            return json.load(f)

    def conform(self, device, rows):
        """Returns results by row, or None if the device is missing; and conform's output."""
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            done = self.run([self.path('test/conform/conform'), '-d', device, '--json', f.name] +
                            (['--filter', rows] if rows else []) + ['--'] + self.eal)
            if done.returncode == ABSENT:
                return None, done.stdout
            if done.returncode not in (0, 1):
                raise SystemExit('%shw-check: conform -d %s ended with %d' % (
                    done.stdout, device, done.returncode))
            found = json.load(f)['devices'][0]['rows']
            return {row['name']: row['result'] for row in found}, done.stdout


def masked_wqe(op, values):
    """Returns a WQE as words of 4 bytes, with names for values that differ in each run."""
    raw = bytes.fromhex(op['wqe'])
    words = ['%08x' % int.from_bytes(raw[i:i + 4], 'big') for i in range(0, len(raw), 4)]
    if len(words) > 1:
        words[1] = 'QPN' + words[1][6:]
    for i in range(4, len(words)):
        value = int(words[i], 16)
        if value in (values['lkey'], values['rkey']):
            words[i] = 'key'
        elif value ^ MASKED_KEY in (values['lkey'], values['rkey']):
            words[i] = 'key^%06x' % MASKED_KEY
    for i in range(4, len(words) - 1, 2):
        if all(len(w) == 8 for w in words[i:i + 2]):
            offset = int(words[i] + words[i + 1], 16) - values['buffer']
            if 0 <= offset < BUFFER:
                words[i:i + 2] = ['buffer', '+%d' % offset]
    return words


def masked_cqe(cqe):
    """Returns a CQE likewise; the fields are those of struct mlx5_cqe64."""
    if not isinstance(cqe, dict):
        return [str(cqe)]
    raw = bytes.fromhex(cqe['cqe'])
    words = ['%08x' % int.from_bytes(raw[i:i + 4], 'big') for i in range(0, len(raw), 4)]
    words[8] = words[8][:2] + 'user index'
    words[14] = words[14][:2] + 'QPN'
    if raw[63] >> 4 not in (13, 14):
        words[12:14] = ['time', 'stamp']
    return words + [cqe['status']]


def differing_words(ours, theirs):
    """Returns 'at 0x10: a, software b', or None if there is no difference."""
    if len(ours) != len(theirs):
        return 'length %d, software %d' % (4 * len(ours), 4 * len(theirs))
    rows = ['at 0x%02x: %s, software %s' % (4 * i, a, b)
            for i, (a, b) in enumerate(zip(ours, theirs)) if a != b]
    return '; '.join(rows) or None


def compare_attr(ours, theirs):
    for key in sorted(set(ours) | set(theirs)):
        if ours.get(key) != theirs.get(key):
            yield '%s: %s, software %s' % (key, ours.get(key), theirs.get(key))


def compare_ops(ours, theirs):
    soft = {op['name']: op for op in theirs['ops']}
    for op in ours['ops']:
        other = soft.get(op['name'])
        if other is None or 'error' in op or 'error' in other:
            if other is None or op.get('error') != other.get('error'):
                yield '%s: %s, software %s' % (op['name'], op.get('error', 'posted'),
                                               'none' if other is None else
                                               other.get('error', 'posted'))
            continue
        found = differing_words(masked_wqe(op, ours['values']), masked_wqe(other, theirs['values']))
        if found:
            yield '%s, WQE %s' % (op['name'], found)
        for end in ('sender', 'receiver'):
            found = differing_words(masked_cqe(op.get(end)), masked_cqe(other.get(end)))
            if found:
                yield '%s, CQE of the %s %s' % (op['name'], end, found)


def opcode(command):
    """Returns the PRM's command opcode, the first 16 bits of a mailbox, or the call if it has no mailbox."""
    return 'command 0x' + command['in'][:4] if 'in' in command else command['call']


def compare_commands(ours, theirs):
    """Returns commands with different outcomes; the lengths of the recordings may differ by capabilities."""
    def outcomes(commands):
        found = {}
        for c in commands:
            status = c.get('out', '')[:2]
            found.setdefault(opcode(c), set()).add((c['ret'], status))
        return found

    mine, soft = outcomes(ours['commands']), outcomes(theirs['commands'])
    for op in sorted(set(mine) | set(soft)):
        if mine.get(op) != soft.get(op):
            yield '%s: (errno, status) %s, software %s' % (
                op, sorted(mine.get(op, [])), sorted(soft.get(op, [])))


def compare_rows(ours, theirs, name):
    for row in sorted(ours):
        if ours[row] != theirs.get(row) and 'not run' not in (ours[row], theirs.get(row)):
            yield '%s: %s %s, software %s' % (row, name, ours[row], theirs.get(row))


def count(rows):
    results = list(rows.values())
    return '%d rows passed, %d failed, %d skipped, %d assumptions differ' % tuple(
        results.count(r) for r in ('pass', 'fail', 'skip', 'differs'))


def brief(lines):
    """Shortens a report: one line for all rows of an area that lack the same capability."""
    areas = {}
    for line in lines:
        lack = re.match(r'(\w+)/.*: \w+ skip, software pass$', line)
        if lack:
            areas[lack[1]] = areas.get(lack[1], 0) + 1
        else:
            yield line
    for area in sorted(areas):
        yield '%s/*: %d skip for want of an ability that software has' % (area, areas[area])


def heading(text, lines):
    lines = list(lines)
    print('\n%s: %s' % (text, 'none' if not lines else len(lines)))
    for line in lines:
        print('  ' + line)
    sys.stdout.flush()
    return lines


def check(args):
    programs = Programs(args.build, args.eal.split(), args.suffix)
    report = {'format': 1, 'machine': machine(args.device)}
    by_verbs = args.device if args.device.startswith(VERBS) else VERBS + args.device
    ways = [('verbs', by_verbs), ('software', SOFT)]
    if args.device != by_verbs:
        ways.insert(0, ('mlx5', with_resize(args.device)))
    say('1/%d %s: capabilities, mailboxes, WQEs and CQEs' % (len(ways) + 1, args.device))
    for name, device in (('device', with_resize(args.device)), ('software', SOFT)):
        report[name] = programs.report(device)
        if report[name] is None:
            say('device %s cannot be used; the lines above say why' % device)
            return 1
    rows = {'mlx5': None}
    for number, (name, device) in enumerate(ways, 2):
        say('%d/%d conform, %s' % (number, len(ways) + 1, device))
        rows[name], text = programs.conform(device, args.filter)
        if rows[name] is None:
            say('  not run: %s is no device that this driver can open' % device)
        else:
            say('  ' + count(rows[name]))
            failed = [row for row in rows[name] if rows[name][row] == 'fail']
            if failed:
                print(text[-20000:])
    report['conform'] = rows

    ours, soft = report['device'], report['software']
    report['differences'] = found = {}
    found['attr'] = heading('Capabilities that differ', compare_attr(ours['attr'], soft['attr']))
    if 'commands' in ours:
        found['commands'] = heading('Commands that came out differently',
                                    compare_commands(ours, soft))
        found['ops'] = heading('WQEs and CQEs that differ', compare_ops(ours, soft))
    for name in ('mlx5', 'verbs'):
        if rows[name] is not None:
            found[name] = list(compare_rows(rows[name], rows['software'], name))
            heading('Rows of conform that differ, %s driver' % name, brief(found[name]))
    with open(args.report, 'w') as f:
        json.dump(report, f, indent=1, sort_keys=True)
        f.write('\n')
    bad = [name for name in rows if rows[name] is not None and
           ('fail' in rows[name].values() or 'pass' not in rows[name].values())]
    print()
    say('all of it is in %s: please send it to the project' % args.report)
    say('FAILED: conform on ' + ', '.join(bad) if bad else 'right: every row that ran holds')
    return 1 if bad else 0


def main():
    tail = 'exit status: 0 every row of conform that ran holds, whatever differs; 1 one does not,\n'
    tail += 'or the device cannot be used; 2 wrong usage\n\nexamples:\n'
    tail += '  devtools/hw-check                 the first device of /sys/class/infiniband\n'
    tail += '  devtools/hw-check mlx5_1 --eal "-l 2 -a 0000:00:00.0"\n'
    tail += '  devtools/hw-check soft0           how it looks without a card'
    p = argparse.ArgumentParser(prog='devtools/hw-check', description=__doc__, epilog=tail,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('device', nargs='?', help='device, named as for bb_dev_open(): mlx5_0, 0000:3b:00.0')
    p.add_argument('--report', metavar='FILE', default='hw-check.json', help='file for the report (default: %(default)s)')
    p.add_argument('--filter', metavar='LIST', help='run only these rows of conform, as with its --filter')
    p.add_argument('--eal', metavar='ARGS', help='arguments for EAL; default: lcore 0 and 1, '
                   'plain pages, no PCI',
                   default='--lcores=0,1 --no-huge -m 512 --no-pci --no-shconf --no-telemetry')
    p.add_argument('--build', metavar='DIR', default='build',
                   help='build folder to use (default: build in build/)')
    p.add_argument('--suffix', default='', help='of the names of programs: _libmlx5 has a kernel '
                   'in place of the machine\'s in them, with a mlx5_0')
    p.add_argument('--look', action='store_true', help='only check that the device can be opened')
    args = p.parse_args()
    if args.device is None:
        if not devices():
            say('no device in /sys/class/infiniband: load mlx5_ib, or try %s' % SOFT)
            return 2
        args.device = devices()[0]
    why = missing(args.device) if not args.suffix else None
    if why is not None:
        say('%s cannot be used: %s' % (args.device, why))
        return 1
    return 0 if args.look else check(args)


if __name__ == '__main__':
    sys.exit(main())
