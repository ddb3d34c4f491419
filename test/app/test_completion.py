#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Completion of bash for the programs.

usage: test_completion.py TESTRDMA BB_PERF BB_HCA COMPLETION PROGRAM...

Each PROGRAM, the name of one with a manual page, must have a completion.
"""

import os
import subprocess
import sys
import unittest


def complete(program, *words):
    """Returns what bash offers for the last of @words."""
    script = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _bluebell "$1"; printf "%s\\n" "${COMPREPLY[@]}"'
    out = subprocess.run(['bash', '-c', script, COMPLETION, program, *words], capture_output=True, text=True,
                         check=True, timeout=60)
    assert out.stderr == '', out.stderr
    return out.stdout.split()


class Completion(unittest.TestCase):
    def test_eal_options_before_the_separator(self):
        self.assertIn('--no-huge', complete(TESTRDMA, '--no-'))
        self.assertNotIn('--verify', complete(TESTRDMA, '--'))

    def test_every_option_of_the_program_after_the_separator(self):
        offered = complete(TESTRDMA, '-l', '0', '--', '--')
        self.assertGreater(len(offered), 25)
        for option in ('--device', '--op', '--size', '--verify', '--json'):
            self.assertIn(option, offered)
        self.assertNotIn('--no-huge', offered)

    def test_values_that_the_help_lists(self):
        self.assertEqual(complete(TESTRDMA, '--', '--op', 'fetch'), ['fetch_add'])
        self.assertEqual(complete(TESTRDMA, '--', '-o', 'write,fetch'), ['write,fetch_add'])
        self.assertEqual(complete(PERF, '--', '-P', 'ud_'), ['ud_pingpong'])
        self.assertEqual(len(complete(PERF, '--', '--protocol', '')), 11)

    def test_words_of_the_user_are_no_patterns(self):
        for word in '/tmp/x.json', '.*', '[':
            self.assertIn('--op', complete(TESTRDMA, '--', '--json', word, '--'))

    def test_a_program_that_takes_its_options_without_the_separator(self):
        self.assertEqual(complete(HCA, '--so'), ['--socket'])

    def test_devices(self):
        self.assertIn('soft0', complete(TESTRDMA, '--', '-d', 's'))

    def test_every_program_has_a_completion(self):
        with open(COMPLETION) as f:
            names = f.read().split('complete -F _bluebell ')[1].split()
        self.assertEqual(set(PROGRAMS) - set(names), set())


if __name__ == '__main__':
    TESTRDMA, PERF, HCA, COMPLETION = map(os.path.abspath, sys.argv[1:5])
    PROGRAMS = sys.argv[5:]
    unittest.main(argv=sys.argv[:1])
