# SPDX-License-Identifier: BSD-3-Clause
"""NVMe over Fabrics in a guest: the modules and programs of the archive, and Linux's target nvmet-rdma."""

import guest
import paths

SECONDS = 200


def missing():
    """Returns why no guest can run NVMe over Fabrics here, or None."""
    reason = guest.missing()
    if not reason and paths.nvme('bookworm') is None:
        reason = 'no nvme-cli for the guest: run test/interop/vm/build'
    return reason


def install(there, *modules):
    """Copies the archive into a guest, and loads modules."""
    there.put(paths.nvme('bookworm'), '/tmp/nvme.tar.gz')
    there.run('set -e; tar -xzf /tmp/nvme.tar.gz -C /; rm /tmp/nvme.tar.gz; depmod; mkdir -p /etc/nvme; ' +
              '; '.join('modprobe ' + module for module in modules), SECONDS)


class Nvmet:
    """nvmet-rdma at a guest's rxe0, with subsystems that have one namespace each."""
    TOP = '/sys/kernel/config/nvmet'

    def __init__(self, there, port=4420):
        self.there, self.port = there, port
        there.run('set -e; modprobe nvmet-rdma; mountpoint -q /sys/kernel/config || '
                  'mount -t configfs none /sys/kernel/config; mkdir %s/ports/1; cd %s/ports/1; echo ipv4 >addr_adrfam; '
                  'echo rdma >addr_trtype; echo %s >addr_traddr; echo %d >addr_trsvcid' % (
                      self.TOP, self.TOP, there.ipv4, port), SECONDS)

    def add(self, nqn, device, host=None):
        """Adds a subsystem on a block device, for the host of that name or for all."""
        self.there.run('set -e; cd %s; mkdir subsystems/%s; mkdir subsystems/%s/namespaces/1; %s; cd subsystems/%s/namespaces/1; '
                       'echo -n %s >device_path; echo 1 >enable' % (
                           self.TOP, nqn, nqn,
                           'mkdir hosts/%s; ln -s %s/hosts/%s subsystems/%s/allowed_hosts/' % (host, self.TOP, host, nqn)
                           if host else 'echo 1 >subsystems/%s/attr_allow_any_host' % nqn, nqn, device), SECONDS)
        self.open(nqn)

    def open(self, nqn):
        """Makes a subsystem reachable."""
        self.there.run('ln -s %s/subsystems/%s %s/ports/1/subsystems/' % (self.TOP, nqn, self.TOP), SECONDS)

    def close(self, nqn):
        """Makes a subsystem unreachable: its hosts lose their connections."""
        self.there.run('rm %s/ports/1/subsystems/%s' % (self.TOP, nqn), SECONDS)
