#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A browser without a network draws the page of bench --report, with its bars, in both colour schemes."""

import collections
import itertools
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import AppTest, main  # noqa: E402

BROWSER = shutil.which('chromium') or shutil.which('chromium-browser')
REPORT_LIMIT = 900  # seconds; a busy machine needs minutes
BROWSE_LIMIT = 90  # seconds; it takes one to five
SIZE = (640, 1500)  # includes the first bars
# From the style sheet: Bluebell's bars, and the third line of a plot.
OURS = {'light': ((0x2f, 0x6f, 0xde), (0x15, 0x80, 0x3d)),
        'dark': ((0x6e, 0xa0, 0xff), (0x4a, 0xde, 0x80))}


def colours(path):
    """Returns the number of pixels of each colour in a PNG with 8 bits per sample."""
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
    above, count = bytes(row), collections.Counter()
    for start in range(0, len(raw), row + 1):
        above = unfilter(raw[start], bytearray(raw[start + 1:start + 1 + row]), above, bpp)
        count.update(zip(above[::bpp], above[1::bpp], above[2::bpp]))
    return count


def unfilter(how, line, above, bpp):
    """Returns the samples of a row from the output of a PNG filter."""
    if how == 1:
        for c in range(bpp):
            line[c::bpp] = bytes(v & 255 for v in itertools.accumulate(line[c::bpp]))
    elif how == 2:
        line[:] = bytes((v + up) & 255 for v, up in zip(line, above))
    elif how != 0:
        for i, up in enumerate(above):
            left = line[i - bpp] if i >= bpp else 0
            corner = above[i - bpp] if i >= bpp else 0
            p = left + up - corner
            best = (left + up) // 2 if how == 3 else \
                min((abs(p - v), n, v) for n, v in enumerate((left, up, corner)))[2]
            line[i] = (line[i] + best) & 255
    return line


# Two phones, and a window of half a screen.
WIDTHS = (360, 390, 1000)
# Beyond this a bar would not show the smallest figure; html_bars.c.
WIDE = 20
# Opens the page in a frame of this width and lists misplaced elements.
FRAME = '''<!DOCTYPE html><body><iframe id=f style="width:WIDTHpx;height:900px;border:0" src="r.html">
</iframe><p id=out></p><script>
document.getElementById('f').onload = e => {
  const doc = e.target.contentDocument, bad = [], plots = doc.querySelectorAll('figure > svg, svg.b');
  if (doc.documentElement.scrollWidth > WIDTH)
    bad.push('the page is ' + doc.documentElement.scrollWidth + ' wide');
  for (const plot of plots) {
    const all = plot.getBoundingClientRect();
    const boxes = [...plot.querySelectorAll('text')].map(t => [t, t.getBoundingClientRect()]);
    for (const [t, b] of boxes) {
      if (b.height < 9) bad.push('too small: ' + t.textContent);
      if (b.left < all.left - 1 || b.right > all.right + 1 || b.bottom > all.bottom + 1)
        bad.push('cut off: ' + t.textContent);
      for (const [u, c] of boxes)
        if (t !== u && b.left < c.right - 1 && c.left < b.right - 1 && b.top < c.bottom - 3 &&
            c.top < b.bottom - 3)
          bad.push(t.textContent + ' on ' + u.textContent);
    }
  }
  for (const e of doc.body.querySelectorAll('*')) {
    if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && !e.ownerSVGElement)
      bad.push(e.tagName + ' overflows by ' + (e.scrollWidth - e.clientWidth) + ': ' +
               e.textContent.slice(0, 40));
    if (e.getBoundingClientRect().right > WIDTH + 1)
      bad.push(e.tagName + ' ends beyond the page: ' + e.textContent.slice(0, 40));
  }
  for (const box of doc.querySelectorAll('.t'))
    if (box.scrollWidth > box.clientWidth && (box.focus(), doc.activeElement !== box))
      bad.push('the keys do not scroll ' + box.getAttribute('aria-label'));
  for (const plot of doc.querySelectorAll('figure')) {
    const looks = [...plot.querySelectorAll('li svg')].map(k => k.innerHTML.replace(/h\d/, ''));
    for (const [i, look] of looks.slice(0, 5).entries())
      if (looks.indexOf(look) !== i) bad.push('only the hue tells lines apart: ' + look);
  }
  document.getElementById('out').textContent =
    'plots ' + plots.length + '; lines ' + doc.querySelectorAll('polyline').length + '; ' +
    bad.join('; ');
};
</script>'''


class Page(AppTest):
    def browse(self, folder, page, *args):
        """Returns the browser's output. It starts processes of its own, which all end in time."""
        # As root there is no sandbox; a container has little /dev/shm.
        cmd = [BROWSER, '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
               '--no-first-run', '--hide-scrollbars', '--host-resolver-rules=MAP * ~NOTFOUND',
               '--user-data-dir=' + os.path.join(folder, 'profile'), *args]
        proc = subprocess.Popen(cmd + ['file://' + os.path.join(folder, page)], text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            return proc.communicate(timeout=BROWSE_LIMIT)[0]
        except subprocess.TimeoutExpired:
            self.fail('%s has not ended after %d s' % (' '.join(cmd), BROWSE_LIMIT))
        finally:
            try:
                os.killpg(proc.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            proc.wait()

    def report(self, folder, *args):
        """Makes a page from one pair per figure; the figures do not matter."""
        proc = subprocess.run([self.program, '--quick', '--repeat', '1', '--report',
                               os.path.join(folder, 'r.html'), *args], timeout=REPORT_LIMIT,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(proc.returncode, 0, proc.stderr)

    def test_drawn(self):
        """Bars and lines appear in both colour schemes."""
        with tempfile.TemporaryDirectory() as folder:
            self.report(folder, '--case', 'post,scale', '--qps', '1,10,100')
            with open(os.path.join(folder, 'r.html')) as f:
                figures = re.findall(r'<figure>.*?</figure>', f.read(), re.S)
            self.assertGreater(len(figures), 0)
            for plot in figures:
                # Enough values on the y axis to read off a point between them.
                marks = re.findall(r'<text class="e"[^>]*>([^<]*)<', plot)
                self.assertGreaterEqual(len(set(marks)), 4, marks)
            for scheme, ours in OURS.items():
                shot = os.path.join(folder, scheme + '.png')
                dark = ['--blink-settings=preferredColorScheme=0'] if scheme == 'dark' else []
                out = self.browse(folder, 'r.html', '--window-size=%d,%d' % SIZE,
                                  '--screenshot=' + shot, *dark)
                self.assertTrue(os.path.exists(shot), out)
                drawn = colours(shot)
                self.assertGreater(drawn[ours[0]], 1000, scheme)
                # A line is thin, and its edges have other colours.
                self.assertGreater(drawn[ours[1]], 100, scheme)

    def test_widths(self):
        """No element is cut off, wider than its place, too small or overlapping another one."""
        with tempfile.TemporaryDirectory() as folder:
            rows = os.path.join(folder, 'r.json')
            self.report(folder, '--case', 'post_poll,lcore,wire,size,scale', '--qps', '1,10,100,1000',
                        '--json', rows)
            with open(os.path.join(folder, 'r.html')) as f:
                text = f.read()
            for width in WIDTHS:
                with self.subTest(width=width):
                    with open(os.path.join(folder, 'frame.html'), 'w') as f:
                        f.write(FRAME.replace('WIDTH', str(width)))
                    out = self.browse(folder, 'frame.html', '--window-size=1200,1000',
                                      '--allow-file-access-from-files',
                                      '--virtual-time-budget=20000', '--dump-dom')
                    found = re.search(r'plots (\d+); lines (\d+); (.*?)</p>', out, re.S)
                    self.assertIsNotNone(found, out[-2000:])
                    self.assertEqual(found.group(3), '')
                    self.assertEqual(int(found.group(1)),
                                     text.count('<figure>') + text.count('<svg class="b"'))
                    self.assertGreaterEqual(int(found.group(2)), int(found.group(1)) + 2)
            # With two CPUs a plot may be missing, if L varied all the time.
            self.assertIn('Scaling over queue pairs', text)
            with open(rows) as f:
                self.scales(text, json.load(f)['rows'])

    def scales(self, text, rows):
        """Bars start at 0. Figures too far apart use a scale that is labelled."""
        groups = {}
        for row in rows:
            if row['verdict'] != 'skipped' and row['floor'] > 0:
                title = row['case'].split('/')[0], row['unit'].split(';')[0]
                groups.setdefault(title, []).extend([row['floor'], row['ours'] or row['floor']])
        self.assertGreater(len(groups), 3)
        for title, values in groups.items():
            found = re.search(r'<h2>%s</h2>(.*?)</section>' % re.escape(', '.join(title)), text, re.S)
            self.assertIsNotNone(found, title)
            if '<svg class="b"' in found.group(1):
                self.assertEqual('logarithmic scale' in found.group(1),
                                 max(values) >= WIDE * min(values), (title, values))

    def test_pairs(self):
        """One pair is not called a median."""
        with tempfile.TemporaryDirectory() as folder:
            for repeat, words in (('1', 'a single pair'), ('2', 'medians of 2 pairs')):
                self.report(folder, '--case', 'post', '--repeat', repeat)
                with open(os.path.join(folder, 'r.html')) as f:
                    text = f.read()
                self.assertIn(words, text)
                self.assertEqual('edian' in text.replace('no medians', ''), repeat != '1')


if __name__ == '__main__':
    if BROWSER is None:
        print('skipped: chromium is not installed')
        sys.exit(77)
    main()
