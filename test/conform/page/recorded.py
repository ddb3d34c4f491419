# SPDX-License-Identifier: BSD-3-Clause
"""Recorded results of devices that need more than conform to run, such as a guest behind bb_hca.

A record holds only the rows that do not simply pass, by outcome:

    {"device": "guest:mlx5_0", "outcomes": [{"result": "skip", "missing": "on-demand", "why": ..., "rows": [...]}]}
"""

import json

# Fields of a row that depend on the device.
FIELDS = ('result', 'missing', 'machine', 'why')


def compact(device, rows):
    """Returns the record of a device's rows, which conform wrote."""
    outcomes = {}
    for row in rows:
        outcome = tuple((field, row[field]) for field in FIELDS if field in row)
        if outcome != (('result', 'pass'),):
            outcomes.setdefault(outcome, []).append(row['name'])
    return {'device': device, 'outcomes': [dict(outcome, rows=names) for outcome, names in outcomes.items()]}


def expand(record, rows):
    """Returns all rows of the recorded device, in the form of conform. @rows: those of any device."""
    found = {name: outcome for outcome in record['outcomes'] for name in outcome['rows']}
    unknown = set(found) - {row['name'] for row in rows}
    if unknown:
        raise ValueError('the record of %s has unknown rows: %s' % (record['device'], ', '.join(sorted(unknown))))
    return [{**{k: v for k, v in row.items() if k not in FIELDS}, 'result': 'pass',
             **{k: v for k, v in found.get(row['name'], {}).items() if k in FIELDS}} for row in rows]


def load(path):
    """Returns the records of a file."""
    with open(path) as f:
        return json.load(f)


def save(path, records):
    """Writes records to a file, one row a line."""
    with open(path, 'w') as f:
        json.dump(records, f, indent=1)
        f.write('\n')
