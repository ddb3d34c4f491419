# SPDX-License-Identifier: BSD-3-Clause
"""The stage of devtools/test that builds the documents."""

import os
import shutil

from builds import TOP, WORK, run
from clock import say


def stage_docs(r):
    """Builds the API reference and its manual pages (doxygen) and the guides (sphinx), warnings as errors."""
    for name, need in (('api,man', 'doxygen'), ('guides', 'sphinx-build')):
        if shutil.which(need) is None:
            say('docs: %s skipped, %s is not installed' % (name, need))
            r.tally.skip('docs/doc/' + name)
            continue
        say('docs: %s' % name)
        ok = run([os.path.join(TOP, 'devtools/docs'), '--only', name, '--output', WORK], os.path.join(WORK, name + '.log'))
        r.tally.ok() if ok else r.tally.fail('docs: ' + name)
