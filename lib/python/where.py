# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Bluebell authors
"""Prints the folder in which the Python module is installed.

usage: python3 -I where.py PREFIX FOLDER

FOLDER is meson's choice. On Debian with the prefix /usr/local it is /usr/local/lib/python3/dist-packages, which
Debian's Python does not search. So a folder of PREFIX that this Python searches takes precedence.
"""

import os
import sys


def choose(prefix, folder, search):
    """Returns @folder if @search has it, otherwise the first folder of @search for packages below @prefix."""
    folder = os.path.normpath(folder)
    if folder in search:
        return folder
    lib = os.path.join(os.path.normpath(prefix), 'lib') + os.sep
    return next((p for p in search if p.startswith(lib) and p.endswith('-packages')), folder)


if __name__ == '__main__':
    print(choose(sys.argv[1], sys.argv[2], sys.path))
