#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Python module on soft0. usage: test_python.py HELLO (with PYTHONPATH and BB_PYTHON_LIBRARY of the build)"""

import array
import ctypes
import errno
import gc
import mmap
import os
import subprocess
import sys
import textwrap
import unittest

import bluebell
from bluebell import Access, Flags, Op, Status, WcOp

try:
    import numpy
except ImportError:
    numpy = None

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
GUIDE = os.path.join(TREE, 'doc', 'guides', 'api', 'python.rst')
WHERE = os.path.join(TREE, 'lib', 'python', 'where.py')


class Pair:
    """Two connected queue pairs over one region."""

    def __init__(self, dev, data, access=Access.ALL, **options):
        self.pd, self.cq = dev.pd(), dev.cq()
        self.mr = self.pd.reg(data, access)
        self.a, self.b = self.pd.qp(self.cq, **options), self.pd.qp(self.cq, **options)
        self.a.connect(self.b.addr())
        self.b.connect(self.a.addr())

    def run(self, case, wr_id):
        self.a.ring()
        wc = self.cq.wait()
        case.assertEqual((wc.wr_id, wc.status), (wr_id, Status.SUCCESS))
        return wc


class Module(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        bluebell.eal_init(['--no-huge', '-m', '128', '--no-pci', '--no-shconf', '--no-telemetry', '--log-level=error'])

    def setUp(self):
        self.dev = bluebell.Device('soft0')

    def tearDown(self):
        gc.collect()
        self.dev.close()

    def test_devices_and_their_limits_have_names(self):
        self.assertIn('soft0', bluebell.devices())
        limits = self.dev.query()
        self.assertGreater(limits['max_qp'], 1000)
        self.assertEqual((limits['software'], limits['atomics'], limits['ports']), (1, 1, 1))
        self.assertGreater(len(limits), 15)
        self.assertEqual(self.dev.port()['active'], 1)
        with self.assertRaises(OSError):
            self.dev.port(99)

    def test_each_operation_moves_data_of_each_kind_of_buffer(self):
        kinds = {'bytearray': lambda: bytearray(256), 'array': lambda: array.array('Q', bytes(256))}
        if numpy is not None:
            kinds['numpy'] = lambda: numpy.zeros(32, dtype=numpy.uint64)
        for name, make in kinds.items():
            with self.subTest(name):
                data = make()
                view = memoryview(data).cast('B').cast('Q')
                p = Pair(self.dev, data)
                view[0] = 7
                p.a.write(1, p.mr, p.mr.addr + 8, p.mr.rkey, 0, 8)
                p.run(self, 1)
                self.assertEqual(view[1], 7)
                p.a.read(2, p.mr, p.mr.addr + 8, p.mr.rkey, 16, 8)
                self.assertEqual(p.run(self, 2).byte_len, 8)
                self.assertEqual(view[2], 7)
                p.a.fetch_add(3, p.mr, p.mr.addr + 8, p.mr.rkey, 5, 24)
                p.run(self, 3)
                self.assertEqual((view[3], view[1]), (7, 12))
                p.a.cmp_swap(4, p.mr, p.mr.addr + 8, p.mr.rkey, 12, 1, 24)
                p.run(self, 4)
                self.assertEqual((view[3], view[1]), (12, 1))
                p.b.recv(5, p.mr, 32, 8)
                p.b.ring()
                p.a.post(Op.SEND_IMM, 6, p.mr, 0, 8, imm=0x12345678)
                p.a.ring()
                got = {wc.wr_id: wc for wc in (p.cq.wait(), p.cq.wait())}
                self.assertEqual((got[5].byte_len, got[5].imm, got[6].status), (8, 0x12345678, Status.SUCCESS))
                self.assertEqual(view[4], 7)
                view.release()

    def test_uc_and_inline(self):
        data = bytearray(b'x' * 16 + bytes(16))
        p = Pair(self.dev, data, type=bluebell.QpType.UC)
        p.a.write(1, p.mr, p.mr.addr + 16, p.mr.rkey, 0, 16, flags=Flags.SIGNALED | Flags.INLINE)
        p.run(self, 1)
        self.assertEqual(data[16:], b'x' * 16)

    def test_a_wrong_key_completes_with_a_cause(self):
        p = Pair(self.dev, bytearray(64))
        p.a.write(1, p.mr, p.mr.addr, p.mr.rkey ^ 0x100)
        p.a.ring()
        wc = p.cq.wait()
        self.assertEqual(wc.status, Status.REM_ACCESS_ERR)
        self.assertIn('rkey', bluebell.cause(wc))

    def test_errors_have_an_errno(self):
        for code, call in ((errno.ENODEV, lambda: bluebell.Device('none0')),
                           (errno.EINVAL, lambda: self.dev.pd().qp(self.dev.cq()).connect(b'')),
                           (errno.ENOTSUP, lambda: self.dev.pd().qp(self.dev.cq()).connect(bytes(28))),
                           (errno.EINVAL, lambda: self.dev.pd().qp(self.dev.cq(), sq_depth=0))):
            with self.assertRaises(OSError) as caught:
                call()
            self.assertEqual(caught.exception.errno, code)

    def test_bad_buffers_and_parts_are_refused(self):
        pd = self.dev.pd()
        with self.assertRaises(ValueError):
            pd.reg(b'read only')
        with self.assertRaises(ValueError):
            pd.reg(memoryview(bytearray(64))[::2])
        mr = pd.reg(bytearray(64))
        for offset, length in ((65, 0), (60, 5), (-1, 4), (0, -1)):
            with self.assertRaises(IndexError):
                mr.at(offset, length)
        mr.close()
        with self.assertRaises(ValueError):
            mr.at(0, 1)

    def test_a_registered_buffer_cannot_be_resized(self):
        data = bytearray(64)
        mr = self.dev.pd().reg(data)
        with self.assertRaises(BufferError):
            data.extend(b'x' * 4096)
        mr.close()
        data.extend(b'x')

    def test_a_full_queue_says_so_and_loses_nothing(self):
        p = Pair(self.dev, bytearray(64))
        posted = 0
        with self.assertRaises(OSError) as caught:
            while posted < 100000:
                p.a.write(posted, p.mr, p.mr.addr, p.mr.rkey, 0, 8)
                posted += 1
        self.assertEqual(caught.exception.errno, errno.EAGAIN)
        p.a.ring()
        self.assertEqual([p.cq.wait().wr_id for _ in range(posted)], list(range(posted)))

    def test_a_parent_outlives_its_children(self):
        pd = self.dev.pd()
        mr = pd.reg(bytearray(64))
        with self.assertRaises(OSError) as caught:
            pd.close()
        self.assertEqual(caught.exception.errno, errno.EBUSY)
        mr.close()
        pd.close()
        with self.assertRaises(ValueError):
            pd.reg(bytearray(8))
        # Without close(): the objects keep their parents until they are gone themselves.
        cq = self.dev.cq()
        qp = self.dev.pd().qp(cq)
        del cq, qp

    def test_a_value_that_does_not_fit_is_rejected(self):
        """ctypes drops high bits, so a write of 4 GiB and 8 bytes would succeed with 8 bytes."""
        memory = mmap.mmap(-1, (1 << 32) + 8)
        p = Pair(self.dev, memory)
        for call in (lambda: p.a.write(1, p.mr, p.mr.addr, p.mr.rkey), lambda: p.a.recv(1, p.mr),
                     lambda: p.a.write(1 << 64, p.mr, p.mr.addr, p.mr.rkey, 0, 8),
                     lambda: p.a.write(1, p.mr, p.mr.addr, p.mr.rkey | 1 << 32, 0, 8),
                     lambda: self.dev.cq((1 << 32) + 4), lambda: p.pd.qp(p.cq, sq_depth=(1 << 32) + 4)):
            self.assertRaises((OverflowError, ctypes.ArgumentError), call)
        p.a.fetch_add(2, p.mr, p.mr.addr, p.mr.rkey, -1, offset=8)
        p.a.ring()
        self.assertEqual((p.cq.wait().wr_id, memory[:8]), (2, b'\xff' * 8))

    def test_a_completion_names_its_operation(self):
        p = Pair(self.dev, bytearray(64))
        p.b.recv(1, p.mr, 0, 8)
        p.b.ring()
        p.a.send(2, p.mr, 8, 8)
        p.a.write(3, p.mr, p.mr.addr, p.mr.rkey, 8, 8)
        p.a.ring()
        found = {wc.wr_id: (wc.opcode, wc.src_qp, wc.vendor_err) for wc in (p.cq.wait() for _ in range(3))}
        self.assertEqual(found, {1: (WcOp.RECV, 0, 0), 2: (WcOp.SEND, 0, 0), 3: (WcOp.WRITE, 0, 0)})

    def test_the_installed_module_is_found(self):
        """The folder of an installation with meson's prefix is one that this Python searches, if it searches one."""
        search = subprocess.run([sys.executable, '-I', '-c', 'import sys; print("\\n".join(sys.path))'], check=True,
                                stdout=subprocess.PIPE, text=True).stdout.splitlines()
        for prefix, folder in (('/usr/local', '/usr/local/lib/python3/dist-packages/'),
                               ('/usr', '/usr/lib/python3/dist-packages/')):
            chosen = subprocess.run([sys.executable, '-I', WHERE, prefix, folder], check=True,
                                    stdout=subprocess.PIPE, text=True).stdout.strip()
            if any(p.startswith(prefix + '/lib/') and p.endswith('-packages') for p in search):
                self.assertIn(chosen, search)
            else:
                self.assertEqual(chosen + '/', folder)

    def test_waiting_ends(self):
        with self.assertRaises(TimeoutError):
            self.dev.cq().wait(0.01)

    def test_hello(self):
        out = subprocess.run([sys.executable, HELLO], stdout=subprocess.PIPE, text=True, check=True, timeout=60)
        self.assertEqual(out.stdout.splitlines()[-1],
                         'write 1 completed; the target\'s memory says: hello from the other queue pair')

    @unittest.skipIf(numpy is None, 'NumPy is not installed')
    def test_code_of_the_guide(self):
        with open(GUIDE) as f:
            code = f.read().split('.. code-block:: python\n\n')[1].split('\n- ')[0]
        out = subprocess.run([sys.executable, '-c', textwrap.dedent(code)], stdout=subprocess.PIPE, text=True,
                             check=True, timeout=60)
        self.assertRegex(out.stdout.splitlines()[-1], '^(Status.SUCCESS|0) True$')


if __name__ == '__main__':
    HELLO = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1])
