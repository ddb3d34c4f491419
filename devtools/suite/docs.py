# SPDX-License-Identifier: BSD-3-Clause
"""The stage of devtools/test that builds the documents."""

import os
import re
import shutil
import sys

from builds import WORK, introspect, run
from clock import say


def build_api():
    """Builds the API reference. Every public name has a comment; members of structs need none."""
    log = os.path.join(WORK, 'doxygen.log')
    path = os.path.join(WORK, 'docs')
    if not os.path.exists(os.path.join(path, 'build.ninja')):
        if not run(['meson', 'setup', path, '-Dtests=false'], log):
            return False
    public = [h for h in introspect('installed', path) if h.endswith('.h')]
    if not run(['doxygen', 'doc/api/Doxyfile'], log,
               {'BUILD': WORK, 'HEADERS': ' '.join(public)}):
        return False
    member = re.compile(r'warning: Member \S+ \((variable|enumeration value)\) of .* is not documented')
    with open(log) as f:
        lines = [line for line in f if not member.search(line)]
    sys.stdout.writelines(lines)
    return not lines


def build_guides():
    return run(['sphinx-build', '-q', '-W', '--keep-going', '-b', 'html', 'doc/guides',
                os.path.join(WORK, 'guides')], os.path.join(WORK, 'sphinx.log'))


def stage_docs(r):
    """Builds the API reference (doxygen) and the guides (sphinx), warnings as errors."""
    for name, func, need in (('api', build_api, 'doxygen'),
                             ('guides', build_guides, 'sphinx-build')):
        if shutil.which(need) is None:
            say('docs: %s skipped, %s is not installed' % (name, need))
            r.tally.skip('docs/doc/' + name)
            continue
        say('docs: %s' % name)
        r.tally.ok() if func() else r.tally.fail('docs: ' + name)
