#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""libfabric's own tests (fabtests) on the provider, as runfabtests.sh of fabtests lists them.

usage: test_fabtests.py DIR [--page PAGE] [WORD...]. devtools/fabtests builds the programs in DIR. WORDs select the
tests with such a word. The environment has FI_PROVIDER_PATH, the folder of the provider.

Each failure must be in FAILURES with its cause, and each skip in SKIPS. A test of FAILURES that passes fails this
test. With --page PAGE the result is written as a page of the guides; without it, the page must be the result.
"""

import errno
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'verbs'))
from test_pyverbs import cell_table     # noqa: E402

PAGE = os.path.join(HERE, '..', '..', 'doc', 'guides', 'tools', 'libfabric-fabtests.rst')
VERSION = '1.17.0'      # of libfabric: the page is about these tests
SKIP = 77
WAIT = 60               # seconds for a program; a machine may be busy
MSG, RDM = 'bluebell', 'bluebell;ofi_rxm'
# Statuses with which a program skips itself: runfabtests.sh takes the first two.
LACKS = {errno.ENODATA, errno.ENOSYS, errno.EOPNOTSUPP}
LISTEN = '0A'           # state in /proc/net/tcp
# Sockets at which a server listens before its client may start, if there are several.
LISTENERS = {'fi_cm_data': 2}

# Tests that are not run, by a pattern, and why.
NOT_RUN = (
    (r'dgram', 'datagrams, which neither the provider nor ``ofi_rxm`` has'),
    (r'fi_rdm_atomic', 'fabtests exclude atomics of ``ofi_rxm``, in their file ofi_rxm.exclude. A comment in rxm_cq.c names '
                       'the defect: ``ofi_rxm`` reuses the buffer of an atomic request when the response arrives, although the '
                       'completion of the request\'s send may come later. It often comes later on this provider, as RDMA '
                       'permits; about one run of six with ``-U`` crashes inside ``ofi_rxm``'),
)
# Failures by provider and test, and their causes.
FAILURES = {
    (MSG, 'fi_msg_sockets'): 'an endpoint cannot take the address of a passive endpoint (``handle`` in the hints)',
}
# Kinds of skips: provider, pattern of the test, and what is missing.
SKIPS = (
    (RDM, r'^fi_rdm_rma_event', 'events of a peer\'s RMA (``FI_RMA_EVENT``)'),
    (RDM, r'^fi_rdm_rma_trigger', 'triggered operations'),
    (RDM, r'^fi_shared_ctx', 'shared contexts of ``ofi_rxm``'),
    (MSG, r'^fi_shared_ctx(?!.*--no-tx)', 'shared transmit contexts'),
    (RDM, r'^fi_scalable_ep', 'scalable endpoints'),
    (RDM, r'^fi_rdm_shared_av', 'shared address vectors'),
    (RDM, r'^fi_multi_mr', 'events of a peer\'s RMA (``FI_RMA_EVENT``)'),
    (MSG, r'^fi_multi_mr', 'events of a peer\'s RMA (``FI_RMA_EVENT``)'),
    (MSG, r'^fi_unexpected_msg', 'tagged messages, which only ``ofi_rxm`` has'),
    (MSG, r'^fi_multi_recv', 'buffers for several messages (``FI_MULTI_RECV``)'),
)


def lists_of(script):
    """Returns the tests of runfabtests.sh: [(list, test)]."""
    with open(script) as f:
        text = f.read()
    found = []
    for name in 'unit', 'functional', 'short':
        body = re.search(r'^%s_tests=\(\n(.*?)^\)' % name, text, re.M | re.S)[1]
        found += [(name, test) for test in re.findall(r'^\s*"([^"]+)"', body, re.M)]
    return found


def providers(kind, test):
    """Returns the providers on which a test runs."""
    typed = re.search(r' -e (\w+)', test)
    if typed:
        return (MSG,) if typed[1] == 'msg' else (RDM,)
    if kind == 'unit':
        return MSG, RDM
    return (MSG,) if re.match(r'fi_msg(?!_inject)|fi_cm_data', test) else (RDM,)


def command(folder, provider, test, *more):
    name, *args = test.replace('SERVER_ADDR', '127.0.0.1').replace('GOOD_ADDR', '127.0.0.1').split()
    return [os.path.join(folder, 'bin', name), *args, '-p', provider, *more]


def listeners(pid):
    """Returns the number of TCP sockets at which a process listens."""
    inodes = set()
    for name in '/proc/net/tcp', '/proc/net/tcp6':
        with open(name) as f:
            inodes |= {words[9] for words in map(str.split, f.readlines()[1:]) if words[3] == LISTEN}
    found = 0
    try:
        for fd in os.listdir('/proc/%d/fd' % pid):
            found += any(os.readlink('/proc/%d/fd/%s' % (pid, fd)) == 'socket:[%s]' % i for i in inodes)
    except OSError:     # the process or its descriptor has gone
        pass
    return found


def outcome(statuses):
    if all(s == 0 for s in statuses):
        return 'passed'
    return 'skipped' if any(s in LACKS for s in statuses) else 'failed'


def read(log):
    log.seek(0)
    return log.read()[-3000:]


def run_alone(folder, provider, test, env):
    try:
        res = subprocess.run(command(folder, provider, test), env=env, cwd=folder, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, timeout=WAIT)
    except subprocess.TimeoutExpired as err:
        return 'failed', '%s\nno end within %d s' % (err.stdout, WAIT)
    return outcome([res.returncode]), res.stdout


def run_pair(folder, provider, test, env):
    """Runs a server and a client. Returns (outcome, text of the log)."""
    with tempfile.TemporaryFile('w+') as log:
        started = []

        def start(*more):
            p = subprocess.Popen(command(folder, provider, test, *more), env=env, cwd=folder, stdout=log, stderr=log)
            started.append(p)
            return p
        try:
            end = time.monotonic() + WAIT
            server = start('-s', '127.0.0.1')
            while listeners(server.pid) < LISTENERS.get(test.split()[0], 1) and server.poll() is None:
                if time.monotonic() > end:
                    return 'failed', read(log) + 'the server did not listen within %d s' % WAIT
                time.sleep(0.05)
            client = start('-s', '127.0.0.1', '127.0.0.1')
            status = client.wait(timeout=WAIT)
            if status != 0 and server.poll() is None:
                server.kill()
                return outcome([status]), read(log)
            return outcome([status, server.wait(timeout=WAIT)]), read(log)
        except subprocess.TimeoutExpired:
            return 'failed', read(log) + 'no end within %d s' % WAIT
        finally:
            for p in started:
                if p.poll() is None:
                    p.kill()
                    p.wait()


def refused(log):
    """Returns whether the client came before the server listened. Some servers first wait for a client by a socket."""
    return 'Connection refused' in log


def run_test(folder, kind, provider, test):
    # The provider psm's library handles signals, unless the variable forbids it: a killed program would hang.
    env = dict(os.environ, FI_BLUEBELL_DEVICE='soft0,shm=fabtests-%d' % os.getpid(), IPATH_NO_BACKTRACE='1')
    if kind == 'unit':
        return run_alone(folder, provider, test, env)
    for _ in range(10):
        result, log = run_pair(folder, provider, test, env)
        if result != 'failed' or not refused(log):
            break
    return result, log


def why_skipped(provider, test):
    for on, pattern, why in SKIPS:
        if on == provider and re.search(pattern, test):
            return why
    return None


def page(results):
    """Returns the page of the guides. @results: {(provider, test): outcome}."""
    total = {o: list(results.values()).count(o) for o in ('passed', 'failed', 'skipped')}
    title = 'libfabric\'s tests on the provider'
    text = ['.. Written by test/libfabric/test_fabtests.py --page. Do not edit.', '', title, '=' * len(title), '',
            'libfabric %s has tests of its own, fabtests. On the provider ``bluebell``, and on ``bluebell;ofi_rxm``'
            % VERSION,
            'for endpoints of type ``FI_EP_RDM``: **%(passed)d passed, %(failed)d failed, %(skipped)d skipped**.' % total,
            '', '``meson test -C build libfabric_fabtests`` builds and runs fabtests. Their sources come from libfabric\'s git '
            'repository.', '']
    rows = []
    for (provider, test), result in results.items():
        why = FAILURES.get((provider, test)) if result == 'failed' else why_skipped(provider, test) if result == 'skipped' else ''
        rows.append(('``%s``' % test, '``%s``' % provider, result, why or ''))
    text += [cell_table(('test', 'provider', 'result', 'cause'), rows), '', 'Not run: ' +
             '; '.join('tests with ``%s`` in their name (%s)' % (pattern, why) for pattern, why in NOT_RUN) + '.', '']
    return '\n'.join(text)


def judge(results, logs, version):
    """Returns the complaints about the results."""
    bad = []
    for (provider, test), result in results.items():
        where = '%s on %s' % (test, provider)
        if result == 'failed' and (provider, test) not in FAILURES:
            bad.append('%s failed:\n%s' % (where, logs[provider, test]))
        if result == 'skipped' and why_skipped(provider, test) is None:
            bad.append('%s is skipped, and SKIPS has no reason:\n%s' % (where, logs[provider, test]))
        if version == VERSION and result == 'passed' and (provider, test) in FAILURES:
            bad.append('%s passes now: take it out of FAILURES' % where)
        if version == VERSION and result != 'skipped' and why_skipped(provider, test) is not None:
            bad.append('%s is not skipped now: take it out of SKIPS' % where)
    return bad


def main(args):
    to_page = None
    if '--page' in args:
        at = args.index('--page')
        to_page = args[at + 1]
        del args[at:at + 2]
    folder, *words = args
    folder = os.path.abspath(folder)
    built = subprocess.run([os.path.join(HERE, '..', '..', 'devtools', 'fabtests'), folder], stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        print(('SKIP: ' if built.returncode == SKIP else '') + built.stdout.strip())
        return built.returncode
    version = subprocess.run(['pkg-config', '--modversion', 'libfabric'], stdout=subprocess.PIPE, text=True).stdout.strip()
    results, logs = {}, {}
    for kind, test in lists_of(os.path.join(folder, 'fabtests', 'scripts', 'runfabtests.sh')):
        if any(re.search(pattern, test) for pattern, _ in NOT_RUN) or not all(w in test for w in words):
            continue
        for provider in providers(kind, test):
            results[provider, test], logs[provider, test] = run_test(folder, kind, provider, test)
            print('%-7s %-16s %s' % (results[provider, test], provider, test), flush=True)
    bad = judge(results, logs, version)
    if to_page:
        with open(to_page, 'w') as f:
            f.write(page(results))
    elif version == VERSION and not words and not bad:
        with open(PAGE) as f:
            if f.read() != page(results):
                bad.append('%s is out of date: run this test with --page' % PAGE)
    print('\n'.join(bad))
    print('fabtests %s: %s' % (version, ', '.join('%d %s' % (list(results.values()).count(o), o)
                                                  for o in ('passed', 'failed', 'skipped'))))
    return bool(bad)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
