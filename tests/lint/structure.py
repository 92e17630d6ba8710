#!/usr/bin/env python3
"""The rules on how the repository is laid out, as tables. Prints every breach as FILE:LINE: message; status 1 if any.

usage: structure.py [ROOT]
"""

import re
import sys
from pathlib import Path

import repository

# The floors, highest first (docs/architecture.md). A folder includes itself and what stands on lower floors; folders
# on one floor do not know each other.
FLOORS = [
    ["cli", "python"],
    ["cli/commands"],
    ["cli/html", "cli/profiler"],
    ["cli/print"],
    ["cli/draw"],
    ["cli/options"],
    ["cli/terminal"],
    ["clients"],
    ["study"],
    ["study/jobs"],
    ["study/compare"],
    ["study/communication"],
    ["study/run"],
    ["study/run/split_search"],
    ["study/run/split"],
    ["study/run/experiment"],
    ["study/files"],
    ["study/spec"],
    ["study/platform"],
    ["hccl/training", "hccl/ps"],
    ["hccl/strategies"],
    ["hccl/parallel", "hccl/verify"],
    ["hccl/runtime", "hccl/execute"],
    ["hccl/collective", "hccl/check", "hccl/compression"],
    ["hccl/schedule", "hccl/comm", "hccl/settings"],
    ["device"],
    ["sim", "models"],
    ["base"],
]

# Floors of several rooms: their folders know each other in one direction.
FLOORS_OF_ROOMS = ["study/jobs", "study/compare", "study/communication", "study/files"]

# Headers of libraries that stay behind a wall: pattern of the header, the folders and files that may include it. The last
# four take many times as long to compile as all else of a file.
GUARDED_HEADERS = [
    (re.compile(r"(simgrid|xbt|smpi|src)/"), ["sim/simgrid", "tests/sim"]),
    (re.compile(r"(oneapi/)?dnnl"), ["device/numerics/onednn"]),
    (re.compile(r"SQLiteCpp/|sqlite3\.h"), ["study/compare/sweep"]),
    (
        re.compile(r"Eigen/"),
        ["hccl/compression/linear_algebra.cpp", "study/communication/calibrate/fit_problem.hpp",
         "study/communication/calibrate/least_squares.cpp"],
    ),
    (re.compile(r"pybind11/"), ["python/core"]),
    (re.compile(r"CLI/"), ["cli/options/parse/command.cpp"]),
    (re.compile(r"yaml-cpp/"), ["study/files/yaml.cpp"]),
    (re.compile(r"nlohmann/"), ["base/json_text.cpp", "tests/hccl/comm/rank_table_test.cpp"]),  # the test: JSON Patch
    (
        re.compile(r"google/protobuf/|.*\.pb\.h"),
        ["hccl/schedule/file", "hccl/training/numerics/checkpoint.cpp", "tests/hccl/schedule/file",
         "study/communication/replay/chakra", "study/files/strategy/strategy_file.cpp", "cli/draw/perfetto.cpp", "tests/cli/draw",
         "models/onnx/module"],
    ),
    (re.compile(r"onnx/.*\.h$"), ["models/onnx/module"]),
]

# The command parses and prints; what simulates, executes or starts processes is in study/ and below. A StepView is a
# result that is printed, and so are the cells of a trace and its memory.
CLI_FORBIDDEN = re.compile(
    r"hccl/(runtime|execute|verify|parallel|training/(?!step_view|traced_cells|memory_points|message_starts))|sim/network/|base/child_process\.hpp$"
    r"|study/platform/on_platform\.hpp$"
)

MAX_SOURCE_LINES = 500
SOURCE_SUFFIXES = (".cpp", ".hpp", ".py", ".sh", ".cmake")
MAX_FUNCTION_LINES = 80
# Where no function is longer. Bodies close at the indentation at which their declarations begin, as clang-format has it.
FOLDERS_OF_SHORT_FUNCTIONS = ("study/", "hccl/training/")
DECLARATION = re.compile(
    r"( *)(?!(?:if|for|while|switch|else|do|try|catch|return|case|default|class|struct|enum|union|namespace|using|public|private)\b)"
    r"[A-Za-z_~][^;]*\([^;]*"
)
MAX_README_LINES = 40
MAX_SOURCES_IN_FOLDER = 30
# Folders with C++ sources and more files than this need a map, of their own or in the README of the folder above.
MAX_FILES_WITHOUT_MAP = 3
# A README that is a reference, not a map.
LONG_READMES = ["README.md", "platforms/README.md"]

MACHINE_PATH = re.compile(r"(?<![\w.$}])/(home|root|work|Users)/\w")
NAMED_FILE = re.compile(r"`([a-z][\w./-]*\.(?:cpp|hpp|py|cmake))`")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')

STEP_SPEC = "hccl/parallel/step_spec.hpp"
STEP_FIELD = re.compile(r"^  [\w:<>, ]+? (\w+)(?: = [^;]+|\{\})?;", re.MULTILINE)

FLOOR_OF = {folder: number for number, floor in enumerate(reversed(FLOORS)) for folder in floor}


def folder_of(path):
    """The innermost entry of FLOORS that holds a path, or None."""
    return max((folder for folder in FLOOR_OF if path.startswith(folder + "/")), key=len, default=None)


def room_of(path):
    """The room on a floor of several that holds a path, or None."""
    floor = folder_of(path)
    if floor not in FLOORS_OF_ROOMS:
        return None
    return "/".join(path.split("/")[: floor.count("/") + 2])


def check_include(path, quote, header, exists):
    """What is wrong with one include of the file `path`, or None."""
    for pattern, places in GUARDED_HEADERS:
        if pattern.match(header) and not any(path == place or path.startswith(place + "/") for place in places):
            return f"<{header}> may be included in {', '.join(places)} only"
    if quote == "<":
        return None
    if path.startswith("examples/") and exists(f"{path.rpartition('/')[0]}/{header}"):
        return None  # users compile them where they lie
    if not exists(header):
        return f'"{header}" is not a path from the root of the repository'
    source, target = folder_of(path), folder_of(header)
    if path.startswith("cli/") and CLI_FORBIDDEN.match(header):
        return f'"{header}": cli parses and prints only; what simulates or starts processes is in study'
    if source is None or source == target:
        return None
    if target is None:
        return f'"{header}" stands on no floor'
    if FLOOR_OF[target] > FLOOR_OF[source]:
        return f'"{header}" climbs: {target} stands above {source}'
    if FLOOR_OF[target] == FLOOR_OF[source]:
        return f'"{header}": {source} and {target} do not know each other'
    return None


def check_includes(path, lines, exists):
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        problem = match and check_include(path, match[1], match[2], exists)
        if problem:
            yield f"{path}:{number}: {problem}"


def check_rooms(includes):
    """No two rooms of a floor know each other, over others or not. `includes`: pairs of a source and a header."""
    known = {}
    for path, header in includes:
        source, target = room_of(path), room_of(header)
        if source and target and source != target and folder_of(path) == folder_of(header):
            known.setdefault(source, {}).setdefault(target, path)

    def reached(room, seen):
        for target in known.get(room, {}):
            if target not in seen:
                seen.add(target)
                reached(target, seen)
        return seen

    for room in sorted(known):
        for target, path in sorted(known[room].items()):
            if room in reached(target, {target}):
                yield f"{path}:1: {room} and {target} know each other"


def check_lines(path, lines):
    if path.endswith(SOURCE_SUFFIXES) and len(lines) > MAX_SOURCE_LINES:
        yield f"{path}:1: {len(lines)} lines; at most {MAX_SOURCE_LINES}"
    if path.endswith("README.md") and path not in LONG_READMES and len(lines) > MAX_README_LINES:
        yield f"{path}:1: {len(lines)} lines; a map has at most {MAX_README_LINES}"
    for number, line in enumerate(lines, 1):
        if MACHINE_PATH.search(line):
            yield f"{path}:{number}: path of one machine"


def check_functions(path, lines):
    """No function of these folders is very long."""
    end = 0  # of the function before
    for begin, line in enumerate(lines):
        declared = DECLARATION.fullmatch(line)
        if begin < end or not declared:
            continue
        opening = begin
        while opening < len(lines) and not lines[opening].endswith(("{", ";", "}")):
            opening += 1
        if opening == len(lines) or not lines[opening].endswith(" {"):
            continue
        closing = declared[1] + "}"
        end = next((number for number in range(opening + 1, len(lines)) if lines[number] in (closing, closing + ";")), begin) + 1
        if end - begin > MAX_FUNCTION_LINES:
            yield f"{path}:{begin + 1}: a function of {end - begin} lines; at most {MAX_FUNCTION_LINES}"


def check_names(path, lines, paths):
    """A map names only sources that exist, from its own folder or from the root."""
    if not path.endswith("README.md"):
        return
    folder = path.removesuffix("README.md")
    for number, line in enumerate(lines, 1):
        for name in NAMED_FILE.findall(line):
            if folder + name not in paths and name not in paths:
                yield f"{path}:{number}: there is no {name}"


def check_folders(paths, text_of):
    """No folder has very many sources. Every one with some has a map, of its own or in the README of the folder above; tests
    mirror the sources."""
    folders = {}
    for path in paths:
        folders.setdefault(path.rpartition("/")[0], []).append(path)
    for folder, files in sorted(folders.items()):
        sources = sum(path.endswith(repository.CPP_SUFFIXES) for path in files)
        if sources > MAX_SOURCES_IN_FOLDER:
            yield f"{folder}:1: {sources} sources; at most {MAX_SOURCES_IN_FOLDER}, the others in sub-folders"
        if not folder or not sources or len(files) <= MAX_FILES_WITHOUT_MAP or f"{folder}/README.md" in paths:
            continue
        if folder.startswith("tests/") and folder.removeprefix("tests/") in folders:
            continue
        above, _, name = folder.rpartition("/")
        readme = f"{above}/README.md" if above else "README.md"
        if readme not in paths or f"`{name}/" not in text_of(readme):
            yield f"{folder}:1: {len(files)} files without a map: neither a README.md here nor `{name}/` in {readme}"


def check_maps(paths):
    """Every top folder and every part of hccl has a README.md, and every source stands on a floor."""
    folders = {path.split("/")[0] for path in paths if "/" in path and not path.startswith(".")}
    folders |= {"/".join(path.split("/")[:2]) for path in paths if path.startswith("hccl/") and path.count("/") > 1}
    for folder in sorted(folders):
        if f"{folder}/README.md" not in paths:
            yield f"{folder}:1: no README.md"
    for path in sorted(paths):
        folder = path.split("/")[0]
        if path.endswith(repository.CPP_SUFFIXES) and folder not in ("tests", "bench", "examples") and folder_of(path) is None:
            yield f"{path}:1: stands on no floor"


def copies_of_settings(text):
    """Finds a setting of a step that is assigned from a field with its name in another struct: `text` declares StepSpec."""
    fields = STEP_FIELD.findall(text.partition("struct StepSpec {")[2].partition("\n};")[0])
    return re.compile(r"\bstep_?(?:\.|->)(" + "|".join(fields) + r") = \*?[\w.\[\]>-]*(?:\.|->)\1;")


def check_copies(path, lines, copies):
    """The settings of a step are one object, which is passed on by reference or copied as a whole."""
    for number, line in enumerate(lines, 1):
        if found := copies.search(line):
            yield f"{path}:{number}: StepSpec::{found[1]} is copied from a look-alike; pass the StepSpec on"


def problems(root):
    """All breaches in the repository at `root`."""
    paths = {str(path) for path in repository.files(root)}
    found = list(check_maps(paths))
    found += check_folders(paths, lambda path: (Path(root) / path).read_text(encoding="utf-8"))
    includes = []
    copies = copies_of_settings((Path(root) / STEP_SPEC).read_text(encoding="utf-8")) if STEP_SPEC in paths else None
    for path in sorted(paths):
        try:
            lines = (Path(root) / path).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += check_lines(path, lines)
        found += check_names(path, lines, paths)
        if path.endswith(repository.CPP_SUFFIXES):
            found += check_includes(path, lines, paths.__contains__)
            if path.startswith(FOLDERS_OF_SHORT_FUNCTIONS):
                found += check_functions(path, lines)
            includes += [(path, match[2]) for match in map(INCLUDE.match, lines) if match]
            if copies is not None and not path.startswith("tests/"):
                found += check_copies(path, lines, copies)
    return found + list(check_rooms(includes))


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    found = problems(root)
    print("\n".join(found) if found else "structure: nothing to complain about")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
