# SPDX-License-Identifier: BSD-3-Clause
"""Archives in the format of the kernel's initramfs: cpio "newc"."""

import os
import stat


class Writer:
    """Writes one archive; a file may contain several in a row."""

    def __init__(self, out):
        self.out = out
        self.count = 0

    def entry(self, name, mode, data=b'', device=(0, 0)):
        self.count += 1
        raw = name.encode() + b'\0'
        fields = (self.count, mode, 0, 0, 1, 0, len(data), 0, 0) + device + (len(raw), 0)
        self.out.write(b'070701' + b''.join(b'%08X' % v for v in fields))
        self.out.write(raw + b'\0' * (-(110 + len(raw)) % 4))
        self.out.write(data + b'\0' * (-len(data) % 4))

    def folder(self, name):
        self.entry(name, stat.S_IFDIR | 0o755)

    def file(self, name, path, mode):
        with open(path, 'rb') as f:
            self.entry(name, stat.S_IFREG | mode, f.read())

    def tree(self, top):
        """Adds everything below a folder, owned by root."""
        for path, folders, files in os.walk(top):
            folders.sort()
            rel = os.path.relpath(path, top)
            if rel != '.':
                self.folder(rel)
            links = [d for d in folders if os.path.islink(os.path.join(path, d))]
            for item in sorted(files + links):
                full = os.path.join(path, item)
                name = os.path.normpath(os.path.join(rel, item))
                if os.path.islink(full):
                    self.entry(name, stat.S_IFLNK | 0o777, os.readlink(full).encode())
                else:
                    executable = os.stat(full).st_mode & 0o111 or '.so' in item
                    self.file(name, full, 0o755 if executable else 0o644)

    def end(self):
        self.entry('TRAILER!!!', 0)
        self.out.write(b'\0' * (-self.out.tell() % 512))
