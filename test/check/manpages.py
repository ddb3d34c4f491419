#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Typeset the manual pages.

usage: manpages.py [HELP PAGE]...

groff has to take each PAGE without a warning, it has to have what whatis(1) wants of one, and
each line of HELP, the text of --help that it was made of, has to be in what comes out.
"""

import re
import shutil
import subprocess
import sys


def squeeze(line):
    return ' '.join(line.split())


def check(text, page):
    """What is wrong with a page, given the text that it was made of."""
    name = re.search(r'^\.SH NAME\n(\S+) \\- \S', page, re.M)
    if not name:
        return ['no NAME that whatis(1) could read']
    done = subprocess.run(['groff', '-man', '-ww', '-Tascii', '-P-cbou'], input=page, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    errors = done.stderr.splitlines()
    if done.returncode != 0:
        errors.append('groff: exit status %d' % done.returncode)
    lines = [squeeze(l) for l in done.stdout.splitlines()]
    for line in text.splitlines():
        want = squeeze(re.sub(r'^usage:', '', line))
        # A heading loses its colon, and may be broken.
        if want not in lines and want.rstrip(':') not in lines:
            errors.append('not there: ' + want)
    return errors


def main():
    files = sys.argv[1:]
    if not files or len(files) % 2:
        sys.exit(__doc__)
    if shutil.which('groff') is None:
        print('skipped: no groff')
        return 77
    bad = 0
    for help_file, page_file in zip(files[::2], files[1::2]):
        with open(help_file) as f, open(page_file) as g:
            errors = check(f.read(), g.read())
        for error in errors:
            print('%s: %s' % (page_file, error))
        bad += len(errors)
    print('manpages: %d pages, %d errors' % (len(files) // 2, bad))
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
