#!/usr/bin/env python3
"""clang-tidy 14 over all sources; every finding fails.

A file that was clean need not be checked again until it changes itself, or its own header, its compiler options, .clang-tidy
or the version of clang-tidy. What other headers hold hardly matters to what is found in a file, and what is found in them is
found with their own source; as it may, a thirtieth of the files with a digest is checked all the same, which the number of
the commit chooses. The digests of all that are clean stand in clean.txt beside this script, which only --record writes.

usage: tidy.py [--all] [--record] [PATH-PREFIX…]
  --all     check every file, recorded or not
  --record  write the record: what was found clean, and what is still clean by its digest
"""

import argparse
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
BUILD = ROOT / "build" / "lint"
RECORD = Path(__file__).with_name("clean.txt")
RECORDED = re.compile(r"([0-9a-f]{32})  (\S+)")
# What of a command and of a text changes no finding: how code is generated, where files lie.
CODE_GENERATION = re.compile(r" -(fPIC|fPIE|fno-semantic-interposition|O\d)\b| -[oc] \S+")
OWN_INCLUDE = re.compile(r'^#include "(?:[^"]*/)?([^"/]+)"\n', re.MULTILINE)
PARTS = 30  # of the recorded files, one is checked again


def compile_commands():
    """Command by source, each compiled by itself; generated headers are made."""
    for command in (["cmake", "--preset", "lint"], ["cmake", "--build", BUILD, "--target", "hcclsim_protobuf"]):
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stdout)
    commands = json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8"))
    return {Path(entry["file"]): entry["command"] for entry in commands}


class Sources:
    """Contents of files, read once each."""

    def __init__(self):
        self._texts = {}

    def text(self, path):
        if path not in self._texts:
            self._texts[path] = path.read_text(encoding="utf-8")
        return self._texts[path]

    @staticmethod
    def used_by(path):
        """The file and its own header; a header without a source of its name is looked at with those that include it."""
        own = path.with_suffix(".hpp")
        return [path, own] if own.is_file() else [path]


def digest_of(path, command, sources, common):
    """Digest of all on which the result for one source depends, wherever it lies and wherever its headers do."""
    digest = hashlib.sha256(common)
    digest.update(CODE_GENERATION.sub("", command.replace(str(ROOT), "")).encode())
    for dependency in sources.used_by(path):
        text = sources.text(dependency)
        names = "\0".join((dependency.name, *sorted(OWN_INCLUDE.findall(text))))
        digest.update(f"\0{names}\0{OWN_INCLUDE.sub('', text)}".encode())
    return digest.hexdigest()[:32]


class Record:
    """Digests by path; one line each in the file."""

    def __init__(self):
        lines = RECORD.read_text(encoding="utf-8").splitlines() if RECORD.exists() else []
        known = filter(None, map(RECORDED.fullmatch, lines))  # what a merge left there is no record
        self.clean = {match[2]: match[1] for match in known}

    def write(self, digests):
        """Keeps what is clean by these digests of all files."""
        kept = {path: digest for path, digest in self.clean.items() if digests.get(path) == digest}
        text = "".join(f"{digest}  {path}\n" for path, digest in sorted(kept.items()))
        new = RECORD.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        new.replace(RECORD)


def part_of_today():
    """Which thirtieth of the recorded files this commit checks."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    return int(done.stdout.strip() or "0", 16) % PARTS


def is_due(path, digest, record, part):
    """Whether a file is checked: not known to be clean, or in the thirtieth that is looked at again."""
    if record.clean.get(path) != digest:
        return True
    return int(hashlib.sha256(path.encode()).hexdigest(), 16) % PARTS == part


def check(program, headers, path):
    """Findings in one source and in the headers whose path matches `headers`; empty if there is none."""
    # The options are GCC's; clang does not know all of its warnings.
    options = ["--quiet", f"--header-filter={headers}", "--extra-arg=-Wno-unknown-warning-option"]
    command = [program, "-p", BUILD, *options, ROOT / path]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == 0:
        return ""
    return done.stdout.strip() or done.stderr.strip() or f"{path}: clang-tidy ended with status {done.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="check every file, recorded or not")
    parser.add_argument("--record", action="store_true", help="write the record")
    parser.add_argument("prefixes", nargs="*", metavar="PATH-PREFIX", help="default: all")
    options = parser.parse_args()
    program = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if program is None:
        sys.exit("clang-tidy-14 is not installed (./bootstrap test installs it)")
    said = subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    common = re.search(r"version (\S+)", said)[1].encode()
    common += b"\0".join((ROOT / path).read_bytes() for path in repository.files(ROOT) if path.name == ".clang-tidy")

    sources, digests = Sources(), {}
    for path, command in compile_commands().items():
        if path.is_relative_to(ROOT) and not path.is_relative_to(BUILD):
            digests[str(path.relative_to(ROOT))] = digest_of(path, command, sources, common)
    record, part = Record(), part_of_today()
    wanted = [path for path in sorted(digests) if path.startswith(tuple(options.prefixes) or "")]
    due = [path for path in wanted if options.all or is_due(path, digests[path], record, part)]
    unknown = sum(record.clean.get(path) != digests[path] for path in wanted)
    folders = {path.parts[0] for path in repository.files(ROOT) if path.suffix in repository.CPP_SUFFIXES}
    headers = f"^{re.escape(str(ROOT))}/({'|'.join(sorted(folders))})/"

    start, bad = time.monotonic(), 0
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for path, findings in zip(due, pool.map(lambda path: check(program, headers, path), due)):
            if findings:
                bad += 1
                record.clean.pop(path, None)
                print(findings, flush=True)
            else:
                record.clean[path] = digests[path]
            if options.record:
                record.write(digests)  # at once: a check of everything takes long
    if options.record:
        record.write(digests)
    print(
        f"tidy: {len(due)} of {len(wanted)} files checked in {time.monotonic() - start:.0f} s, {bad} with findings; "
        f"{unknown} were not recorded as clean"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
