#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Connections a second by librdmacm in one guest: rxe with the kernel's rdma_cm, and bb_verbs.

Two processes of verbs_rdmacm open and end connections, with a queue pair each. A measurement for
doc/guides/tools/verbs-programs.rst, no test.

usage: cm_rate.py BB_VERBS LIBBB_VERBS VERBS_RDMACM
"""

import os
import re
import sys

sys.dont_write_bytecode = True

import paths  # noqa: E402, F401
import carry  # noqa: E402
import guest  # noqa: E402
import namespace  # noqa: E402

SECONDS = 200
ROUNDS, COUNT, WINDOW = 3, 500, 8
BB = 'soft0,shm=rate', '10.88.200.1', '10.88.200.2'


def rate(there, server, client, address):
    """Returns the client's result. @server, @client: commands up to the arguments of verbs_rdmacm."""
    serving = there.begin('%s serve %d' % (server, COUNT), SECONDS)
    # A client that comes before the server is rejected.
    text = there.run('i=0; until %s cycle %s %d %d; do i=$((i + 1)); [ $i -lt 60 ] || exit 1; sleep 1; done' % (
        client, address, COUNT, WINDOW), SECONDS)
    serving.check()
    return re.findall('connections, .*', text)[-1]


def main():
    verbs, library, program = sys.argv[1:]
    reason = guest.missing()
    if reason:
        namespace.skip(reason)
    namespace.enter()
    with guest.Guest() as there:
        guest.host_address(there.tap)
        command, _ = carry.carry(there, program)
        bb, _ = carry.carry(there, verbs)
        carry.carry(there, library)
        bb = [bb + ' --device %s --address %s/16 -- /bb/%s' % (BB[0], address, os.path.basename(program))
              for address in BB[1:]]
        for _ in range(ROUNDS):
            for name, server, client, address in (('rxe', command, command, there.ipv4), ('bb_verbs', *bb, BB[1])):
                print('%s: %s' % (name, rate(there, server, client, address)), flush=True)


if __name__ == '__main__':
    main()
