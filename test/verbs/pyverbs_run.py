# SPDX-License-Identifier: BSD-3-Clause
"""Runs modules of rdma-core's pyverbs tests in the folder FOLDER and prints one line of JSON for each test.

usage: pyverbs_run.py FOLDER DEVICE MODULE...
"""

import importlib
import json
import random
import sys
import unittest


class Result(unittest.TestResult):
    """Prints the outcome of each test when it is known. Several outcomes of a test: the worst one is last."""

    def say(self, test, outcome, why=''):
        # A line of its own, by one write(): the test's processes print, too, and may be killed inside a line.
        sys.stdout.write('\nRESULT %s\n' % json.dumps([test.id().removeprefix('tests.'), outcome, why]))
        sys.stdout.flush()

    def startTest(self, test):
        # The tests draw sizes and flags, on which it may depend whether a test skips itself.
        random.seed(test.id())

    def addSuccess(self, test):
        self.say(test, 'passed')

    def addSkip(self, test, reason):
        self.say(test, 'skipped', reason)

    def addFailure(self, test, err):
        self.say(test, 'failed', str(err[1]).strip())

    addError = addFailure


def main(folder, device, *modules):
    sys.path[:0] = [folder, folder + '/tests']
    # The tests read their options from the command line when they are made.
    sys.argv = ['run_tests.py', '--dev', device]
    importlib.import_module('args_parser').parser.parse_args()
    suite = unittest.TestSuite()
    for name in modules:
        suite.addTests(unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module('tests.' + name)))
    suite.run(Result())


if __name__ == '__main__':
    main(*sys.argv[1:])
