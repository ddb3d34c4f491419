#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Finds sentences that break the writing rules of CONTRIBUTING.md, in comments, texts of programs and guides.

usage: prose.py TREE [FOLDER...]

Reads the comments and string literals of C sources, the comments and docstrings of Python, and the
prose of the guides. It finds words and shapes only, so a clean run is no proof of good English.
Exceptions are lines of the file prose-exceptions beside this script. With FOLDERs it reads those
alone, without exceptions for whole files.
"""

import ast
import fnmatch
import io
import os
import re
import sys
import tokenize

ROOTS = ('lib', 'drivers', 'app', 'examples', 'doc', 'devtools', 'test')
FILES = ('README.md', 'CONTRIBUTING.md')
LONGEST = 30    # words of a sentence; the rule says 20

# Rule of CONTRIBUTING.md, pattern, what to write instead.
START = r'(?:^|[.;:?!] )'
RULES = [
    (1, r'\b(?:[Nn]o|[Ss]ome|[Aa]ny)body(?:\'s)?\b', 'name the actor: the peer, the caller, the owner'),
    (1, r'\b[Ww]hoever\b', 'name the actor: the caller, the peer, the engine'),
    (1, START + r'Who\b(?![^.;]*\?)', 'name the actor instead of "who"'),
    (1, START + r'What (?!to\b|is\b[^.;]*\?)(?![^.;]*\?)', 'start with the noun: "Attributes of", "Number of"'),
    (1, r'\b(?:ours|theirs)\b', 'name the owner'),
    (1, r'(?<!so )\bthat one\b|\bthe same one\b', 'repeat the noun'),
    (1, r'\bso (?:long|many)\b(?! as\b)(?! that\b)', 'say how long or how many'),
    (5, r'\btold\b|\btells?\b', 'report, log, says'),
    (5, r'\bcarr(?:y|ies|ied|ying)(?: it| them)? out\b', 'execute'),
    (5, r'\bother sides?\b', 'peer'),
    (5, r'\b(?:greets?|greeting)\b', 'handshake'),
    (5, r'\bdice\b', 'fault injection'),
    (5, r'\b(?:strikes?|struck)\b', 'apply'),
    (5, r'\bfloors?\b', 'baseline'),
    (5, r'\bbehind (?:it|them|that|this|each other|one another)\b', 'after'),
]
RULES = [(rule, re.compile(pattern), advice) for rule, pattern, advice in RULES]

C_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*|\'(?:\\.|[^\'\\\n])*\'',
                     re.S)


def line_of(text, at):
    return text.count('\n', 0, at) + 1


def c_prose(text, literals):
    """Yields (line, prose) of the comments and, with @literals, of the string literals of C source."""
    # Consecutive // comments are one text.
    for m in C_TOKEN.finditer(text):
        token = m.group(0)
        if token.startswith('/*'):
            token = re.sub(r'\n[ \t]*\*?', '\n', token[2:-2].lstrip('*'))
        elif token.startswith('//'):
            token = token[2:]
        elif token.startswith('"') and literals:
            token = re.sub(r'"\s*"', '', token)[1:-1].replace('\\n', '. ').replace('\\"', '"')
            if '#include' in text[text.rfind('\n', 0, m.start()) + 1:m.start()] or ' ' not in token:
                continue
        else:
            continue
        yield line_of(text, m.start()), token


def python_prose(text):
    """Yields (line, prose) of the comments and docstrings of Python source."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip('#! ')
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)):
            doc = ast.get_docstring(node)
            if doc:
                yield node.body[0].lineno, doc


def guide_prose(text):
    """Yields (line, prose) of paragraphs of reStructuredText or Markdown, without code, tables and
    literals."""
    line = 0
    fenced = False
    for block in re.split(r'(\n\s*\n)', text):
        at = line + 1
        line += block.count('\n')
        fences = len(re.findall(r'^```', block, re.M))
        if fenced or fences:
            fenced ^= fences % 2 == 1
            continue
        lines = block.strip('\n').split('\n')
        if all(part.startswith(('    ', '\t', '|', '+', '   ')) or not part.strip() or part.startswith('.. ')
               for part in lines):
            continue
        if re.search(r'^=+( +=+)+$', block, re.M):
            block = block.replace('\n', '.\n')  # cells of a table are no sentences
        yield at, re.sub(r'``.*?``|`[^`]*?`_?|\S+\(\)', 'CODE', block, flags=re.S)


def faults(prose):
    """Yields (rule, words found, advice) of each violation in @prose."""
    flat = ' '.join(prose.split())
    for rule, pattern, advice in RULES:
        for m in pattern.finditer(flat):
            yield rule, m.group(0).strip('.;:?! '), advice
    # The errors after @return are a list.
    prose = re.sub(r'@return\b[^@]*', '', prose)
    for paragraph in re.split(r'\n\s*\n|\n\s*[-*#] |^\s*[-*] |\n\s*@|\n *\d\. ', prose):
        for sentence in re.split(r'[.;:?!](?:\s|$)', ' '.join(paragraph.split())):
            words = [w for w in sentence.split() if re.search('[A-Za-z]', w)]
            if len(words) > LONGEST:
                yield 7, ' '.join(words[:6]) + ' ...', '%d words: two sentences' % len(words)


def prose_of(path, text):
    if path.endswith(('.c', '.h')):
        # Test data are not checked.
        return c_prose(text, not path.startswith('test/'))
    if path.endswith('.py'):
        return python_prose(text)
    if path.endswith(('.rst', '.md')):
        return guide_prose(text)
    return ()


def exceptions(lines):
    """Returns [pattern of paths, regular expression or *, reason] of the file prose-exceptions."""
    found = []
    for line in lines:
        line = line.strip()
        if line and not line.startswith('#'):
            parts = [part.strip() for part in line.split(' | ')]
            if len(parts) != 3 or not all(parts):
                raise ValueError('prose-exceptions: "%s" is not "path | pattern | reason"' % line)
            found.append(parts)
    return found


def check(files, excepted):
    """Returns the violations in @files (path: text), and exceptions that match nothing."""
    bad = []
    used = set()
    for path, text in sorted(files.items()):
        mine = [(i, e) for i, e in enumerate(excepted) if fnmatch.fnmatchcase(path, e[0])]
        for line, prose in prose_of(path, text):
            for rule, words, advice in faults(prose):
                excuse = next((i for i, e in mine if e[1] == '*' or re.search(e[1], ' '.join(prose.split()))), None)
                if excuse is None:
                    bad.append('%s:%d: rule %d: "%s": %s' % (path, line, rule, words, advice))
                used.add(excuse)
    bad += ['prose-exceptions: excuses nothing: ' + ' | '.join(e) for i, e in enumerate(excepted) if i not in used]
    return bad


def read(path):
    with open(path, encoding='utf-8', errors='replace') as f:
        return f.read()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    top, folders = sys.argv[1], sys.argv[2:]
    paths = [] if folders else list(FILES)
    for root in folders or ROOTS:
        for path, _, names in os.walk(os.path.join(top, root)):
            paths += [os.path.relpath(os.path.join(path, name), top) for name in names]
    excepted = exceptions(read(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'prose-exceptions')).split('\n'))
    if folders:
        excepted = [e for e in excepted if e[1] != '*']
    bad = check({p: read(os.path.join(top, p)) for p in paths if p.endswith(('.c', '.h', '.py', '.rst', '.md'))},
                excepted)
    if folders:
        bad = [b for b in bad if not b.startswith('prose-exceptions')]
    for line in bad:
        print(line)
    print('prose: %d files, %d sentences break a rule' % (len(paths), len(bad)))
    return 1 if bad or not paths else 0


if __name__ == '__main__':
    sys.exit(main())
