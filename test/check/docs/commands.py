#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the commands in the documents with the existing programs.

usage: commands.py TOP DOCUMENT... -- PROGRAM...

Options that a command gives to one of PROGRAM, after its -- where it has one, must be in the
program's --help. Scripts of devtools/ and source files that a document names must be in TOP.
A block of commands of a .rst file is a console block, and starts with a prompt.
The commands by which a document adds folders to PATH must add the folder of each PROGRAM.
A folder stands for all .rst files below it.
"""

import os
import re
import subprocess
import sys

import snippets

# Programs whose own options may come without EAL's options and a -- before them.
PLAIN = ('bench', 'bb_hca')
# Programs that start another one: what follows "--" is the other program's.
STARTERS = ('bb_verbs',)
FILES = re.compile(r'(?<![\w./-])(?<!writes )((?:devtools|app|examples|test|\.ci)/[\w./-]*\w)')
BLOCK = re.compile(r'^( *)(?:\.\. code-block:: ?(\w*)|(?!\.\.).*::)\n\s*\n\1 +(\S.*)', re.M)
PROMPT = re.compile(r'(?:[a-z]+[#$]|[#$]) \S')
FOLDERS = re.compile(r'\bfor p in ([^;]+); do PATH=\$PWD/build/\$p:\$PATH; done')
BUILT = re.compile(r'(?<![\w./-])build/((?:app|examples)/\w+)/(\w+)')


def commands(text, name):
    """Yields the rest of each command that calls the program."""
    text = re.sub(r'\\\n\s*', ' ', text)
    for rest in re.findall(r'(?<![\w`.-])%s +(-.*)' % re.escape(name), text) + \
            re.findall(r'``%s +(-[^`]*)``' % re.escape(name), text):
        yield re.split(r'``| #| &&| \||; |\)', rest)[0]


def options(rest, name):
    """Returns the program's own options in a command, without values."""
    before, dashes, behind = (' ' + rest + ' ').partition(' -- ')
    if name in STARTERS:
        own = before if dashes or '--help' in before else ''
    else:
        own = behind if dashes else before if name in PLAIN or '--help' in before else ''
    return [word.split('=')[0].rstrip('.,:') for word in own.split() if re.match(r'--?[A-Za-z]', word)]


def built(top, path):
    """Returns whether the build makes this program in that folder."""
    folder, name = os.path.split(os.path.join(top, path))
    rules = os.path.join(folder, 'meson.build')
    if not os.path.exists(rules):
        return False
    with open(rules) as f:
        return "executable('%s'" % name in f.read()


def unprompted(text, names):
    """Yields the first line of each block of commands that has no prompt or is no console block."""
    program = re.compile(r'(?:build|devtools|test)/[\w/.-]+( |$)|(?:meson|%s) -' % '|'.join(map(re.escape, names)))
    for _, kind, line in BLOCK.findall(text):
        if kind in ('', 'text', 'none', 'sh', 'shell', 'bash') and (PROMPT.match(line) or program.match(line)) or \
                kind == 'console' and not PROMPT.match(line):
            yield line


def outside_path(text, programs):
    """Yields the programs whose folders a document does not add to PATH, if it adds folders."""
    for folders in FOLDERS.findall(re.sub(r'\\\n\s*', ' ', text)):
        for program in programs:
            if not any(os.path.dirname(program).endswith('/' + folder) for folder in folders.split()):
                yield os.path.basename(program)


def check(text, helps, top):
    errors, count = ['not a console block that starts with a prompt: ' + line for line in unprompted(text, helps)], 0
    for name, known in helps.items():
        for rest in commands(text, name):
            count += 1
            for option in options(rest, name):
                if not re.search(r'(?<![\w-])%s(?![\w-])' % re.escape(option), known):
                    errors.append('%s has no %s: %s %s' % (name, option, name, rest))
    for path in FILES.findall(text):
        if not os.path.exists(os.path.join(top, path)) and not built(top, path):
            errors.append('there is no ' + path)
    for folder, name in BUILT.findall(text):
        if not os.path.isdir(os.path.join(top, folder)):
            errors.append('nothing is built in %s: %s' % (folder, name))
    return errors, count


def main():
    if '--' not in sys.argv or len(sys.argv) < 4:
        sys.exit(__doc__)
    split = sys.argv.index('--')
    top, documents, programs = sys.argv[1], snippets.expand(sys.argv[2:split]), sys.argv[split + 1:]
    helps = {os.path.basename(p): subprocess.run([p, '--help'], check=True, text=True,
                                                 stdout=subprocess.PIPE).stdout for p in programs}
    bad = count = 0
    for path in documents:
        with open(path) as f:
            text = f.read()
        errors, found = check(text, helps, top)
        errors += ['PATH has no folder of ' + name for name in outside_path(text, map(os.path.abspath, programs))]
        count += found
        bad += len(errors)
        for error in errors:
            print('%s: %s' % (path, error))
    print('commands: %d documents, %d commands of %d programs, %d errors' %
          (len(documents), count, len(helps), bad))
    return 1 if bad or not count else 0


if __name__ == '__main__':
    sys.exit(main())
