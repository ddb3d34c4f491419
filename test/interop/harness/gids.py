# SPDX-License-Identifier: BSD-3-Clause
"""GIDs of a real kernel: bb_gid_list() and bb_gid_choose() on rxe0 in a guest, whose interface gets
VLANs, loses and gains addresses, and goes into a bond. Programs started earlier in the guest have
lost its interface afterwards.
"""

import ipaddress
import re

import carry

EAL = '-l 0 --no-huge -m 64 --no-pci --no-telemetry --no-shconf --log-level=lib.eal:4'
LOG = '/tmp/gids.log'

VLANS = '''set -e
modprobe 8021q
for id in 5 7; do
  ip link add link eth0 name eth0.$id type vlan id $id
  ip addr add 198.51.$id.2/24 dev eth0.$id
  ip link set eth0.$id up
done'''

BOND = '''set -e
ip link del eth0.5
ip link del eth0.7
modprobe bonding max_bonds=0
ip link add bond0 type bond mode active-backup miimon 100
ip link set eth0 down
ip link set eth0 master bond0
ip addr add 192.0.2.9/24 dev bond0
ip link set bond0 up'''

ADD, DROP = 'ip addr add %s/24 dev eth0', 'ip -4 addr flush dev eth0'

# Changes of the guest's interface, each with the GID that appears or, with '-', disappears; and
# each wish, with the address and other words that its answer must have.
STEPS = [
    ([('', '192.0.2.2'), ('', '2001:db8::2')], {
        'any': '192.0.2.2 .*eth0$', 'ipv6': '2001:db8::2 .*eth0$', 'vlan=5': 'ENOENT$',
        'netdev=eth1': 'ENOENT$'}),
    ([(VLANS, '198.51.7.2')], {
        'any': '192.0.2.2 .*eth0$', 'vlan=0': '192.0.2.2 .*eth0$',
        'vlan=5': '198.51.5.2 .*eth0.5, VLAN 5$', 'vlan=7': '198.51.7.2 .*eth0.7, VLAN 7$',
        'netdev=eth0.7': '198.51.7.2 .*VLAN 7$', 'ipv6,vlan=5': 'fe80::.*eth0.5, VLAN 5, link-local$',
        'vlan=6': 'ENOENT$'}),
    # Another address takes its index; both match, and neither is chosen by chance.
    ([(DROP, '-192.0.2.2'), (ADD % '192.0.2.77', '192.0.2.77'), (ADD % '192.0.2.2', '192.0.2.2')], {
        'any': 'ENOTUNIQ$', 'addr=192.0.2.2': '192.0.2.2 .*eth0$',
        'addr=192.0.2.77': '192.0.2.77 .*eth0$', 'vlan=5': '198.51.5.2 .*VLAN 5$'}),
    # No untagged IPv4 address is left.
    ([(DROP, '-192.0.2.2'), ('', '-192.0.2.77')], {
        'any': '2001:db8::2 .*eth0$', 'ipv4': 'ENOTUNIQ$', 'ipv4,vlan=7': '198.51.7.2 .*VLAN 7$'}),
    ([(ADD % '192.0.2.2', '192.0.2.2'), (BOND, '192.0.2.9'), ('', '-198.51.5.2')], {
        'any': '192.0.2.9 .*bond0$', 'netdev=bond0': '192.0.2.9 .*bond0$',
        'addr=192.0.2.2': '192.0.2.2 .*eth0, slave of a bond$', 'vlan=5': 'ENOENT$'}),
]


def raw(address):
    """Returns an address in the form of sysfs."""
    ip = ipaddress.ip_address(address)
    return ipaddress.ip_address('::ffff:' + address if ip.version == 4 else address).exploded


class Table:
    """The GID table of rxe0 in a guest."""

    def __init__(self, there):
        self.there = there

    def change(self, script, gid):
        """Executes a change and waits for it: the kernel fills the table from a work queue."""
        self.there.run(script or 'true')
        self.there.wait_for('%s grep -q %s /sys/class/infiniband/rxe0/ports/1/gids/?' % (
            '!' if gid[0] == '-' else '', raw(gid.strip('-'))))


class Gids(Table):
    """The program, which has rxe0 open permanently."""

    def __init__(self, there, program):
        super().__init__(there)
        run, options = carry.carry(there, program)
        there.run('mkdir -p /var/run')
        self.request = there.begin('exec env %s %s %s -- rxe0 2>%s' % (run, EAL, options, LOG),
                                   carry.PROGRAM_SECONDS, stdin=True)
        self.taken = 0

    def line(self):
        text = self.request.read_line(self.taken)
        self.taken += len(text) + 1
        return text

    def ask(self, wish):
        self.request.write(wish + '\n')
        return self.line()

    def table(self):
        self.request.write('list\n')
        return list(iter(self.line, ''))

    def step(self, changes, answers):
        """Makes the changes and checks the answers. Returns the table."""
        for script, gid in changes:
            self.change(script, gid)
        table = self.table()
        got = {wish: self.ask(wish) for wish in answers}
        wrong = ['%s: wanted %s, got %s' % (wish, answers[wish], line)
                 for wish, line in got.items() if not re.match(answers[wish], line)]
        assert not wrong, '\n'.join(wrong + table + [self.there.run('cat ' + LOG)])
        return table


def place(there, device, address):
    """Returns the index of that GID of a device."""
    folder = '/sys/class/infiniband/%s/ports/1/gids' % device
    there.wait_for('grep -q %s %s/?' % (raw(address), folder))
    return int(there.run('cd %s && grep -l %s ?' % (folder, raw(address))).split()[0])


def check(there, program, vlans, bond):
    """Runs all steps. Returns the number of wishes. Calls vlans and bond when they exist."""
    gids = Gids(there, program)
    tables = []
    for i, step in enumerate(STEPS):
        tables.append(gids.step(*step))
        if i == 1:
            vlans()
    bond()
    # The same address is found at another index.
    at = [next(line.split(', ')[1] for line in table if line.startswith('192.0.2.2 '))
          for table in (tables[1], tables[2])]
    assert at[0] != at[1], at
    log = there.run('cat ' + LOG)
    assert 'no GID of port 1 matches the request. The port has' in log, log
    assert re.search(r'match equally.*\n.*198.51.5.2 .*\n.*198.51.7.2 ', log), log
    gids.request.socket.close()
    return sum(len(answers) for _, answers in STEPS)
