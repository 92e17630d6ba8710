"""docs/rules.md and those who cite its rules by name, such as `R1.16`: every rule that is cited has a line there, and
every line is cited and names files that exist. For docs.py.

Citations are read in comments of C++, Python and case files, in docstrings, in documents, and in names of tests, where
`K10_3` is `K10.3`. What stands between quotes or backquotes is no citation: "F1.3" is a cell of a pipeline.
"""

import re

import repository

PAGE = "docs/rules.md"
# The record of releases names rules as they were called then.
UNREAD = (PAGE, "CHANGELOG.md")

ROW = re.compile(r'\| <a id="([^"]*)"></a>(\S+) \|')
NAME = re.compile(r"[A-Z]{1,2}\d+\.\d+")
CITATION = re.compile(rf"(?<![\w.]){NAME.pattern}(?![\w.]*\w)")
QUOTED = re.compile(r'"[^"\n]*"|`[^`\n]*`')
TEST_NAME = re.compile(r"\bTEST\w*\(\s*\w+,\s*([A-Z]{1,2}\d+)_(\d+)_")
LITERAL_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|(?<![0-9A-Fa-f])\'(?:[^\'\\\n]|\\.)+\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
DOCSTRING_OR_COMMENT = re.compile(r'"""(.*?)"""|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|(#[^\n]*)', re.DOTALL)
NAMED_FILE = re.compile(r"`([^`]+)`")


def prose(path, text):
    """What people read of a file: (place in the text, words) of each comment; of a document all of it."""
    if path.endswith(repository.CPP_SUFFIXES):
        return [(match.start(), match[0]) for match in LITERAL_OR_COMMENT.finditer(text) if match[0][0] == "/"]
    if path.endswith(".py"):
        return [(match.start(), match[1] or match[2]) for match in DOCSTRING_OR_COMMENT.finditer(text) if match[1] or match[2]]
    if path.endswith(".case"):
        return [(match.start(), match[0]) for match in re.finditer(r"^#.*$", text, re.MULTILINE)]
    return [(0, text)] if path.endswith(".md") else []


def citations(path, text):
    """(line, rule) of every citation in a file."""
    found = []
    for place, words in prose(path, text):
        unquoted = QUOTED.sub(lambda match: " " * len(match[0]), words)
        found += [(place + match.start(), match[0]) for match in CITATION.finditer(unquoted)]
    if path.endswith(repository.CPP_SUFFIXES):
        found += [(match.start(), f"{match[1]}.{match[2]}") for match in TEST_NAME.finditer(text)]
    return [(text.count("\n", 0, place) + 1, rule) for place, rule in found]


def rows(text):
    """(line number, rule, anchor, cells) of the page."""
    for number, line in enumerate(text.splitlines(), 1):
        if match := ROW.match(line):
            yield number, match[2], match[1], line.strip("| ").split(" | ")


def problems(root, paths):
    """Breaches in a repository of these files."""
    text = (root / PAGE).read_text(encoding="utf-8") if PAGE in paths else ""
    folders = {path[: place + 1] for path in paths for place, char in enumerate(path) if char == "/"}
    found, lines = [], {}
    for number, rule, anchor, cells in rows(text):
        if rule in lines:
            found.append(f"{PAGE}:{number}: {rule} stands there twice")
        lines[rule] = number
        files = NAMED_FILE.findall(cells[-1])
        if not NAME.fullmatch(rule) or anchor != rule or len(cells) != 3 or not files:
            found.append(f"{PAGE}:{number}: not a row of a rule with its anchor, what it says, and files")
        found += [f"{PAGE}:{number}: there is no {name}" for name in files if name not in paths and name not in folders]
    cited = set()
    for path in sorted(set(paths) - set(UNREAD)):
        if not path.endswith((*repository.CPP_SUFFIXES, ".py", ".case", ".md")):
            continue
        for number, rule in citations(path, (root / path).read_text(encoding="utf-8")):
            cited.add(rule)
            if rule not in lines:
                found.append(f"{path}:{number}: {PAGE} has no rule {rule}")
    return found + [f"{PAGE}:{number}: nobody cites {rule}" for rule, number in lines.items() if rule not in cited]
