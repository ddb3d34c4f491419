# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces that vanish with the process that made them."""

import os
import shutil
import signal
import subprocess
import sys

MARK = 'BB_INTEROP_NAMESPACE'
SKIP = 77


class NamespaceError(Exception):
    pass


def skip(reason):
    """Ends as a skipped test."""
    print('skipped: %s' % reason, flush=True)
    sys.exit(SKIP)


def write(path, text):
    if os.path.exists(path):
        with open(path, 'w') as f:
            f.write(text)


def unshare_command():
    # PID 1 of a PID namespace takes every process in it along when it ends, for any cause. A
    # network namespace without a name ends with its last process. So no cleanup is needed, and two
    # runs share nothing.
    command = ['unshare', '--net', '--pid', '--fork', '--kill-child=KILL', '--mount-proc']
    if os.geteuid() != 0:
        command += ['--user', '--map-root-user']
    return command


def enter(tap=True):
    """Runs this program again in a network and PID namespace of its own, and returns there. Without
    root it uses unprivileged user namespaces. Raises NamespaceError if this machine permits
    none, or if @tap and it permits no tap there."""
    if os.environ.pop(MARK, None) and os.getpid() == 1:
        # The kernel drops signals that PID 1 of a namespace has no handler for.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        ip('link', 'set', 'lo', 'up')
        # A forwarding host, as one with containers is, would forward these packets: the kernel
        # would answer for other end points on the tap. IPv6 would send multicast of its own there.
        write('/proc/sys/net/ipv4/ip_forward', '0')
        write('/proc/sys/net/ipv6/conf/default/disable_ipv6', '1')
        return
    for tool in ('setpriv', 'unshare', 'ip'):
        if shutil.which(tool) is None:
            raise NamespaceError('%s is not installed' % tool)
    command = unshare_command()
    if tap and not os.access('/dev/net/tun', os.R_OK | os.W_OK):
        raise NamespaceError('/dev/net/tun cannot be opened')
    probe = command + (['ip', 'tuntap', 'add', 'dev', 'probe0', 'mode', 'tap'] if tap else ['true'])
    done = subprocess.run(probe, text=True, capture_output=True, timeout=60)
    if done.returncode:
        raise NamespaceError('no network namespace%s: ' % (' with a tap' if tap else '') + done.stderr.strip())
    sys.stdout.flush()
    # unshare blocks SIGTERM and SIGINT while it waits. So this process stays and passes on the
    # signal to end, also when it is killed itself.
    inner = subprocess.Popen(['setpriv', '--pdeathsig', 'KILL'] + command +
                             [sys.executable] + sys.argv, env=dict(os.environ, **{MARK: '1'}))

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: inner.kill())
    status = inner.wait()
    sys.exit(status if status >= 0 else 128 - status)


def enter_or_skip(tap=True):
    """Does what enter() does, and ends as a skipped test where this machine permits no namespace."""
    try:
        enter(tap)
    except NamespaceError as err:
        skip(str(err))


def ip(*args):
    """Runs ip(8) in the namespace of this process. Returns its output."""
    done = subprocess.run(('ip',) + args, text=True, capture_output=True, timeout=60)
    if done.returncode:
        raise NamespaceError('ip %s: %s' % (' '.join(args), done.stderr.strip()))
    return done.stdout
