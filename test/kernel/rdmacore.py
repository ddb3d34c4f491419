# SPDX-License-Identifier: BSD-3-Clause
"""rdma-core's own tests (pyverbs) in the guest: runs them, and knows why tests fail or skip on bb_hca."""

import json
import os
import re
import sys

import paths

HERE = os.path.dirname(os.path.abspath(__file__))
VERBS = os.path.join(HERE, '..', 'verbs')
sys.path.append(VERBS)

import test_pyverbs  # noqa: E402

RUNNER = os.path.join(VERBS, 'pyverbs_run.py')
# Modules that are not run, and why.
NOT_RUN = {
    'test_efa_srd': 'another vendor\'s device',
    'test_efadv': 'another vendor\'s device',
    'test_mlx5_vfio': 'it takes the device from mlx5_core',
}

# Lines of the kernel's log about XRC queue pairs, which the function refuses.
EXPECTED = [r'CREATE_QP\(0x500\) op_mod\(0x0\) failed, status bad parameter', r'Create QP type 10 failed']

XRC = 'Linux does not probe a device without XRC, so the function reports it, but has no XRC for users'

# Failures on an InfiniBand port, and their causes.
FAILURES = {
    'test_atomic.AtomicTest.test_xrc_atomic_cmp_and_swap': XRC,
    'test_atomic.AtomicTest.test_xrc_atomic_fetch_and_add': XRC,
    'test_cqex.CqExTestCase.test_xrc_traffic_cq_ex': XRC,
    'test_qpex.QpExTestCase.test_qp_ex_xrc_send': XRC,
    'test_qpex.QpExTestCase.test_qp_ex_xrc_send_imm': XRC,
    'test_relaxed_ordering.RoTestCase.test_ro_xrc_traffic': XRC,
    'test_mlx5_dc.DCTest.test_odp_dc_traffic':
        'the function has neither pages on demand nor DC; the test skips for EOPNOTSUPP only, and Linux returns EINVAL',
}

# Kinds of skips that bb_verbs does not have: the reason that a test gives, the module (or None), the kind.
SKIPS = (
    (r'on Ethernet link layer|is InfiniBand|RoCE', None, 'tests of Ethernet ports'),
    (r'net interface|No supported port is up', None, 'IP addresses: the guest has no IPoIB'),
    (r'ODP is not supported|access flags 64 is not supported', None, 'pages on demand'),
    (r'flow table|reformat', None, 'flow tables'),
    (r'Create UD QP with extended attrs', None, 'flags of UD QPs that the function lacks'),
    (r'UAR allocation \(with flag=0\)', None, 'write-combining UARs by mlx5dv_alloc_var()'),
) + test_pyverbs.SKIPS


def modules(guest):
    return [m for m in sorted(set(re.findall(r'(test_\w+)\.py$', guest.run('ls /pyverbs/tests'), re.M)))
            if m not in NOT_RUN]


def install(guest):
    """Copies Python and the tests to the guest."""
    guest.put(paths.pyverbs(), '/tmp/pyverbs.tar.gz')
    guest.run('tar -xzf /tmp/pyverbs.tar.gz -C / && rm /tmp/pyverbs.tar.gz && ip link set lo up', 300)
    guest.put(RUNNER, '/pyverbs/run.py')


def run(guest, seconds, device='mlx5_0'):
    """Returns {test: (passed, failed or skipped, reason)}, and the output."""
    out = guest.run('cd /pyverbs && HOME=/root python3 -B run.py /pyverbs %s %s' % (
        device, ' '.join(modules(guest))), seconds)
    results = {}
    for line in re.findall(r'RESULT (\[.*\])$', out, re.M):
        name, outcome, why = json.loads(line)
        if results.get(name, ('passed',))[0] != 'failed':
            results[name] = outcome, why
    return results, out


def names(results, outcome):
    """Returns the tests with that outcome, sorted."""
    return sorted(n for n, r in results.items() if r[0] == outcome)


def kind_of(name, why):
    """Returns the kind of a skip, None if it is not known."""
    for pattern, module, kind in SKIPS:
        if re.search(pattern, why) and (module is None or re.fullmatch(module, name.split('.')[0])):
            return kind
    return None


def report(results):
    """Returns lines: numbers of each module, each failure, and each kind of skip with its number."""
    lines = ['%-26s passed %3d, failed %3d, skipped %3d' % (name, n['passed'], n['failed'], n['skipped'])
             for name, n in test_pyverbs.count(results).items()]
    kinds = {}
    for name, (outcome, why) in sorted(results.items()):
        if outcome == 'failed':
            lines.append('failed: %s: %s' % (name, FAILURES.get(name, why)))
        elif outcome == 'skipped':
            kinds.setdefault(kind_of(name, why) or why, []).append(name)
    return lines + ['skipped %d: %s' % (len(found), kind) for kind, found in sorted(kinds.items())]
