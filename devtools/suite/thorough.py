# SPDX-License-Identifier: BSD-3-Clause
"""Stages of devtools/test --long, which take too long for each change."""

import glob
import os
import shutil

import stages
from builds import TOP, WORK, run
from clock import say


def stage_seeds(r):
    """Many seeds of the API against its model, on three devices; every test marked long.

    None of them has packets: a message of several packets may fail after its first ones were written, and the model
    executes whole messages.
    """
    path = r.builds.get(r.tally, 'gcc')
    if not path:
        return
    diff = os.path.join(path, 'test/fuzz/diff/diff')
    for device in ('soft0', 'soft0+soft1,shuffle=1', 'soft0,progress=thread'):
        say('seeds: diff on ' + device)
        log = os.path.join(WORK, 'seeds.log')
        ok = run([diff, '--device', device, '--seeds', '100000..115000', '--save', WORK], log)
        r.tally.ok() if ok else r.tally.fail('seeds: diff on ' + device)
    stages.meson_tests(r, 'seeds', path, lambda name, suites: 'long' in suites)


def stage_fuzz_long(r):
    """Runs devtools/fuzz: all targets, a minute each."""
    say('fuzz_long: devtools/fuzz --minutes 15')
    ok = run([os.path.join(TOP, 'devtools/fuzz'), '--minutes', '15'], live=True)
    r.tally.ok() if ok else r.tally.fail('fuzz_long: devtools/fuzz')


def stage_arm64_long(r):
    """Under QEMU: the unit and model suites, and conformance on devices that --all leaves out."""
    path = r.builds.get(r.tally, 'arm64')
    if path:
        stages.meson_tests(r, 'arm64_long', path, lambda name, suites:
                           suites & {'unit', 'model'} and 'bulk' not in suites or
                           name in ('soft0,wire=1', 'soft0,shuffle=1'), multiplier=10)


TRIXIE = 'devtools/run && meson compile -C build && ' \
    'meson test -C build --no-rebuild --suite unit --suite golden && meson test -C build --no-rebuild soft0'


def stage_debians(r):
    """A fresh Debian 13 builds, passes unit, golden and conformance; sid's headers compile."""
    r.builds.get(r.tally, 'sid')
    if os.geteuid() != 0 or shutil.which('debootstrap') is None:
        why = 'not root, or no debootstrap'
        say('debians: skipped, ' + why)
        r.tally.skip('debians/release/trixie', why)
        return
    say('debians: devtools/fresh --release trixie')
    ok = run([os.path.join(TOP, 'devtools/fresh'), '--release', 'trixie', '--', 'sh', '-c', TRIXIE], live=True)
    r.tally.ok() if ok else r.tally.fail('debians: devtools/fresh --release trixie')


def stage_packages(r):
    """Builds the Debian packages of debian/ from what is committed; lintian finds no error and no warning."""
    missing = [tool for tool in ('dpkg-buildpackage', 'dh', 'lintian') if shutil.which(tool) is None]
    if missing:
        why = 'not installed: ' + ' '.join(missing)
        say('packages: skipped, ' + why)
        r.tally.skip('packages/debian/build', why)
        return
    top = os.path.join(WORK, 'packages')
    shutil.rmtree(top, ignore_errors=True)
    os.makedirs(top)
    say('packages: dpkg-buildpackage')
    log = os.path.join(WORK, 'packages.log')
    tree = os.path.join(top, 'bluebell')
    ok = run(['git', 'clone', '-q', TOP, tree], log) and \
        run(['sh', '-c', 'cd "$1" && dpkg-buildpackage -b -us -uc', 'sh', tree], log)
    r.tally.ok() if ok else r.tally.fail('packages: dpkg-buildpackage')
    if ok:
        say('packages: lintian')
        ok = run(['lintian', '--fail-on', 'error,warning', *glob.glob(top + '/*.changes')], log)
        r.tally.ok() if ok else r.tally.fail('packages: lintian')
