# SPDX-License-Identifier: BSD-3-Clause
"""The stages of devtools/test except builds. A stage takes the run to which it belongs."""

import concurrent.futures
import contextlib
import fcntl
import glob
import json
import os
import shlex
import shutil
import subprocess

import which
from builds import BUILDS, CROSS, TOP, WORK, first_of, introspect, make_guest, read_text, run
from clock import output, say, show

# Tests that wait or start leave about a third of the processors idle.
PROCESSES = os.cpu_count() + 1


def meson_pass(r, stage, path, names, processes, log, env=None, wrapper=None, multiplier=3, more=()):
    """Calls meson test once in a build. @log: name of its log files. @multiplier: of its time limits, which only end a
    test that hangs."""
    cmd = (wrapper or []) + ['meson', 'test', '-C', path, '--no-rebuild', '--print-errorlogs',
                             '--num-processes', str(processes), '-t', str(multiplier), '--logbase', log, *more]
    say('%s: %s (%d tests)' % (stage, ' '.join(cmd), len(names)))
    # Stages that run side by side may test the same build.
    logfile = os.path.join(path, 'meson-logs', log + '.json')
    if os.path.exists(logfile):
        os.unlink(logfile)
    failed = r.tally.failed
    with subprocess.Popen(cmd + names, cwd=TOP, env=dict(os.environ, **(env or {})), stdout=output(),
                          stderr=subprocess.STDOUT) as proc:
        _, status, used = os.wait4(proc.pid, 0)
        proc.returncode = os.waitstatus_to_exitcode(status)
    records = []
    if os.path.exists(logfile):
        with open(logfile) as log:
            records = [json.loads(line) for line in log]
    lines = [line for record in records for line in r.tally.meson_test(stage, record)]
    show('\n'.join(lines))
    r.clock.ran(stage, [(record['duration'], stage + '/' + record['name'].split(' / ')[-1]) for record in records],
                used.ru_utime + used.ru_stime)
    r.ran.update(names)
    if proc.returncode != 0 and r.tally.failed == failed:
        r.tally.fail(stage + ': meson test')
    if len(records) != len(names):
        r.tally.fail('%s: %d of %d tests ran' % (stage, len(records), len(names)))


def meson_tests(r, stage, path, want, **how):
    """Runs the tests whose name and suites @want accepts, first those that share the processors."""
    parallel, alone = [], []
    for test in introspect('tests', path):
        suites = {suite.split(':')[-1] for suite in test['suite']}
        if want(test['name'], suites):
            (alone if 'alone' in suites else parallel).append(test['name'])
    names = parallel + alone
    if not names:
        r.tally.fail(stage + ': there is no test')
    if len(set(names)) < len(names):
        r.tally.fail('%s: two tests have one name: %s' % (stage, {n for n in names if names.count(n) > 1}))
    if parallel:
        meson_pass(r, stage, path, parallel, PROCESSES, stage, **how)
    if alone:
        meson_pass(r, stage, path, alone, 1, stage + '-alone', **how)


def check_all_ran(r):
    """Fails for each test that no stage of --all has run, except tests that run there in another form or with other
    tests, and tests of --long."""
    if r.builds.cannot or None in r.builds.made.values():
        return
    for test in introspect('tests', r.builds.made['gcc']):
        suites = {suite.split(':')[-1] for suite in test['suite']}
        if test['name'] not in r.ran and not suites & {'long', 'short', 'devices', 'interop', 'kernel'}:
            r.tally.fail('no stage of --all runs the test ' + test['name'])


def stage_format(r):
    """Checks that clang-format 14 changes no C file."""
    tool = first_of('clang-format-14')
    if tool is None:
        say('format: skipped, clang-format-14 is not installed')
        r.tally.skip('format/style/clang-format')
        return
    files = subprocess.check_output(['git', 'ls-files', '*.c', '*.h'], cwd=TOP, text=True).split()
    say('format: %d files' % len(files))
    ok = run([tool, '--dry-run', '--Werror', '--ferror-limit=1'] + files, os.path.join(WORK, 'format.log'))
    r.tally.ok() if ok else r.tally.fail('format: run clang-format-14 -i on the files above')


def stage_gcc(r):
    """Builds with gcc, runs the short form of all tests; with --all, those of no other stage."""
    r.builds.download_ahead(r.only)
    path = r.builds.get(r.tally, 'gcc')
    # Tests that run alone leave a core idle for minutes.
    ahead = [stage for stage in [*BUILDS, *CROSS] if stage != 'gcc' and stage in r.only]
    r.builds.build_ahead(ahead, {'warnings': lambda: warnings_ahead(r)} if 'tsan' in ahead else {})
    if path:
        meson_tests(r, 'gcc', path, which.quick if r.form == 'quick' else which.plain)


NR_HUGEPAGES = '/proc/sys/vm/nr_hugepages'
# The number of hugepages before a run reserved some; empty while no run has any. Only root can write there.
HUGEPAGES_BEFORE = '/run/bluebell-hugepages'
HUGEPAGE_TESTS = ['memevents', 'memory_default', 'mlx5_hugepages', 'soft_ctl_mem', 'nvmf_hugepages']


def read_int(path):
    with open(path) as f:
        return int(f.read())


def write_int(path, value):
    with open(path, 'w') as f:
        f.write(str(value))


@contextlib.contextmanager
def more_hugepages(want, setting=NR_HUGEPAGES, record=HUGEPAGES_BEFORE):
    """Reserves @want further hugepages, and yields how many the kernel gave. Waits while another run has some. A run
    that was killed leaves its hugepages and the number before them in @record: the next run gives them back."""
    with open(record, 'a+') as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        f.seek(0)
        left, before = f.read(), read_int(setting)
        # Another number was set since, by a user or a new boot.
        if left.isdigit() and int(left) <= before <= int(left) + want:
            before = int(left)
        f.truncate(0)
        f.write(str(before))
        f.flush()
        try:
            write_int(setting, before + want)
            try:
                yield read_int(setting) - before
            finally:
                write_int(setting, before)
        finally:
            f.truncate(0)


def stage_hugepages(r):
    """Runs tests that need hugepages, and testrdma on them. Reserves 128 hugepages meanwhile (root)."""
    path = os.path.join(WORK, 'gcc')
    want = 128
    with contextlib.ExitStack() as stack:
        try:
            got = stack.enter_context(more_hugepages(want))
        except OSError as err:
            say('hugepages: skipped, cannot reserve any: %s' % err)
            r.tally.skip('hugepages/system/reserve')
            return
        if got < want:
            say('hugepages: skipped, the kernel gives %d of %d' % (got, want))
            r.tally.skip('hugepages/system/reserve')
            return
        meson_tests(r, 'hugepages', path, which.named(*HUGEPAGE_TESTS))
        program(r, 'hugepages', [os.path.join(path, 'app/testrdma/testrdma')], ['--in-memory'],
                ['--device', 'soft0', '--op', 'write,read,fetch_add,cmp_swap,send', '--size', '8..64K', '--verify',
                 '--duration', '0.1'])


def program(r, stage, cmd, eal, options):
    """Runs a program once; its exit status decides."""
    name = os.path.basename(cmd[-1])
    say('%s: %s' % (stage, name))
    ok = run([*cmd, '-l', str(min(os.sched_getaffinity(0))), *eal, '--no-pci', '--no-telemetry', '--', *options],
             live=True)
    r.tally.ok() if ok else r.tally.fail('%s: %s' % (stage, name))


def stage_release(r):
    """Builds with -O3; runs the golden suite and conformance."""
    path = r.builds.get(r.tally, 'release')
    if path:
        # Each link of the software device except a port, whose packets are those of the wire.
        devices = which.named('soft0+soft1', 'soft0,progress=thread', 'soft0,wire=1', 'soft0,shm=%p,ip=192.0.2.1/24')
        # hw_golden compares the same recordings in each build, and takes a processor of its own.
        meson_tests(r, 'release', path, lambda name, suites: 'golden' in suites and name != 'hw_golden' or
                    devices(name, suites))


def stage_arm64(r):
    """Builds for 64-bit Arm. Under QEMU: suites arch and golden, conformance, hello_write, testrdma."""
    path = r.builds.get(r.tally, 'arm64')
    if not path:
        return
    # QEMU lacks the system call for access to pages on demand.
    meson_tests(r, 'arm64', path, lambda name, suites: suites & {'arch', 'golden'} or name == 'soft0,no_odp',
                multiplier=5)
    emulated = ['qemu-aarch64-static', '-L', path + '.sysroot']
    eal = ['--no-huge', '-m', '256', '--no-shconf']
    program(r, 'arm64', [*emulated, os.path.join(path, 'examples/hello_write/hello_write')], eal, ['soft0'])
    program(r, 'arm64', [*emulated, os.path.join(path, 'app/testrdma/testrdma')], eal,
            ['--device', 'soft0', '--op', 'write,read,fetch_add,send', '--size', '8,64K', '--verify',
             '--duration', '0.1'])


def stage_fuzz(r):
    """Builds the fuzz targets with clang and runs each for 5 seconds."""
    path = r.builds.get(r.tally, 'fuzz')
    if not path:
        return
    fuzzers = [f for f in sorted(glob.glob(os.path.join(path, 'test', 'fuzz', 'fuzz_*')))
               if os.path.isfile(f)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, ok in pool.map(lambda f: run_fuzzer(path, f), fuzzers):
            if ok:
                r.tally.ok()
            else:
                r.tally.fail('fuzz: ' + name, text=read_text(os.path.join(WORK, name + '.log')))


def run_fuzzer(path, fuzzer):
    """Runs one libFuzzer program for at most 5 seconds. Returns its name and whether it found nothing."""
    name = os.path.basename(fuzzer)
    say('fuzz: ' + name)
    # New inputs go to a copy of the corpus, so that every run starts with the same corpus.
    corpus = os.path.join(WORK, name)
    shutil.rmtree(corpus, ignore_errors=True)
    shutil.copytree(os.path.join(TOP, 'test', 'fuzz', 'corpus', name[len('fuzz_'):]), corpus)
    seeds = os.path.join(path, 'test', 'fuzz', 'seeds', name[len('fuzz_'):])
    return name, run([fuzzer, '-seed=1', '-runs=100000', '-max_total_time=5', '-max_len=1024',
                      '-artifact_prefix=' + WORK + os.sep, corpus] +
                     ([seeds] if os.path.isdir(seeds) else []),
                     os.path.join(WORK, name + '.log'))


def stage_asan(r):
    """AddressSanitizer and UndefinedBehaviorSanitizer (gcc), on the tests not left to gcc."""
    path = r.builds.get(r.tally, 'asan')
    env = {'ASAN_OPTIONS': 'halt_on_error=1:abort_on_error=1:detect_stack_use_after_return=1',
           'UBSAN_OPTIONS': 'halt_on_error=1:abort_on_error=1:print_stacktrace=1'}
    if path:
        meson_tests(r, 'asan', path, which.asan, env=env, multiplier=5)


def clang_command(entry):
    """Returns how clang looks for warnings in a source, from the build's command: equal for equal compilations."""
    words = shlex.split(entry['command'])
    for option in ('-o', '-MF', '-MQ'):
        at = words.index(option)
        del words[at:at + 2]
    # A target's own folder has no header.
    return (*(w for w in words if w != '-MD' and not (w.startswith('-I') and w.endswith('.p'))), '-fsyntax-only')


def clang_warnings(path, nice=()):
    """Returns clang's warnings for each source with any, by the commands of the build for ThreadSanitizer. Skips what
    that build has compiled, with warnings as errors."""
    def check(command):
        ran = subprocess.run([*nice, *command], cwd=path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return ran.stdout if ran.returncode != 0 else ''

    built = BUILDS['tsan'][2](path)
    with open(os.path.join(path, 'compile_commands.json')) as f:
        entries = json.load(f)
    made = set(subprocess.check_output(['ninja', '-C', path, '-t', 'inputs', *built], text=True).split('\n'))
    commands = dict.fromkeys(clang_command(entry) for entry in entries)
    for entry in entries:
        if entry['output'] in made:
            commands.pop(clang_command(entry), None)
    targets = subprocess.check_output(['ninja', '-C', path, '-t', 'targets', 'all'], text=True).split('\n')
    generated = [name for name, _, _ in (line.partition(': ') for line in targets) if name.endswith('.h')]
    if generated:
        subprocess.run(['ninja', '-C', path, *generated], stdout=subprocess.DEVNULL, check=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [text for text in pool.map(check, commands) if text]


def warnings_ahead(r):
    """Looks for clang's warnings on processors that tests leave idle, once the build for it is made."""
    path = os.path.join(WORK, 'tsan')
    return clang_warnings(path, ('nice', '-n', '15')) if r.builds.ahead['tsan'].result() else []


def stage_tsan(r):
    """clang's warnings for the whole tree; ThreadSanitizer for tests with threads."""
    path = r.builds.get(r.tally, 'tsan')
    env = {'TSAN_OPTIONS': 'halt_on_error=1:second_deadlock_stack=1:suppressions='
                           + os.path.join(TOP, 'test', 'tsan.supp')}
    # Its shadow memory does not fit address layouts with more than 28 random bits.
    fixed = ['setarch', '--addr-no-randomize']
    if subprocess.call(fixed + ['true'], stderr=subprocess.DEVNULL) != 0:
        fixed = None
    if not path:
        return
    say('tsan: what clang warns of')
    texts = r.builds.ahead['warnings'].result() if 'warnings' in r.builds.ahead else clang_warnings(path)
    show(''.join(texts), end='')
    r.tally.fail('tsan: clang warns', text=''.join(texts)) if texts else r.tally.ok()
    meson_tests(r, 'tsan', path, which.in_suites('threads'), env=env, wrapper=fixed, multiplier=10)


def guest_made(r, stage, ahead, *options):
    """Waits for a guest that is being made @ahead, or makes it with @options. Returns whether it is there."""
    status, text = r.builds.ahead[ahead].result() if ahead in r.builds.ahead else make_guest(*options)
    if status == 77:
        why = text.strip().split('\n')[-1]
        say('%s: skipped, %s' % (stage, why))
        r.tally.skip(stage + '/guest/packages', why)
    elif status != 0:
        show(text)
        r.tally.fail('%s: test/interop/vm/build %s' % (stage, ' '.join(options)), text=text)
    else:
        say('%s: the guest is made' % stage)
    return status == 0


def stage_interop(r):
    """Interop with Linux's rdma_rxe in a QEMU guest: one boot with --all, every test with --long."""
    if r.form == 'long':
        r.builds.download_ahead(r.only)
    path = r.builds.get(r.tally, 'gcc')
    if not path or not guest_made(r, 'interop', 'guest'):
        return
    meson_tests(r, 'interop', path, which.in_guests('interop', r.form))
    if r.form == 'long':
        newer = '--suite=bookworm-backports'
        if guest_made(r, 'interop', None, newer):
            # The tables of the other tests are of Linux 6.1.
            meson_tests(r, 'interop', path, which.named('verbs_rxe', 'verbs_siw'), more=('--test-args=' + newer,))


def stage_kernel(r):
    """Linux's mlx5 driver on bb_hca in a QEMU guest: kernel 6.1 with --all, three kernels with --long."""
    path = r.builds.get(r.tally, 'gcc')
    if not path or not guest_made(r, 'kernel', 'qemu', '--qemu'):
        return
    meson_tests(r, 'kernel', path, which.in_guests('kernel', r.form))
    if r.form == 'long':
        for newer in '--suite=bookworm-backports', '--suite=forky':
            if guest_made(r, 'kernel', None, newer):
                meson_tests(r, 'kernel', path, which.in_guests('kernel', r.form), more=('--test-args=' + newer,))


def stage_fio(r):
    """fio's verify= on an NVMe over Fabrics target, with the engine built from the installed fio's source."""
    path = os.path.join(WORK, 'gcc')
    source = os.path.join(WORK, 'fio')
    got = r.builds.ahead['source'].result()
    say('fio: devtools/fio-source is through')
    if got.returncode == 77:
        why = got.stdout.strip().split('\n')[-1]
        say('fio: skipped, ' + why)
        r.tally.skip('fio/source/fio-source', why)
        return
    say('fio: build nvmf_fio.so')
    log = os.path.join(WORK, 'fio.log')
    if got.returncode != 0 or not run(['meson', 'configure', path, '-Dfio_src=' + source], log) or \
            not run(['ninja', '-C', path, 'examples/nvmf/client/nvmf_fio.so'], log):
        r.tally.fail('fio: build', text=read_text(log))
        return
    meson_tests(r, 'fio', path, which.named('nvmf_fio'))


def stage_consumer(r):
    """Installs, then builds programs outside the tree by the .pc files, shared and static. Compares the ABI
    with its record."""
    path = os.path.join(WORK, 'gcc')
    prefix = os.path.join(WORK, 'prefix')
    shutil.rmtree(prefix, ignore_errors=True)
    if not run(['meson', 'install', '-C', path, '--no-rebuild'],
               os.path.join(WORK, 'install.log')):
        r.tally.fail('consumer: install')
        return
    for kind in ('shared', 'static'):
        say('consumer: %s' % kind)
        ok = run(['sh', 'test/consumer/run', prefix, kind, os.path.join(WORK, 'consumer'),
                  os.path.join(path, 'examples/nvmf/nvmf_target')],
                 live=True)
        r.tally.ok() if ok else r.tally.fail('consumer: ' + kind)
    if shutil.which('abidiff') is None:
        say('consumer: abi skipped, abidiff is not installed')
        r.tally.skip('consumer/abi/abidiff')
        return
    say('consumer: devtools/abi')
    ok = run([os.path.join(TOP, 'devtools/abi')], os.path.join(WORK, 'abi.log'))
    r.tally.ok() if ok else r.tally.fail('consumer: devtools/abi')
