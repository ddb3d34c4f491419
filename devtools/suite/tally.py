# SPDX-License-Identifier: BSD-3-Clause
"""Counts of devtools/test: its stages, and the test functions that meson ran."""

import re

# Lines with which cmocka ends a group of tests.
CMOCKA_CLOSING = re.compile(r'^\[ +(PASSED|FAILED|SKIPPED) +\] (\d+) test\(s\)', re.M)
CMOCKA_SKIPPED = re.compile(r'^\[ +SKIPPED +\] (\w+)\s*$', re.M)
# Output of Python's unittest with verbosity=2: its functions, those skipped, its end.
PYTHON_RUNS = re.compile(r'^(\w+) \(\S+\)')
PYTHON_SKIPPED = re.compile(r'(?:^|\.\.\. )skipped ([\'"])(.*)\1$')
PYTHON_CLOSING = re.compile(r'^Ran (\d+) tests? in .*\n\n(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$', re.M)
# The reason in the output of any other test that exits with 77.
SKIP_REASON = re.compile(r'^skipped: (.*)', re.M)

# Lines that show best what went wrong: cmocka's, the sanitizers', the compilers', Python's.
TELLING = re.compile(r'ERROR|FAILED|SUMMARY|WARNING: |error: |Error: |^abort| line \d+|Test unit written|^Base64')


def gist(text, most=8, width=160):
    """Returns the most informative lines of an output, or its last ones."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if TELLING.search(line)]
    return [line[:width] for line in (telling[:most] if telling else lines[-most:])]


def cmocka_sums(text):
    """Returns functions passed, failed and skipped of cmocka's output; None if it has none."""
    closing = CMOCKA_CLOSING.findall(text)
    sums = {what: sum(int(n) for w, n in closing if w == what) for what in ('PASSED', 'FAILED')}
    skips = [(name, None) for name in sorted(set(CMOCKA_SKIPPED.findall(text)))]
    return (sums['PASSED'], sums['FAILED'], skips) if closing else None


def python_sums(text):
    """Returns the same for unittest, with the reasons of skips."""
    closing = PYTHON_CLOSING.findall(text)
    name, skips = '', []
    for line in text.splitlines():
        runs, skipped = PYTHON_RUNS.match(line), PYTHON_SKIPPED.search(line)
        name = runs[1] if runs else name
        if skipped:
            skips.append((name, skipped[2]))
    passed = failed = unnamed = 0
    for ran, rest in closing:
        count = {what: int(n) for what, n in (part.split('=') for part in rest.split(', ') if part)}
        wrong = sum(count.get(what, 0) for what in ('failures', 'errors', 'unexpected successes'))
        # A class that is skipped as a whole counts as one, and its functions did not run.
        passed += max(0, int(ran) - wrong - count.get('skipped', 0))
        failed += wrong
        unnamed += count.get('skipped', 0)
    # Output of the program under test may hide a line, but the counts stay right.
    skips += [('unknown', None)] * (unnamed - len(skips))
    return (passed, failed, skips) if closing else None


class Tally:
    """Sums over all stages. Programs of cmocka and unittest count functions, any other program 1."""

    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.skipped = 0
        self.failures = []
        self.gists = {}
        self.skips = []
        self.reasons = {}

    def merge(self, other):
        """Adds the counts of another tally."""
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures
        self.gists.update(other.gists)
        self.skips += other.skips
        self.reasons.update(other.reasons)

    def ok(self, count=1):
        self.passed += count

    def fail(self, name, count=1, text=''):
        """Records a failure. @text: its output, of which the end of the suite repeats a few lines."""
        self.failed += count
        self.failures.append(name)
        self.gists[name] = gist(text)

    def skip(self, name, why=None):
        self.skipped += 1
        self.skips.append(name)
        self.reasons[name] = why

    def meson_test(self, stage, test):
        """Adds one record of meson's testlog.json. Returns cmocka's closing lines."""
        # "bluebell:unit+threads / log": the first suite is the kind of test.
        suites, _, case = test['name'].split(':', 1)[-1].partition(' / ')
        name = '%s/%s/%s' % (stage, suites.split('+')[0], case)
        text = (test.get('stdout') or '') + '\n' + (test.get('stderr') or '')
        result = test['result']
        sums = cmocka_sums(text) or python_sums(text)
        if result == 'SKIP':
            self.skip(name, next(iter(SKIP_REASON.findall(text)), None))
        elif sums is None:
            if result == 'OK':
                self.ok()
            else:
                self.fail('%s (%s)' % (name, result), text=text)
        else:
            passed, failed, skips = sums
            self.ok(passed)
            for case, why in skips:
                self.skip(name + '/' + case, why)
            if failed or result != 'OK':
                self.fail('%s (%s)' % (name, result), max(1, failed), text)
            elif not passed and not skips:
                self.fail(name + ' (no test in it)')
        return ['%s: [  %s  ] %s test(s)' % (name, w, n) for w, n in CMOCKA_CLOSING.findall(text) if int(n)]
