#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Verification finds defects: a device with a seeded defect fails, and testrdma exits with 1."""

import os
import re
import sys
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import ATOMICS, CPUS, EAL, OPS, AppTest, lcores, long, main  # noqa: E402

SOFT_H = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..', 'drivers', 'soft',
                      'opts', 'soft_defect.h')
# The payload defects are in the device's RDMA writes. test/unit/app/test_testrdma_verify.c shows
# that damage to any operation's memory is found.
WRITES = ['write', 'write_imm']

# Defect: operations that must fail with it, each in a run of its own.
CAUGHT = {
    'flip_bit': WRITES,
    'misplace': WRITES,
    'lose_write': WRITES,
    'skip_cqe': OPS,
    'wqe_counter': OPS,
    'owner_bit': ['write'],
    'atomic_old': ATOMICS,
}
# Only a device with its own thread shows it: inline, one poll does both steps.
BESIDE = ['early_cqe']
# test/conform finds the newer ones; it also makes illegal requests.
IN_CONFORM = ['imm_swap', 'recv_len', 'read_len', 'sge_lost', 'tail_lost', 'inline_pad',
              'empty_write', 'tear', 'read_pd', 'qp_right', 'no_solicited', 'retry_free',
              'quiet_error', 'flush_lost', 'overfill', 'replay_twice', 'event_lost', 'psn_wrap']
# Legal requests cannot show these; tests with illegal requests do.
OUT_OF_REACH = {
    'no_bounds': 'no request passes the end of its memory',
    'no_pd': 'there is one protection domain',
    'no_access': 'all rights are granted',
    'atomic_split': 'a word is changed by one queue pair only',
    'no_fence': 'no request asks for a fence',
    'no_doorbell': 'the doorbell is always rung',
    'rnr_lost': 'a receive is always there',
}


def defects():
    """Returns the names of enum soft_defect."""
    with open(SOFT_H) as f:
        body = re.search(r'enum soft_defect \{(.*?)\};', f.read(), re.S).group(1)
    names = re.findall(r'^\s*SOFT_DEFECT_(\w+)', body, re.M)
    return [n.lower() for n in names if n != 'NONE']


class Caught(AppTest):
    def run_defect(self, name, op, size, *more, eal=None, device='soft0'):
        return self.run_program(['--device', '%s,defect=%s' % (device, name), '--op', op, '--size',
                                 str(size), '--verify', '--duration', '0.1'] + list(more), eal)

    def check_caught(self, name, op, size, *more, **kw):
        with self.subTest(defect=name, op=op, size=size, more=more):
            # With some defects no completion arrives; the run must still fail.
            res = self.run_defect(name, op, size, '--patience', '1', *more, **kw)
            self.assertEqual(res.rc, 1, str(res))
            self.assertIn('FAIL', res.out, str(res))
            self.assertRegex(res.err, r'(?m)^testrdma: %s \d+: ' % op, str(res))


class Defects(Caught):
    def test_every_defect_is_known_here(self):
        self.assertEqual(sorted(defects()), sorted(
            list(CAUGHT) + BESIDE + IN_CONFORM + list(OUT_OF_REACH)))

    def test_none(self):
        for op in OPS:
            res = self.run_defect('none', op, 64)
            self.assertEqual(res.rc, 0, str(res))

    @long
    def test_out_of_reach_raise_no_false_alarm(self):
        for name in OUT_OF_REACH:
            res = self.run_defect(name, 'write,read,send,fetch_add', 64)
            self.assertEqual(res.rc, 0, name + str(res))

    def test_words(self):
        """The message names the kind of damage."""
        self.assertIn('one bit is wrong', self.run_defect('flip_bit', 'write', 64).err)
        self.assertIn('was written', self.run_defect('lose_write', 'write', 64).err)
        self.assertIn('8 bytes after its address', self.run_defect('misplace', 'write', 64).err)
        self.assertIn('out of order',
                      self.run_defect('skip_cqe', 'write', 64, '--patience', '1').err)
        self.assertIn('the old value returned', self.run_defect('atomic_old', 'fetch_add', 8).err)


def add_test(name, op):
    def test(self):
        for size in (8, 4096) if op not in ATOMICS else (8,):
            self.check_caught(name, op, size)
    setattr(Defects, 'test_%s_%s' % (name, op), test if op == CAUGHT[name][0] else long(test))


for defect, ops in CAUGHT.items():
    for operation in ops:
        add_test(defect, operation)


class Faults(AppTest):
    @long
    def test_said_by_the_device(self):
        """An event for the failure of the device or a CQ ends a row long before --patience."""
        for fault, event in (('dev_fatal', 'device fatal'), ('cq_error', 'CQ error')):
            for more in ([], ['--verify'], ['--burst', '1', '--depth', '1', '--signal-every', '1']):
                with self.subTest(fault=fault, more=more):
                    begin = time.monotonic()
                    res = self.run_program(['--device', 'soft0,fault=%s:3000' % fault, '--op', 'write,send',
                                            '--size', '64', '--duration', '60', '--patience', '120'] + more)
                    self.assertLess(time.monotonic() - begin, 60, str(res))
                    self.assertEqual(res.rc, 1, str(res))
                    self.assertIn('the device reports "%s": pair 0 posted' % event, res.err)
                    self.assertIn('1 of 2 tests ran, 0 right, 1 wrong', res.out)
                    self.assertIn('ended early', res.out)


class Variants(Caught):
    """The same damage with other ways of posting."""

    def test_single_byte(self):
        for name in ('flip_bit', 'misplace', 'lose_write'):
            self.check_caught(name, 'write', 1)

    @long
    def test_pieces_and_inline(self):
        for name in ('flip_bit', 'misplace', 'lose_write'):
            self.check_caught(name, 'write', 64, '--inline', '64')
            self.check_caught(name, 'write', 1000, '--sgl', '3')
            self.check_caught(name, 'write', 1000, '--offset', '13')

    @long
    def test_large(self):
        for name in ('flip_bit', 'misplace', 'lose_write'):
            self.check_caught(name, 'write', 1 << 20)

    def test_device_on_its_own_lcore(self):
        if len(CPUS) < 2:
            self.skipTest('needs two processors')
        device = 'soft0,progress=lcore,lcore=%d' % CPUS[1]
        for name in ['flip_bit', 'skip_cqe'] + BESIDE:
            self.check_caught(name, 'write', 512, eal=lcores(2) + EAL, device=device)


if __name__ == '__main__':
    main()
