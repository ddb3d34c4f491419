# SPDX-License-Identifier: BSD-3-Clause
"""Runs the programs of hw-check, each with a time limit, and reads their results line by line."""

import json
import os
import re
import subprocess
import tempfile
import threading

ABSENT = 'absent'   # no such device, or no such program
STATUS_ABSENT = 77  # exit status of conform: no such device
FOLDERS = {'hw_report': 'test/hw', 'conform': 'test/conform', 'testrdma': 'app/testrdma'}
LIMITS = {'hw_report': 120, 'conform': 300, 'testrdma': 90}     # seconds
MOST_FAILURES = 20  # after which conform stops: a row that loses a completion takes 10 seconds
TRAFFIC = ['--op', 'write,read,send', '--size', '8,4K,64K', '--duration', '0.6', '--patience', '5', '--verify']
RESULT = re.compile(r'(pass|skip|FAIL|assumption differs) \S+ ([a-z][\w.-]*/\S+?)(?: over (.+)|: (.*))$')
WORDS = {'FAIL': 'fail', 'assumption differs': 'differs'}
LINES = 200         # of a program's output that are kept


class Programs:
    def __init__(self, build, eal, suffix, patience=1):
        self.build = build
        self.eal = eal
        self.suffix = suffix
        self.patience = patience    # factor of all time limits
        self.tail = []      # last lines of the program that ran last

    def path(self, name):
        """Returns the path in a build folder, or in a folder that has all programs."""
        flat = os.path.join(self.build, name + self.suffix)
        if os.path.isfile(flat):
            return flat
        # conform_libmlx5 is beside conform; the others are in test/hw.
        folder = FOLDERS[name] if not self.suffix or name == 'conform' else 'test/hw'
        return os.path.join(self.build, folder, name + self.suffix)

    def said(self, text):
        return any(text in line for line in self.tail)

    def run(self, name, arguments, each=None):
        """Runs a program to its end. Returns (exit status, why it did not end by itself, or None)."""
        self.tail = []
        late = threading.Event()
        limit = LIMITS[name] * self.patience
        with subprocess.Popen([self.path(name)] + arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors='replace') as child:

            def end():
                late.set()
                child.kill()

            timer = threading.Timer(limit, end)
            timer.start()
            try:
                for line in child.stdout:
                    line = line.rstrip('\n')
                    self.tail = self.tail[1 - LINES:] + [line]
                    if each is not None:
                        each(line)
                rc = child.wait()
            finally:
                timer.cancel()
                if child.poll() is None:
                    child.kill()
        if late.is_set():
            return rc, 'did not end in %d s' % limit
        return rc, 'was ended by signal %d' % -rc if rc < 0 else None

    def last_error(self):
        """Returns the last line that the library or the program logged."""
        lines = [line for line in self.tail if re.match(r'BLUEBELL: |soft: |\w+: ', line)]
        return (lines or self.tail or ['no output'])[-1]

    def report(self, device, *more_eal):
        """Returns (hw_report's JSON or None, why there is none)."""
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            rc, why = self.run('hw_report', self.eal + list(more_eal) + ['--', device, f.name])
            if rc == 0:
                return json.load(f), None
            library = [line for line in self.tail if line.startswith('BLUEBELL: ')]
            return None, why or (library[0] if library else self.last_error())

    def conform(self, device, rows, failures, only):
        """Adds results to @rows and reasons to @failures while conform runs. Returns why it did not end
        normally, ABSENT if there is no such device, or None."""
        last = []   # the failed row to which the next lines belong

        def each(line):
            found = RESULT.match(line)
            if found is None:
                if last and len(failures[last[0]]['log']) < 20:
                    failures[last[0]]['log'].append(line)
                return
            word, row = WORDS.get(found[1], found[1]), found[2]
            last.clear()
            if rows.get(row) in ('fail', 'differs'):
                return
            rows[row] = word
            if word in ('fail', 'differs'):
                failures[row] = {'why': found[4], 'log': []}
                last.append(row)

        arguments = ['-v', '-d', device, '-m', str(MOST_FAILURES)]
        rc, why = self.run('conform', arguments + (['--filter', only] if only else []) + ['--'] + self.eal, each)
        if rc == STATUS_ABSENT:
            return ABSENT
        if why is None and not rows:
            return 'ended with %d: %s' % (rc, self.last_error())
        return why if why is not None or rc in (0, 1) else 'ended with %d: %s' % (rc, self.last_error())

    def traffic(self, device):
        """Returns (testrdma's JSON or None, why it failed)."""
        if not os.path.exists(self.path('testrdma')):
            return None, ABSENT
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            rc, why = self.run('testrdma', self.eal + ['--', '-d', device, '--json', f.name] + TRAFFIC)
            try:
                tests = json.load(f)
            except ValueError:
                tests = None
        return tests, why or (None if rc == 0 else 'ended with %d: %s' % (rc, self.last_error()))
