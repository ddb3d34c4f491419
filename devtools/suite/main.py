#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The test suite: builds, meson suites, sanitizers, consumer, documents. See --help."""

import argparse
import fnmatch
import os
import sys
import tempfile
import threading
import time

import docs
import stages
import thorough
from builds import TOP, WORK, Builds
from clock import OUTPUT, Clock, say, show
from tally import Tally

# Stage: function, its share in seconds in each form, on two cores of a slow machine.
STAGES = {
    'format': (stages.stage_format, {'quick': 20, 'all': 20}),
    'gcc': (stages.stage_gcc, {'quick': 580, 'all': 480}),
    'hugepages': (stages.stage_hugepages, {'all': 20}),
    'release': (stages.stage_release, {'all': 100}),
    'fuzz': (stages.stage_fuzz, {'all': 60}),
    'asan': (stages.stage_asan, {'all': 460}),
    'tsan': (stages.stage_tsan, {'all': 150}),
    'arm64': (stages.stage_arm64, {'all': 90}),
    'interop': (stages.stage_interop, {'all': 150, 'long': 1500}),
    'kernel': (stages.stage_kernel, {'all': 120, 'long': 9000}),
    'fio': (stages.stage_fio, {'all': 30}),
    'consumer': (stages.stage_consumer, {'all': 40}),
    'docs': (docs.stage_docs, {'all': 40}),
    'seeds': (thorough.stage_seeds, {'long': 4700}),
    'fuzz_long': (thorough.stage_fuzz_long, {'long': 1500}),
    'arm64_long': (thorough.stage_arm64_long, {'long': 2900}),
    'debians': (thorough.stage_debians, {'long': 1300}),
    'packages': (thorough.stage_packages, {'long': 240}),
}
# Stages that run one after the other beside those of HOSTS: each keeps one processor busy, and the tests of HOSTS
# leave a third of the processors idle.
BESIDE = ('interop', 'kernel', 'fio', 'consumer', 'docs')
HOSTS = ('tsan', 'arm64', 'seeds', 'fuzz_long', 'arm64_long', 'debians', 'packages')
FORMS = {
    'quick': 'one build; each unit, golden and model test, conformance on soft0 and a wire, programs, checks',
    'all': 'what CI runs: also sanitizers, fuzzers, -O3, arm64, guests with Linux, documents',
    'long': 'before a release, after --all: large seeds, long fuzzing, all interop and kernel tests, slow emulation',
}


class Run:
    """One run of the suite, as its stages use it."""

    def __init__(self, form, only, builds=None):
        self.form = form
        self.only = only
        self.tally = Tally()
        self.ran = set()  # names of tests
        self.clock = Clock({name: shares[form] for name, (_, shares) in STAGES.items() if form in shares})
        self.builds = builds or Builds(self.clock, form)

    def stages(self, names):
        for name in names:
            begin = time.time()
            STAGES[name][0](self)
            self.clock.stage(name, time.time() - begin)


class Beside(threading.Thread):
    """Stages that run in a thread of their own. Their output is shown when they have ended."""

    def __init__(self, r, names):
        super().__init__(daemon=True)
        self.host = r
        self.run_of = Run(r.form, r.only, r.builds)
        self.names = names
        self.file = tempfile.TemporaryFile('w+')
        self.error = None
        say('%s: run beside the next stages' % ', '.join(names))
        self.start()

    def run(self):
        OUTPUT.file = self.file
        try:
            self.run_of.stages(self.names)
        except BaseException as err:  # raised again by end()
            self.error = err

    def end(self):
        say('waiting for %s' % ', '.join(self.names))
        self.join()
        self.file.seek(0)
        show(self.file.read(), end='')
        self.file.close()
        if self.error is not None:
            raise self.error
        self.host.tally.merge(self.run_of.tally)
        self.host.ran |= self.run_of.ran
        self.host.clock.merge(self.run_of.clock)


def allowed_skips():
    patterns = []
    with open(os.path.join(TOP, '.ci', 'allowed-skips')) as f:
        for line in f:
            line = line.split('#')[0].strip()
            if not line:
                continue
            pattern, _, reason = line.partition(':')
            if not reason.strip():
                sys.exit('.ci/allowed-skips: the pattern %s has no reason' % pattern)
            patterns.append((pattern.strip(), reason.strip()))
    return patterns


def of_form(form):
    return [name for name, (_, shares) in STAGES.items() if form in shares]


def help_text():
    text = 'devtools/test: build Bluebell and run its tests. No card is needed.\n\n'
    text += 'Missing Debian packages are installed first (devtools/packages; needs root).\n'
    text += 'All builds go to build-test/. Three forms, with the time that each takes on 2 cores:\n'
    text += '  devtools/test          10 minutes: %s\n' % FORMS['quick']
    text += '  devtools/test --all    28 minutes: %s\n' % FORMS['all']
    text += '  devtools/test --long   3 to 4 hours: %s\n\n' % FORMS['long']
    text += 'Stages, in this order (q: of the short form, a: of --all, l: of --long):\n'
    for name, (func, shares) in STAGES.items():
        text += '  %-10s %-3s %s\n' % (name, ''.join(form[0] for form in FORMS if form in shares), func.__doc__)
    return text


def parse_args():
    tail = 'examples:\n  devtools/test                     before each commit\n'
    tail += '  devtools/test --all --only asan   one stage\n'
    tail += '  meson test -C build-test/gcc --suite unit   one suite, once it is built\n\n'
    tail += 'The last line is "N passed, N failed, N skipped", summed over all stages: a program of\n'
    tail += 'cmocka or unittest counts each of its test functions, everything else (a build, a check,\n'
    tail += 'a document) is 1. The exit status is 0 only if nothing failed. Before it stand the\n'
    tail += 'slowest tests, and where the time went.'
    p = argparse.ArgumentParser(prog='devtools/test', description=help_text(), epilog=tail,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    which = p.add_mutually_exclusive_group()
    which.add_argument('--all', dest='form', action='store_const', const='all', help=FORMS['all'])
    which.add_argument('--long', dest='form', action='store_const', const='long', help=FORMS['long'])
    p.add_argument('--only', metavar='STAGE,...', help='run these stages of the form')
    p.add_argument('--ci', action='store_true',
                   help='fail on a skip that .ci/allowed-skips does not name')
    p.set_defaults(form='quick')
    args = p.parse_args()
    names = of_form(args.form)
    args.only = args.only.split(',') if args.only else names
    for name in args.only:
        if name not in STAGES:
            p.error('unknown stage %s; the stages are: %s' % (name, ', '.join(STAGES)))
        if name not in names:
            p.error('stage %s is not part of this form, whose stages are: %s. Add %s' % (
                name, ', '.join(names), ' or '.join('--' + f for f in FORMS if name in of_form(f))))
    if {'consumer', 'fio', 'hugepages'} & set(args.only) and 'gcc' not in args.only:
        args.only.append('gcc')
    return args


def main():
    args = parse_args()
    allowed = allowed_skips()
    os.makedirs(WORK, exist_ok=True)
    r = Run(args.form, args.only)
    names = [name for name in STAGES if name in args.only]
    hosts = [name for name in names if name in HOSTS]
    beside = [name for name in names if name in BESIDE]
    if not hosts or not beside:
        r.stages(names)
    else:
        r.stages([name for name in names if name not in hosts + beside])
        if {'interop', 'kernel'} & set(beside):
            r.builds.get(r.tally, 'gcc')  # stages of both groups use it
        other = Beside(r, beside)
        r.stages(hosts)
        other.end()
    if args.form == 'all' and names == of_form('all'):
        stages.check_all_ran(r)
    say('finished')
    print('\n'.join(r.clock.report()))
    tally = r.tally
    for name in tally.skips:
        reason = next((why for p, why in allowed if fnmatch.fnmatchcase(name, p)), None)
        why = tally.reasons[name]
        print('skipped: %s (%s)%s' % (name, reason or 'not in .ci/allowed-skips', ': ' + why if why else ''))
        if reason is None and args.ci:
            tally.failures.append('skip not allowed in CI: ' + name)
    for name in tally.failures:
        print('FAILED: %s' % name)
        for line in tally.gists.get(name, []):
            print('    ' + line)
    print('%d passed, %d failed, %d skipped' % (tally.passed, tally.failed, tally.skipped))
    return 1 if tally.failures else 0


if __name__ == '__main__':
    sys.exit(main())
