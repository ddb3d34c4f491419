# SPDX-License-Identifier: BSD-3-Clause
"""The builds of devtools/test: the contents of each, built now or ahead of its stage."""

import concurrent.futures
import json
import os
import shutil
import subprocess
import time

import which
from clock import ninja_seconds, output, say, show

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = os.path.join(TOP, 'build-test')


def read_text(path):
    with open(path, errors='replace') as f:
        return f.read()


def show_failure(log):
    text = read_text(log)
    # The output of ninja before the first failure is not shown.
    show(text[max(0, text.find('\nFAILED: ')):][:20000])


def run(cmd, log=None, env=None, live=False, tell=True):
    """Runs a command in the tree. Its output goes to a log, which @tell shows if the command fails, or with @live to
    the output of the stage."""
    full = dict(os.environ, **(env or {}))
    if live:
        return subprocess.call(cmd, cwd=TOP, env=full, stdout=output(), stderr=subprocess.STDOUT) == 0
    with open(log, 'w') as out:
        rc = subprocess.call(cmd, cwd=TOP, env=full, stdout=out, stderr=subprocess.STDOUT)
    if rc != 0 and tell:
        show_failure(log)
        show('command failed with exit status %d: %s' % (rc, ' '.join(cmd)[:200]))
    return rc == 0


def make_guest(*options):
    """Runs test/interop/vm/build. Returns its exit status (77: packages cannot be downloaded) and its output."""
    made = subprocess.run(['nice', '-n', '15', os.path.join(TOP, 'test/interop/vm/build'), *options], cwd=TOP,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return made.returncode, made.stdout


def first_of(*names):
    return next((n for n in names if shutil.which(n)), None)


def introspect(what, path):
    return json.loads(subprocess.check_output(['meson', 'introspect', '--' + what, path]))


def without(*folders, but=()):
    """Returns a function from a build to its targets except those of @folders, where only those stay whose names begin
    as one of @but."""
    def targets(path):
        names = [os.path.relpath(t['filename'][0], path) for t in introspect('targets', path)
                 if t['build_by_default']]
        return [name for name in names if name.startswith(but) or not name.startswith(folders)]
    return targets


def programs_of(want):
    """Returns a function from a build to the programs of the tests that @want accepts, and the files that they load."""
    def targets(path):
        files = {t['id']: t['filename'] for t in introspect('targets', path)}
        names = set()
        for test in introspect('tests', path):
            if want(test['name'], {suite.split(':')[-1] for suite in test['suite']}):
                names.update([test['cmd'][0], *(f for d in test['depends'] for f in files.get(d, []))])
        return sorted(os.path.relpath(name, path) for name in names if name.startswith(path + os.sep))
    return targets


# Tests that other builds run in --all. The plain build needs those that they exclude.
ELSEWHERE = ('test/unit/', 'test/model/', 'test/fuzz/', 'test/golden/')
PLAIN_ONLY = ('test/golden/golden_live_', 'test/unit/verbs/verbs_count', 'test/model/core/model_nosyscall',
              'test/model/roce/model_roce_sim_rto', 'test/model/roce/model_roce_sim_types',
              'test/model/soft/cmd/model_soft_ctl_mem', 'test/model/soft/engine/turn_path',
              'test/unit/mem/unit_memevents',
              'test/unit/mlx5/unit_mlx5_hugepages')

# A build: compiler, options, targets (none: all) or a function that finds them.
BUILDS = {
    # Line numbers are enough debug information here and take a tenth of the time.
    'gcc': (('gcc',), ['--prefix=' + os.path.join(WORK, 'prefix'), '-Dfio_src=', '-Dc_args=-g1', '-Dwerror=true',
                       '-Ddefects=true'], []),
    # -O3: gcc gives more warnings and optimises the inlines of the data path hardest. bench and testrdma inline most.
    'release': (('gcc',), ['--buildtype=release', '-Dwerror=true',
                           '-Dc_args=-Wdate-time -Wformat -Werror=format-security'],
                without('app/', 'doc/', 'examples/', 'lib/python/', 'test/',
                        but=('app/bench/', 'app/testrdma/', 'test/golden/', 'test/conform/'))),
    # clang gives the same warnings with -O1 and needs two thirds of the time.
    'fuzz': (('clang-14', 'clang'), ['-Dfuzz=true', '-Doptimization=1', '-Dc_args=-g1', '-Dwerror=true',
                                           '-Ddefects=true'], ['fuzzers']),
    # gcc warns about pointers that only the sanitizer's own checks take for null. -O2 -g takes
    # nearly three times as long.
    'asan': (('gcc',), ['-Db_sanitize=address,undefined', '-Dwerror=false', '-Ddebug_checks=true',
                        '-Ddefects=true', '-Doptimization=1', '-Dc_args=-g1'],
             programs_of(which.asan)),
    # RTE_FORCE_INTRINSICS: DPDK's locks are in assembler otherwise, which the sanitizer does not see.
    'tsan': (('clang-14', 'clang'), ['-Db_sanitize=thread', '-Db_lundef=false', '-Doptimization=1',
                                     '-Dc_args=-g1 -DRTE_FORCE_INTRINSICS', '-Dwerror=true', '-Ddefects=true'],
             programs_of(which.in_suites('threads'))),
}

# Builds by devtools/cross. arm64: what each form runs. A newer Debian: what includes its headers.
CROSS = {
    'arm64': ['suite:arch', 'suite:golden', 'test/conform/conform', 'examples/hello_write/hello_write',
              'app/testrdma/testrdma'],
    'sid': ['libbluebell_whole.so', 'app/testrdma/testrdma'],
}
CROSS_LONG = {'arm64': ['suite:unit', 'suite:model', 'test/conform/conform']}


class Builds:
    """Builds of one run, each made once. @clock gets the times of their steps."""

    def __init__(self, clock, form):
        self.clock = clock
        self.form = form
        self.ahead = {}  # stage: future of its build, which runs beside the tests of earlier stages
        self.made = {}  # stage: its build, None if it failed
        self.cannot = {}  # stage: why it cannot be built here

    def targets(self, stage, path):
        targets = BUILDS[stage][2]
        if stage == 'gcc' and self.form == 'all':
            targets = without(*ELSEWHERE, but=PLAIN_ONLY)
        elif stage == 'gcc' and self.form == 'quick':
            targets = without('test/interop/', but=('test/interop/bb_peer',))
        return targets(path) if callable(targets) else targets

    def compile_stage(self, stage, nice=()):
        """Configures build-test/<stage> and builds what the stage needs. Returns whether that succeeded."""
        path = os.path.join(WORK, stage)
        ninja_log = os.path.join(path, '.ninja_log')
        before = os.path.getsize(ninja_log) if os.path.exists(ninja_log) else 0
        ok = self.cross(stage, nice) if stage in CROSS else self.native(stage, path, nice)
        if os.path.exists(ninja_log):
            self.clock.ninja(stage, ninja_seconds(read_text(ninja_log), before))
        return ok

    def native(self, stage, path, nice):
        names, options, _ = BUILDS[stage]
        log = os.path.join(WORK, stage + '.log')
        cc = first_of(*names)
        if cc is None:
            with open(log, 'w') as f:
                f.write('%s is not installed\n' % names[0])
            return False
        say('%s: build with %s %s%s' % (stage, cc, ' '.join(options), ', ahead' if nice else ''))
        # As meson finds a compiler by itself: through ccache if it is installed.
        env = {'CC': ('ccache ' if shutil.which('ccache') else '') + cc}
        if stage == 'asan' and shutil.which('ld.gold'):
            env.update(CC_LD='gold', CXX_LD='gold')  # 300 programs: half the time of the default linker
        begin = time.time()
        configured = os.path.exists(os.path.join(path, 'build.ninja'))
        setup = ['meson', 'setup', path] + options + (['--reconfigure'] if configured else [])
        ok = run(setup, log, env, tell=False)
        if not ok and configured:
            say('%s: configuring from scratch' % stage)
            shutil.rmtree(path)
            ok = run(['meson', 'setup', path] + options, log, env, tell=False)
        self.clock.add(stage, 'configure', time.time() - begin)
        return ok and run([*nice, 'ninja', '-C', path, *self.targets(stage, path)], log, env, tell=False)

    def cross(self, stage, nice):
        """Builds build-test/<stage> by devtools/cross, as native() does."""
        log = os.path.join(WORK, stage + '.log')
        if os.uname().machine != 'x86_64':
            self.cannot[stage] = 'it is made on x86-64'
            return False
        say('%s: devtools/cross%s' % (stage, ', ahead' if nice else ''))
        targets = CROSS_LONG.get(stage, CROSS[stage]) if self.form == 'long' else CROSS[stage]
        with open(log, 'w') as out:
            rc = subprocess.call([*nice, os.path.join(TOP, 'devtools/cross'), stage, os.path.join(WORK, stage),
                                  *targets], cwd=TOP, stdout=out, stderr=subprocess.STDOUT)
        if rc == 77:
            self.cannot[stage] = read_text(log).strip().split('\n')[-1]
        return rc == 0

    def build_ahead(self, stages, then):
        """Starts the builds of @stages, one after the other, on processors that tests leave idle, and then what
        @then names."""
        pool = concurrent.futures.ThreadPoolExecutor(1)
        for stage in stages:
            self.ahead[stage] = pool.submit(self.compile_stage, stage, ('nice', '-n', '15'))
        for name, job in then.items():
            self.ahead[name] = pool.submit(job)
        pool.shutdown(wait=False)

    def download_ahead(self, only):
        """Starts the downloads that stages of @only need."""
        pool = concurrent.futures.ThreadPoolExecutor(1)
        if {'interop', 'kernel'} & set(only):
            self.ahead['guest'] = pool.submit(make_guest)
        if 'kernel' in only:
            self.ahead['qemu'] = pool.submit(make_guest, '--qemu')
        if 'fio' in only:
            self.ahead['source'] = pool.submit(subprocess.run, [os.path.join(TOP, 'devtools/fio-source'),
                                               os.path.join(WORK, 'fio')], stdout=subprocess.PIPE, text=True)
        pool.shutdown(wait=False)

    def get(self, tally, stage):
        """Returns the build of a stage, build-test/<stage>; None if it failed."""
        if stage not in self.made:
            self.made[stage] = self.make(tally, stage)
        return self.made[stage]

    def make(self, tally, stage):
        log = os.path.join(WORK, stage + '.log')
        if stage in self.ahead:
            ok = self.ahead[stage].result()
            say('%s: is built' % stage)
        else:
            ok = self.compile_stage(stage)
        if stage in self.cannot:
            say('%s: skipped, %s' % (stage, self.cannot[stage]))
            tally.skip(stage + '/build/packages', self.cannot[stage])
            return None
        if not ok:
            show_failure(log)
            tally.fail(stage + ': build', text=read_text(log))
            return None
        tally.ok()
        return os.path.join(WORK, stage)
