#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A browser without a network draws the page of bench --report: the bars are there, in both
colour schemes."""

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

from apptest import AppTest, main

BROWSER = shutil.which('chromium') or shutil.which('chromium-browser')
SIZE = (640, 480)
# Of the style sheet: bars of ours.
OURS = {'light': (0x2f, 0x6f, 0xde), 'dark': (0x6e, 0xa0, 0xff)}


def pixels(path):
    """Pixels of a PNG of 8 bits a sample, as tuples."""
    with open(path, 'rb') as f:
        data = f.read()
    at, body, bpp, width = 8, b'', 0, 0
    while at < len(data):
        size, kind = struct.unpack('>I4s', data[at:at + 8])
        chunk = data[at + 8:at + 8 + size]
        if kind == b'IHDR':
            width, _, depth, colour = struct.unpack('>IIBB', chunk[:10])
            assert depth == 8 and colour in (2, 6), (depth, colour)
            bpp = 3 if colour == 2 else 4
        elif kind == b'IDAT':
            body += chunk
        at += 12 + size
    raw, row = zlib.decompress(body), width * bpp
    above = bytearray(row)
    for start in range(0, len(raw), row + 1):
        line = bytearray(raw[start + 1:start + 1 + row])
        how = raw[start]
        for i in range(row):
            left = line[i - bpp] if i >= bpp else 0
            up = above[i]
            if how == 1:
                line[i] = (line[i] + left) & 255
            elif how == 2:
                line[i] = (line[i] + up) & 255
            elif how == 3:
                line[i] = (line[i] + (left + up) // 2) & 255
            elif how == 4:
                corner = above[i - bpp] if i >= bpp else 0
                p = left + up - corner
                best = min((abs(p - v), n, v) for n, v in enumerate((left, up, corner)))[2]
                line[i] = (line[i] + best) & 255
        for i in range(0, row, bpp):
            yield tuple(line[i:i + 3])
        above = line


class Page(AppTest):
    def test_drawn(self):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, 'r.html')
            proc = subprocess.run([self.program, '--quick', '--case', 'post', '--report', page],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(proc.returncode, 0, proc.stderr)
            for scheme, ours in OURS.items():
                shot = os.path.join(folder, scheme + '.png')
                cmd = [BROWSER, '--headless', '--no-sandbox', '--disable-gpu',
                       '--hide-scrollbars', '--host-resolver-rules=MAP * ~NOTFOUND',
                       '--user-data-dir=' + os.path.join(folder, 'profile'),
                       '--window-size=%d,%d' % SIZE, '--screenshot=' + shot]
                if scheme == 'dark':
                    cmd.append('--blink-settings=preferredColorScheme=0')
                res = subprocess.run(cmd + ['file://' + page], stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True, timeout=300)
                self.assertTrue(os.path.exists(shot), res.stdout)
                count = sum(p == ours for p in pixels(shot))
                self.assertGreater(count, 1000, scheme)


if __name__ == '__main__':
    if BROWSER is None:
        print('skipped: chromium is not installed')
        sys.exit(77)
    main()
