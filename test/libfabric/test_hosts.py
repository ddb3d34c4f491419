#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Open MPI on the provider, on two network namespaces that stand for two hosts: by mpirun and by Slurm. Needs root.

usage: test_hosts.py MPI-PROGRAM. The environment has FI_PROVIDER_PATH, the folder of the provider, and perhaps BB_SLURM,
a folder with Debian's packages slurmctld, slurmd, slurm-client and slurm-wlm-basic-plugins unpacked.

Each rank has a DPDK port of its own on a bridge, and an address there. Open MPI's own messages take another link.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import netns  # noqa: E402

SKIP = 77
WAIT = 300      # seconds; a machine may be busy
RANKS = 4       # two on each host
COLL = None
RANK = '''i=${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID}
export FI_BLUEBELL_DEVICE=soft0,port=net_af_packet0,ip=192.0.2.$((i+1))/24
export FI_BLUEBELL_EAL="--no-huge -m 256 --no-shconf --no-pci --vdev=net_af_packet0,iface=roce$i"
exec "$@"
'''
SLURM = os.environ.get('BB_SLURM', '')
PLUGINS = SLURM + '/usr/lib/x86_64-linux-gnu/slurm-wlm'
# No keys, accounting or control groups: two nodes for one job.
CONF = '''ClusterName=bluebell
SlurmctldHost=one(198.51.100.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmctldPort=26817
SlurmdPort=26818
PluginDir={plugins}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
TmpFS={folder}/tmp.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
NodeName=one NodeAddr=198.51.100.1 CPUs=2
NodeName=two NodeAddr=198.51.100.2 CPUs=2
PartitionName=all Nodes=one,two Default=YES State=UP
'''


class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='bb_hosts.')
        try:
            cls.hosts = netns.Hosts(more=['--uts'], scripts=['hostname one', 'hostname two'])
        except netns.NetnsError as err:
            # Skips the whole program, so that meson counts it.
            print('SKIP: two network namespaces cannot be made: %s' % err, flush=True)
            shutil.rmtree(cls.folder)
            os._exit(SKIP)
        cls.enter = cls.hosts.enter
        cls.make_switch()
        cls.script('rank', RANK)
        # Open MPI starts its daemon on the other host by this program, in place of ssh.
        cls.script('agent', 'shift; exec %s sh -c "$*"\n' % ' '.join(cls.enter[1]))

    @classmethod
    def make_switch(cls):
        """Makes a bridge on the first host with a link for each rank."""
        one = cls.hosts.sides[0]
        one.ip('link', 'add', 'switch', 'type', 'bridge')
        for rank in range(RANKS):
            side = cls.hosts.sides[rank // (RANKS // 2)]
            # DPDK joins a packet group that it names by process ^ index. So the indexes are far apart, because two
            # interfaces of a namespace cannot have the same group.
            side.ip('link', 'add', 'roce%d' % rank, 'index', str(4096 * (rank + 1)), 'type', 'veth',
                    'peer', 'name', 'plug%d' % rank, 'netns', str(one.pid))
            one.ip('link', 'set', 'plug%d' % rank, 'master', 'switch', 'up')
            # Only the port may answer there.
            side.ip('link', 'set', 'roce%d' % rank, 'addrgenmode', 'none', 'up')
        one.ip('link', 'set', 'switch', 'up')

    @classmethod
    def script(cls, name, text):
        path = os.path.join(cls.folder, name)
        with open(path, 'w') as f:
            f.write('#!/bin/sh\n' + text)
        os.chmod(path, 0o755)

    @classmethod
    def tearDownClass(cls):
        cls.hosts.close()
        shutil.rmtree(cls.folder)

    def test_collectives_on_two_hosts(self):
        env = dict(os.environ, TMPDIR=self.folder, OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')
        cmd = [*self.enter[0], 'mpirun', '--mca', 'plm_rsh_agent', self.folder + '/agent',
               '--mca', 'oob_tcp_if_include', '198.51.100.0/24', '--host', '198.51.100.1:2,198.51.100.2:2',
               '--mca', 'pml', 'cm', '--mca', 'mtl', 'ofi', '--mca', 'mtl_ofi_provider_include', 'bluebell;ofi_rxm',
               '--mca', 'btl', '^openib', '-x', 'FI_PROVIDER_PATH', '-np', str(RANKS),
               self.folder + '/rank', os.path.abspath(COLL), '1']
        res = subprocess.run(cmd, env=env, capture_output=True, text=True, timeout=WAIT)
        self.assertEqual(res.returncode, 0, res.stdout + res.stderr)
        self.assertIn('%d ranks, 0 wrong' % RANKS, res.stdout)

    # ---- Slurm

    def slurm_env(self):
        env = dict(os.environ, SLURM_CONF=self.folder + '/slurm.conf', OMPI_MCA_pml='cm', OMPI_MCA_mtl='ofi',
                   OMPI_MCA_mtl_ofi_provider_include='bluebell;ofi_rxm', OMPI_MCA_btl='^openib')
        if SLURM:
            env['LD_LIBRARY_PATH'] = ':'.join([PLUGINS, SLURM + '/usr/lib/x86_64-linux-gnu',
                                               os.environ.get('LD_LIBRARY_PATH', '')])
        return env

    def logs(self):
        out = ''
        for name in sorted(os.listdir(self.folder)):
            if name.endswith('.log'):
                with open(os.path.join(self.folder, name)) as f:
                    out += '%s:\n%s' % (name, f.read()[-2000:])
        return out

    def test_collectives_under_slurm(self):
        # Debian's alternatives have the names without the suffix.
        tools = {name: shutil.which(SLURM + folder + name) or shutil.which(SLURM + folder + name + '-wlm')
                 for folder, name in (('/usr/sbin/', 'slurmctld'), ('/usr/sbin/', 'slurmd'),
                                      ('/usr/sbin/', 'slurmstepd'), ('/usr/bin/', 'srun'))}
        if None in tools.values():
            self.skipTest('slurmctld, slurmd or slurm-client is not installed')
        with open(self.folder + '/slurm.conf', 'w') as f:
            f.write(CONF.format(folder=self.folder, plugins=PLUGINS))
        for name in 'state', 'spool.one', 'spool.two', 'tmp.one', 'tmp.two':
            os.mkdir(os.path.join(self.folder, name))
        env = self.slurm_env()
        daemons = [[*self.enter[0], tools['slurmctld'], '-D', '-c']]
        daemons += [[*self.enter[side], tools['slurmd'], '-D', '-N', name, '-d', tools['slurmstepd']]
                    for side, name in enumerate(('one', 'two'))]
        running = []
        try:
            for cmd in daemons:
                running.append(subprocess.Popen(cmd, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            # srun waits until the nodes have registered.
            res = subprocess.run([*self.enter[0], tools['srun'], '-N', '2', '-n', str(RANKS), '--mpi=pmix',
                                  self.folder + '/rank', os.path.abspath(COLL), '1'],
                                 env=env, capture_output=True, text=True, timeout=WAIT)
            self.assertEqual(res.returncode, 0, res.stdout + res.stderr + self.logs())
            self.assertIn('%d ranks, 0 wrong' % RANKS, res.stdout)
        finally:
            for p in reversed(running):
                p.terminate()
                p.wait()


if __name__ == '__main__':
    if len(sys.argv) < 2 or not shutil.which('mpirun'):
        print('SKIP: openmpi-bin or libopenmpi-dev is not installed')
        sys.exit(SKIP)
    COLL = sys.argv.pop(1)
    unittest.main(verbosity=2)
