# SPDX-License-Identifier: BSD-3-Clause
"""Writes the page of conformance results (doc/guides/evidence/conformance.rst) from the JSON of conform.

A row is in one of three lists. EVERY: it passes on every device. REFUSAL: it needs a device without some
capability, so most devices skip it. SOME: at least one device does not pass it for another reason. Each
device has a table of what it does not pass. So the page holds the result of each group of rows on each device.
"""

import collections

EVERY, REFUSAL, SOME = 'every', 'refusal', 'some'
# Kinds of outcome. A name or text goes with each: the missing need, what the machine lacks, the failure.
PASS, SKIP, MACHINE = 'pass', 'skip', 'pass or skip'

INTRO = '''Conformance
===========

.. Made by test/conform/page/table.py; do not edit. "meson test table" compares.

Run the suite on your device with ``conform --device mlx5_0``. ``conform --list`` lists the
tests of the suite, which are called rows.

The tables show the behaviour that Bluebell promises, and the devices that pass the rows. Each
line of a table is a group of rows, which differ in size, flags, number of SGEs or type of bad input.
Every row checks the data with guard bytes around it, the completions, and the state of both
queue pairs. If a call must fail, its row checks the errno, that the objects are unchanged,
and that the log has one line. Connections use RoCE v2 GIDs if the port has them. The rows of
the areas data, atomic and unreliable run again on each other type of GID, such as RoCE v1. A
source "assumption" marks behaviour of the software device that no public source states for
cards. If a card behaves differently in such a row, the suite reports that and does not fail.

Devices whose names start with ``guest:`` are those of Linux 6.1 in a virtual machine, on the function of
:doc:`/tools/hca`: ``guest:mlx5_0`` by DEVX, ``guest:verbs:mlx5_0`` by libibverbs. The suite ``kernel`` runs them.

Summary
-------

The suite has %(rows)d rows in %(groups)d groups; %(every)d rows pass on every device. The column
*refusals* counts the rows that the device skips because they test a device without some capability, which
this device has. The column *machine* counts the rows that pass only on a machine that has what they need.
`Reasons`_ explains the names of the column *skipped*.

'''
EVERY_INTRO = '''
Rows that pass on every device
------------------------------

'''
SOME_INTRO = '''
Rows that some devices skip
---------------------------

`Differences by device`_ has the reasons why a device skips rows of this section.

'''
REFUSAL_INTRO = '''
Refusals
--------

The rows of this table check what a device without a capability does. They pass on the devices in the last
column. The other devices have the capability and skip the rows, unless their tables below give another reason.

'''
DEVICE_INTRO = '''
Differences by device
---------------------

A device passes each row that its table does not name, except the rows of `Refusals`_.
'''
REASON_INTRO = '''
Reasons
-------

A name starting with ``no-`` is a capability that the device must lack for the row to run.

'''


def outcome(row):
    """Returns the kind of a row's outcome, and a name or text."""
    if row['result'] == SKIP or row['result'] == PASS:
        # If the device supports a row, only the machine can be the cause of a skip.
        if 'machine' in row and row.get('missing', 'machine-').startswith('machine-'):
            return MACHINE, row['machine']
        return row['result'], row.get('missing', '')
    return row['result'], row.get('why', '')


def is_refusal(result):
    return result[0] == SKIP and result[1].startswith('no-')


def classify(outcomes):
    """Returns the list of a row with these outcomes, one for each device."""
    if all(o[0] == PASS for o in outcomes):
        return EVERY
    return REFUSAL if any(is_refusal(o) for o in outcomes) else SOME


class Suite:
    """The results of all devices, by row."""

    def __init__(self, results):
        self.devices = [d['device'] for d in results['devices']]
        self.rows = results['devices'][0]['rows']
        self.outcomes = [[outcome(r) for r in rows] for rows in zip(*(d['rows'] for d in results['devices']))]
        self.kinds = [classify(o) for o in self.outcomes]
        self.texts = collections.defaultdict(list)
        for device in results['devices']:
            for row in device['rows']:
                name = row.get('missing')
                if outcome(row) == (SKIP, name) and row['why'] not in self.texts[name]:
                    self.texts[name].append(row['why'])

    def groups(self, kind=None):
        """Returns the numbers of the rows of a kind by group, in order."""
        groups = collections.OrderedDict()
        for i, row in enumerate(self.rows):
            if kind in (None, self.kinds[i]):
                groups.setdefault(row['group'], []).append(i)
        return groups

    def source(self, rows):
        return '; '.join(dict.fromkeys(self.rows[i]['man'] for i in rows))

    def counts(self, rows, device):
        return collections.Counter(self.outcomes[i][device] for i in rows)

    def exceptions(self, device):
        """Returns (group, source, result, reason) of each group of which a device does not pass every row."""
        lines = []
        for group, rows in self.groups().items():
            rows = [i for i in rows if not is_refusal(self.outcomes[i][device])]
            count = self.counts(rows, device)
            reasons = dict.fromkeys(name for kind, name in count if kind != PASS)
            if reasons:
                lines.append((group, self.source(rows), result_text(count), '; '.join(reasons)))
        return tuple(lines)


def result_text(count):
    """Returns the kinds with numbers: *pass 36, skip 64*; a kind alone has no number."""
    kinds = collections.OrderedDict()
    for (kind, _), n in sorted(count.items(), key=lambda item: item[0]):
        kinds[kind] = kinds.get(kind, 0) + n
    if len(kinds) == 1:
        return next(iter(kinds))
    return ', '.join('%s %d' % item for item in kinds.items())


def csv_line(cells):
    cells = [' '.join(str(c).split()) for c in cells]
    assert all(c.strip() for c in cells), 'empty cell: %s' % cells
    return '   ' + ', '.join('"%s"' % c.replace('"', '""') if '"' in c or ',' in c else c for c in cells) + '\n'


def table(head, widths, lines):
    """Returns a table whose columns have these widths in percent. Long names break (_static/bluebell.css)."""
    if not lines:
        return 'None.\n\n'
    return '.. csv-table::\n   :class: names\n   :header: %s\n   :widths: %s\n\n%s\n' % (
        ', '.join(head), ', '.join(map(str, widths)), ''.join(map(csv_line, lines)))


def names(count):
    return ', '.join('%s %d' % item for item in sorted(count.items())) or '0'


def literal(device):
    return '``%s``' % device


def collapsed(summary, suite, kind, head, widths, cells):
    """Returns a table for each area, in a block that a reader opens."""
    areas = collections.OrderedDict()
    for group, rows in suite.groups(kind).items():
        areas.setdefault(group.split('/')[0], []).append((group, len(rows), suite.source(rows)) + cells(rows))
    text = '.. raw:: html\n\n   <details><summary>%s</summary>\n\n' % summary
    for area, lines in areas.items():
        text += '.. rubric:: %s\n\n' % area + table(['group', 'rows', 'source'] + head, widths, lines)
    return text + '.. raw:: html\n\n   </details>\n'


def summary_line(suite, device, target):
    kinds, missing = collections.Counter(), collections.Counter()
    for outcomes in suite.outcomes:
        kind, name = outcomes[device]
        kinds['refusal' if is_refusal(outcomes[device]) else kind] += 1
        if kind == SKIP and not is_refusal(outcomes[device]):
            missing[name] += 1
    failed = sum(n for kind, n in kinds.items() if kind not in (PASS, SKIP, MACHINE, 'refusal'))
    return ('`%s <%s_>`__' % (suite.devices[device], target), kinds[PASS], failed, names(missing), kinds['refusal'],
            kinds[MACHINE])


def some_cells(suite):
    def cells(rows):
        passing = sum(all(suite.outcomes[i][d][0] == PASS for i in rows) for d in range(len(suite.devices)))
        return ('%d of %d' % (passing, len(suite.devices)),)
    return cells


def refusal_lines(suite):
    lines = []
    for group, rows in suite.groups(REFUSAL).items():
        # Rows of a group may run on different devices.
        parts = collections.OrderedDict()
        for i in rows:
            runs = tuple(d for d, o in enumerate(suite.outcomes[i]) if o[0] == PASS)
            needs = tuple(dict.fromkeys(o[1] for o in suite.outcomes[i] if is_refusal(o)))
            parts.setdefault((needs, runs), []).append(i)
        for (needs, runs), part in parts.items():
            lines.append((group, len(part), suite.source(part), '; '.join(needs),
                          '; '.join(literal(suite.devices[d]) for d in runs) or 'none'))
    return lines


def device_sections(suite, sets):
    text = ''
    for number, (lines, devices) in enumerate(sets.items(), 1):
        title = literal(suite.devices[devices[0]])
        if len(devices) > 1:
            title += ' and %d more' % (len(devices) - 1)
        text += '\n.. _device-set-%d:\n\n%s\n%s\n\n' % (number, title, '~' * len(title))
        if len(devices) > 1:
            text += 'These devices have the same results:\n\n'
            text += ''.join('- %s\n' % literal(suite.devices[d]) for d in devices) + '\n'
        text += table(['group', 'source', 'result', 'reason'], [30, 30, 20, 20], lines)
    return text


def render(results):
    """Returns the page of these results: the content of the file that conform --json writes."""
    suite = Suite(results)
    sets = collections.OrderedDict()
    for d in range(len(suite.devices)):
        sets.setdefault(suite.exceptions(d), []).append(d)
    number = {d: i for i, devices in enumerate(sets.values(), 1) for d in devices}
    every = suite.groups(EVERY)
    n_every = sum(map(len, every.values()))
    text = INTRO % {'rows': len(suite.rows), 'groups': len(suite.groups()), 'every': n_every}
    text += table(['device', 'passed', 'failed', 'skipped', 'refusals', 'machine'], [36, 10, 8, 26, 10, 10],
                  [summary_line(suite, d, 'device-set-%d' % number[d]) for d in range(len(suite.devices))])
    text += EVERY_INTRO + collapsed('%d rows in %d groups' % (n_every, len(every)), suite, EVERY, [], [40, 8, 52],
                                    lambda _: ())
    some = suite.groups(SOME)
    text += SOME_INTRO + collapsed('%d rows in %d groups' % (sum(map(len, some.values())), len(some)), suite, SOME,
                                   ['devices that pass'], [38, 8, 36, 18], some_cells(suite))
    text += REFUSAL_INTRO + table(['group', 'rows', 'source', 'reason of skips', 'passes on'], [24, 8, 20, 18, 30],
                                  refusal_lines(suite))
    text += DEVICE_INTRO + device_sections(suite, sets)
    reasons = [(literal(name), '; '.join(texts)) for name, texts in sorted(suite.texts.items())]
    return text + REASON_INTRO + table(['name', 'the row skips because'], [30, 70], reasons).rstrip('\n') + '\n'
