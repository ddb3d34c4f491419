#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares doc/guides/evidence/interop.rst with the conversations and the cases of rdma_cm: same cells, none empty.

test_bb_rxe.py finds the content of the cells and writes the file. This check needs no guest:
it finds a conversation, path or known gap that is not in the table. The cells of rdma_cm are the lists of cases that
test_cm_ib.py, test_cm_verbs.py and test/kernel/test_eth.py run: a case that fails makes the test fail.

usage: table.py INTEROP_RST
"""

import difflib
import os
import sys

sys.dont_write_bytecode = True
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import paths  # noqa: E402, F401
import cm_cases  # noqa: E402
import runs  # noqa: E402

ROLES = {'bluebell': 'Bluebell requests, rxe responds', 'rxe': 'rxe requests, Bluebell responds'}
HEAD = '''\
Interoperation with Linux
=========================

.. Made by test/interop/test_bb_rxe.py --update; do not edit. "meson test interop_table" compares.

``devtools/test --long --only interop`` runs the tests and compares their results with this page;
``test/interop/README.md`` explains how.

This page has the results of verbs. Those of NVMe over Fabrics are in :doc:`/examples/nvmf` and
:doc:`/examples/nvmf_client`.

The software device exchanges RoCEv2 packets with ``rdma_rxe``, the software RDMA of the Linux kernel. rxe was
written independently of this project, so it is unlikely that both have the same mistake. The tests run
Debian's kernel in a QEMU guest, which a tap device connects with the host. Bluebell runs on the host and uses
that tap device through DPDK's ``net_af_packet``.

The tables have a line for each test and a column for each path. In a test, a program in the guest, which uses
libibverbs, exchanges messages with a program on the host, which uses Bluebell's public API. The requester is
the side that posts the request, and the responder is its target. Both sides check completions, data and the
states of their queue pairs. ✓ is a test that passed, and – a test that is not run on that path.

rxe has a fault: a READ that rxe posts may complete with success although the last part of its data has not
arrived. In Linux 6.12 this happens if the ACK of an earlier SEND or WRITE arrives between the responses to the
READ. On a network that reorders packets this is possible (Linux's ``rxe_comp.c``). In Linux 6.1 it happens if
an ACK has a PSN of the READ. If your program uses rxe, compare the data after a READ.
``test/interop/programs/rxe_read.c`` shows the fault without Bluebell. ``meson test rxe_read`` distinguishes this fault
of the kernel from a fault of Bluebell.

A path is the network between the program in the guest and the program on the host: the IP version, the MTU
and the injected faults. netem is Linux's network emulation. Device options are those of the software device
(:doc:`/devices/software-device`). Paths:

'''
NAMES = {'send': 'SEND', 'send_imm': 'SEND with immediate', 'send_inv': 'SEND with invalidate',
         'write': 'WRITE', 'write_imm': 'WRITE with immediate', 'read': 'READ',
         'fetch_add': 'FETCH_ADD', 'cmp_swap': 'CMP_SWAP'}

MARKS = {'pass': '✓', 'n/a': '–'}
CONNECTIONS = '''
Connections by rdma_cm
----------------------

Programs connect by the messages of the connection manager: Linux's rdma_cm in the guest, and on the host ``BB_CM_IB``
of Bluebell's API or a program on :doc:`bb_verbs </tools/verbs-programs>`. A column names the side of the host. With
bb_verbs, the same program of Debian runs on both sides. Debian 12's perftest connects by rdma_cm over IPv4 only.

A guest with rxe: ``meson test cm_ib cm_verbs``. The programs of the API are ``test/interop/programs/cm_peer.c`` and, for
``ib_write_bw``, ``bb_perf``. ``loss 5%`` is netem's loss in both directions.

'''
HCA_CONNECTIONS = '''
A guest with Linux's mlx5 driver on :doc:`bb_hca </tools/hca>`: ``meson test kernel_eth_bridge``. The frames of the
guest and of the host's device pass through a bridge. The programs of the API are ``cm_peer`` and, for ``ib_write_bw``,
``bb_perf``. ``tx_drop`` and ``rx_drop`` are options of the host's device, which loses packets of both directions.

'''
CM_HEADER = '''\
.. csv-table::
   :class: matrix
   :widths: auto
   :header: program, API serves, API calls, bb_verbs serves, bb_verbs calls

'''


def declared():
    """Returns the cells if everything passes: {(role, run name): {cell: text}}."""
    return {(role, run.name): {cell: runs.gap(role, talk) or 'pass' for talk in run.talks
                               for cell in talk.cells}
            for role in ROLES for run in runs.RXE}


def rows():
    """Returns the cells of all paths in order: by type, then verb."""
    found = dict.fromkeys(cell for run in runs.RXE for talk in run.talks for cell in talk.cells)
    types, verbs = ['RC', 'UC', 'UD'], list(NAMES)
    return sorted(found, key=lambda cell: (types.index(cell[0]), verbs.index(cell[1])))


def render(found):
    """Returns the file's text; `found` is as from declared()."""
    text = HEAD
    reasons = []
    for number, run in enumerate(runs.RXE, 1):
        text += '%d. %s\n' % (number, run.name)
    for role, title in ROLES.items():
        text += '\n%s\n%s\n\n.. csv-table::\n   :class: matrix\n   :widths: auto\n   :header: type, verb, case, %s\n\n' % (
            title, '-' * len(title), ', '.join(str(n + 1) for n in range(len(runs.RXE))))
        for cell in rows():
            says = []
            for run in runs.RXE:
                what = found[role, run.name].get(cell, 'n/a')
                if what not in ('pass', 'n/a'):
                    if what not in reasons:
                        reasons.append(what)
                    what = 'skip [%d]' % (reasons.index(what) + 1)
                says.append(MARKS.get(what, what))
            text += '   %s, %s, "%s", %s\n' % (cell[0], NAMES[cell[1]], cell[2], ', '.join(says))
    for title, cases in (CONNECTIONS, cm_cases.rxe_table()), (HCA_CONNECTIONS, cm_cases.hca_table()):
        text += title + CM_HEADER
        for name, sides in cases:
            text += '   "%s", %s\n' % (name, ', '.join(MARKS['pass' if side in sides else 'n/a']
                                                       for side in cm_cases.SIDES))
    if reasons:
        text += '\nSkipped:\n\n'
        for number, reason in enumerate(reasons, 1):
            text += '[%d] %s\n\n' % (number, reason)
        text = text[:-1]
    return text


def differences(made, path):
    with open(path) as f:
        kept = f.read()
    return list(difflib.unified_diff(kept.splitlines(True), made.splitlines(True), path,
                                     'as the conversations say'))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    wrong = differences(render(declared()), sys.argv[1])
    sys.stdout.writelines(wrong)
    if wrong:
        print('the table is out of date: ninja -C BUILD interop-table, which takes a guest')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
