#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""perftest in all its forms, between two processes: each tool, transport, and combination of options.

No verdict depends on speed.
"""

import itertools
import re
import subprocess
import sys

from verbstest import VerbsTest, main

PERFTEST = 'perftest'
ITERATIONS = '50'
TRANSPORTS = {'send': ('RC', 'UC', 'UD'), 'write': ('RC', 'UC'), 'read': ('RC',), 'atomic': ('RC',)}
OPTIONS = {'events': ('-e',), 'srq': ('--use-srq',), 'inline': ('-I', '32')}
# Options that a tool does not have: perftest refuses them itself.
REFUSED = {
    'write_lat': ('events', 'srq'), 'write_bw': ('events', 'srq'),
    'read_lat': ('srq', 'inline'), 'read_bw': ('srq', 'inline'),
    'atomic_lat': ('srq', 'inline'), 'atomic_bw': ('srq', 'inline'),
}
# The first version that takes the events of sends and of receives from two channels (commit 2209cf8). Earlier ones
# wait for a send and wake for a receive, so that their send queue is full.
TWO_CHANNELS = (23, 7)
# These tools take each event for a completion (run_iter_lat() of perftest, also in commit 00b55b6). They arm the CQ
# before they poll, so that the CQE raises a second event: a ConnectX raises one for CQEs that were there before (Linux
# commit ed23a72778f3). If the second event comes before the next completion, they post one request more, for which
# their send queue may have no room.
TAKES_EVENTS_FOR_COMPLETIONS = ('read_lat', 'atomic_lat')
NO_ROOM = "Couldn't post send: scnt="


def cells():
    """Returns (tool, transport, names of options)."""
    for kind, transports in TRANSPORTS.items():
        for test, transport in itertools.product(('lat', 'bw'), transports):
            tool = '%s_%s' % (kind, test)
            names = [name for name in OPTIONS if name not in REFUSED.get(tool, ())]
            for n in range(len(names) + 1):
                for chosen in itertools.combinations(names, n):
                    yield tool, transport, chosen


def version():
    out = subprocess.run(['dpkg-query', '-W', '-f=${Version}', 'perftest'], capture_output=True, text=True, check=False).stdout
    m = re.search(r'(\d+)\.(\d+)', out)
    return tuple(int(x) for x in m.groups()) if m else (0, 0)


class Matrix(VerbsTest):
    def test_perftest(self):
        self.need('ib_send_bw', PERFTEST)
        self.assertEqual(len(list(cells())), 64)
        for tool, transport, chosen in cells():
            if tool == 'send_lat' and 'events' in chosen and version() < TWO_CHANNELS:
                continue
            args = [a for name in chosen for a in OPTIONS[name]]
            if not tool.startswith('atomic'):
                args += ['-s', '32' if 'inline' in chosen else '1024']
            with self.subTest(tool=tool, transport=transport, options=chosen):
                try:
                    text = self.pair('ib_' + tool, '-x', '1', '-n', ITERATIONS, '-c', transport, *args)
                except AssertionError as failure:
                    if tool not in TAKES_EVENTS_FOR_COMPLETIONS or 'events' not in chosen or NO_ROOM not in str(failure):
                        raise
                    print('ib_%s -e: took an event for a completion, and its send queue is full' % tool, flush=True)
                    continue
                self.assertRegex(text, re.compile(r'^ *\d+ +%s +\d' % ITERATIONS, re.M))


if __name__ == '__main__':
    main(sys.argv)
