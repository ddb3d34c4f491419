#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the dependency rules: which folder may include which; places of public headers and fences.

usage: includes.py TREE [--objects FOLDER]... PUBLIC_HEADER...

The installed headers of a folder, and no other header, are in its folder include/, which counts as
the same folder. Folders may include their own headers and those in RULES. For a folder in CLOSED,
headers that are included through a permitted header are checked, too. rooms.py checks the order of
the folders of drivers/soft, for headers and, in object files, for calls.
"""

import fnmatch
import os
import re
import sys

import rooms

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)

PUBLIC = 'public headers'

# Folder: patterns of headers of this project (path in the tree) that it may include. PUBLIC stands
# for the installed headers. The first match counts.
RULES = [
    ('lib/format', []),
    ('lib/queue', ['lib/format/*']),
    ('lib/roce', ['lib/format/*']),
    ('lib/ibcm', ['lib/format/*']),
    ('lib/dev', [PUBLIC, 'lib/queue/*', 'lib/format/*']),
    ('lib/mem', [PUBLIC, 'lib/dev/*', 'lib/queue/*', 'lib/format/*']),
    ('lib/core', [PUBLIC, 'lib/dev/*', 'lib/mem/*', 'lib/queue/*', 'lib/format/*']),
    ('lib/tel', [PUBLIC, 'lib/dev/*', 'lib/mem/*', 'lib/core/*', 'lib/queue/*', 'lib/format/*']),
    ('lib/loop', [PUBLIC, 'lib/dev/*', 'lib/tel/*', 'lib/queue/*', 'lib/format/*']),
    ('lib/connect', [PUBLIC, 'lib/connect/*', 'lib/dev/*', 'lib/mem/*', 'lib/core/*', 'lib/queue/*',
                     'lib/format/*', 'lib/ibcm/*', 'lib/tel/bb_tel.h']),
    ('lib', [PUBLIC]),
    ('drivers/soft', ['drivers/soft/*', 'lib/format/*', 'lib/roce/*', 'lib/queue/include/bb_barrier.h',
                      'lib/tel/bb_tel.h', 'drivers/mlx5/mlx5_cmd.h']),
    ('drivers/front/uverbs', ['drivers/soft/host/*',
                              'drivers/mlx5/mlx5_cmd.h', 'lib/format/*', PUBLIC]),
    ('drivers/front/ucma', ['drivers/front/ucma/*', 'lib/ibcm/*', 'lib/dev/include/bb_dev.h']),
    ('drivers/front', ['drivers/front/*', 'drivers/soft/host/*', 'drivers/mlx5/mlx5_cmd.h',
                       'lib/format/*', 'lib/ibcm/*']),
    ('drivers/ibv', [PUBLIC]),
    ('drivers/mlx5', ['drivers/mlx5/*', 'lib/dev/bb_driver.h', PUBLIC, 'lib/queue/*', 'lib/format/*', 'drivers/ibv/*']),
    ('drivers', ['lib/dev/bb_driver.h', PUBLIC, 'lib/queue/*', 'lib/format/*',
                 'drivers/ibv/*']),
    ('app/testrdma', [PUBLIC, 'app/testrdma/*', 'app/common/*']),
    ('app/perf', [PUBLIC, 'app/perf/*', 'app/common/*']),
    ('app/hca', [PUBLIC, 'app/hca/*', 'app/common/*', 'lib/format/*', 'lib/tel/bb_tel.h', 'drivers/front/front.h',
                 'drivers/mlx5/mlx5_cmd.h']),
    ('app/bench', [PUBLIC, 'app/bench/*', 'app/common/*', 'examples/common/rdma_ring.h', 'drivers/front/uverbs/uverbs_cmd.h']),
    # Takes the place of a kernel, so it hosts the device.
    ('app/verbs', [PUBLIC, 'app/verbs/*', 'app/common/*', 'drivers/front/uverbs/uverbs.h',
                   'drivers/front/uverbs/uverbs_wait.h',
                   'drivers/front/ucma/ucma.h', 'drivers/soft/host/*',
                   'drivers/mlx5/mlx5_cmd.h', 'lib/format/*', 'lib/ibcm/*']),
    ('app/libfabric', [PUBLIC, 'app/libfabric/*', 'app/common/eal_foreign.h']),
    ('app', [PUBLIC, 'app/common/*']),
    ('examples/nvmf/target', [PUBLIC, 'examples/nvmf/*', 'app/common/*', 'examples/common/*', 'lib/tel/bb_tel.h']),
    ('examples/nvmf/host', [PUBLIC, 'app/common/*', 'examples/nvmf/nvmf_spec.h']),
    ('examples/nvmf/engine', ['examples/nvmf/nvmf_spec.h']),
    ('examples/nvmf', [PUBLIC, 'app/common/*', 'examples/nvmf/engine/nvmf.h']),
    ('examples/hft_pipeline', [PUBLIC, 'app/common/*', 'examples/common/*', 'examples/hft_pipeline/market/*']),
    ('examples', [PUBLIC, 'app/common/*', 'examples/common/*']),
]

# All headers that may reach the folder through any chain of includes. The software device gets
# mailboxes and memory, never an object or a queue of the library. bb_dev.h has only names, bb_tel.h
# wraps DPDK's telemetry.
CLOSED = {
    'drivers/soft': ['drivers/soft/*', 'lib/format/*', 'lib/roce/*', 'lib/queue/include/bb_barrier.h',
                     'drivers/mlx5/mlx5_cmd.h', 'lib/dev/include/bb_dev.h', 'lib/tel/bb_tel.h'],
}

# Headers of other projects: pattern of the name, files that may include it, the reason.
FOREIGN = [
    ('infiniband/*', ['drivers/mlx5/dv/*', 'drivers/verbs/*', 'drivers/ibv/*',
                      'drivers/front/uverbs/*', 'drivers/front/ucma/*', 'app/verbs/*', 'app/bench/peers/*'],
     'only the command interface on rdma-core, what stands beneath rdma-core, and peers, know ibverbs'),
    ('rdma/*', ['lib/connect/*', 'drivers/front/uverbs/*', 'drivers/front/ucma/*', 'app/verbs/*', 'app/bench/peers/*', 'app/libfabric/*',
                'test/libfabric/*'],
     'only lib/connect knows librdmacm, what stands beneath rdma-core the ABI of the kernel, and the provider libfabric'),
    ('*ethdev*.h', ['drivers/soft/*', 'app/bench/baselines/*'],
     'only the ports of the software device, and baselines, know ethdev'),
    ('*_driver.h', [], 'the driver headers of DPDK are not part of its API'),
]

# Fences, which are in this header only, each with a name and a reason. Baselines use no code of the
# library.
FENCE = re.compile(r'\b(__atomic_(?:thread|signal)_fence|atomic_(?:thread|signal)_fence|__sync_synchronize|'
                   r'rte_(?:smp_|io_)?[rw]?mb|rte_atomic_thread_fence|_mm_[lsm]fence|'
                   r'__builtin_ia32_[lsm]fence)\s*\(|'
                   r'"\s*(?:[lsm]fence|d[ms]b)\b')
FENCES = ['lib/queue/include/bb_barrier.h', 'app/bench/baselines/*']


def match(path, patterns):
    return any(fnmatch.fnmatchcase(path, p) for p in patterns)


def sources(top):
    for root in ('lib', 'drivers', 'app', 'examples'):
        for folder, _, names in os.walk(os.path.join(top, root)):
            for name in sorted(names):
                if name.endswith(('.c', '.h')):
                    yield os.path.relpath(os.path.join(folder, name), top)


class Tree:
    def __init__(self, top, public):
        self.top = top
        self.public = public
        self.files = list(sources(top))
        self.by_name = {}
        for path in self.files:
            if path.endswith('.h'):
                self.by_name.setdefault(os.path.basename(path), []).append(path)

    def text(self, path):
        with open(os.path.join(self.top, path), errors='replace') as f:
            return f.read()

    def includes(self, path):
        return INCLUDE.findall(self.text(path))

    def resolve(self, path, name):
        """Returns the header of this project that an include names, the nearest to the includer;
        None: another project's."""
        found = self.by_name.get(os.path.basename(name), [])
        here = os.path.dirname(path)
        return max(found, key=lambda p: (os.path.dirname(p) == here, len(os.path.commonpath([p, here]))),
                   default=None)

    def reached(self, path, seen=None):
        """Returns every header of this project that path includes, directly or not, with its includer."""
        seen = {} if seen is None else seen
        for _, name in self.includes(path):
            target = self.resolve(path, name)
            if target and target not in seen:
                seen[target] = path
                self.reached(target, seen)
        return seen


def part(path):
    """Returns the folder of a file; for a public header, the folder that contains include/."""
    folder, name = os.path.split(os.path.dirname(path))
    return folder if name == 'include' else os.path.join(folder, name)


def check_places(tree, public):
    """Checks the places of public headers. @public: as meson.build lists them."""
    places = [path for path in tree.files if os.path.basename(os.path.dirname(path)) == 'include']
    errors = ['%s: is not installed: headers of include/ are' % path for path in places
              if path not in tree.public]
    errors += ['%s: is installed: its place is the folder include/' % path
               for path in sorted(tree.public) if path not in places]
    errors += ['%s: is listed twice' % path for path in sorted(tree.public) if public.count(path) > 1]
    return errors


def folder_rule(path):
    for folder, allowed in RULES:
        if path.startswith(folder + '/'):
            return folder, allowed
    return None, None


def check_file(tree, path):
    errors = []
    folder, allowed = folder_rule(path)
    is_public = path in tree.public
    for kind, name in tree.includes(path):
        target = tree.resolve(path, name)
        if target is None:
            if kind == '"':
                errors.append('%s: "%s" is not in the tree; use <> for headers of others'
                              % (path, name))
            for pattern, users, why in FOREIGN:
                if fnmatch.fnmatchcase(name, pattern) and not match(path, users):
                    errors.append('%s: must not include <%s>: %s' % (path, name, why))
            continue
        if is_public and target not in tree.public:
            errors.append('%s: is installed, but includes %s, which is not' % (path, target))
        if part(target) == part(path):
            continue
        if target in tree.public and PUBLIC in allowed:
            continue
        if not match(target, allowed):
            errors.append('%s: %s must not include %s; allowed: %s'
                          % (path, folder, target, ', '.join(allowed) or 'nothing of ours'))
    for closed, reachable in CLOSED.items():
        if path.startswith(closed + '/'):
            for target, via in tree.reached(path).items():
                if not match(target, reachable):
                    errors.append('%s: must not know %s, which comes in through %s'
                                  % (path, target, via))
    if not match(path, FENCES):
        errors += ['%s: %s: fences are functions of %s, which say what race they stop'
                   % (path, fence.group(0).strip(), FENCES[0])
                   for fence in FENCE.finditer(tree.text(path))]
    return errors


def check(top, public):
    public = [os.path.relpath(os.path.join(top, p), top) for p in public]
    tree = Tree(top, set(public))
    errors = check_places(tree, public)
    for path in tree.files:
        errors += check_file(tree, path)
    return errors, len(tree.files)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    top = os.path.abspath(sys.argv[1])
    args = sys.argv[2:]
    objects = []
    while args[:1] == ['--objects']:
        objects.append(args[1])
        args = args[2:]
    errors, count = check(top, [os.path.relpath(p, top) for p in args])
    if objects:
        errors += rooms.check(top, objects)[0]
    for error in errors:
        print(error)
    print('includes: %d files, %d errors' % (count, len(errors)))
    if count == 0:
        sys.exit('no source file found in %s' % top)
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
