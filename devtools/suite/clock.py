# SPDX-License-Identifier: BSD-3-Clause
"""Time spent by devtools/test: per stage, by kind of work, and the slowest tests."""

import os
import sys
import threading
import time

START = float(os.environ.get('SUITE_START', time.time()))
KINDS = ('configure', 'compile', 'link', 'other', 'run', 'wait')

# Where the stages of a thread print: attribute file, if it is set.
OUTPUT = threading.local()


def output():
    """Returns the file to which stages of this thread, and the programs that they run, print."""
    return getattr(OUTPUT, 'file', sys.stdout)


def show(text, end='\n'):
    print(text, end=end, file=output(), flush=True)


def say(text):
    show('[%4ds] %s' % (time.time() - START, text))


def kind_of(name):
    """Returns the kind of a step of ninja, by the name of its output."""
    if name.endswith('.o'):
        return 'compile'
    return 'other' if '.' in os.path.basename(name).replace('.so', '').replace('.a', '') else 'link'


def ninja_seconds(text, before=0):
    """Returns seconds by kind for the steps in ninja's log from byte @before on."""
    sums = dict.fromkeys(KINDS, 0.0)
    steps = {}
    for line in text[before:].splitlines():
        fields = line.split('\t')
        if len(fields) == 5:
            # A step with several outputs has one line for each.
            steps[fields[0], fields[1], fields[4]] = fields[3]
    for (begin, end, _), output in steps.items():
        sums[kind_of(output)] += (int(end) - int(begin)) / 1000
    return sums


class Clock:
    """Sums of one run of the suite. Kinds are seconds of one core, wall is elapsed time."""

    def __init__(self, shares):
        self.begin = time.time()  # the packages are installed
        self.shares = shares  # stage: its share of the time, in seconds
        self.stages = {}  # stage: kind: seconds
        self.walls = {}
        self.tests = []  # seconds, name

    def add(self, stage, kind, seconds):
        kinds = self.stages.setdefault(stage, dict.fromkeys(KINDS, 0.0))
        kinds[kind] += seconds

    def ninja(self, stage, sums):
        for kind, seconds in sums.items():
            self.add(stage, kind, seconds)

    def ran(self, stage, tests, cpu):
        """Adds tests. @tests: (seconds, name) of each; @cpu: core seconds of all of them."""
        self.tests += tests
        total = sum(seconds for seconds, _ in tests)
        self.add(stage, 'run', min(cpu, total))
        self.add(stage, 'wait', max(0.0, total - cpu))

    def merge(self, other):
        """Adds the times of another clock, whose stages ran beside those of this one."""
        for stage, kinds in other.stages.items():
            for kind, seconds in kinds.items():
                self.add(stage, kind, seconds)
        self.walls.update(other.walls)
        self.tests += other.tests

    def stage(self, name, seconds):
        self.walls[name] = seconds
        share = self.shares.get(name)
        if share and seconds > share:
            say('%s: took %d s, its share is %d s' % (name, seconds, share))

    def report(self, slowest=20):
        """Returns the lines of the table, once all stages ended. Stages run side by side."""
        lines = []
        if self.tests:
            lines.append('the slowest tests:')
            lines += ['  %6.1f s  %s' % test for test in sorted(self.tests, reverse=True)[:slowest]]
        lines += ['where the time went, in seconds (share, wall: of the clock; the rest: of one core):',
                  '  %-10s %6s %6s' % ('stage', 'share', 'wall') + ''.join(' %9s' % k for k in KINDS),
                  '  %-10s %6s %6d' % ('packages', '-', self.begin - START)]
        total = dict.fromkeys(KINDS, 0.0)
        for name, wall in self.walls.items():
            kinds = self.stages.get(name, dict.fromkeys(KINDS, 0.0))
            lines.append('  %-10s %6s %6d' % (name, self.shares.get(name, '-'), wall) +
                         ''.join(' %9.0f' % kinds[k] for k in KINDS))
            for k in KINDS:
                total[k] += kinds[k]
        share = sum(self.shares.get(name, 0) for name in self.walls)
        lines.append('  %-10s %6d %6d' % ('all', share, time.time() - self.begin) +
                     ''.join(' %9.0f' % total[k] for k in KINDS))
        return lines
