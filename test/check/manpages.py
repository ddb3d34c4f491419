#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Typesets the manual pages.

usage: manpages.py [HELP PAGE]...

groff must accept each PAGE without a warning. The page must have the parts that whatis(1) needs.
Each line of HELP, the text of --help from which the page was made, must be in the output.
"""

import re
import shutil
import subprocess
import sys


def squeeze(line):
    return ' '.join(line.split())


def check(text, page):
    """Returns errors in a page, given the text from which it was made."""
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
