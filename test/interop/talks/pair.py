# SPDX-License-Identifier: BSD-3-Clause
"""Two peers that talk, and the cells of the table that each conversation fills."""

import peer
import standstill

# Offsets in the MR of every peer: source at 0, and two targets.
TARGET, TARGET2, SIZE = 1 << 20, 2 << 20, 3 << 20


def cells(type, verbs, cases):
    """Returns cells of the table. Verbs and cases are lists of names in one string, separated by '|'."""
    return [(type, verb.strip(), case.strip()) for verb in verbs.split('|')
            for case in cases.split('|')]


def talk(*groups):
    """Marks a conversation with the cells that it fills."""
    def mark(function):
        function.cells = [cell for group in groups for cell in group]
        function.title = function.__name__.replace('_', '-')
        return function
    return mark


class Pair:
    """Two peers with one MR each (n=0). QPs are made per conversation; a asks and b answers. mtu,
    ip: of the paths from now on; lossy: packets get lost there. All may change between
    conversations."""

    def __init__(self, a, b, mtu=1024, ip=4):
        self.a, self.b = a, b
        self.mtu, self.ip, self.lossy = mtu, ip, False
        self.mr = [self.region(side, 0, SIZE, 'lwrab') for side in (a, b)]
        self.qp = -1
        self.type = None
        self.seed = 0
        self.done = set()

    @staticmethod
    def region(side, n, size, access):
        """Makes an MR of a peer once; the next pair reuses it."""
        made = side.__dict__.setdefault('regions', {})
        if n not in made:
            made[n] = side('mr', n=n, size=size, access=access)
        return made[n]

    def run(self, talk):
        """Runs a conversation, which must fill the cells that it declared."""
        self.done = set()
        talk(self)
        assert self.done == set(talk.cells), '%s: cells %s' % (
            talk.title, sorted(self.done ^ set(talk.cells)))

    def cell(self, verb, case):
        self.done.add((self.type.upper(), verb, case))

    def connect(self, type='rc', qp={}, **options):
        """Makes a new pair of QPs."""
        self.qp = (self.qp + 1) % 60
        self.type = type
        peer.make_qps(self.a, self.b, self.qp, type, **qp)
        peer.connect(self.a, self.b, self.qp, self.mtu, self.ip,
                     lossy=self.lossy, **options)

    def close(self):
        """Destroys the QPs and polls their remaining completions."""
        for side in (self.a, self.b):
            side('reset', n=self.qp)
        for side in (self.a, self.b):
            while side.completion(0):
                pass

    def lost(self, side, what):
        """A completion is overdue: prints the state of both peers, and fails."""
        print(standstill.report(self, '%s at %s' % (what, side.name)), flush=True)
        raise AssertionError('%s: no completion at %s' % (what, side.name))

    def expect(self, side, what, **fields):
        found = side.completion()
        if found is None:
            self.lost(side, what)
        for name, value in fields.items():
            allowed = value if isinstance(value, tuple) else (value,)
            assert found[name] in allowed, '%s: %s is %s, not %s: %s at %s' % (
                what, name, found[name], value, found, side.name)
        return found

    def remote(self, off=TARGET):
        """Returns the destination of a request of a at b."""
        return dict(raddr=self.mr[1]['addr'] + off, rkey=self.mr[1]['rkey'])

    def post(self, op, id=1, **args):
        self.a('send', qp=self.qp, id=id, op=op, mr=0, **args)

    def request(self, op, status=peer.SUCCESS, **args):
        """Runs one request of a to its completion."""
        self.post(op, **args)
        return self.expect(self.a, '%s %s' % (op, args), id=1, status=status)

    def receive(self, id=2, length=TARGET, off=TARGET):
        """Posts a receive of b."""
        self.b('recv', qp=self.qp, id=id, mr=0, off=off, len=length)

    def fill(self, side, length, off=0):
        """Writes new bytes, different from the last ones. Returns their seed."""
        self.seed += 1
        side('fill', mr=0, off=off, len=length, seed=self.seed)
        return self.seed

    def verify(self, side, what, off, length, seed):
        differs = side('verify', mr=0, off=off, len=length, seed=seed)['differs']
        assert differs == 'no', '%s: byte %s is wrong at %s' % (what, differs, side.name)

    def value(self, side, off, to=None):
        """Returns the 8 bytes of a peer's MR at off, or sets them to `to`."""
        if to is None:
            return side('peek', mr=0, off=off)['value']
        return side('poke', mr=0, off=off, value=to)

    def state(self, side):
        return side('state', n=self.qp)['state']
