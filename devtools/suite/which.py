# SPDX-License-Identifier: BSD-3-Clause
"""Which tests a stage of devtools/test runs: functions of a test's name and its suites."""

# Suites that a build with sanitizers leaves out, or where it finds no more.
PLAIN = {'plain', 'bench', 'check', 'table', 'defects', 'bulk'}


def in_suites(*names):
    return lambda name, suites: bool(suites & set(names))


def named(*names):
    return lambda name, suites: name in names


def in_guests(suite, form):
    """Tests with a guest: those of a minute in --all, the others in --long."""
    return lambda name, suites: suite in suites and ('short' in suites) == (form == 'all')


def quick(_, suites):
    return not suites & {'long', 'interop', 'kernel', 'verbs'}


def plain(_, suites):
    """In --all: PLAIN, which runs each program as the documents do, and tests of programs in one form; the asan stage
    runs the other tests."""
    if suites & {'interop', 'kernel', 'devices', 'slow', 'short', 'sanitizer'}:
        return False  # asan and suite "table" run all devices; only --long runs "slow"
    return bool(suites & PLAIN) or 'app' in suites and 'long' not in suites


def asan(_, suites):
    return not suites & (PLAIN | {'interop', 'kernel', 'short', 'slow'})
