#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bb_verbs itself: options, what a program sees, what is removed, and programs that misuse descriptors."""

import ctypes
import ctypes.util
import os
import platform
import re
import select
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time

from verbstest import NOBODY, WAIT, VerbsTest, main

PT_NULL, PT_INTERP = 0, 3    # types of program headers of ELF

SKIP = 77
# Executes its arguments with a filter of seccomp(2) that fails system call 434 with EPERM. The filter's lines: load the
# number; skip the next if it is not 434; fail; allow.
REJECT_PIDFD_OPEN = """
import ctypes, os, struct, sys
lines = b''.join(struct.pack('HBBI', *line) for line in (
    (0x20, 0, 0, 0), (0x15, 0, 1, 434), (6, 0, 0, 0x50001), (6, 0, 0, 0x7fff0000)))
buf = ctypes.create_string_buffer(lines)
prog = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 4, ctypes.addressof(buf)))
libc = ctypes.CDLL(None, use_errno=True)
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, FILTER, prog):
    print('no seccomp:', os.strerror(ctypes.get_errno()))
    sys.exit(77)
os.execvp(sys.argv[1], sys.argv[1:])
"""


class Launcher(VerbsTest):
    def refused(self, status, text, *args):
        rc, out = self.run_one([self.program, *args])
        self.assertEqual(rc, status, out)
        self.assertRegex(out, text)
        self.assertNotIn('Traceback', out)
        self.until_removed()

    def test_wrong_options_are_refused(self):
        self.refused(2, r'no program to start')
        self.refused(2, r'unrecognized option', '--no-such-option')
        self.refused(2, r'invalid --link fc \(eth or ib\)', '--link', 'fc', 'true')
        self.refused(2, r'give the port of port=, too', '--device', 'soft0,port=net_memif0', 'true')
        self.refused(2, r'--vdev net_memif0,mac=fixed needs --device soft0,port=net_memif0',
                     '--vdev', 'net_memif0,mac=fixed', 'true')
        self.refused(2, r'leave out ip=', '--device', 'soft0,shm=x,ip=10.0.0.1/8', 'true')
        self.refused(2, r'needs a network', '--device', 'soft0', '--address', '10.0.0.1', 'true')
        self.refused(1, r'invalid ip=10\.0\.0\.300', '--address', '10.0.0.300', 'true')
        self.refused(1, r'unknown option or bad syntax', '--device', 'soft0,shm=x,colour=red', 'true')
        self.refused(1, r'exclude each other', '--link', 'ib', 'true')
        port = ('--device', 'soft0,port=net_memif0', '--address', '192.0.2.1', '--vdev')
        self.refused(2, r'--host needs the network of shared memory', '--host', 'x', *port, 'net_memif0', 'true')
        self.refused(1, r'the PMD is not supported', '--device', 'soft0,port=net_ring0', *port[2:], 'net_ring0', 'true')
        self.refused(1, r'--device has port=net_memif0: give port=net_memif1', *port, 'net_memif1,id=0', 'true')
        self.refused(1, r'mac=fixed is no MAC', *port, 'net_memif0,mac=fixed', 'true')
        self.refused(1, r'mac=ff:ff:ff:ff:ff:ff is no MAC', *port, 'net_memif0,mac=ff:ff:ff:ff:ff:ff', 'true')
        self.refused(1, r'--vdev is too long', *port, 'net_memif0,secret=' + 500 * 'x', 'true')
        self.refused(1, r'port=net_memif0 needs an address', '--device', port[1], '--vdev', 'net_memif0', 'true')
        self.refused(1, r'port=net_memif0 and link=ib exclude', '--link', 'ib', *port, 'net_memif0', 'true')
        self.refused(1, r'no Ethernet interface none0', '--device', 'soft0,port=net_af_packet0', *port[2:],
                     'net_af_packet0,iface=none0', 'true')
        self.refused(1, r'no Ethernet interface lo', '--device', 'soft0,port=net_af_packet0', *port[2:],
                     'net_af_packet0,iface=lo', 'true')
        self.refused(1, r'give the interface', '--device', 'soft0,port=net_af_packet0', *port[2:], 'net_af_packet0', 'true')
        self.refused(127, r'not found in PATH', 'no-such-program')
        self.refused(127, r'No such file', './no-such-program')

    def test_setuid_program_is_refused(self):
        path = os.path.join(self.folder, 'setuid')
        shutil.copy(shutil.which('true'), path)
        os.chmod(path, stat.S_ISUID | 0o755)
        self.refused(127, r'is setuid or setgid', path)

    def altered(self, name, change):
        """Copies true(1) after a change of its ELF header. Returns the path."""
        path = os.path.join(self.folder, name)
        with open(shutil.which('true'), 'rb') as f:
            data = bytearray(f.read())
        change(data)
        with open(path, 'wb') as f:
            f.write(data)
        os.chmod(path, 0o755)
        return path

    def test_program_that_cannot_load_the_library_is_refused(self):
        """One without a dynamic linker, and ones for another word size and another processor."""
        def no_linker(data):
            at, = struct.unpack_from('<Q', data, 32)
            size, n = struct.unpack_from('<HH', data, 54)
            kinds = [struct.unpack_from('<I', data, at + i * size)[0] for i in range(n)]
            self.assertIn(PT_INTERP, kinds)
            struct.pack_into('<I', data, at + kinds.index(PT_INTERP) * size, PT_NULL)

        def of_32_bits(data):
            data[4] = 1

        def of_s390(data):
            struct.pack_into('<H', data, 18, 22)

        self.refused(127, r'/static is linked statically', self.altered('static', no_linker))
        for change in of_32_bits, of_s390:
            self.refused(127, r'is built for another processor or word size', self.altered('other', change))
        self.refused(0, r'^$', '--quiet', self.altered('same', lambda data: None))

    def test_limit_of_file_sizes_is_reported(self):
        """The kernel would end the process by SIGXFSZ. The program's own device has larger files than the first."""
        for kib, files in (100, 'shared memory'), (1 << 22, 'the file of its pages'):
            rc, out = self.run_one(['sh', '-c', 'ulimit -f %d; exec "$@"' % (2 * kib), 'sh',
                                    *self.command(self.hostile, 'lengths', options=('--quiet',))])
            self.assertEqual(rc, 1, out)
            self.assertRegex(out, r'cannot create %s.*: File too large: raise .*ulimit -f' % files)

    def test_script_is_started(self):
        path = os.path.join(self.folder, 'script')
        with open(path, 'w') as f:
            f.write('#!/bin/sh\ncat /sys/class/infiniband/mlx5_0/ports/1/link_layer\n')
        os.chmod(path, 0o755)
        self.refused(0, r'^Ethernet\n$', '--quiet', path)

    def test_full_folder_in_memory_is_not_used(self):
        """The files for /sys need more room than /dev/shm has, so they are in /tmp."""
        mount = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs -o size=16k tmpfs /dev/shm && exec "$@"', 'sh']
        rc, out = self.run_one([*mount, 'true'])
        if rc != 0:
            self.skipTest('cannot mount: ' + out)
        del self.env['TMPDIR']
        rc, out = self.run_one([*mount, self.program, '--quiet', '--', 'sh', '-c', 'echo $BB_VERBS_TREE; ls /dev/shm; '
                                'cat /sys/class/infiniband/mlx5_0/ports/1/link_layer'])
        self.assertEqual(rc, 0, out)
        self.assertRegex(out, r'^/tmp/bb_verbs-\w+\nEthernet\n$')

    def test_container_that_rejects_pidfd_open_is_named(self):
        """As seccomp profiles do that are older than the system call: EPERM, by a filter of this process."""
        rc, out = self.run_one([sys.executable, '-c', REJECT_PIDFD_OPEN, *self.command('true', options=('--quiet',))])
        if rc == SKIP:
            self.skipTest(out)
        self.assertEqual(rc, 1, out)
        self.assertRegex(out, r'pidfd_open.*: Operation not permitted; a seccomp profile .* may reject')
        self.until_removed()

    def test_library_is_the_last_that_is_preloaded(self):
        self.env['LD_PRELOAD'] = ctypes.util.find_library('m')
        rc, out = self.run_one([self.program, '--quiet', '--', 'sh', '-c', 'echo $LD_PRELOAD'])
        self.assertEqual(rc, 0, out)
        self.assertRegex(out, r'^libm\.so\.6:/\S+/libbb-verbs\.so\n$')

    def test_program_sees_files_of_sys(self):
        rc, out = self.run_one(self.command('sh', '-c', 'ls /sys/class/infiniband; '
                                            'cat /sys/class/infiniband/mlx5_0/ports/1/link_layer; '
                                            'test -c /dev/infiniband/uverbs0 && echo node'))
        self.assertEqual(rc, 0, out)
        self.assertRegex(out, r'mlx5_0 is soft0,shm=\w+, address 10\.88\.\d+\.\d+, GID index 1 \(RoCE v2\)\n'
                              r'mlx5_0\nEthernet\n')
        self.until_removed()

    def test_checked_names_of_functions_of_libc_are_intercepted(self):
        """Programs that are built with _FORTIFY_SOURCE, such as UCX, call realpath() by another name."""
        code = ('import ctypes\n'
                'fn = getattr(ctypes.CDLL(None), "__realpath_chk")\n'
                'out = ctypes.create_string_buffer(4096)\n'
                'fn.restype = ctypes.c_char_p\n'
                'print(fn(b"/sys/class/infiniband/mlx5_0/device", out, ctypes.c_size_t(4096)).decode())\n')
        rc, out = self.run_one(self.command(sys.executable, '-c', code))
        self.assertEqual(rc, 0, out)
        self.assertRegex(out, r'(?m)/sys/devices/pci0000:00/0000:03:00\.0$')

    def test_address_and_link_are_those_of_the_options(self):
        rc, out = self.run_one(self.command('true', options=('--address', '192.0.2.7')))
        self.assertEqual(rc, 0, out)
        self.assertIn('address 192.0.2.7,', out)
        rc, out = self.run_one([self.program, '--device', 'soft0', '--link', 'ib', 'cat',
                                '/sys/class/infiniband/mlx5_0/ports/1/link_layer'])
        self.assertEqual(rc, 0, out)
        self.assertRegex(out, r'InfiniBand, LID 0x[1-9a-f]\w*\nInfiniBand\n')

    def test_taken_address_is_refused(self):
        first = self.start(self.command(self.hostile, 'hold', options=('--address', '192.0.2.8')))
        while 'holds' not in first.stdout.readline():
            self.assertIsNone(first.poll())
        rc, out = self.run_one(self.command('true', options=('--address', '192.0.2.8')))
        self.assertEqual(rc, 1, out)
        first.send_signal(signal.SIGTERM)
        self.end(first)

    def test_exit_status_is_that_of_the_program(self):
        self.assertEqual(self.run_one(self.command('sh', '-c', 'exit 7'))[0], 7)
        self.assertEqual(self.run_one(self.command('sh', '-c', 'kill -9 $$'))[0], -signal.SIGKILL)
        self.until_removed()

    def test_pipe_that_the_program_closes_ends(self):
        """The process that removes the files for /sys, which runs on, does not have the pipe."""
        r, w = os.pipe()
        self.addCleanup(os.close, r)
        proc = subprocess.Popen(self.command(sys.executable, '-c', 'import os, sys; os.close(%d); sys.stdin.read()' % w,
                                             options=('--quiet',)),
                                env=self.env, cwd=self.folder, stdin=subprocess.PIPE, pass_fds=(w,))
        os.close(w)
        ended, _, _ = select.select([r], [], [], WAIT)
        self.assertIsNone(proc.poll())
        proc.communicate()
        self.assertEqual(proc.returncode, 0)
        self.assertTrue(ended)
        self.assertEqual(os.read(r, 1), b'')
        self.until_removed()

    def test_files_stay_if_the_user_has_closed_standard_descriptors(self):
        """The program's environment does not name the files, so only the pidfd says that the program runs."""
        for closed in '<&-', '>&-', '<&- 2>&-':
            with self.subTest(closed):
                look = 'sleep 2; test -d "$0" && echo stays >there'
                cmd = self.command('sh', '-c', 'exec env -u BB_VERBS_TREE sh -c "$0" "$BB_VERBS_TREE"', look,
                                   options=('--quiet',))
                self.run_one(['sh', '-c', 'exec "$@" ' + closed, 'sh', *cmd])
                self.assertTrue(os.path.exists(os.path.join(self.folder, 'there')))
                os.remove(os.path.join(self.folder, 'there'))
                self.until_removed()

    def test_empty_element_of_path_is_the_current_folder(self):
        shutil.copy(shutil.which('true'), os.path.join(self.folder, 'here'))
        for path in '', ':/none', '/none:', '/none::/none':
            with self.subTest(path):
                self.env['PATH'] = path
                self.refused(0, r'^$', '--quiet', 'here')
        self.env['PATH'] = '/none'
        self.refused(127, r'not found in PATH', '--quiet', 'here')

    def test_quiet_prints_nothing(self):
        self.assertEqual(self.run_one(self.command('true', options=('--quiet',))), (0, ''))

    def test_programs_that_misuse_descriptors(self):
        """Each ends with a refusal of its call, never by a signal."""
        for case in 'closed', 'lengths', 'replaced', 'forked', 'vforked', 'range', 'duplicated', 'rdma_cm', \
                'rdma_cm_last', 'all_closed':
            with self.subTest(case):
                rc, out = self.run_one(self.command(self.hostile, case))
                self.assertEqual(rc, 0, out)
                self.assertIn('%s: right' % case, out)
        self.until_removed()

    def test_files_stay_for_a_daemon_whose_environment_is_not_readable(self):
        self.usable_by_nobody()
        code = ('import ctypes, os, sys, time\n'
                'ctypes.CDLL(None).prctl(4, 0)\n'  # PR_SET_DUMPABLE: /proc/PID/environ is root's
                'child = os.fork()\n'
                'if child:\n'
                '    print("daemon", child, flush=True)\n'
                '    os._exit(0)\n'
                'null = os.open("/dev/null", os.O_RDWR)\n'
                '[os.dup2(null, i) for i in range(3)]\n'
                'time.sleep(600)\n')
        python = shutil.which('python3', path='/usr/bin:/bin')   # the user can read this one
        if python is None:
            self.skipTest('python3 is not in /usr/bin')
        proc = self.start(self.command(python, '-c', code), NOBODY)
        out = proc.communicate()[0]
        daemon = re.search(r'^daemon (\d+)$', out, re.M)
        self.assertTrue(daemon, out)
        try:
            time.sleep(2)   # the first look for users of the files comes at once
            self.assertTrue([name for name in os.listdir(self.folder) if name.startswith('bb_verbs-')])
        finally:
            os.kill(int(daemon.group(1)), signal.SIGKILL)
        self.until_removed()

    def test_idle_program_needs_little_time(self):
        """The device's thread sleeps: 10 wake-ups a second. A nap of 2 ms would be 500."""
        proc = self.start(self.command(self.hostile, 'hold'))
        while 'holds' not in proc.stdout.readline():
            self.assertIsNone(proc.poll())
        time.sleep(1)

        def used():
            """Returns the CPU time in ns and the number of context switches of the process."""
            folder = '/proc/%d/task/' % proc.pid
            ns = switches = 0
            for task in os.listdir(folder):
                with open(folder + task + '/schedstat') as f:
                    ns += int(f.read().split()[0])
                with open(folder + task + '/status') as f:
                    switches += sum(int(n) for n in re.findall(r'ctxt_switches:\s+(\d+)', f.read()))
            return ns, switches
        before, start = used(), time.monotonic()
        time.sleep(4)
        ns, switches = (b - a for a, b in zip(before, used()))
        print('idle: %.3f %% of a CPU, %d context switches' % (ns / 1e7 / (time.monotonic() - start), switches))
        if self.has_userfaultfd():
            self.assertLess(switches, 400)
        proc.send_signal(signal.SIGTERM)
        self.end(proc)

    @staticmethod
    def has_userfaultfd():
        """Returns whether the kernel gives a userfaultfd; closes it."""
        number = {'x86_64': 323, 'aarch64': 282}[platform.machine()]
        fd = ctypes.CDLL(None).syscall(number, os.O_CLOEXEC | 1)
        if fd >= 0:
            os.close(fd)
        return fd >= 0


if __name__ == '__main__':
    main(sys.argv)
