#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The whole test suite: builds, meson suites, sanitizers, consumer, docs. See --help."""

import argparse
import concurrent.futures
import fnmatch
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

from tally import Tally

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORK = os.path.join(TOP, 'build-test')
START = float(os.environ.get('SUITE_START', time.time()))


def say(text):
    print('[%4ds] %s' % (time.time() - START, text), flush=True)


def read_text(path):
    with open(path, errors='replace') as f:
        return f.read()


def show_failure(log):
    text = read_text(log)
    # What ninja did before something failed says nothing.
    print(text[max(0, text.find('\nFAILED: ')):][:20000], flush=True)


def run(cmd, log=None, env=None, show=False, tell=True):
    """Run a command in the tree. Output goes to a log that is shown when it fails (@tell)."""
    full = dict(os.environ, **(env or {}))
    if show:
        return subprocess.call(cmd, cwd=TOP, env=full) == 0
    with open(log, 'w') as out:
        rc = subprocess.call(cmd, cwd=TOP, env=full, stdout=out, stderr=subprocess.STDOUT)
    if rc != 0 and tell:
        show_failure(log)
        print('failed (%d): %s' % (rc, ' '.join(cmd)), flush=True)
    return rc == 0


def first_of(*names):
    return next((n for n in names if shutil.which(n)), None)


def without(*folders, but=()):
    """What tells the targets of a build but those of folders whose tests only other stages run."""
    def targets(path):
        found = json.loads(subprocess.check_output(['meson', 'introspect', '--targets', path]))
        names = [os.path.relpath(t['filename'][0], path) for t in found if t['build_by_default']]
        return [name for name in names if name in but or not name.startswith(folders)]
    return targets


def programs_of(suite):
    """What tells the targets of a build that are the programs of a suite's tests."""
    def targets(path):
        tests = json.loads(subprocess.check_output(['meson', 'introspect', '--tests', path]))
        return sorted({os.path.relpath(t['cmd'][0], path) for t in tests
                       if suite in [s.split(':')[-1] for s in t['suite']]})
    return targets


# What stages build: compiler, options, targets (all when there are none) or what tells them.
BUILDS = {
    # Lines are enough of debug information, where one looks into no variable: a tenth of the time.
    'gcc': (('gcc',), ['--prefix=' + os.path.join(WORK, 'prefix'), '-Dfio_src=', '-Dc_args=-g1'], []),
    # What goes into production: -O3, of which gcc warns of more, and what dpkg-buildflags adds.
    'release': (('gcc',), ['--buildtype=release',
                           '-Dc_args=-D_FORTIFY_SOURCE=2 -fstack-protector-strong -Wdate-time '
                           '-Wformat -Werror=format-security',
                           '-Dc_link_args=-Wl,-z,relro -Wl,-z,now'],
                # The other tests are two thirds of all that there is to compile.
                without('test/model/', 'test/unit/', 'test/fuzz/', 'test/interop/', 'test/uverbs/')),
    # clang warns of the same with -O1, and is through in two thirds of the time.
    'fuzz': (('clang-14', 'clang'), ['-Dfuzz=true', '-Doptimization=1', '-Dc_args=-g1'], ['fuzzers']),
    # gcc warns of pointers that only the sanitizer's own checks take for null. With -O2 -g it
    # takes nearly three times as long.
    'asan': (('gcc',), ['-Db_sanitize=address,undefined', '-Dwerror=false', '-Ddebug_checks=true',
                        '-Doptimization=1', '-Dc_args=-g1'],
             without('app/bench/', 'test/interop/', but=('test/interop/bb_peer',))),
    'tsan': (('clang-14', 'clang'), ['-Db_sanitize=thread', '-Db_lundef=false', '-Doptimization=1',
                                     '-Dc_args=-g1'], programs_of('threads')),
}
AHEAD = {}  # stage: future of its build, which runs beside the tests of those before it
CANNOT = {}  # stage: why there can be no build here

# Of the build for arm64: what runs in the time that there is.
ARM64_TARGETS = ['suite:unit', 'suite:golden', 'test/conform/conform', 'examples/hello_write/hello_write',
                 'app/testrdma/testrdma']


def compile_stage(stage, nice=()):
    """Configure build-test/<stage> and build what the stage needs; whether that went well."""
    if stage == 'arm64':
        return cross_stage(nice)
    names, options, targets = BUILDS[stage]
    path = os.path.join(WORK, stage)
    log = os.path.join(WORK, stage + '.log')
    cc = first_of(*names)
    if cc is None:
        with open(log, 'w') as f:
            f.write('%s is not installed\n' % names[0])
        return False
    say('%s: build with %s %s%s' % (stage, cc, ' '.join(options), ', ahead' if nice else ''))
    env = {'CC': cc}
    configured = os.path.exists(os.path.join(path, 'build.ninja'))
    setup = ['meson', 'setup', path] + options + (['--reconfigure'] if configured else [])
    ok = run(setup, log, env, tell=False)
    if not ok and configured:
        say('%s: configuring from scratch' % stage)
        shutil.rmtree(path)
        ok = run(['meson', 'setup', path] + options, log, env, tell=False)
    if not ok:
        return False
    if callable(targets):
        targets = targets(path)
    return run([*nice, 'ninja', '-C', path, *targets], log, env, tell=False)


def cross_stage(nice=()):
    """build-test/arm64, as compile_stage()."""
    log = os.path.join(WORK, 'arm64.log')
    if os.uname().machine != 'x86_64':
        CANNOT['arm64'] = 'it is made on x86-64'
        return False
    say('arm64: devtools/cross%s' % (', ahead' if nice else ''))
    with open(log, 'w') as out:
        rc = subprocess.call([*nice, os.path.join(TOP, 'devtools/cross'), 'arm64', os.path.join(WORK, 'arm64'),
                              *ARM64_TARGETS], cwd=TOP, stdout=out, stderr=subprocess.STDOUT)
    if rc == 77:
        CANNOT['arm64'] = read_text(log).strip().split('\n')[-1]
    return rc == 0


def build_ahead(stages):
    """Begin the builds of @stages, one after the other, on the time that tests leave idle."""
    pool = concurrent.futures.ThreadPoolExecutor(1)
    for stage in stages:
        AHEAD[stage] = pool.submit(compile_stage, stage, ('nice', '-n', '15'))
    pool.shutdown(wait=False)


def download_ahead(only):
    """Begin what two stages of @only wait for, mostly the network: a future by stage."""
    pool = concurrent.futures.ThreadPoolExecutor(1)
    if 'interop' in only and shutil.which('apt-get') and shutil.which('qemu-system-x86_64'):
        AHEAD['guest'] = pool.submit(run, ['nice', '-n', '15', os.path.join(TOP, 'test/interop/vm/build')],
                                     os.path.join(WORK, 'interop.log'), tell=False)
    if 'fio' in only:
        AHEAD['source'] = pool.submit(subprocess.run, [os.path.join(TOP, 'devtools/fio-source'),
                                      os.path.join(WORK, 'fio')], stdout=subprocess.PIPE, text=True)
    pool.shutdown(wait=False)


def build(tally, stage):
    """The build of a stage, build-test/<stage>; None when it fails."""
    log = os.path.join(WORK, stage + '.log')
    if stage in AHEAD:
        ok = AHEAD[stage].result()
        say('%s: is built' % stage)
    else:
        ok = compile_stage(stage)
    if stage in CANNOT:
        say('%s: skipped, %s' % (stage, CANNOT[stage]))
        tally.skip(stage + '/build/packages', CANNOT[stage])
        return None
    if not ok:
        show_failure(log)
        tally.fail(stage + ': build', text=read_text(log))
        return None
    tally.ok()
    return os.path.join(WORK, stage)


def meson_suites(tally, stage, path, args, env=None, wrapper=None, multiplier=1):
    """meson test in a build; its lines and the closing lines of cmocka are shown."""
    cmd = (wrapper or []) + ['meson', 'test', '-C', path, '--no-rebuild', '--print-errorlogs',
                             '-t', str(multiplier)] + args
    say('%s: %s' % (stage, ' '.join(cmd)))
    logfile = os.path.join(path, 'meson-logs', 'testlog.json')
    if os.path.exists(logfile):
        os.unlink(logfile)
    before = (tally.passed, tally.failed, tally.skipped)
    ok = run(cmd, env=env, show=True)
    lines = []
    if os.path.exists(logfile):
        with open(logfile) as log:
            for record in log:
                lines += tally.meson_test(stage, json.loads(record))
    print('\n'.join(lines), flush=True)
    if not ok and tally.failed == before[1]:
        tally.fail(stage + ': meson test')
    if (tally.passed, tally.failed, tally.skipped) == before:
        tally.fail(stage + ': meson ran no test')


def stage_format(tally, args):
    """clang-format 14 leaves every C file as it is."""
    tool = first_of('clang-format-14')
    if tool is None:
        say('format: skipped, clang-format-14 is not installed')
        tally.skip('format/style/clang-format')
        return
    files = subprocess.check_output(['git', 'ls-files', '*.c', '*.h'], cwd=TOP, text=True).split()
    say('format: %d files' % len(files))
    ok = run([tool, '--dry-run', '--Werror', '--ferror-limit=1'] + files, os.path.join(WORK, 'format.log'))
    tally.ok() if ok else tally.fail('format: run clang-format-14 -i on the files above')


def stage_gcc(tally, args):
    """Build with gcc, run every meson suite but interop. (Suite table has what devices has.)"""
    download_ahead(args.only)
    path = build(tally, 'gcc')
    # Tests that run alone leave a core idle, for minutes.
    build_ahead([stage for stage in [*BUILDS, 'arm64'] if stage != 'gcc' and stage in args.only])
    if path:
        meson_suites(tally, 'gcc', path, ['--no-suite', 'interop', '--no-suite', 'devices'])


NR_HUGEPAGES = '/proc/sys/vm/nr_hugepages'
HUGEPAGE_TESTS = ['memevents', 'mlx5_hugepages', 'soft_ctl_mem', 'storage_hugepages']


def read_int(path):
    with open(path) as f:
        return int(f.read())


def stage_hugepages(tally, args):
    """Tests that need hugepages, and testrdma on them. 128 are reserved meanwhile (root)."""
    path = os.path.join(WORK, 'gcc')
    want = 128
    try:
        before = read_int(NR_HUGEPAGES)
        with open(NR_HUGEPAGES, 'w') as f:
            f.write(str(before + want))
        got = read_int(NR_HUGEPAGES)
    except OSError as err:
        say('hugepages: skipped, cannot reserve any: %s' % err)
        tally.skip('hugepages/system/reserve')
        return
    try:
        if got < before + want:
            say('hugepages: skipped, the kernel gives %d of %d' % (got - before, want))
            tally.skip('hugepages/system/reserve')
            return
        meson_suites(tally, 'hugepages', path, HUGEPAGE_TESTS)
        say('hugepages: testrdma')
        ok = run([os.path.join(path, 'app/testrdma/testrdma'), '-l', str(min(os.sched_getaffinity(0))),
                  '--in-memory', '--no-pci', '--no-telemetry', '--', '--device', 'soft0', '--op',
                  'write,read,fetch_add,cmp_swap,send', '--size', '8..64K', '--verify',
                  '--duration', '0.1'], show=True)
        tally.ok() if ok else tally.fail('hugepages: testrdma')
    finally:
        with open(NR_HUGEPAGES, 'w') as f:
            f.write(str(before))


def stage_release(tally, args):
    """Build for production: -O3 and a distribution's hardening; golden suite and conformance."""
    path = build(tally, 'release')
    if path:
        meson_suites(tally, 'release', path, ['--suite', 'golden'])
        # Each link of the software device, but a port: its packets are the wire's.
        meson_suites(tally, 'release', path, ['soft0+soft1', 'soft0,progress=thread', 'soft0,wire=1',
                                              'soft0,shm=%p,ip=192.0.2.1/24'])


def stage_arm64(tally, args):
    """Build for 64-bit Arm; under QEMU unit and golden suites, conformance, hello_write, testrdma."""
    path = build(tally, 'arm64')
    if not path:
        return
    meson_suites(tally, 'arm64', path, ['--suite', 'unit', '--suite', 'golden'], multiplier=5)
    # QEMU has not the call that pages on demand are reached by.
    meson_suites(tally, 'arm64', path, ['soft0,no_odp'], multiplier=5)
    emulated = ['qemu-aarch64-static', '-L', path + '.sysroot']
    eal = ['-l', str(min(os.sched_getaffinity(0))), '--no-huge', '-m', '256', '--no-pci', '--no-shconf',
           '--no-telemetry']
    for program, options in (('examples/hello_write/hello_write', ['soft0']),
                             ('app/testrdma/testrdma', ['--device', 'soft0', '--op', 'write,read,fetch_add,send',
                                                        '--size', '8,64K', '--verify', '--duration', '0.1'])):
        say('arm64: ' + os.path.basename(program))
        ok = run([*emulated, os.path.join(path, program), *eal, '--', *options], show=True)
        tally.ok() if ok else tally.fail('arm64: ' + os.path.basename(program))


def stage_fuzz(tally, args):
    """Build the fuzz targets with clang and run each for a moment."""
    path = build(tally, 'fuzz')
    if not path:
        return
    fuzzers = [f for f in sorted(glob.glob(os.path.join(path, 'test', 'fuzz', 'fuzz_*')))
               if os.path.isfile(f)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, ok in pool.map(lambda f: run_fuzzer(path, f), fuzzers):
            if ok:
                tally.ok()
            else:
                tally.fail('fuzz: ' + name, text=read_text(os.path.join(WORK, name + '.log')))


def run_fuzzer(path, fuzzer):
    """One libFuzzer program for 5 seconds at most; its name, and whether it found nothing."""
    name = os.path.basename(fuzzer)
    say('fuzz: ' + name)
    # New inputs go to a copy of the corpus, so that every run starts from the same one.
    corpus = os.path.join(WORK, name)
    shutil.rmtree(corpus, ignore_errors=True)
    shutil.copytree(os.path.join(TOP, 'test', 'fuzz', 'corpus', name[len('fuzz_'):]), corpus)
    seeds = os.path.join(path, 'test', 'fuzz', 'seeds', name[len('fuzz_'):])
    return name, run([fuzzer, '-seed=1', '-runs=100000', '-max_total_time=5', '-max_len=1024',
                      '-artifact_prefix=' + WORK + os.sep, corpus] +
                     ([seeds] if os.path.isdir(seeds) else []),
                     os.path.join(WORK, name + '.log'))


def stage_asan(tally, args):
    """AddressSanitizer and UndefinedBehaviorSanitizer (gcc), without suites that see no more there."""
    path = build(tally, 'asan')
    env = {'ASAN_OPTIONS': 'halt_on_error=1:abort_on_error=1:detect_stack_use_after_return=1',
           'UBSAN_OPTIONS': 'halt_on_error=1:abort_on_error=1:print_stacktrace=1'}
    if path:
        meson_suites(tally, 'asan', path, ['--no-suite', 'bench', '--no-suite', 'check', '--no-suite',
                                           'table', '--no-suite', 'interop', '--no-suite', 'defects',
                                           '--no-suite', 'bulk'],
                     env=env, multiplier=5)


def clang_warnings(path, built):
    """Sources of the tree that clang warns of, by the commands of its build: what it says of each.

    Those that the targets @built are made of it has compiled, and warnings are errors there.
    """
    def check(entry):
        words = shlex.split(entry['command'])
        for option in ('-o', '-MF', '-MQ'):
            at = words.index(option)
            del words[at:at + 2]
        ran = subprocess.run([w for w in words if w != '-MD'] + ['-fsyntax-only'], cwd=entry['directory'],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return ran.stdout if ran.returncode != 0 else ''

    with open(os.path.join(path, 'compile_commands.json')) as f:
        commands = json.load(f)
    made = set(subprocess.check_output(['ninja', '-C', path, '-t', 'inputs', *built], text=True).split('\n'))
    commands = [entry for entry in commands if entry['output'] not in made]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [text for text in pool.map(check, commands) if text]


def stage_tsan(tally, args):
    """clang's warnings, all of the tree; its ThreadSanitizer, on what has threads."""
    path = build(tally, 'tsan')
    env = {'TSAN_OPTIONS': 'halt_on_error=1:second_deadlock_stack=1:suppressions='
                           + os.path.join(TOP, 'test', 'tsan.supp')}
    # Its shadow does not fit the address layouts of kernels with more than 28 random bits.
    fixed = ['setarch', '--addr-no-randomize']
    if subprocess.call(fixed + ['true'], stderr=subprocess.DEVNULL) != 0:
        fixed = None
    if not path:
        return
    say('tsan: what clang warns of')
    texts = clang_warnings(path, BUILDS['tsan'][2](path))
    print(''.join(texts), end='', flush=True)
    tally.fail('tsan: clang warns', text=''.join(texts)) if texts else tally.ok()
    meson_suites(tally, 'tsan', path, ['--suite', 'threads'], env=env, wrapper=fixed, multiplier=10)


def stage_interop(tally, args):
    """Against Linux's rdma_rxe in a QEMU guest, whose Debian packages are downloaded once."""
    path = os.path.join(WORK, 'gcc')
    if shutil.which('apt-get') is None:
        say('interop: skipped, no apt to get a kernel with')
        tally.skip('interop/guest/build')
        return
    if 'guest' in AHEAD:
        if not AHEAD['guest'].result():
            show_failure(os.path.join(WORK, 'interop.log'))
            tally.fail('interop: test/interop/vm/build')
            return
        say('interop: test/interop/vm/build is through')
    meson_suites(tally, 'interop', path, ['--suite', 'interop'])


def stage_fio(tally, args):
    """fio's verify= over the block target, by the engine built from the installed fio's source."""
    path = os.path.join(WORK, 'gcc')
    source = os.path.join(WORK, 'fio')
    got = AHEAD['source'].result()
    say('fio: devtools/fio-source is through')
    if got.returncode == 77:
        why = got.stdout.strip().split('\n')[-1]
        say('fio: skipped, ' + why)
        tally.skip('fio/source/fio-source', why)
        return
    say('fio: build storage_fio.so')
    log = os.path.join(WORK, 'fio.log')
    if got.returncode != 0 or not run(['meson', 'configure', path, '-Dfio_src=' + source], log) or \
            not run(['ninja', '-C', path, 'examples/storage_plane/storage_fio.so'], log):
        tally.fail('fio: build', text=read_text(log))
        return
    meson_suites(tally, 'fio', path, ['-v', 'storage_fio'])


def stage_consumer(tally, args):
    """Install, then build programs outside the tree from the .pc files, shared and static."""
    path = os.path.join(WORK, 'gcc')
    prefix = os.path.join(WORK, 'prefix')
    shutil.rmtree(prefix, ignore_errors=True)
    if not run(['meson', 'install', '-C', path, '--no-rebuild'],
               os.path.join(WORK, 'install.log')):
        tally.fail('consumer: install')
        return
    for kind in ('shared', 'static'):
        say('consumer: %s' % kind)
        ok = run(['sh', 'test/consumer/run', prefix, kind, os.path.join(WORK, 'consumer'),
                  os.path.join(path, 'examples/storage_plane/storage_target')],
                 show=True)
        tally.ok() if ok else tally.fail('consumer: ' + kind)


def build_api():
    """The API reference. Every public name has a comment; members of structs need none."""
    log = os.path.join(WORK, 'doxygen.log')
    path = os.path.join(WORK, 'docs')
    if not os.path.exists(os.path.join(path, 'build.ninja')):
        if not run(['meson', 'setup', path, '-Dtests=false'], log):
            return False
    installed = subprocess.check_output(['meson', 'introspect', '--installed', path], text=True)
    public = [h for h in json.loads(installed) if h.endswith('.h')]
    if not run(['doxygen', 'doc/api/Doxyfile'], log,
               {'BUILD': WORK, 'HEADERS': ' '.join(public)}):
        return False
    member = re.compile(r'warning: Member \S+ \((variable|enumeration value)\) of .* is not documented')
    with open(log) as f:
        lines = [line for line in f if not member.search(line)]
    sys.stdout.writelines(lines)
    return not lines


def build_guides():
    return run(['sphinx-build', '-q', '-W', '--keep-going', '-b', 'html', 'doc/guides',
                os.path.join(WORK, 'guides')], os.path.join(WORK, 'sphinx.log'))


def stage_docs(tally, args):
    """API reference (doxygen) and guides (sphinx), warnings as errors."""
    for name, func, need in (('api', build_api, 'doxygen'),
                             ('guides', build_guides, 'sphinx-build')):
        if shutil.which(need) is None:
            say('docs: %s skipped, %s is not installed' % (name, need))
            tally.skip('docs/doc/' + name)
            continue
        say('docs: %s' % name)
        tally.ok() if func() else tally.fail('docs: ' + name)


STAGES = [('format', stage_format), ('gcc', stage_gcc), ('hugepages', stage_hugepages),
          ('release', stage_release), ('fuzz', stage_fuzz), ('asan', stage_asan), ('tsan', stage_tsan),
          ('arm64', stage_arm64), ('interop', stage_interop), ('fio', stage_fio), ('consumer', stage_consumer),
          ('docs', stage_docs)]


def allowed_skips():
    patterns = []
    with open(os.path.join(TOP, '.ci', 'allowed-skips')) as f:
        for line in f:
            line = line.split('#')[0].strip()
            if not line:
                continue
            pattern, _, reason = line.partition(':')
            if not reason.strip():
                sys.exit('.ci/allowed-skips: no reason for %s' % pattern)
            patterns.append((pattern.strip(), reason.strip()))
    return patterns


def parse_args():
    text = 'devtools/test: build and test everything that can be tested without a card.\n\n'
    text += 'Missing Debian packages are installed first (devtools/packages; needs root).\n'
    text += 'All builds go to build-test/. Stages, in this order:\n'
    for name, func in STAGES:
        text += '  %-9s %s\n' % (name, func.__doc__)
    tail = 'examples:\n  devtools/test                     all, 30 to 55 minutes on 2 cores\n'
    tail += '  devtools/test --only format,gcc   what to run before each commit\n'
    tail += '  meson test -C build-test/gcc --suite unit   one suite, once it is built\n\n'
    tail += 'The last line is "N passed, N failed, N skipped", summed over all stages: a program of\n'
    tail += 'cmocka or unittest counts each of its test functions, everything else (a build, a check,\n'
    tail += 'a document) is 1. The exit code is 0 only if nothing failed.'
    p = argparse.ArgumentParser(prog='devtools/test', description=text, epilog=tail,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--only', metavar='STAGE,...', help='run these stages')
    p.add_argument('--ci', action='store_true',
                   help='fail on a skip that .ci/allowed-skips does not name')
    args = p.parse_args()
    names = [n for n, _ in STAGES]
    args.only = args.only.split(',') if args.only else names
    for name in args.only:
        if name not in names:
            p.error('no stage %s; there are: %s' % (name, ', '.join(names)))
    if {'consumer', 'fio', 'hugepages', 'interop'} & set(args.only) and 'gcc' not in args.only:
        args.only.append('gcc')
    return args


def main():
    args = parse_args()
    allowed = allowed_skips()
    os.makedirs(WORK, exist_ok=True)
    tally = Tally()
    for name, func in STAGES:
        if name in args.only:
            func(tally, args)
    say('finished')
    for name in tally.skips:
        reason = next((r for p, r in allowed if fnmatch.fnmatchcase(name, p)), None)
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
