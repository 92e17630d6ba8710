#!/usr/bin/env python3
"""Documents that are made from the sources, and names of files in documents.

docs/algorithms.md and docs/errors.md are generated: --fix writes them; without it they are compared with the sources.
docs/error_kinds.txt has a sentence for every kind of error. docs/concepts.md is written by hand; what it names must exist.
docs/rules.md has a line for every rule that is cited, and no others (rules.py).
Prints every breach as FILE: message; status 1 if any.

usage: docs.py [--fix] [ROOT]
"""

import re
import sys
from pathlib import Path

import repository
import rules

GENERATED = "<!-- made by tests/lint/docs.py --fix; do not edit -->\n"


class Breach(Exception):
    """The sources cannot be read as the generator expects, or lack something; the message begins with the file."""


# ---- what both generators need ------------------------------------------------------------------------------------


def literals(text):
    """String literals of C++ code, in order; adjacent ones are not joined."""
    return re.findall(r'"((?:[^"\\]|\\.)*)"', text)


def without_comments(text):
    """The code with its comments blanked out, line breaks kept; string literals are left alone."""

    def blank(match):
        return match[0] if match[0][0] in "\"'" else re.sub(r"[^\n]", " ", match[0])

    return re.sub(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'|//[^\n]*|/\*.*?\*/', blank, text, flags=re.DOTALL)


def arguments(text, start):
    """The arguments of a call whose opening bracket is at text[start], split at commas outside of brackets."""
    depth, parts, begin, place = 0, [], start + 1, start
    while place < len(text):
        char = text[place]
        if char in "\"'":
            place += 1
            while place < len(text) and text[place] != char:
                place += 2 if text[place] == "\\" else 1
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth == 0:
                return [part.strip() for part in [*parts, text[begin:place]]]
        elif char == "," and depth == 1:
            parts.append(text[begin:place])
            begin = place + 1
        place += 1
    return [part.strip() for part in parts]


def sentence(text):
    """The text with a capital letter and a full stop."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", ":")) else ".")


# ---- docs/algorithms.md -------------------------------------------------------------------------------------------

COLLECTIVE = "hccl/collective/"
FORMULA_WORDS = re.compile(r"\b(time|steps|rounds|levels|alpha)\b|α")

ALGORITHMS_HEAD = """\
# Algorithms of collectives

{generated}
The first table lists every algorithm by the name that users write (`--algorithm`); the second says which algorithm does
which collective. Then each file says how its algorithms move the bytes, with steps and times as the header states them.
The whole story, and what each stage does, is in the headers. How HCCL chooses: `hccl/collective/selection/selection.hpp`;
why a run uses an algorithm: `--explain`.

In the formulas p is the number of ranks and n the bytes of the whole payload, of all blocks. alpha (α) is what a step
costs before its first byte flows, beta (β) the time of a byte on the way, gamma (γ) the time of reducing a byte by an AI
core, 0 where the transfer reduces. RS, AG and AR stand for reduce-scatter, allgather and allreduce.

"""


def enumerators(text, name):
    """The values of an enumeration in order, each with the comment behind it."""
    match = re.search(rf"enum class {name}\b[^{{]*{{(.*?)}};", text, re.DOTALL)
    if match is None:
        raise Breach(f"{name}: no such enumeration")
    return {value: comment.strip() for value, comment in re.findall(r"^\s*(\w+),?\s*(?:///<(.*))?$", match[1], re.MULTILINE)}


def named(text, array, values):
    """The strings of a constexpr array, one for each of the values."""
    match = re.search(rf"\b{array}\s*{{(.*?)}};", text, re.DOTALL)
    names = literals(match[1]) if match else []
    if len(names) != len(values):
        raise Breach(f"{array}: {len(names)} names for {len(values)} values")
    return dict(zip(values, names))


def story(text):
    """The paragraphs of the comment before the first namespace: (is a block, lines) each."""
    before = re.split(r"^namespace hcclsim", text, maxsplit=1, flags=re.MULTILINE)[0]
    comment = re.findall(r"^///( ?.*)$", before, re.MULTILINE)
    paragraphs, current = [], []
    for line in [*comment, ""]:
        if line.strip():
            current.append(line.removeprefix(" "))
        elif current:
            paragraphs.append((all(each.startswith("    ") for each in current), current))
            current = []
    return paragraphs


def excerpt(paragraphs):
    """Of a story: its first paragraph and its formulas, with the prose before one that does not say of what it is."""
    out, last = [paragraphs[0][1]], 0
    for number, (is_block, lines) in enumerate(paragraphs):
        if not is_block or not FORMULA_WORDS.search("\n".join(lines)):
            continue
        explained = len(out) == 1 and not lines[0].strip().startswith("time ")
        if not explained and not paragraphs[number - 1][0] and last < number - 1:
            out.append(paragraphs[number - 1][1])
        out.append(lines)
        last = number
    return ["\n".join(line.rstrip() for line in lines) + "\n" for lines in out]


def table_rows(text):
    """(collective, algorithm, functions) of the table of builders; the functions are those that the row names."""
    rows = re.findall(r"\bRow{Collective::(\w+),\s*Algorithm::(\w+),\s*\w+<([^>]*)>}", text)
    return [(collective, algorithm, re.findall(r"(?<![\w:])\w+(?![\w:])", names)) for collective, algorithm, names in rows]


def level_rows(text):
    """(collective, algorithm) of the table of algorithms that work on a level of a hierarchy."""
    return {(collective, algorithm) for algorithm, collective in re.findall(r"\bRow{Algorithm::(\w+), Collective::(\w+),", text)}


def short_names(text):
    """Short names by algorithm, as parse_algorithm() knows them: name and algorithm."""
    body = text[text.index("Algorithm parse_algorithm(") :]
    found = re.findall(r'name == "([\w-]+)"[^;)]*\) return Algorithm::(\w+);', body)
    return {algorithm: name for name, algorithm in found if algorithm != "automatic"}


def algorithms_page(root, paths):
    def read(path):
        return (root / path).read_text(encoding="utf-8")

    code, header = read(f"{COLLECTIVE}algorithm.cpp"), read(f"{COLLECTIVE}algorithm.hpp")
    described = enumerators(header, "Algorithm")
    names = named(code, "algorithm_names", described)
    collectives = enumerators(read("hccl/schedule/operation.hpp"), "Collective")
    collective_names = named(read("hccl/schedule/operation.cpp"), "collective_names", collectives)
    rows, on_levels, short = table_rows(code), level_rows(read(f"{COLLECTIVE}algorithm/levels/level_stages.cpp")), short_names(code)
    headers = {path: read(path) for path in paths if path.startswith(f"{COLLECTIVE}algorithm/") and path.endswith(".hpp")}

    def header_of(algorithm, functions):
        """That of a function with the algorithm's name, else the algorithm's own, else that of any function."""
        named_alike = [function for function in functions if function.split("_")[0] == algorithm.split("_")[0]]
        own = f"{COLLECTIVE}algorithm/{algorithm}.hpp"
        if own in headers and not named_alike:
            return own
        function = (named_alike or functions or [algorithm])[0]
        declared = re.compile(rf"^(\[\[nodiscard\]\] )?[\w:<>]+ {function}\(", re.MULTILINE)
        found = [path for path, text in headers.items() if declared.search(text)]
        if len(found) != 1:
            raise Breach(f"{COLLECTIVE}algorithm.cpp: {function} is declared in {len(found)} headers of algorithm/")
        return found[0]

    files = {}  # by algorithm
    algorithms_of_file = {}
    done = set()
    for collective, algorithm, functions in rows:
        path = header_of(algorithm, functions)
        files.setdefault(algorithm, []).append(path)
        algorithms_of_file.setdefault(path, []).append(algorithm)
        done.add((collective, algorithm))
    missing = [value for value in described if value != "automatic" and value not in files]
    if missing or not rows:
        raise Breach(f"{COLLECTIVE}algorithm.cpp: no row of the table has {', '.join(missing) or 'a form that is known'}")

    out = [ALGORITHMS_HEAD.format(generated=GENERATED)]
    out.append("| name | what it does | files |\n| --- | --- | --- |\n")
    for algorithm in files_in_order(described, files):
        if not described[algorithm]:
            raise Breach(f"{COLLECTIVE}algorithm.hpp: Algorithm::{algorithm} has no comment")
        also = f", `{short[algorithm]}`" if algorithm in short else ""
        if algorithm in short and short[algorithm] in names.values():  # which is another algorithm elsewhere
            does = [collective_names[collective] for collective, other, _ in rows if other == algorithm]
            also = f"; for {', '.join(does)} also `{short[algorithm]}`"
        where = ", ".join(f"`{Path(path).name}`" for path in sorted(set(files[algorithm])))
        out.append(f"| `{names[algorithm]}`{also} | {sentence(described[algorithm])} | {where} |\n")

    order = files_in_order(described, files)
    out.append("\n## Which algorithm does which collective\n\n")
    out.append("x: over all ranks; L: also on one level of `hierarchical`; (L): on a level only.\n\n")
    out.append(f"| | {' | '.join(names[algorithm] for algorithm in order)} |\n|{' --- |' * (len(order) + 1)}\n")
    for collective in collectives:
        cells = []
        for algorithm in order:
            level = (collective, algorithm) in on_levels
            cells.append(("x L" if level else "x") if (collective, algorithm) in done else "(L)" if level else "")
        out.append(f"| {collective_names[collective]} | {' | '.join(cells)} |\n")

    first = {path: min(order.index(algorithm) for algorithm in users) for path, users in algorithms_of_file.items()}
    for path in sorted(algorithms_of_file, key=lambda path: (first[path], path)):
        users = [algorithm for algorithm in order if algorithm in algorithms_of_file[path]]
        paragraphs = story(headers[path])
        if not paragraphs or paragraphs[0][0]:
            raise Breach(f"{path}: its comment does not begin with a paragraph of prose")
        out.append(f"\n## {', '.join(names[algorithm] for algorithm in users)}: `{path}`\n\n")
        out.append("\n".join(excerpt(paragraphs)))
    return "".join(out)


def files_in_order(described, files):
    return [algorithm for algorithm in described if algorithm in files]


# ---- docs/errors.md -----------------------------------------------------------------------------------------------

SOURCE_FOLDERS = ("base", "sim", "models", "device", "hccl", "study", "cli", "python", "clients")
STATUS = {"check_failed": 1, "bad_input": 2, "simulated_failure": 3, "internal": 4}
KINDS_FILE = "docs/error_kinds.txt"
KIND = re.compile(r"[a-z][a-z0-9-]*")
KIND_PARAMETER = re.compile(r"(?:string_view|string|string&|char\*)\s+kind$")
PASSED_ON = re.compile(r"(std::string\()?(kind|kind_|\w+(\.|->)kind\(\))\)?")
CONSTANT = re.compile(r'constexpr\s+(?:const\s+char\s*\*(?:\s*const)?|(?:std::)?string_view|auto)\s+(\w+)\s*(?:=|{)\s*"([^"]*)"')

ERRORS_HEAD = """\
# Kinds of errors

{generated}
An error has an exit status, a kind and a message. The kind is a short stable word for programs: it is in the records of
`hcclsim sweep` and in JUnit files. The message is for people: it names the option, or file and line, or rank and task, the
bad value, and what is accepted. `base/error.hpp` has the type. The findings of `hcclsim schedule check` have kinds of their
own: `docs/checker.md`.

| status | means |
| --- | --- |
| 0 | ok |
| 1 | a check or a comparison failed |
| 2 | usage or bad input |
| 3 | the simulated cluster failed |
| 4 | internal: a defect of hcclsim, or the simulating process was lost |

A few kinds have two statuses; their sentence says which is which.

| kind | status | means | thrown in |
| --- | --- | --- | --- |
"""


def kind_parameters(text):
    """Functions and lambdas of a file that take a kind: (name, position of it among the parameters)."""
    found = {}
    for match in re.finditer(r"(?:\b(\w+)\s*=\s*\[[^\]]*\]\s*|\b(\w+))\(", text):
        parameters = arguments(text, match.end() - 1)
        for position, parameter in enumerate(parameters):
            if KIND_PARAMETER.search(parameter):
                found[match[1] or match[2]] = position
    return found


def passes_on(text):
    """The codes with which a file throws errors of a kind that it was given."""
    codes = set()
    for match in re.finditer(r"\b(bad_input|simulated_failure|Error)\(", text):
        parts = arguments(text, match.end() - 1)
        if match[1] == "Error":
            code = re.fullmatch(r"ErrorCode::(\w+)", parts[0]) if len(parts) > 1 else None
            kind, code = (parts[1], code[1]) if code else ("", "")
        else:
            kind, code = parts[0] if parts else "", match[1]
        if re.fullmatch(r"(std::string\()?kind_?\)?", kind):
            codes.add(code)
    return codes


def folder_of(path):
    return "/".join(path.split("/")[:-1][:2])


def thrown_kinds(texts):
    """Where kinds of errors come from: {kind: {status: {folders}}}, by the files' texts without comments."""
    constants = {}
    throwers = {"bad_input": (0, "bad_input"), "simulated_failure": (0, "simulated_failure")}
    local = {}  # by file: functions of that file alone
    declared = {name for path, text in texts.items() if path.endswith(".hpp") for name in kind_parameters(text)}
    for path, text in texts.items():
        constants.update(CONSTANT.findall(text))
        codes = passes_on(text) if path != "base/error.hpp" else set()
        for name, position in kind_parameters(text).items() if len(codes) == 1 else ():
            known = throwers if name in declared else local.setdefault(path, {})
            known.setdefault(name, (position, min(codes)))
    kinds = {}

    def note(kind, code, path):
        kinds.setdefault(kind, {}).setdefault(STATUS[code], set()).add(folder_of(path))

    for path, text in texts.items():
        known = {**throwers, **local.get(path, {})}
        if path == "base/error.hpp":
            continue
        # NAME(…), or TYPE NAME(…) of a variable whose constructor takes the kind.
        for match in re.finditer(r"\b(?:(\w+)\s+)?(\w+)\(", text):
            parts = arguments(text, match.end() - 1)
            name = match[1] if match[1] in known else match[2]
            if name == "internal_error":
                note("internal", "internal", path)
            elif name == "Error" and parts[0].startswith("ErrorCode::"):
                note_argument(parts[1:2], parts[0].removeprefix("ErrorCode::"), path, constants, note)
            elif name in known:
                position, code = known[name]
                if len(parts) > position and not KIND_PARAMETER.search(parts[position]):
                    note_argument(parts[position : position + 1], code, path, constants, note)
    return kinds


def note_argument(argument, code, path, constants, note):
    """Notes the kinds that an expression can have."""
    expression = argument[0] if argument else ""
    found = [literal for literal in literals(expression) if KIND.fullmatch(literal)]
    name = expression.split("::")[-1]
    if not found and name in constants:
        found = [constants[name]]
    if not found and not PASSED_ON.fullmatch(expression):
        raise Breach(f"{path}: the kind of an error is `{expression}`, neither a literal nor a named constant")
    for kind in found:
        note(kind, code, path)


def explanations(text):
    """{kind: sentence} of docs/error_kinds.txt."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        kind, colon, words = line.partition(":")
        if not colon or not KIND.fullmatch(kind) or not words.strip() or kind in found:
            raise Breach(f"{KINDS_FILE}:{number}: not a line `kind: sentence` of a new kind")
        found[kind] = words.strip()
    return found


def errors_page(root, paths):
    sources = [path for path in paths if path.endswith(repository.CPP_SUFFIXES) and path.startswith(SOURCE_FOLDERS)]
    texts = {path: without_comments((root / path).read_text(encoding="utf-8")) for path in sources}
    kinds = thrown_kinds(texts)
    known = explanations((root / KINDS_FILE).read_text(encoding="utf-8"))
    unexplained, unused = sorted(set(kinds) - set(known)), sorted(set(known) - set(kinds))
    if unexplained:
        raise Breach(f"{KINDS_FILE}: no sentence for {', '.join(unexplained)}")
    if unused:
        raise Breach(f"{KINDS_FILE}: nobody throws {', '.join(unused)}")
    out = [ERRORS_HEAD.format(generated=GENERATED)]
    for kind in sorted(kinds):
        statuses = ", ".join(str(status) for status in sorted(kinds[kind]))
        folders = ", ".join(f"`{folder}`" for folder in sorted(set().union(*kinds[kind].values())))
        if kind == "internal":
            folders = "any folder"
        out.append(f"| `{kind}` | {statuses} | {sentence(known[kind])} | {folders} |\n")
    return "".join(out)


# ---- names in documents -------------------------------------------------------------------------------------------

CONCEPTS = "docs/concepts.md"
SOURCE_NAME = re.compile(r"`([A-Za-z][\w./-]*\.(?:cpp|hpp|py|cmake|md))`")
NAME = re.compile(r"`([^`]+)`")


def check_names(path, text, paths):
    """Sources that a document names exist, from the root or from its own folder."""
    folder = path[: path.rfind("/") + 1]
    for number, line in enumerate(text.splitlines(), 1):
        for name in SOURCE_NAME.findall(line):
            if name not in paths and folder + name not in paths:
                yield f"{path}:{number}: there is no {name}"


def check_concepts(text, paths):
    """The last column of every row of the index names files, or folders that end in /."""
    rows = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.startswith("| ")]
    folders = {path[: path.rfind("/") + 1] for path in paths}
    folders |= {folder[: end + 1] for folder in folders for end, char in enumerate(folder) if char == "/"}
    concepts = set()
    for number, line in rows:
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if cells[0] == "concept" or set(cells[0]) <= set("-"):
            continue
        if cells[0] in concepts:
            yield f"{CONCEPTS}:{number}: {cells[0]} stands there twice"
        concepts.add(cells[0])
        names = NAME.findall(cells[-1])
        if len(cells) != 3 or not names:
            yield f"{CONCEPTS}:{number}: not a row of concept, meaning and files"
        for name in names:
            if name not in paths and name not in folders:
                yield f"{CONCEPTS}:{number}: there is no {name}"


PAGES = {"docs/algorithms.md": algorithms_page, "docs/errors.md": errors_page}


def problems(root, fix=False):
    """All breaches in the repository at `root`; with `fix` the generated pages are written first."""
    root = Path(root)
    paths = {str(path) for path in repository.files(root)}
    found = []
    for page, make in PAGES.items():
        try:
            wanted = make(root, sorted(paths))
        except Breach as breach:
            found.append(str(breach))
            continue
        except (FileNotFoundError, ValueError) as error:
            found.append(f"{page}: cannot be made: {error}")
            continue
        if fix:
            (root / page).write_text(wanted, encoding="utf-8")
            paths.add(page)
        elif page not in paths or (root / page).read_text(encoding="utf-8") != wanted:
            found.append(f"{page}: not what the sources say; run tests/lint/docs.py --fix")
    for path in sorted(path for path in paths if path.startswith("docs/") and path.endswith(".md")):
        text = (root / path).read_text(encoding="utf-8")
        if path == CONCEPTS:
            found += check_concepts(text, paths)
        elif path not in PAGES:
            found += check_names(path, text, paths)
    if CONCEPTS not in paths:
        found.append(f"{CONCEPTS}: there is no such file")
    return found + rules.problems(root, paths)


def main():
    words = [word for word in sys.argv[1:] if word != "--fix"]
    root = words[0] if words else Path(__file__).resolve().parents[2]
    found = problems(root, "--fix" in sys.argv[1:])
    print("\n".join(found) if found else "docs: nothing to complain about")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
