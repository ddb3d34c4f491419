#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares doc/guides/interop.rst with the conversations: same cells, none empty.

test_bb_rxe.py finds the content of the cells and writes the file. This check needs no guest:
it finds a conversation, path or known gap that is not in the table.

usage: table.py INTEROP_RST
"""

import difflib
import sys

sys.dont_write_bytecode = True

import runs  # noqa: E402

ROLES = {'bluebell': 'Bluebell requests, rxe responds', 'rxe': 'rxe requests, Bluebell responds'}
HEAD = '''\
Interoperation with Linux
=========================

.. Made by test/interop/test_bb_rxe.py --update; do not edit. "meson test interop_table" compares.

``devtools/test --long --only interop`` makes and checks this page; ``test/interop/README.md`` explains how.

The software device exchanges RoCEv2 with ``rdma_rxe``, the software RDMA of the Linux kernel, which is
independent of this project. Debian's kernel runs in a QEMU guest with a tap. Bluebell is on the tap's other
end through DPDK's ``net_af_packet``. Each cell is a conversation of a program on libibverbs in the guest and
a program on Bluebell's public API. The requester posts the request, the responder is its target. Both ends
check completions, data and states. A cell is "n/a" if the path does not include that conversation.

A READ of rxe may complete with success and lack its tail. Linux 6.12 does so if the ACK of an earlier SEND or
WRITE arrives between the READ's responses, as on a network that reorders (Linux's ``rxe_comp.c``). Linux 6.1
does so if an ACK names a PSN of the READ. Compare the data if that matters to you.
``test/interop/rxe_read.c`` shows this without Bluebell, and ``meson test rxe_read`` distinguishes this fault
of the kernel from a fault of Bluebell.

Paths:

'''
NAMES = {'send': 'SEND', 'send_imm': 'SEND with immediate', 'send_inv': 'SEND with invalidate',
         'write': 'WRITE', 'write_imm': 'WRITE with immediate', 'read': 'READ',
         'fetch_add': 'FETCH_ADD', 'cmp_swap': 'CMP_SWAP'}


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
        text += '\n%s\n%s\n\n.. csv-table::\n   :header: type, verb, case, %s\n\n' % (
            title, '-' * len(title), ', '.join(str(n + 1) for n in range(len(runs.RXE))))
        for cell in rows():
            says = []
            for run in runs.RXE:
                what = found[role, run.name].get(cell, 'n/a')
                if what not in ('pass', 'n/a'):
                    if what not in reasons:
                        reasons.append(what)
                    what = 'skip [%d]' % (reasons.index(what) + 1)
                says.append(what)
            text += '   %s, %s, "%s", %s\n' % (cell[0], NAMES[cell[1]], cell[2], ', '.join(says))
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
