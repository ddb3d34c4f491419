#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bench runs every case, its output is readable, and devtools/instructions reports exceeded limits.
Times are not judged here, as the machine may be loaded.
"""

import csv
import html.parser
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apptest import CPUS, EAL, LIMIT, AppTest, lcores, long, main  # noqa: E402

TUNING = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..', 'doc', 'guides',
                      'tools', 'tuning.rst')
INSTRUCTIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..', 'devtools',
                            'instructions')
CASES_LIMIT = 1500  # seconds; a busy machine needed 413
CASES = ['post', 'post_poll', 'poll', 'inline', 'lcore', 'lkey', 'bandwidth', 'qps', 'pauses', 'mapped',
         'memif', 'peers', 'wire', 'shm', 'loss', 'kernel', 'size', 'scale', 'ring']
# Limits and goals of `devtools/instructions --check`, which the test instruction_goals runs.
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..', 'app', 'bench',
                       'instructions.json')) as limits:
    LIMITS = json.load(limits)


class Page(html.parser.HTMLParser):
    """Parses the output of bench --report: open tags, names of rows."""

    VOID = ('meta', 'rect', 'line')

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.rows = [], [], []
        self.row, self.lines = False, False

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.row = tag == 'th' and ('scope', 'row') in attrs
        self.lines = ('class', 'lines') in attrs if tag == 'table' else self.lines
        # In tables of rows th and td end at the next one.
        if tag not in self.VOID and (self.lines or tag not in ('th', 'td')):
            self.open.append(tag)

    def handle_data(self, data):
        if self.row and not self.lines:
            self.rows.append(data)

    def handle_endtag(self, tag):
        self.row = False
        if self.open[-1:] != [tag]:
            raise AssertionError('</%s> closes %s' % (tag, self.open))
        self.open.pop()


class Base(AppTest):
    def rows(self, case, rc=0, sizes='8', **kwargs):
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            proc = subprocess.run([self.program, '--quick', '--case', case, '--size', sizes,
                                   '--json', f.name],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  **kwargs)
            self.assertEqual(proc.returncode, rc, proc.stdout + proc.stderr)
            with open(f.name) as again:
                return {row['case']: row for row in json.load(again)['rows']}, proc


class Bench(Base):
    def test_help_and_lists(self):
        res = self.run_program(['--help'])
        self.assertEqual(res.rc, 0, str(res))
        for word in ('--case', '--repeat', '--quick', '--csv', '--json', '--report', '--list', 'L is the'):
            self.assertIn(word, res.out)
        res = self.run_program(['--list'])
        self.assertEqual([line.split()[0] for line in res.out.splitlines()], CASES, str(res))
        res = self.run_program(['--list-kernels'])
        self.assertEqual(res.rc, 0, str(res))
        self.assertLessEqual(set(LIMITS), set(res.out.split()))

    def test_usage(self):
        self.usage_error(['--case', 'post,nothing'], 'nothing', '--list')
        self.usage_error(['--repeat', '0'], '--repeat', '1001')
        self.usage_error(['--repeat', 'often'], '--repeat', 'often')
        self.usage_error(['--colour'], '--help')
        self.usage_error(['post'], '"post"', '--help')
        self.usage_error(['--instructions', '32'], '--kernel', '--side')
        self.usage_error(['--kernel', 'inline8/batch32/all'], '--side', '--instructions')
        self.usage_error(['--case', ''], '--case', '--list')
        self.usage_error(['-l', '0', '--quick'], 'EAL', 'go before --')
        self.usage_error(['--device', 'soft0'], '--peer-device')
        self.usage_error(['--peer-eal', '-v'] * 17, '16')
        self.usage_error(['--serve', 'me'], '--serve')
        for size in ('0', '4', '9', '8,8', '64,8', '', ',', '2097152', '8;64', 'x',
                     ','.join(str(8 << i) for i in range(18))):
            self.usage_error(['--size', size], '--size')
        for qps in ('0', '10001', '10,1', '-1'):
            self.usage_error(['--qps', qps], '--qps')

    def test_without_eal_options(self):
        """The three cases without EAL need no "--" before their options."""
        proc = subprocess.run([self.program, '--quick', '--case', 'post,post_poll,poll'],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(proc.returncode, 0, proc.stderr)
        self.assertNotIn('EAL', proc.stdout + proc.stderr)
        self.assertIn('post/inline8/batch32', proc.stdout)
        # bench_libmlx5 lies beside bench, except in a build with sanitizers.
        if not os.path.exists(os.path.join(os.path.dirname(self.program), 'bench_libmlx5')):
            self.assertRegex(proc.stdout, r'post_poll/libmlx5 .*skipped')
            return
        # The installed libmlx5 runs and completes its requests.
        for point in ('batch1/all', 'batch16/all', 'batch16/last'):
            self.assertRegex(proc.stdout, r'post_poll/%s/libmlx5 +[0-9.]+ +[0-9.]+' % point)

    @long
    def test_every_case(self):
        # All cases except two, which take their time without a free CPU.
        names = [case for case in CASES if case not in ('loss', 'size')]
        cpus = min(2, len(CPUS))
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            page = f.name + '.html'
            self.addCleanup(lambda: os.path.exists(page) and os.remove(page))
            res = self.run_program(['--quick', '--csv', '--case', ','.join(names), '--json', f.name,
                                    '--qps', '1,100',
                                    '--report', page], lcores(cpus) + EAL, limit=CASES_LIMIT)
            self.assertEqual(res.rc, 0, str(res))
            with open(f.name) as again:
                result = json.load(again)
        with open(page) as again:
            self.page(again.read(), result['rows'])
        self.assertGreater(result['core_ghz'], 0.1)
        rows = {row['case']: row for row in result['rows']}
        for case in names:
            self.assertTrue([r for r in rows if r.split('/')[0] == case], case + ' has no row')
        for name, row in rows.items():
            if row['verdict'] == 'skipped' or 'L changed' in row['why']:
                continue
            self.assertIn(row['verdict'], ('reached', 'missed', 'not judged', ''), name)
            if row['shared'] > 0:  # shared with other work on this machine
                self.assertIsNone(row['ratio'], name)
                self.assertIn(row['verdict'], ('not judged', ''), name)
                self.assertIn('shared', row['why'], name)
                continue
            if row['ours'] is None:  # a baseline or a peer alone
                # On an idle machine there may be no pauses.
                self.assertGreaterEqual(row['floor'], 0 if name.startswith('pauses/') else 1e-9, name)
                self.assertIsNone(row['ratio'], name)
                continue
            self.assertGreater(row['ours'], 0, name)
            # A baseline out of bounds gives no ratio but a reason.
            if row['ratio'] is None and row['floor'] > 0:
                self.assertIn('recorded', row['why'], name)
        if cpus == 2:
            for name in ('lcore/latency', 'lcore/batch32/all', 'poll/cqe'):
                if 'L changed' in rows[name]['why']:
                    continue
                self.assertGreater(rows[name]['l_before'], 0, name)
                self.assertGreater(rows[name]['l_after'], 0, name)
        lines = res.out.splitlines()
        table = list(csv.DictReader(lines[lines.index(next(
            line for line in lines if line.startswith('case,unit,'))):]))
        self.assertEqual([row['case'] for row in table], [row['case'] for row in result['rows']])
        for row in table:
            self.assertNotIn(None, row, 'more fields than columns')
            self.quantiles(row, rows[row['case']])

    def quantiles(self, csv_row, row):
        """Latencies have quantiles in order, equal in CSV and JSON; other rows have none."""
        # inline/latency is about 20 ns: reading the TSC takes as long.
        latency = (('/latency' in row['case'] or row['case'].startswith('mapped/')) and
                   row['case'] != 'inline/latency')
        for side in ('floor', 'ours'):
            tail = row[side + '_latency_ns']
            cells = [csv_row['%s_%s' % (side, q)] for q in ('p50', 'p90', 'p99', 'p999', 'max')]
            if tail is None:
                # UCX's program measures itself and reports the mean.
                self.assertTrue(not latency or row[side] is None or 'ucx' in row['case'] or
                                'UCX' in row['unit'] or row['verdict'] in ('skipped', 'not judged'),
                                row)
                self.assertEqual(''.join(cells), '')
                continue
            self.assertTrue(latency, row)
            self.assertGreaterEqual(tail['samples'], 90, row)
            values = [tail[q] for q in ('p50', 'p90', 'p99', 'p99.9', 'max')]
            self.assertEqual(values, sorted(values), row)
            self.assertEqual(values, [float(cell) for cell in cells])
            self.assertGreater(values[0], 0, row)

    def page(self, text, rows):
        """The page is complete and self-contained, and every row is in it, once in a table."""
        page = Page()
        page.feed(text)
        page.close()
        self.assertEqual(page.open, [])
        for word in ('http', 'src=', 'href', '@import', 'url(', '<script'):
            self.assertNotIn(word, text)
        self.assertEqual(sorted(page.rows), sorted(row['case'].split('/', 1)[-1] for row in rows))
        self.assertGreater(page.tags.count('svg'), 5)
        self.assertIn('Scaling over queue pairs', text)
        # L may have changed in all of them.
        if any(row['ours_latency_ns'] for row in rows):
            self.assertIn('Latency percentiles', text)
        self.assertGreater(page.tags.count('rect'), 20)

    def config(self, text, *more):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'run.ini')
            with open(path, 'w') as f:
                f.write(text.replace('FOLDER', folder))
            res = self.run_program(['--quick', '--config', path] + list(more))
            out = {}
            for name in os.listdir(folder):
                with open(os.path.join(folder, name)) as f:
                    out[name] = f.read()
            return res, out

    def test_config(self):
        """Cases run in the file's order; JSON and page go to the paths in the file."""
        res, out = self.config('; a run\n[bench]\nrepeat = 2\njson = FOLDER/x.json\ncsv = FOLDER/x.csv\n'
                               'report = FOLDER/x.html\n\n[poll]\n[post]\nrepeat = 1\n')
        self.assertEqual(res.rc, 0, str(res))
        rows = json.loads(out['x.json'])
        self.assertEqual(rows['repeat'], 2)
        cases = [row['case'].split('/')[0] for row in rows['rows']]
        self.assertEqual(sorted(set(cases), key=cases.index), ['poll', 'post'])
        self.assertIn('<h2>poll', out['x.html'])
        head = re.search(r'<title>Bluebell (\d+\.\d+\.\d+) bench, commit ([\w.-]+)</title>', out['x.html'])
        self.assertIsNotNone(head)
        self.assertRegex(out['x.html'], r'<p class="machine">Bluebell %s, commit %s; .*, \d+ CPUs, Linux .*, '
                         r'\d{4}-\d\d-\d\d \d\d:\d\d UTC</p>' % tuple(map(re.escape, head.groups())))
        self.assertIn('@media(prefers-color-scheme:dark)', out['x.html'])
        for word in ('Bluebell', 'Baseline', 'Peer', 'Ratio', 'Goal', 'L'):
            self.assertIn('<b>%s</b>' % word, out['x.html'])
        self.assertEqual([row['case'] for row in csv.DictReader(out['x.csv'].splitlines())],
                         [row['case'] for row in rows['rows']])

    @long
    @unittest.skipIf(len(CPUS) < 2, 'needs two CPUs')
    def test_size(self):
        rows, _ = self.rows('size', sizes='8,32768')
        for size in (8, 32768):
            for port in ('memif', 'shm'):
                row = rows['size/%d/%s' % (size, port)]
                if 'L changed' not in row['why']:
                    self.assertGreater(row['ours'], 0, row)
                    self.assertGreater(row['floor'], 0, row)

    def test_sweep(self):
        """The points of a file's sweep are the rows, in order, and are checked."""
        res, out = self.config('[bench]\njson = FOLDER/x.json\nreport = FOLDER/x.html\n'
                               '[scale]\nqps = 1,3,20\n')
        self.assertEqual(res.rc, 0, str(res))
        rows = json.loads(out['x.json'])['rows']
        self.assertEqual([row['case'] for row in rows], [
            'scale/%d/%s active' % (n, which) for n in (1, 3, 20) for which in ('all', '1')])
        for row in rows:
            self.assertEqual(row['verdict'], '')
            self.assertGreater(row['ours'], 0)
        self.svg(out['x.html'])

    def svg(self, page):
        """devtools/plot-svg makes a separate file of a plot, with legend and machine."""
        with tempfile.NamedTemporaryFile('w', suffix='.html') as f:
            f.write(page)
            f.flush()
            cmd = [sys.executable, os.path.join(os.path.dirname(INSTRUCTIONS), 'plot-svg'), f.name]
            proc = subprocess.run(cmd + ['Scaling over queue pairs'], stdout=subprocess.PIPE,
                                  text=True)
            bad = subprocess.run(cmd + ['Weather'], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True)
        self.assertEqual((proc.returncode, bad.returncode), (0, 1))
        self.assertIn('Weather', bad.stderr)
        tree = xml.etree.ElementTree.fromstring(proc.stdout)
        name = '{http://www.w3.org/2000/svg}'
        self.assertEqual(len(tree.findall('.//%spolyline' % name)), 3)
        texts = [t.text for t in tree.iter(name + 'text')]
        for text in ('queue pairs', 'writes/s', 'Bluebell, all active, one write each', '20'):
            self.assertIn(text, texts)
        self.assertRegex(texts[-1], r'\d CPUs, Linux .*, 20\d\d-\d\d-\d\d')

    def test_example(self):
        """The example file in the sources is readable and contains all cases."""
        path = os.path.join(os.path.dirname(INSTRUCTIONS), '..', 'app', 'bench', 'report', 'report.ini')
        with open(path) as f:
            sections = re.findall(r'^\[(.*)\]', f.read(), re.M)
        self.assertLessEqual(set(sections[1:]), set(CASES))
        self.assertLessEqual({'size', 'scale', 'wire', 'shm', 'peers'}, set(sections))
        res = self.run_program(['--config', path, '--list'])
        self.assertEqual(res.rc, 0, str(res))

    def test_interrupted(self):
        """After Ctrl-C or SIGTERM all files contain the finished rows and no partial one."""
        for sig in (signal.SIGINT, signal.SIGTERM):
            with tempfile.TemporaryDirectory() as folder:
                names = {kind: os.path.join(folder, 'x.' + kind) for kind in ('csv', 'json', 'html')}
                cmd = [self.program, '--case', 'post,poll', '--repeat', '1001', '--csv=' + names['csv'],
                       '--json', names['json'], '--report', names['html']]
                with subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True) as proc:
                    while not proc.stdout.readline().startswith('post/'):
                        self.assertIsNone(proc.poll())
                    proc.send_signal(sig)
                    out, err = proc.communicate(timeout=LIMIT)
                self.assertEqual(proc.returncode, 1, out + err)
                with open(names['json']) as f:
                    result = json.load(f)
                self.assertTrue(result['interrupted'])
                rows = [row['case'] for row in result['rows']]
                self.assertGreaterEqual(len(rows), 1)
                self.assertIn('lines finished and written: %d' % len(rows), err)
                self.assertNotIn('failed', [row['verdict'] for row in result['rows']])
                # No case starts after the one that was stopped.
                self.assertNotIn('poll', [row.split('/')[0] for row in rows])
                with open(names['csv']) as f:
                    self.assertEqual([row['case'] for row in csv.DictReader(f)], rows)
                page = Page()
                with open(names['html']) as f:
                    text = f.read()
                page.feed(text)
                self.assertEqual(page.rows, [row.split('/', 1)[1] for row in rows])
                self.assertIn('was stopped', text)

    def test_config_refused(self):
        for text, *words in (
                ('[nothing]\n', ':1: ', 'nothing', '--list'), ('', 'no section for'), ('[bench]\n', 'no section for'),
                ('[post]\n[post]\n', ':2: ', 'twice'), ('[post]\ncolour = red\n', ':2: ', 'colour'),
                ('[bench]\ncolour = red\n[post]\n', 'colour'),
                ('[post]\nrepeat = often\n', ':2: repeat', 'often'), ('[post]\nrepeat = 0\n', 'repeat'),
                ('[bench]\nrepeat = -1\n[post]\n', '-1'),
                ('[size]\nqps = 1\n', 'qps'), ('[post]\nsize = 8\n', 'size'),
                ('[size]\nsize = 8,9\n', 'powers of two'), ('[scale]\nqps = no\n', '"no"'),
                ('[post\n', ':1: the section has no ]'), ('repeat = 1\n', ':1: no section'),
                ('[post]\nx' + 'y' * 400 + '\n', ':2: the line is neither'),
                ('[a' + 'b' * 200 + ']\n', 'bench:'),
                (''.join('[s%d]\n' % i for i in range(100)), ':1: the section is neither')):
            res, _ = self.config(text)
            self.assertEqual(res.rc, 2, repr(text) + str(res))
            for word in words:
                self.assertIn(word, res.err, repr(text))
        res, _ = self.config('[post]\n', '--case', 'poll')
        self.assertEqual(res.rc, 2, str(res))
        self.assertIn('--config', res.err)
        self.usage_error(['--config', '/nonexistent.ini'], '/nonexistent.ini', 'No such file')

    def test_not_writable(self):
        """Reported before any measurement."""
        for option in ('--report=', '--json=', '--csv='):
            res = self.run_program(['--quick', '--case', 'post', option + '/nonexistent/x'])
            self.assertEqual(res.rc, 1, str(res))
            self.assertIn('/nonexistent/x: No such file', res.err)
            self.assertNotIn('post/', res.out)

    def test_full_disk(self):
        """A file that cannot be written completely does not keep the others from being written."""
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            for option in ('--report=', '--csv='):
                res = self.run_program(['--quick', '--case', 'post', option + '/dev/full', '--json',
                                        f.name])
                self.assertEqual(res.rc, 1, str(res))
                self.assertIn('/dev/full: No space left', res.err)
                with open(f.name) as again:
                    self.assertFalse(json.load(again)['interrupted'])


# Replaces ucx_perftest: the server waits for a client, which prints RESULT.
UCX = '''#!/usr/bin/env python3
import os, socket, sys
port = int(sys.argv[sys.argv.index('-p') + 1])
if '-t' not in sys.argv:
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(('127.0.0.1', port))
    s.listen()
    s.accept()
    sys.exit(0)
try:
    socket.create_connection(('127.0.0.1', port))
except OSError:
    sys.exit(255)
assert os.environ['UCX_TLS'] in ('shm', 'tcp') and 'UCX_LOG_LEVEL' not in os.environ
print(os.environ['RESULT'])
'''
UCX_HEAD = 'iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n'


@unittest.skipIf(len(CPUS) < 2, 'needs two CPUs')
class TwoProcesses(Base):
    def children(self, pid):
        with open('/proc/%d/task/%d/children' % (pid, pid)) as f:
            return [int(child) for child in f.read().split()]

    def start(self, *args):
        """Starts bench and waits until its second process runs."""
        proc = subprocess.Popen([self.program, '--case', 'mapped', *args], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, start_new_session=True)
        end = time.monotonic() + LIMIT
        while time.monotonic() < end and proc.poll() is None:
            children = self.children(proc.pid)
            if children:
                return proc, children[0]
            time.sleep(0.01)
        proc.kill()
        self.fail('no second process: %s' % (proc.communicate(),))

    @long
    def test_pauses(self):
        """Stopped while it runs, it reports the length of the pause."""
        for _ in range(10):  # the start of the measurement is unknown
            with tempfile.NamedTemporaryFile(suffix='.json') as f:
                proc = subprocess.Popen([self.program, '--case', 'pauses', '--json', f.name],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                time.sleep(1.5)
                proc.send_signal(signal.SIGSTOP)
                time.sleep(0.3)
                proc.send_signal(signal.SIGCONT)
                self.assertEqual(proc.wait(LIMIT), 0, proc.communicate())
                proc.stderr.close()
                with open(f.name) as again:
                    rows = {row['case']: row for row in json.load(again)['rows']}
            longest = re.search(r'longest took (\d+) us', rows['pauses/rate']['note'])
            self.assertTrue(0 <= rows['pauses/time']['floor'] < 100, rows)
            if int(longest.group(1)) >= 290000:
                return
        self.fail('it was stopped and does not know: %s' % rows)

    @long
    def test_floors(self):
        rows, _ = self.rows('mapped,memif')
        self.assertEqual(set(rows), {
            'mapped/8B', 'mapped/4KiB', 'memif/64B/latency', 'memif/64B/rate', 'memif/82B/rate',
            'memif/1KiB/rate', 'memif/4KiB/rate'})
        for name, row in rows.items():
            self.assertIn(row['verdict'], ('', 'not judged'), name)

    @long
    def test_kernel(self):
        """Runs in its own network namespace, which needs root; PMDs that do not run are skipped."""
        rows, proc = self.rows('kernel')
        if set(rows) == {'kernel'}:
            self.assertIn('namespace', rows['kernel']['why'])
            self.skipTest(rows['kernel']['why'])
        for name, row in rows.items():
            self.assertIn(row['verdict'], ('reached', 'missed', 'not judged', '', 'skipped'),
                          name + proc.stdout + proc.stderr)
        if shutil.which('ip') is not None:
            self.assertIn('kernel/af_packet/write8/rate', rows, proc.stdout + proc.stderr)

    def test_second_process_dies(self):
        proc, child = self.start('--repeat', '1001')
        os.kill(child, signal.SIGKILL)
        out, err = proc.communicate(timeout=LIMIT)
        self.assertEqual(proc.returncode, 1, out + err)
        self.assertIn('second process', err)

    def test_interrupted(self):
        """A terminal's Ctrl-C reaches both processes: the second one ends as usual."""
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            proc, child = self.start('--repeat', '1001', '--json', f.name)
            os.killpg(proc.pid, signal.SIGINT)
            out, err = proc.communicate(timeout=LIMIT)
            self.assertEqual(proc.returncode, 1, out + err)
            self.assertIn('lines finished and written: 0', err)
            self.assertNotIn('second process', err)
            self.assertFalse(os.path.exists('/proc/%d' % child))
            with open(f.name) as again:
                self.assertEqual(json.load(again)['rows'], [])

    @long
    def test_first_process_dies(self):
        proc, child = self.start('--repeat', '1001')
        time.sleep(1)  # so that it is probably measuring
        proc.kill()
        proc.communicate(timeout=LIMIT)
        end = time.monotonic() + LIMIT
        while os.path.exists('/proc/%d' % child) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertFalse(os.path.exists('/proc/%d' % child))

    def ucx(self, result, rc):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, 'ucx_perftest')
            with open(path, 'w') as f:
                f.write(UCX)
            os.chmod(path, 0o755)
            env = dict(os.environ, PATH=d + ':' + os.environ['PATH'], RESULT=result,
                       UCX_LOG_LEVEL='info')
            return self.rows('peers', rc, env=env)

    @long
    def test_ucx_is_read(self):
        rows, _ = self.ucx(UCX_HEAD + '1000,0.5,0.5,0.5,16,16,2000000,2000000\n', 0)
        floors = {'peers/ucx/shm/put/latency': 500, 'peers/ucx/shm/put/rate': 2, 'peers/ucx/tcp/am/rate': 2,
                  'peers/ucx/shm/put/64KiB': 131.072}
        for name, floor in floors.items():
            if 'L changed' not in rows[name]['why']:
                self.assertAlmostEqual(rows[name]['floor'], floor, msg=name)

    @long
    def test_ucx_says_something_else(self):
        wrong = ['error: no', '1,2,3', '1,2,3,4,5,6,7,0', '1,2,3,4,5,6,7,8,9', '1,2,3,4,5,6,7,8x']
        rows, proc = self.ucx(UCX_HEAD + '\n'.join(wrong), 1)
        self.assertEqual(rows['peers/ucx/shm/put/rate']['verdict'], 'failed')
        self.assertIn('gives no result', proc.stderr)

    def test_no_ucx(self):
        rows, _ = self.rows('peers', env=dict(os.environ, PATH='/nonexistent'))
        self.assertEqual(rows['peers/ucx']['verdict'], 'skipped')
        self.assertIn('ucx-utils', rows['peers/ucx']['why'])


@unittest.skipIf(shutil.which('valgrind') is None, 'valgrind is not installed')
class Instructions(AppTest):
    def instructions(self, limits, kernels):
        with tempfile.NamedTemporaryFile('w', suffix='.json') as f:
            json.dump(limits, f)
            f.flush()
            return subprocess.run([sys.executable, INSTRUCTIONS, '--bench', self.program, '--max',
                                   f.name, '--kernel', ','.join(kernels)],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_guide(self):
        """The counts in the table of the tuning guide are those from which the limits were derived."""
        with open(TUNING) as f:
            rows = re.findall(r'\* - (\d+)\n     - (\d+)\n     - (\d+)\n     - (\d+)\n', f.read())
        self.assertEqual([int(row[0]) for row in rows], [1, 16, 32])
        for batch, post, poll, _ in rows:
            most = LIMITS['inline8/batch%s/all' % batch]
            for said, bound in ((int(post), most['post']), (int(poll), most['poll'])):
                self.assertLessEqual(said, bound, batch)
                self.assertGreater(said, 0.85 * bound, batch)

    def test_limit_that_is_exceeded(self):
        name = 'inline8/batch32/all'
        proc = self.instructions({name: {'post': [20, 10], 'poll': 1000, 'sum': 30}}, [name])
        self.assertEqual(proc.returncode, 1, proc.stdout + proc.stderr)
        self.assertRegex(proc.stderr, r'%s: [\d.]+ instructions per post, at most 20 .*\(goal 10\)' % name)
        self.assertRegex(proc.stderr, r'%s: [\d.]+ instructions per write and completion, at most 30' % name)
        self.assertNotIn('poll', proc.stderr)

    def test_difference_of_loops(self):
        names = ['inline8/blueflame/batch1/all', 'inline8/batch1/all']
        limits = {names[0]: {'above ' + names[1]: 1000, 'above nothing': 1000}}
        proc = self.instructions(limits, names)
        self.assertEqual(proc.returncode, 1, proc.stdout + proc.stderr)
        self.assertEqual(proc.stderr.count('not counted'), 1, proc.stderr)
        limits = {names[0]: {'above ' + names[1]: 0}}
        proc = self.instructions(limits, names)
        self.assertEqual(proc.returncode, 1, proc.stdout + proc.stderr)
        self.assertIn('per write above ' + names[1], proc.stderr)

    def test_usage(self):
        for args in (['--check', '--max', 'x'], ['--build', 'x', '--bench', 'y'], ['--build', '/nonexistent']):
            proc = subprocess.run([sys.executable, INSTRUCTIONS] + args, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
            self.assertEqual(proc.returncode, 2, proc.stdout + proc.stderr)
            self.assertIn('/nonexistent' if '/nonexistent' in args else 'exclude', proc.stderr)


if __name__ == '__main__':
    main()
