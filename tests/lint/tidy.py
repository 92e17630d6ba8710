#!/usr/bin/env python3
"""clang-tidy 14 over the sources that a build compiles; every finding fails.

A file that was clean is not checked again until something changes on which the result depends: the file, a header of
the repository that it includes, its compiler options, .clang-tidy, or the version of clang-tidy. What was clean is
remembered in $XDG_CACHE_HOME/hcclsim (or ~/.cache/hcclsim).

usage: tidy.py BUILD-FOLDER [PATH-PREFIX…]
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import repository

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hcclsim" / "clang-tidy"


class Sources:
    """Contents of files, and the headers of the repository that a file includes, itself first; read once each."""

    def __init__(self):
        self._texts = {}

    def text(self, path):
        if path not in self._texts:
            self._texts[path] = path.read_text(encoding="utf-8")
        return self._texts[path]

    def closure(self, path):
        reached, waiting = {path}, [path]
        while waiting:
            for name in INCLUDE.findall(self.text(waiting.pop())):
                header = ROOT / name
                if header not in reached and header.is_file():
                    reached.add(header)
                    waiting.append(header)
        return sorted(reached)


def key_of(path, command, sources, common):
    """Digest of all on which the result for one source depends."""
    digest = hashlib.sha256(common)
    digest.update(command.replace(str(ROOT), "").encode())
    for dependency in sources.closure(path):
        digest.update(f"\0{dependency.relative_to(ROOT)}\0{sources.text(dependency)}".encode())
    return digest.hexdigest()


def check(program, build, headers, path):
    """Findings in one source and in the headers whose path matches `headers`; empty if there is none."""
    # The options are GCC's; clang does not know all of its warnings.
    options = ["--quiet", f"--header-filter={headers}", "--extra-arg=-Wno-unknown-warning-option"]
    command = [program, "-p", build, *options, path]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == 0:
        return ""
    return done.stdout.strip() or done.stderr.strip() or f"{path}: clang-tidy ended with status {done.returncode}"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build, prefixes = Path(sys.argv[1]).resolve(), tuple(sys.argv[2:]) or ("",)
    program = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if program is None:
        sys.exit("clang-tidy-14 is not installed (./bootstrap test installs it)")
    version = subprocess.run([program, "--version"], stdout=subprocess.PIPE, check=True).stdout
    common = version + b"\0".join((ROOT / path).read_bytes() for path in repository.files(ROOT) if path.name == ".clang-tidy")

    clean = cache_folder()
    clean.mkdir(parents=True, exist_ok=True)
    sources, tasks = Sources(), {}
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    for entry in commands:
        path = Path(entry["file"])
        if path.is_relative_to(ROOT) and not path.is_relative_to(build):
            if str(path.relative_to(ROOT)).startswith(prefixes):
                tasks[path] = clean / key_of(path, entry["command"], sources, common)
    changed = [path for path, key in tasks.items() if not key.exists()]
    folders = {path.parts[0] for path in repository.files(ROOT) if path.suffix in repository.CPP_SUFFIXES}
    headers = f"^{re.escape(str(ROOT))}/({'|'.join(sorted(folders))})/"

    start, bad = time.monotonic(), 0
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for path, findings in zip(changed, pool.map(lambda path: check(program, build, headers, path), changed)):
            if findings:
                bad += 1
                print(findings, flush=True)
            else:
                tasks[path].touch()
    print(f"tidy: {len(changed)} of {len(tasks)} files checked in {time.monotonic() - start:.0f} s, {bad} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
