#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Global names of an installed archive. Programs link it beside code of their own, so each has a prefix.

usage: archive_names.py ARCHIVE PREFIX...
"""

import subprocess
import sys

ARCHIVE, PREFIXES = sys.argv[1], tuple(sys.argv[2:])
names = {line.split()[1] for line in subprocess.check_output(['nm', '-A', '-P', '-g', '--defined-only', ARCHIVE], text=True).splitlines()}
# Names with two underscores belong to the compiler, such as those of sanitizers.
wrong = sorted(name for name in names if not name.startswith(PREFIXES + ('__',)))
for name in wrong:
    print('%s: %s does not begin with %s' % (ARCHIVE, name, ' or '.join(PREFIXES)))
print('%s: %d names, %d wrong' % (ARCHIVE, len(names), len(wrong)))
sys.exit(len(wrong) > 0 or not names)
