#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Typesets the manual pages.

usage: manpages.py [HELP PAGE]...

groff must accept each PAGE without a warning, in lines of at most 80 columns. The page must have the
sections of a manual page. The text of each line of HELP, the output of --help, must be in the page.
"""

import re
import shutil
import subprocess
import sys


SECTIONS = ('NAME', 'SYNOPSIS', 'DESCRIPTION', 'OPTIONS', 'EXIT STATUS', 'ENVIRONMENT', 'FILES', 'SEE ALSO')


def squeeze(text):
    """Returns the words of text, without what the page has in another form: breaks of lines and lists."""
    return ' '.join(re.sub(r' \\$|[;.]$', '', re.sub(r';(?= )', '', text), flags=re.M).split())


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
    lines = done.stdout.splitlines()
    errors += ['over 80 columns: ' + line for line in lines if len(line) > 80]
    errors += ['no section ' + want for want in SECTIONS if want not in lines]
    words = squeeze(done.stdout)
    for line in text.splitlines():
        # A heading loses its colon or its first word, an option its place.
        want = squeeze(re.sub(r'^(usage:|Exit status:|Examples?\b,?)', '', line).rstrip(':'))
        for part in re.split(r' {2,}|\. ', line) if want not in words else []:
            part = squeeze(part.rstrip(':'))
            if part not in words:
                errors.append('not there: ' + part)
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
