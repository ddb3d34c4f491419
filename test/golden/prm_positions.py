#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares every line of lib/format/bb_prm*.h with positions from the headers of other projects.

usage: prm_positions.py PRM_POSITIONS_JSON HEADER...

devtools/prm-positions makes the JSON from the kernel's and DPDK's headers. Each macro of a HEADER
needs a comment that names the struct and field for which it stands:

    struct.field                      the kernel's, and DPDK's where DPDK has it
    DPDK: struct.field                DPDK's; the kernel reserves the position or ends before it
    kernel: inside struct.reserved    lies inside that field of the kernel's
    sizeof(struct)                    of a mailbox, the kernel's

Enumerators and constants are compared with the kernel's of the same name. Then the test
tests itself: it changes every digit of every value in turn, and must detect each change.
"""

import json
import os
import re
import sys

FIELD = re.compile(r'#define (BB_PRM_\w+)[ \\\n\t]+'
                   r'BB_PRM_F\((0x[0-9a-f]+), (\d+), (\d+)\)[ \\\n\t]*(?:/\*(.*?)\*/)?', re.S)
VALUE = re.compile(r'#define (BB_PRM_\w+)[ \t]+(0x[0-9a-f]+|\d+|\(1u << \d+\))[ \t]*'
                   r'(?:/\*(.*?)\*/)?')
ENUM = re.compile(r'^\t(BB_PRM_\w+) = (0x[0-9a-f]+|\d+),', re.M)
DEFINE = re.compile(r'#define (BB_PRM_\w+)')
SIZES = re.compile(r'(BB_PRM_SZ_\w+) is ((?:sizeof\(\w+\)[,.\s*]*)+)')
NOT_LAYOUT = {'BB_PRM_H', 'BB_PRM_HCA_H', 'BB_PRM_KERNEL_H', 'BB_PRM_ETH_H', 'BB_PRM_F'}

# Prefix here -> names in the kernel's headers.
CONSTANTS = (
    ('BB_PRM_OP_', ('MLX5_CMD_OP_%s',)),
    ('BB_PRM_STAT_', ('MLX5_CMD_STAT_%s', 'MLX5_CMD_STAT_%s_ERR')),
    ('BB_PRM_CAP_', ('MLX5_CAP_%s',)),
    ('BB_PRM_OPTPAR_', ('MLX5_QP_OPTPAR_%s',)),
    ('BB_PRM_EVENT_', ('MLX5_EVENT_TYPE_%s',)),
    ('BB_PRM_PORT_CHANGE_', ('MLX5_PORT_CHANGE_SUBTYPE_%s',)),
    ('BB_PRM_QP_', ('MLX5_QP_STATE_%s',)),
)


class Check:
    def __init__(self, positions):
        self.kernel = positions['kernel']
        self.dpdk = positions['dpdk']
        self.errors = []
        self.checked = set()

    def fail(self, name, text):
        self.errors.append('%s: %s' % (name, text))

    def position(self, name, source, ref):
        """Returns [byte, bit, width] of "struct.field", or None with an error."""
        struct, field = ref.split('.')
        layout = source['structs'].get(struct, {}).get('fields', {})
        if field not in layout:
            self.fail(name, '%s has no %s' % (source['source'], ref))
            return None
        return layout[field]

    def same(self, name, source, ref, ours):
        theirs = self.position(name, source, ref)
        if theirs is not None and theirs != ours:
            self.fail(name, 'is at %s; %s has %s at %s' % (ours, source['source'], ref, theirs))

    def inside(self, name, ref, ours):
        theirs = self.position(name, self.kernel, ref)
        if theirs is None:
            return
        first = ours[0] * 8 + ours[1]
        start = theirs[0] * 8 + theirs[1]
        if first < start or first + ours[2] > start + theirs[2]:
            self.fail(name, '%s is not inside %s at %s' % (ours, ref, theirs))

    def field(self, name, ours, comment):
        byte, bit, width = ours
        if byte % 4 or bit > 31 or (bit + width > 32 and (bit or width % 32)):
            self.fail(name, '%s is not a field of a dword, nor whole dwords' % ours)
        refs = 0
        for part in (comment or '').split(';'):
            part = ' '.join(part.replace('\\', ' ').split()).rstrip('.')
            m = re.fullmatch(r'(?:(kernel|DPDK): )?(inside )?(\w+\.\w+)', part)
            if m is None:
                self.fail(name, 'cannot read the comment "%s"' % part)
                continue
            refs += 1
            where, inside, ref = m.groups()
            struct, field = ref.split('.')
            if inside:
                self.inside(name, ref, ours)
            elif where == 'DPDK':
                self.same(name, self.dpdk, ref, ours)
            else:
                self.same(name, self.kernel, ref, ours)
                if where is None and field in self.dpdk['structs'].get(struct, {}).get(
                        'fields', {}):
                    self.same(name, self.dpdk, ref, ours)
        if refs == 0:
            self.fail(name, 'names no struct and field')

    def sizes(self, name, value, structs):
        for struct in structs:
            size = self.kernel['structs'].get(struct, {}).get('bytes')
            if size != value:
                self.fail(name, 'is %d; sizeof(%s) is %s' % (value, struct, size))
        if not structs:
            self.fail(name, 'names no struct')

    def constant(self, name, value, comment):
        names = re.findall(r'MLX5_\w+', comment or '')
        if not names:
            for prefix, forms in CONSTANTS:
                if name.startswith(prefix):
                    names = [form % name[len(prefix):] for form in forms]
                    break
        known = [self.kernel['constants'][n] for n in names if n in self.kernel['constants']]
        if not known:
            self.fail(name, 'no constant of the kernel goes with it')
        elif known != [value]:
            self.fail(name, 'is %d, not %s' % (value, known))

    def value(self, name, text, comment, sizes):
        m = re.fullmatch(r'\(1u << (\d+)\)', text)
        value = 1 << int(m.group(1)) if m else int(text, 0)
        if name.startswith('BB_PRM_SZ_'):
            structs = re.findall(r'sizeof\((\w+)\)', comment or '')
            self.sizes(name, value, structs + sizes.get(name, []))
            return
        m = re.fullmatch(r' (\w+\.\w+) ', comment or '')
        if m:
            # A byte offset.
            theirs = self.position(name, self.kernel, m.group(1))
            if theirs is not None and (theirs[0] != value or theirs[1] != 0):
                self.fail(name, 'is %#x; %s is at %s' % (value, m.group(1), theirs))
        else:
            self.constant(name, value, comment)

    def header(self, text):
        for name, byte, bit, width, comment in FIELD.findall(text):
            self.checked.add(name)
            self.field(name, [int(byte, 16), int(bit), int(width)], comment)
        sizes = {name: re.findall(r'sizeof\((\w+)\)', structs)
                 for name, structs in SIZES.findall(text)}
        for name, value, comment in VALUE.findall(text):
            self.checked.add(name)
            self.value(name, value, comment, sizes)
        for name, value in ENUM.findall(text):
            self.checked.add(name)
            self.constant(name, int(value, 0), None)
        names = set(DEFINE.findall(text)) | set(re.findall(r'^\t(BB_PRM_\w+)\b.*,$', text, re.M))
        for name in sorted(names - self.checked - NOT_LAYOUT):
            self.fail(name, 'is not in a form that this test can read')
        return self.errors


def check(text, positions):
    c = Check(positions)
    return c.header(text), len(c.checked)


def definitions(text):
    """Yields each definition of a value, and the spans of its literals there: (start, end)."""
    for m in FIELD.finditer(text):
        yield m.group(0), [(m.start(g) - m.start(), m.end(g) - m.start()) for g in (2, 3, 4)]
    for rule in (VALUE, ENUM):
        for m in rule.finditer(text):
            yield m.group(0), [(m.start(2) - m.start(), m.end(2) - m.start())]


def digits_of(literal):
    """Returns the indexes of the digits that change the value of a literal."""
    first = len('(1u << ') if literal.startswith('(1u << ') else 0
    return [i for i, ch in enumerate(literal)
            if i >= first and ch in '0123456789abcdef' and not literal[i:].startswith('0x')]


def selftest(text, positions):
    """Returns the changes that were not detected."""
    missed = []
    tried = 0
    # A definition is checked without the others, but with the comment that lists sizes.
    sizes = ''.join('\n/* %s */' % m.group(0) for m in SIZES.finditer(text))
    for line, literals in definitions(text):
        if check(line + sizes, positions)[0]:
            missed.append('alone it is wrong: ' + line.strip())
        for start, end in literals:
            for d in digits_of(line[start:end]):
                new = '1' if line[start + d] != '1' else '2'
                mutant = line[:start + d] + new + line[start + d + 1:]
                tried += 1
                if not check(mutant + sizes, positions)[0]:
                    missed.append('digit %d of: %s' % (d, line.strip()))
    # A macro with an unknown position, or without a comment.
    first = FIELD.search(text)
    extra = text.replace(first.group(0),
                         first.group(0) + '\n#define BB_PRM_NEW BB_PRM_F(0x000, 0, 8)\n', 1)
    bare = text.replace(first.group(5), ' the opcode ', 1)
    other = text.replace(first.group(5), ' create_qp_in.no_such_field ', 1)
    enum = re.sub(r'(\tBB_PRM_OP_)', r'\tBB_PRM_OP_NEW = 0x999,\n\1', text, count=1)
    for what, mutant in (('a macro without a comment', extra), ('a comment without a field', bare),
                         ('an unknown field', other), ('an unknown enumerator', enum),
                         ('a macro in another form',
                          text + '\n#define BB_PRM_X (BB_PRM_SZ_SHORT + 1)\n')):
        tried += 1
        if mutant == text or not check(mutant, positions)[0]:
            missed.append(what)
    return missed, tried


def run(path, positions):
    """Checks a header. Returns the number of macros and enumerators, 0 if anything is wrong."""
    with open(path) as f:
        text = f.read()
    errors, checked = check(text, positions)
    for e in errors:
        print(e)
    if errors:
        return 0
    missed, tried = selftest(text, positions)
    for m in missed:
        print('not noticed: ' + m)
    print('%s: %d macros and enumerators agree with %s and %s; %d changes, %d not noticed' %
          (os.path.basename(path), checked, positions['kernel']['source'], positions['dpdk']['source'],
           tried, len(missed)))
    return 0 if missed or checked < 50 else checked


def main():
    with open(sys.argv[1]) as f:
        positions = json.load(f)
    done = [run(path, positions) for path in sys.argv[2:]]
    return 0 if done and all(done) else 1


if __name__ == '__main__':
    sys.exit(main())
