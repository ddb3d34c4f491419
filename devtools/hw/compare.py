# SPDX-License-Identifier: BSD-3-Clause
"""Compares the reports of two devices: capabilities, commands, WQEs, CQEs and rows of conform."""

import re

BUFFER = 8192   # bytes that hw_report registers
MASKED_KEY = 0xffff00   # hw_report's wrong keys are valid ones with these bits inverted


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


def first_fault(ours, theirs):
    """Returns the first request whose completions have another status than the software device's, None
    if there is none."""
    def status(end):
        return end.get('status') if isinstance(end, dict) else end

    soft = {op['name']: op for op in theirs['ops']}
    for op in ours['ops']:
        other = soft.get(op['name'], {})
        if 'error' in op:
            return '%s: %s' % (op['name'], op['error'])
        for end in ('sender', 'receiver'):
            if end in op and status(op[end]) != status(other.get(end)):
                return '%s: CQE of the %s: %s' % (op['name'], end, status(op[end]))
    return None
