#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the fences of the data path in the machine code for arm64, on every path through each function.

usage: order_asm.py OBJDUMP ARCHIVE

order_asm.c has the functions. A missing fence would rarely show on a weakly ordered processor with
a device, and never under QEMU on x86. test_store_order.c sees the calls of fences, not their instructions.
The instructions are those of rdma-core (util/udma_barrier.h, for aarch64):

  dmb oshst  udma_to_device_barrier()    the device sees earlier stores first
  dmb oshld  udma_from_device_barrier()  later reads come after the device's last store
  dsb st     mmio_wc_start(), mmio_flush_writes()  stores have left before the next one to a
             register, whose page may be write-combining; dmb does not surely order those two

and of DPDK (rte_rdtsc_precise(), for aarch64):

  isb        the counter is read after the branch on an earlier load

Then each fence in turn is removed from the code or replaced by a weaker one; the check must find it.
"""

import re
import subprocess
import sys

ANY = {'load': None, 'store': None, 'store4': None, 'store8': None, 'store32': None, 'call': None}
LOADS = {'load': None}
# For each state: permitted events and the next state (None: unchanged). 'leave': the function may
# return. Loads in these tables are of the queue's own fields or of the ring, which only this thread
# writes.
DOORBELL = {
    'start': dict(ANY, **{'leave': None, 'dmb oshst': 'covered'}),
    'covered': dict(LOADS, store4='record'),
    'record': dict(LOADS, **{'dsb st': 'register'}),
    'register': dict(LOADS, store8='rung'),
    'rung': dict(LOADS, **{'store8': None, 'dsb st': 'flushed'}),
    'flushed': dict(LOADS, leave=None),
}
RECEIVE = {
    'start': dict(ANY, **{'leave': None, 'dmb oshst': 'covered'}),
    'covered': dict(LOADS, store4='handed'),
    'handed': dict(ANY, leave=None),
}
ARM = {
    'start': dict(LOADS, store4='record'),
    'record': dict(LOADS, **{'dsb st': 'register'}),
    'register': dict(LOADS, store8='rung'),
    'rung': dict(LOADS, **{'dsb st': 'flushed'}),
    'flushed': dict(LOADS, leave=None),
}
# 'owner' is the load of a CQE's last byte, 'body' a load of the CQE whose owner was loaded last.
POLL = {
    'start': dict(ANY, owner='looked', leave=None),
    'looked': dict(ANY, **{'owner': None, 'leave': None, 'dmb oshld': 'valid'}),
    'valid': dict(ANY, **{'owner': 'looked', 'body': None, 'leave': None, 'dmb oshld': None}),
}
CONSUME = {
    'start': dict(LOADS, owner='looked'),
    'looked': dict(LOADS, **{'leave': None, 'dmb oshld': 'valid'}),
    # The store of 8 bytes is the ring's own count.
    'valid': dict(LOADS, **{'body': None, 'store8': None, 'dmb oshld': 'read'}),
    'read': dict(LOADS, store4='given'),
    'given': dict(LOADS, leave=None),
}
# 64 bytes without a break: loads in between keep cores from sending them as one packet (Linux,
# __iowrite64_copy() of arm64).
BLUEFLAME = {
    'start': dict(LOADS, store8='1'),
    **{str(i): {'store8': str(i + 1)} for i in range(1, 8)},
    '8': dict(LOADS, leave=None),
}
# The same with a copy by NEON: two pairs.
BLUEFLAME_NEON = {
    'start': dict(LOADS, store32='1'),
    '1': {'store32': '2'},
    '2': dict(LOADS, leave=None),
}
# A doorbell of 8 bytes, or a copy by NEON.
DOORBELL_NEON = dict(
    DOORBELL,
    register=dict(LOADS, store8='rung', store32='rung'),
    rung=dict(LOADS, **{'store32': None, 'dsb st': 'flushed'}))
# 'time' reads the counter. A dmb does not order it, because it is a register.
TIME = {
    'start': dict(LOADS, leave=None, isb='ordered'),
    'ordered': {'time': 'read'},
    'read': dict(leave=None),
}
# Function: (its states, the reason for each of its fences, in the order of the code).
FUNCTIONS = {
    'asm_doorbell': (DOORBELL, [
        'the record covers WQEs whose bytes the device does not see yet',
        'the register wakes the device before it can see the record',
        'the store to the register lingers, or merges with the next one']),
    'asm_doorbell_or_copy': (DOORBELL, [
        'the record covers WQEs whose bytes the device does not see yet',
        'the register wakes the device before it can see the record',
        'the store to the register lingers, or merges with the next one']),
    'asm_doorbell_or_neon': (DOORBELL_NEON, [
        'the record covers WQEs whose bytes the device does not see yet',
        'the register wakes the device before it can see the record',
        'the store to the register lingers, or merges with the next one']),
    'asm_receive': (RECEIVE, ['the record covers receives whose bytes the device does not see yet']),
    'asm_shared': (RECEIVE, ['the record covers receives whose bytes the device does not see yet']),
    'asm_arm': (ARM, [
        'the register wakes the device before it can see the arm record',
        'the store to the register lingers, or merges with the next one']),
    # Its second fence is that of asm_consume, where only the record is stored after it.
    'asm_poll': (POLL, ['a CQE is read before its owner bit', None]),
    'asm_consume': (CONSUME, [
        'a CQE is read before its owner bit',
        'a CQE is given back, and overwritten, while it is being read']),
    'asm_blueflame': (BLUEFLAME, []),
    'asm_blueflame_neon': (BLUEFLAME_NEON, []),
    'asm_time': (TIME, ['the time is read before the data that it belongs to']),
}
OWNER = 63  # offset in a CQE

INSTRUCTION = re.compile(r'^\s+([0-9a-f]+):\t(\S+)(?:\s+(.*?))?\s*(?://.*)?$')
FENCE = re.compile(r'(dmb|dsb|isb)$')
MEMORY = re.compile(r'\[(\w+)(?:, #(-?\d+))?')


class Wrong(Exception):
    pass


def functions(text):
    """Returns {name: [[address, mnemonic, operands, relocated]]} from objdump's output."""
    found, code = {}, None
    for line in text.splitlines():
        head = re.match(r'^[0-9a-f]+ <([\w.]+)>:$', line)
        m = INSTRUCTION.match(line)
        if head:
            code = found.setdefault(head[1], [])
        elif code and re.search(r': R_AARCH64_(CONDBR|JUMP|CALL)', line):
            code[-1][3] = True
        elif m and code is not None:
            code.append([int(m[1], 16), m[2], m[3] or '', False])
    for code in found.values():
        plain_addresses(code)
    return found


def plain_addresses(code):
    """Rewrites "add x0, x5, #63; ldrb w6, [x0]" with the offset: gcc has atomics without offsets."""
    targets = {int(m[1], 16) for ins in code for m in [re.search(r'\b([0-9a-f]+) <', ins[2])] if m}
    sums = {}
    for ins in code:
        if ins[0] in targets:
            sums = {}
        at = MEMORY.search(ins[2])
        if at and at[1] in sums and not at[2]:
            ins[2] = ins[2].replace('[%s' % at[1], '[%s, #%d' % sums[at[1]])
        written = re.match(r'[wx](\d+)', ins[2])
        if written and not ins[1].startswith(('st', 'cb', 'tb', 'cmp')):
            reg = 'x' + written[1]
            sums = {k: v for k, v in sums.items() if reg not in (k, v[0])}
            m = re.match(r'x\d+, (x\d+), #(0x[0-9a-f]+)$', ins[2])
            if ins[1] == 'add' and m and m[1] != reg:
                sums[reg] = (m[1], int(m[2], 16))


def events(name, operands):
    """Classifies an instruction for the tables above: (kind, base register, offset) of each access."""
    if FENCE.match(name):
        return [((name + ' ' + operands).strip(), None, None)]
    if name == 'mrs' and 'cntvct' in operands:
        return [('time', None, None)]
    if name in ('bl', 'blr'):
        return [('call', None, None)]
    at = MEMORY.search(operands)
    if not at or name in ('prfm', 'prfum'):
        return []
    base, offset = at[1], int(at[2] or 0)
    if name.startswith('ld') and not re.match(r'ld(add|clr|eor|set|[su]m)', name):
        return [('load', base, offset)]
    if base == 'sp':
        return []  # a branch inside this function
    if name in ('str', 'stur'):
        return [({'w': 'store4', 'x': 'store8'}.get(operands[0], 'store'), base, offset)]
    if name == 'stp' and operands[0] == 'q':
        return [('store32', base, offset)]
    if name == 'stp' and operands[0] == 'x':
        return [('store8', base, offset), ('store8', base, offset + 8)]
    return [('store', base, offset)]


def step(states, state, cqe, event):
    """Returns the state after an event, and the register that points to the current CQE."""
    kind, base, offset = event
    if kind == 'load' and offset == OWNER:
        kind, cqe = 'owner', base
    elif kind == 'load' and base == cqe:
        kind = 'body'
    if kind not in states[state]:
        raise Wrong('%s in state "%s"' % (kind, state))
    return states[state][kind] or state, cqe


def walk(code, states):
    """Follows every path. Returns the states that were reached."""
    place = {ins[0]: i for i, ins in enumerate(code)}
    todo, seen = [(0, 'start', None)], set()
    while todo:
        here = todo.pop()
        if here in seen:
            continue
        seen.add(here)
        i, state, cqe = here
        address, name, operands, relocated = code[i]
        try:
            for event in events(name, operands):
                state, cqe = step(states, state, cqe, event)
            branch = re.match(r'(b|b\..*|cbn?z|tbn?z)$', name)
            target = int(re.search(r'\b([0-9a-f]+) <', operands)[1], 16) if branch else None
            # A tail call leaves the function, too, also if its target is in the same file.
            outside = branch and (relocated or target not in place)
            leaves = name in ('ret', 'br') or outside
            if leaves and 'leave' not in states[state]:
                raise Wrong('left in state "%s"' % state)
        except Wrong as err:
            raise Wrong('%x: %s %s: %s' % (address, name, operands, err)) from None
        if branch and not outside:
            todo.append((place[target], state, cqe))
        if not leaves and name != 'b' or outside and name != 'b':
            todo.append((i + 1, state, cqe))
    return {state for _, state, _ in seen}


def check(code, states):
    """Returns why the code violates the states, or None."""
    try:
        missing = set(states) - walk(code, states)
    except Wrong as err:
        return str(err)
    return 'never: state "%s"' % min(missing) if missing else None


def seeded(code, states, reasons):
    """Removes or weakens each fence. Yields the changes that were not found."""
    fences = [i for i, ins in enumerate(code) if FENCE.match(ins[1])]
    if len(fences) != len(reasons):
        yield '%d fences and %d reasons for one' % (len(fences), len(reasons))
    for i, why in zip(fences, reasons):
        if why is None:
            continue
        for name, operands in (('dmb', 'ishst'), ('dmb', 'ishld'), ('nop', '')):
            other = [list(ins) for ins in code]
            other[i][1:3] = [name, operands]
            found = check(other, states)
            if found is None:
                yield '%x: %s %s is not missed' % tuple(code[i][:3])
        print('    %-9s else %s\n        (without: %s)' % (' '.join(code[i][1:3]), why, found))


def main():
    objdump, archive = sys.argv[1:]
    text = subprocess.check_output([objdump, '-dr', '--no-show-raw-insn', archive], text=True)
    code = functions(text)
    bad = 0
    for name, (states, reasons) in FUNCTIONS.items():
        wrong = check(code[name], states)
        print('%s: %d instructions: %s' % (name, len(code[name]), wrong or 'in order'))
        problems = [wrong] if wrong else list(seeded(code[name], states, reasons))
        for problem in problems:
            print('  FAILED: ' + problem)
        if wrong:
            print('\n'.join('    %x: %s %s' % tuple(ins[:3]) for ins in code[name]))
        bad += len(problems)
    sys.exit(1 if bad else 0)


if __name__ == '__main__':
    main()
