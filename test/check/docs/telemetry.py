#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The guide on telemetry lists exactly the endpoints, with their parameters, and the fields.

usage: telemetry.py TREE
"""

import os
import re
import sys

GUIDE = 'doc/guides/tools/telemetry.rst'


def registered(source):
    """Returns {endpoint: parameters} from the help texts that DPDK's client shows."""
    found = {}
    for name, text in re.findall(r'rte_telemetry_register_cmd\(\s*"([^"]+)",\s*\w+,\s*((?:"[^"]*"\s*)+)\)',
                                 source):
        text = ''.join(re.findall(r'"([^"]*)"', text))
        known = re.search(r'(?:^|\. )(?:Parameters: (.+)|Takes no parameters)$', text)
        found[name] = (known.group(1) or '') if known else 'no word of them: ' + text
    return found


def fields(source):
    """Returns the names of fields in answers, except those with a number in them, as port%u_state."""
    return (set(re.findall(r'\(\s*d,\s*"([a-z]\w*)"', source)) |
            set(re.findall(r'^\s*ADD\((\w+)\);', source, re.M)) |
            set(re.findall(r'(?:"|\bLOST\()(drop_\w+)', source)) |
            set(re.findall(r'\[(?:SOFT|BB_IBCM)_DROP_\w+\] = "(\w+)"', source)) - {'none'})


def listed(guide):
    """Returns {endpoint: parameters} of the table."""
    return {name: parameters.strip() for name, parameters in
            re.findall(r'^   \* - ``(/\S+)``\n     -(.*)$', guide, re.M)}


def named(guide):
    return set(re.findall(r'``([a-z][a-z0-9_]*)``', guide))


def findings(guide, source):
    is_there, told = registered(source), listed(guide)
    if not is_there or not fields(source):
        return ['no endpoint is found in the sources']
    bad = ['%s: not in the table' % name for name in sorted(set(is_there) - set(told))]
    bad += ['%s: nobody registers it' % name for name in sorted(set(told) - set(is_there))]
    bad += ['%s: its help says "%s" of parameters, the table "%s"' % (name, is_there[name], told[name])
            for name in sorted(set(told) & set(is_there)) if told[name] != is_there[name]]
    bad += ['field that the guide does not name: ' + f for f in sorted(fields(source) - named(guide))]
    return bad + ['field that no answer has: ' + f for f in sorted(named(guide) - fields(source))]


def main():
    tree = sys.argv[1]
    source = ''
    for top in ('lib', 'drivers', 'app/hca'):
        for path, _, files in os.walk(os.path.join(tree, top)):
            for name in sorted(files):
                if name.endswith(('.c', '.h')):
                    with open(os.path.join(path, name), encoding='utf-8') as f:
                        text = f.read()
                    source += text if re.search(r'rte_tel|"drop_|\[(SOFT|BB_IBCM)_DROP_', text) else ''
    with open(os.path.join(tree, GUIDE), encoding='utf-8') as f:
        bad = findings(f.read(), source)
    for line in bad:
        print('%s: %s' % (GUIDE, line))
    sys.exit(1 if bad else 0)


if __name__ == '__main__':
    main()
