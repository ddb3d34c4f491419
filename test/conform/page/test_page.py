#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""page.py loses nothing: the results of each group on each device can be read back from the page.

usage: test_page.py [RESULTS_JSON]

Without a file: random results. With one: the results of "conform --json".
"""

import collections
import csv
import json
import random
import re
import sys
import unittest

import page
import recorded

SEED = 1
NEEDS = ('atomics', 'srq', 'no-atomics', 'no-srq', 'two-devices')
MACHINE = '5 GiB cannot be mapped, and locked'


def random_outcome(rng, kind, need):
    """Returns the result of one row on one device."""
    if kind == 'machine':
        result = {'result': rng.choice(['pass', 'skip']), 'machine': MACHINE}
        if result['result'] == 'skip':
            result.update(missing='machine-memory', why=MACHINE)
        if rng.random() < .2:
            result.update(result='skip', missing='srq', why='max_srq is 0')
    elif kind == 'every' or rng.random() < .5:
        result = {'result': 'pass'}
    elif kind == 'failing':
        result = {'result': rng.choice(['fail', 'differs']), 'why': 'no "completion", %d' % rng.randrange(3)}
    else:
        need = need if rng.random() < .7 else rng.choice(NEEDS)
        result = {'result': 'skip', 'missing': need, 'why': 'attr.%s, "quoted"' % need}
    return result


def random_results(rng):
    rows = []
    for group in range(rng.randrange(1, 30)):
        for i in range(rng.randrange(1, 6)):
            rows.append(('area%d/rc/g%d' % (group // 4, group), i, rng.choice(['every', 'skip', 'machine', 'failing']),
                         rng.choice(NEEDS), rng.choice(['ibv_a(3)', 'ibv_b(3), ibv_c(3)'])))
    devices = []
    for n in range(rng.randrange(1, 8)):
        made = [dict(random_outcome(rng, kind, need), name='%s/%d' % (group, i), group=group, man=man)
                for group, i, kind, need, man in rows]
        devices.append({'device': 'soft0,no_%d+soft1' % n, 'rows': made})
    for n in range(rng.randrange(3)):
        devices.append({'device': 'twin%d' % n, 'rows': devices[0]['rows']})
    return {'devices': devices}


def sections(text):
    """Returns the lines of each section, by title."""
    lines = text.split('\n')
    found, title = collections.defaultdict(list), ''
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and line and re.fullmatch(r'([=~-])\1*', lines[i + 1]):
            title = line
        found[title].append(line)
    return found


def cells(lines):
    """Returns the rows of the tables in a section."""
    rows = [line.strip() for line in lines if line.startswith('   ') and not re.match(r' +(:\w+:|<)', line)]
    return list(csv.reader(rows, skipinitialspace=True))


def device_tables(found):
    """Returns the table of each device: (group, source, result, reason)."""
    tables = {}
    for title, lines in found.items():
        if title.startswith('``'):
            devices = re.findall(r'^- ``(.*)``$', '\n'.join(lines), re.M) or [title.strip('`')]
            tables.update({d: {c[0]: c for c in cells(lines)} for d in devices})
    return tables


class Page(unittest.TestCase):
    def check_groups(self, suite, found):
        """Each group is in the lists, with all its rows and its sources."""
        counted = collections.Counter()
        sources = collections.defaultdict(set)
        for title in ('Rows that pass on every device', 'Rows that some devices skip', 'Refusals'):
            for c in cells(found[title]):
                counted[c[0]] += int(c[1])
                sources[c[0]].update(c[2].split('; '))
        self.assertEqual(counted, {group: len(rows) for group, rows in suite.groups().items()})
        for group, rows in suite.groups().items():
            self.assertEqual(sources[group], {suite.rows[i]['man'] for i in rows}, group)

    def check_device(self, suite, d, found):
        """The page holds the number of rows of each result on a device, and the reasons."""
        table = device_tables(found)[suite.devices[d]]
        named = set()
        for group, rows in suite.groups().items():
            left = [suite.outcomes[i][d] for i in rows if not page.is_refusal(suite.outcomes[i][d])]
            want = collections.Counter(kind for kind, _ in left)
            if set(want) <= {'pass'}:
                self.assertNotIn(group, table)
                continue
            named.add(group)
            result = table[group][2]
            got = {kind: int(n) for kind, n in re.findall(r'(\D+) (\d+)(?:, |$)', result)} or {result: len(left)}
            self.assertEqual(got, want, group)
            for kind, text in left:
                self.assertTrue(kind == 'pass' or text in table[group][3].split('; '), (group, text))
        self.assertEqual(named, set(table))

    def check_refusals(self, suite, found):
        """A device skips a refusal unless it is in the last column or its own table names the group."""
        for group, rows in suite.groups(page.REFUSAL).items():
            got = collections.Counter()
            for c in cells(found['Refusals']):
                if c[0] == group:
                    got.update(dict.fromkeys(re.findall('``(.*?)``', c[4]), int(c[1])))
            want = collections.Counter(suite.devices[d] for i in rows for d, o in enumerate(suite.outcomes[i])
                                       if o[0] == 'pass')
            self.assertEqual(got, want, group)

    def check_summary(self, suite, found):
        lines = cells(found['Summary'])
        self.assertEqual(len(lines), len(suite.devices))
        for d, line in enumerate(lines):
            skipped = sum(int(n) for n in re.findall(r' (\d+)', line[3]))
            numbers = [int(n) for n in line[1:3]] + [skipped] + [int(n) for n in line[4:]]
            self.assertEqual(sum(numbers), len(suite.rows), line)
            self.assertEqual(numbers[0], sum(o[d][0] == 'pass' for o in suite.outcomes))
            self.assertEqual(numbers[1], sum(o[d][0] in ('fail', 'differs') for o in suite.outcomes))

    def check_reasons(self, results, found):
        text = {c[0].strip('`'): c[1] for c in cells(found['Reasons'])}
        for device in results['devices']:
            for row in device['rows']:
                if row['result'] == 'skip' and not row['missing'].startswith('machine-'):
                    self.assertIn(row['why'], text[row['missing']].split('; '))

    def check(self, results):
        suite = page.Suite(results)
        found = sections(page.render(results))
        self.check_groups(suite, found)
        for d in range(len(suite.devices)):
            self.check_device(suite, d, found)
        self.check_refusals(suite, found)
        self.check_summary(suite, found)
        self.check_reasons(results, found)

    def test_page_gives_the_results_back(self):
        if RESULTS is not None:
            self.check(RESULTS)
            return
        rng = random.Random(SEED)
        for n in range(60):
            with self.subTest(seed=SEED, n=n):
                self.check(random_results(rng))

    def test_record_holds_every_outcome(self):
        rng = random.Random(SEED)
        for _ in range(20):
            devices = random_results(rng)['devices']
            for device in devices:
                kept = recorded.compact('guest:' + device['device'], device['rows'])
                self.assertEqual(recorded.expand(kept, devices[0]['rows']), device['rows'])
        with self.assertRaisesRegex(ValueError, 'unknown rows: gone/1'):
            recorded.expand({'device': 'd', 'outcomes': [{'result': 'skip', 'rows': ['gone/1']}]}, devices[0]['rows'])

    def test_machine_that_makes_the_page_changes_nothing(self):
        row = {'name': 'a/b/1', 'group': 'a/b', 'man': 'ibv_a(3)', 'machine': MACHINE}
        passing = {'devices': [{'device': 'soft0', 'rows': [dict(row, result='pass')]}]}
        skipping = {'devices': [{'device': 'soft0', 'rows': [
            dict(row, result='skip', missing='machine-memory', why=MACHINE)]}]}
        self.assertEqual(page.render(passing), page.render(skipping))
        self.assertIn(MACHINE, page.render(passing))


if __name__ == '__main__':
    RESULTS = None
    if len(sys.argv) > 1 and not sys.argv[1].startswith('-'):
        with open(sys.argv.pop(1)) as results_file:
            RESULTS = json.load(results_file)
    unittest.main()
