#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The porting table of doc/guides/api/connect.rst names each function of librdmacm's rdma_verbs.h.

usage: porting.py CONNECT_RST [HEADER]
"""

import os
import re
import sys

HEADER = '/usr/include/rdma/rdma_verbs.h'


def missing(header, guide):
    """Returns the functions of the header, and those of them that the guide does not name."""
    names = set(re.findall(r'^(?:\w[\w ]*[ *])?(rdma_\w+)\(', header, re.M))
    return names, sorted(names - set(re.findall(r'\brdma_\w+', guide)))


def main():
    header = sys.argv[2] if len(sys.argv) > 2 else HEADER
    if not os.path.exists(header):
        print('porting: no %s (package librdmacm-dev)' % header)
        return 77
    with open(header) as f, open(sys.argv[1]) as g:
        names, lacks = missing(f.read(), g.read())
    for name in lacks:
        print('%s: not in the porting table: %s' % (sys.argv[1], name))
    print('porting: %d functions, %d missing' % (len(names), len(lacks)))
    return 1 if lacks or len(names) < 15 else 0


if __name__ == '__main__':
    sys.exit(main())
