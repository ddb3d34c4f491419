#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Memory that peers reach directly, as this user and without rights: a case of verbs_memory for each hazard."""

import os
import re
import signal
import subprocess
import sys

from verbstest import NOBODY, VerbsTest, main

CASES = ('direct', 'receiver', 'messages', 'on_demand', 'block', 'bounds', 'deregistered', 'writers', 'system_calls', 'forked', 'vforked', 'cloned', 'unmapped',
         'unmapped_receive', 'unmapped_fork', 'unmapped_while_forking', 'unmapped_flood', 'unmapped_rights', 'freed', 'local_unmapped', 'local_moved', 'local_freed',
         'local_shrunk', 'stack_unmapped', 'own_mappings', 'truncated', 'handled', 'masked', 'remapped', 'advised', 'descriptors', 'descriptors_gone', 'descriptor_of_part',
         'killed', 'by_packets', 'heap')


class Memory(VerbsTest):
    uid = None

    def case(self, name):
        return self.run_one(self.command(self.hostile, name, options=('--quiet',)), self.uid)

    def test_target_that_is_killed(self):
        """Its peer gets errors, and ends by itself."""
        rc, out = self.case('dies')
        self.assertEqual(rc, -signal.SIGKILL, out)
        self.assertIn('peer: the flood has ended', out)

    def test_program_that_reads_memory_it_has_unmapped_or_truncated_crashes(self):
        """The device's handler of faults is only for the device."""
        for name, by in ('crashes', signal.SIGSEGV), ('crashes_truncated', signal.SIGBUS):
            rc, out = self.case(name)
            self.assertEqual(rc, -by, out)

    def test_program_with_address_sanitizer(self):
        """Its blocks of malloc() have bytes beside them that nothing may read by memcpy()."""
        program = self.hostile + '_asan'
        if not os.path.exists(program):
            self.skipTest('no %s: the compiler has no AddressSanitizer' % program)
        needed = subprocess.run(['ldd', program], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.env['ASAN_OPTIONS'] = 'detect_leaks=0'    # libmlx5 has some
        self.env['LD_PRELOAD'] = ''.join(re.findall(r'libasan\S+ => (\S+)', needed))
        # Without rights a region shares no page with other data, and malloc() of the sanitizer puts data beside each block.
        case = 'block' if self.uid is None and os.getuid() == 0 else 'direct'
        rc, out = self.run_one(self.command(program, case, options=('--quiet',)), self.uid)
        self.assertEqual(rc, 0, out)
        self.assertIn(case + ': right', out)

    def test_unmapped_private_memory_without_userfaultfd(self):
        self.env['BB_VERBS_NO_SHARE'] = '1'
        for name in 'local_unmapped', 'stack_unmapped':
            rc, out = self.case(name)
            self.assertEqual(rc, 0, out)
            self.assertRegex(out, 'MR 0x[0-9a-f]+: the program unmapped memory at')

    def test_why_memory_is_not_shared_is_printed(self):
        self.env['BB_VERBS_TRACE'] = '1'
        rc, out = self.case('by_packets')
        self.assertEqual(rc, 0, out)
        for why in 'it is on a stack', 'it belongs to a file', 'malloc() uses it for a thread':
            self.assertRegex(out, r'verbs: memory 0x\w+, \d+ bytes: by packets: ' + re.escape(why))
        self.env['BB_VERBS_NO_SHARE'] = '1'
        rc, out = self.case('bounds')
        self.assertEqual(rc, 0, out)
        self.assertIn('by packets: BB_VERBS_NO_SHARE is set', out)
        self.assertNotIn('shared', out)


    def test_device_sleeps_and_wakes(self):
        """Only the device's thread runs the device: the program's polls must not hide a missed doorbell."""
        self.env.update(BB_VERBS_TRACE='1', BB_VERBS_NO_POLL='1')
        rc, out = self.case('woken')
        self.assertEqual(rc, 0, out)
        woken = re.findall(r"verbs: the device's thread was woken (\d+) times by doorbells, (\d+) by peers, (\d+) by",
                           out)
        doorbells, peers, _ = max((tuple(int(n) for n in w) for w in woken), key=sum)
        self.assertGreaterEqual(doorbells, 30, out)
        self.assertGreater(peers, 0, out)


    def test_doorbell_after_a_fork_while_the_device_sleeps(self):
        self.env['BB_VERBS_NO_POLL'] = '1'
        rc, out = self.case('forked_asleep')
        self.assertEqual(rc, 0, out)


class MemoryOfNobody(Memory):
    uid = NOBODY

    def setUp(self):
        super().setUp()
        self.usable_by_nobody()


def add(name):
    def test(self):
        rc, out = self.case(name)
        self.assertEqual(rc, 0, out)
        self.assertIn('%s: right' % name, out)
    setattr(Memory, 'test_' + name, test)


for case in CASES:
    add(case)

if __name__ == '__main__':
    main(sys.argv)
