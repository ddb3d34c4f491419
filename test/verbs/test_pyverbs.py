#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rdma-core's own tests (pyverbs), as Debian's python3-pyverbs and rdma-core have them, on bb_verbs.

Each failure must be in FAILURES with its cause, and each skip must be of a kind in SKIPS. With --page PAGE the
result is written as a page of the guides; without it, a module that passes fewer tests than the page says fails.
"""

import glob
import gzip
import json
import os
import re
import shutil
import subprocess
import sys

from verbstest import VerbsTest, main

TESTS = '/usr/share/doc/rdma-core/tests'
PYTHON = '/usr/bin/python3'     # Debian's, for which python3-pyverbs is built
HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, '..', '..', 'doc', 'guides', 'tools', 'verbs-pyverbs.rst')
VERSION = '44'                  # of rdma-core: the page is about these tests
ENV = 'machine'
WAIT_ALL = 900  # seconds for all tests; a machine may be busy

# Modules that are not run, and why.
NOT_RUN = {
    'test_efa_srd': 'another vendor\'s device',
    'test_efadv': 'another vendor\'s device',
    'test_mlx5_vfio': 'VFIO',
}

# Kinds of skips: the reason that a test gives, the module (or None), the kind.
SKIPS = (
    (r'Create QP type 8 |Raw Packet QP', None, 'raw packet QPs'),
    (r'NIC flow table|PCI device of', None, 'flow tables'),
    (r'XRCD', None, 'XRC'),
    (r'UD QP with(out)? extended attr', 'test_qp', 'QPs that block the loopback of multicasts'),
    (r'DC QP|DCI caps', None, 'DC'),
    (r'SkipTest occurred', 'test_mlx5_rdmacm', 'DC'),
    (r'Create Mlx5DV QP', 'test_mlx5_dma_memcpy', 'mlx5dv_wr_memcpy()'),
    (r'Create Mlx5DV QP|Create Mkey', 'test_mlx5_mkey', 'signature keys'),
    (r'Extended QP is not', None, 'XRC'),
    (r'Crypto', None, 'crypto'),
    (r'ODP is unavailable', 'test_odp', 'ODP of SEND, RECV and atomics'),
    (r'Tag matching', None, 'tag matching'),
    (r'MEMIC atomic', None, 'atomics on device memory by mlx5dv_dm_map_op_addr()'),
    (r'Create Extended CQ', 'test_mlx5_timestamp', 'real-time timestamps'),
    (r'LAG affinity', None, 'several ports'),
    (r'CQE 128B', None, 'padded and compressed CQEs of 128 bytes'),
    (r'schedule elements', None, 'packet pacing and QoS'),
    (r'[Pp]acket pacing', None, 'packet pacing and QoS'),
    (r'VAR allocation', None, 'virtio doorbells (VAR)'),
    (r'UDP sport', None, 'mlx5dv_modify_qp_udp_sport()'),
    (r'reserved QP number', None, 'reserved QP numbers, for rdma_cm'),
    (r'mlx5dv_query_port', None, 'mlx5dv_query_port(), for switches'),
    (r'dmabuf is not supported by|/dev/dri', None, ENV),
    (r'huge pages', None, ENV),
    (r'scapy|cuda|PCI device must', None, ENV),
)

KINDS = {
    ENV: 'the machine has no huge pages, no GPU, or not scapy; the test may run elsewhere',
}

# Failures, and their causes.
FAILURES = {
    'test_device.DMTest.test_multi_process_alloc_dm': 'a child of fork() uses a context of its parent',
}


def installed():
    """Returns the major version of rdma-core's tests, None if they are not here."""
    if not os.path.isdir(TESTS):
        return None
    if subprocess.run([PYTHON, '-c', 'import pyverbs.device'], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        return None
    out = subprocess.run(['dpkg-query', '-W', '-f=${Version}', 'python3-pyverbs'], capture_output=True, text=True, check=False)
    return out.stdout.split('.')[0] if out.returncode == 0 else '?'


def copy_tests(to):
    """Copies the tests. Debian compresses the larger files of its folders for documents."""
    os.mkdir(to)
    for path in glob.glob(TESTS + '/*'):
        name = os.path.join(to, os.path.basename(path).removesuffix('.gz'))
        if path.endswith('.gz'):
            with gzip.open(path) as src, open(name, 'wb') as dst:
                shutil.copyfileobj(src, dst)
        else:
            shutil.copy(path, name)


def kind_of(name, reason):
    for pattern, module, kind in SKIPS:
        if re.search(pattern, reason) and (module is None or re.fullmatch(module, name.split('.')[0])):
            return kind
    return None


def cell_table(head, rows):
    """Returns a table of reStructuredText."""
    width = [max(len(r[i]) for r in [head] + rows) for i in range(len(head))]
    rule = '  '.join('=' * w for w in width)
    text = [rule, '  '.join(c.ljust(w) for c, w in zip(head, width)).rstrip(), rule]
    text += ['  '.join(c.ljust(w) for c, w in zip(r, width)).rstrip() for r in rows]
    return '\n'.join(text + [rule])


def count(results):
    """Returns the numbers of passed, failed and skipped tests of each module."""
    n = {}
    for name, (outcome, _) in sorted(results.items()):
        m = n.setdefault(name.split('.')[0], {'passed': 0, 'failed': 0, 'skipped': 0})
        m[outcome] += 1
    return n


def page(results):
    n = count(results)
    kinds, failures = {}, []
    for name, (outcome, why) in sorted(results.items()):
        if outcome == 'skipped':
            kinds.setdefault(kind_of(name, why) or why, []).append(name.split('.')[-1])
        elif outcome == 'failed':
            failures.append(('``%s``' % name.split('.')[-1], FAILURES.get(name, why)))
    total = {k: sum(m[k] for m in n.values()) for k in ('passed', 'failed', 'skipped')}
    title = 'rdma-core\'s tests on bb_verbs'
    text = ['.. Written by test/verbs/test_pyverbs.py --page. Do not edit.', '', title, '=' * len(title), '',
            'rdma-core %s has tests for its Python module pyverbs, which run on any RDMA device. On ``bb_verbs``:' % VERSION,
            '**%(passed)d passed, %(failed)d failed, %(skipped)d skipped**.' % total, '']
    text += [cell_table(('module', 'passed', 'failed', 'skipped'),
                        [('``%s``' % name, *(str(m[k]) for k in ('passed', 'failed', 'skipped'))) for name, m in n.items()]), '']
    if failures:
        text += ['Failures', '--------', '', cell_table(('test', 'cause'), failures), '']
    text += ['Skips', '-----', '', 'A test skips itself if the device lacks what it tests:', '',
             cell_table(('what', 'tests'), [(KINDS.get(kind, kind), str(len(t))) for kind, t in sorted(kinds.items(), key=str)]), '']
    by_reason = {}
    for name, why in NOT_RUN.items():
        by_reason.setdefault(why, []).append('``%s``' % name)
    text += ['These modules are not run: ' + '; '.join('%s (%s)' % (', '.join(names), why) for why, names in by_reason.items()) + '.', '']
    return '\n'.join(text)


def passed_in_page():
    with open(PAGE) as f:
        return {m[1]: int(m[2]) for m in re.finditer(r'^``(test_\w+)`` +(\d+) +\d+ +\d+$', f.read(), re.M)}


class Pyverbs(VerbsTest):
    to_page = None

    def run_modules(self, *modules):
        copy_tests(os.path.join(self.folder, 'tests'))
        rc, out = self.run_one(self.command(PYTHON, os.path.join(HERE, 'pyverbs_run.py'), self.folder, 'mlx5_0', *modules,
                                           options=('--host', 'pyverbs')), wait=WAIT_ALL)
        if rc != 0:
            print(out)
        self.assertEqual(rc, 0, 'the tests have not ended in %d seconds' % WAIT_ALL if rc is None else 'exit status')
        results, start = {}, 0
        for line in re.finditer(r'RESULT (\[.*\])$', out, re.M):
            name, outcome, why = json.loads(line[1])
            if results.get(name, ('passed',))[0] != 'failed':
                results[name] = outcome, why
            if outcome == 'failed' and name not in FAILURES:
                print('%s printed:\n%s' % (name, out[start:line.start()].strip()))
            start = line.end()
        return results, out

    def test_pyverbs(self):
        version = installed()
        if version is None:
            self.skipTest('rdma-core\'s tests are not here: install python3-pyverbs')
        modules = sorted(os.path.basename(p).split('.')[0] for p in glob.glob(TESTS + '/test_*.py*'))
        results, out = self.run_modules(*(m for m in modules if m not in NOT_RUN))
        failed = {name: why for name, (outcome, why) in results.items() if outcome == 'failed'}
        unknown = {name: why for name, (outcome, why) in results.items()
                   if outcome == 'skipped' and kind_of(name, why) is None}
        if self.to_page:
            with open(self.to_page, 'w') as f:
                f.write(page(results))
        print('pyverbs of rdma-core %s: %d tests, %s' % (version, len(results), count(results)))
        self.assertEqual({name: why for name, why in failed.items() if name not in FAILURES}, {})
        self.assertEqual(unknown, {}, 'skips of no known kind')
        if version != VERSION:
            return
        self.assertEqual([name for name in FAILURES if name not in failed], [], 'these pass now: take them out of FAILURES')
        now = count(results)
        fewer = {name: (n, now.get(name)) for name, n in passed_in_page().items() if now.get(name, {'passed': 0})['passed'] < n}
        if fewer:
            print(out)
        self.assertEqual(fewer, {}, 'fewer tests pass than the page says')


if __name__ == '__main__':
    args = sys.argv
    if '--page' in args:
        at = args.index('--page')
        Pyverbs.to_page = args[at + 1]
        del args[at:at + 2]
    main(args)
