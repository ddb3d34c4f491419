#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Completion errors: testrdma names the cause, stops and exits with 1."""

import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import AppTest, main  # noqa: E402

NO_RIGHTS = os.path.abspath(sys.argv.pop())  # meson passes it as the second argument
os.environ['LD_PRELOAD'] = NO_RIGHTS
# The preloaded library may precede the sanitizer's, which it loads itself.
os.environ['ASAN_OPTIONS'] = os.environ.get('ASAN_OPTIONS', '') + ':verify_asan_link_order=0'


class Errors(AppTest):
    def check(self, op, *more):
        res = self.run_json(['--op', op + ',send', '--size', '64', '--duration', '0.05'] +
                            list(more), rc=1)
        self.assertIn('remote invalid request error', res.err, str(res))
        self.assertIn('syndrome 0x12', res.err, str(res))
        # The WQE, and the rights of its keys.
        self.assertRegex(res.err, r'  the request: WQE \d+: \w+', str(res))
        self.assertRegex(res.err, r'  lkey 0x\w+: \d+ bytes at 0x\w+, rights local_write', str(res))
        # One line for the cause, none for operations flushed after it.
        lines = [line for line in res.err.splitlines() if line.startswith('testrdma: ' + op)]
        self.assertLessEqual(len(lines), 2, str(res))
        self.assertRegex(lines[0], r'vendor syndrome 0x\w\w: \w+')
        self.assertIn('FAIL', res.out, str(res))
        self.assertIn('ended early', res.out, str(res))
        self.assertEqual(res.json['result'], 'fail')
        self.assertEqual(len(res.json['rows']), 1)
        self.assertFalse(res.json['rows'][0]['ok'])
        self.assertGreater(res.json['rows'][0]['errors'], 0)

    def test_right_not_granted(self):
        for op in ('write', 'read', 'fetch_add', 'cmp_swap'):
            self.check(op)
            self.check(op, '--verify', '--qps', '3')

    def test_sends_need_no_right(self):
        res = self.run_json(['--op', 'send', '--size', '64', '--duration', '0.05', '--verify'])
        self.assertEqual(res.json['result'], 'pass')


if __name__ == '__main__':
    main()
