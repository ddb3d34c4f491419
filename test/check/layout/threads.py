#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A test whose program starts a thread, or whose device does, is in the suite "threads".

usage: threads.py   (in a build directory)

ThreadSanitizer runs only that suite.
"""

import json
import re
import subprocess
import sys

# Tests that ThreadSanitizer cannot run, or where it finds nothing, with the reason.
NOT = {
    **{'mlx5_atomics' + variant: 'only in mlx5_atomics_thread the device has a thread' for variant in ('', '_two_uars')},
    'soft_net_fault': 'the device with a thread is refused',
    'soft_net_fault_19_mhz': 'the device with a thread is refused',
    'mlx5_queues_64k': 'what is linked of the sanitizer asks for the page size, too',
    'shm': "a process reads what its device's thread has written for a peer, and knows it from that peer by a "
           'pipe, which the sanitizer does not see',
    'soft_read_order': 'two threads access a word as a CPU and a card do: the device loads it by a plain copy',
    'shm_slot': 'a child of fork() goes on while another thread of its parent held locks',
    **{'soft_bf_' + kind: 'its builds have no wide stores, as it sees no order in them'
       for kind in ('neon', 'avx2', 'avx512', 'movdir64b')},
}
STARTS = re.compile(r'\bpthread_create\(|\brte_eal_remote_launch\(|progress=(thread|lcore)')


def tests_without(tests, targets, read):
    """Returns the names of tests missing in the suite, from meson's lists; @read returns a source's text."""
    programs = {t['filename'][0]: t['target_sources'] for t in targets if t['type'] == 'executable'}
    found = []
    for test in tests:
        suites = {s.split(':')[-1] for s in test['suite']}
        groups = programs.get(test['cmd'][0])
        if groups is None or 'threads' in suites or test['name'] in NOT or not {'unit', 'model'} & suites:
            continue
        sources = [path for g in groups for path in g.get('sources', []) if '/test/' in path]
        if (test.get('env', {}).get('BB_VARIANT') == 'thread' or
                STARTS.search(' '.join(test['cmd'][1:])) or
                any(STARTS.search(read(path)) for path in sources)):
            found.append(test['name'])
    return found


def text_of(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def main():
    tests, targets = (json.loads(subprocess.check_output(['meson', 'introspect', what]))
                      for what in ('--tests', '--targets'))
    found = tests_without(tests, targets, text_of)
    for name in found:
        print('%s starts a thread: it belongs into the suite "threads"' % name)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
