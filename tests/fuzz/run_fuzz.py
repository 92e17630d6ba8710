#!/usr/bin/env python3
"""Runs targets of fuzzing, one after the other, and prints a line for each. Status 1 if one has a finding.

usage: run_fuzz.py BUILD [TARGET…] [--runs N] [--seed N] [--fresh]

Corpora grow in BUILD/corpus from run to run; --fresh begins with the seeds again, and then the same --seed gives the
same inputs. The seeds are those of tests/data/fuzz/TARGET and other data of the tests. What breaks a target is kept in
BUILD/findings: mend the reader, and keep the input as tests/data/fuzz/TARGET/refused-NAME (or accepted-NAME).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data"

# What inputs of a target look like beside its own seeds, and where the words stand that its reader knows.
SEEDS = {
    "platform": ["tests/data/platforms/**/*.xml"],
    "platform_loading": ["tests/data/platforms/**/*.xml"],
    "rank_table": ["tests/data/rank_tables/*.json"],
    "schedule_text": ["tests/hccl/schedule/file/schedules/*.txt"],
    "profile": ["tests/data/profile/*.csv"],
    "gradients": ["tests/data/study/*.csv"],
    "validation": ["platforms/validation/*.toml"],
    "msjob": ["examples/msjob/*.yaml", "tests/data/msjobs/refused/*.yaml"],
    "chakra": ["tests/data/fuzz/chakra/*"],
    "goal": ["examples/traces/*.goal"],
}
WORDS = {
    "config_file": ["base/config_file.cpp"],
    "quantities": ["base/units.cpp"],
    "platform": ["sim/platform/*.cpp"],
    "platform_loading": ["sim/platform/*.cpp"],
    "platform_edit": ["sim/platform/edit.cpp", "sim/platform/catalog.cpp"],
    "gradients": ["models/profile.cpp", "base/csv.cpp"],
    "rank_table": ["hccl/comm/rank_table*.cpp"],
    "hccl_variables": ["hccl/settings/*.cpp"],
    "schedule_text": ["hccl/schedule/file/*.cpp"],
    "profile": ["study/files/profile/*.cpp", "base/csv.cpp"],
    "calibration_log": ["study/communication/calibrate/bandwidth_log.cpp"],
    "communication": ["study/communication/calibrate/bandwidth_log.cpp"],
    "baseline": ["study/compare/baseline/baseline.cpp"],
    "validation": ["study/compare/validate/validation_file.cpp", "base/config_file.cpp"],
    "msjob": ["study/jobs/job/msjob/read_msjob.cpp", "study/jobs/job/msjob/pod_template.cpp"],
    "chakra": ["study/communication/replay/chakra/read_chakra.cpp", "study/communication/replay/chakra/attributes.hpp"],
    "goal": ["study/communication/replay/goal/read_goal.cpp"],
    "option_texts": ["sim/platform/options.cpp", "models/zoo/*.cpp", "device/numerics/learning_rate.cpp",
                     "hccl/collective/algorithm.cpp", "study/communication/measure/names.cpp", "study/run/split/comparison.cpp",
                     "study/compare/sweep/slurm.cpp", "study/compare/tune/spec.cpp"],
    "sweep_rows": ["study/compare/sweep/*.cpp"],
    "onnx": ["models/onnx/*.cpp"],
    "mindformers": ["study/files/foreign/mindformers*.cpp"],
    "megatron": ["study/files/foreign/megatron*.cpp", "study/files/foreign/shell_script.cpp"],
    "sweep_grid": ["study/compare/sweep/grid.cpp", "study/compare/sweep/ranking.cpp", "base/units.cpp"],
}
LONGEST_INPUT = 8192  # bytes
LONGEST_S = 10
MOST_MEMORY_MB = 1024
MEMORY = "/dev/shm"  # targets write their files here: a disk takes milliseconds
LONGEST_WORD = 32
LITERAL = re.compile(rb'"([ !#-\[\]-z|~]+)"')
WORD = re.compile(rb"[A-Za-z_][\w.()/-]+")


def files_of(patterns):
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern)) if path.is_file()]


def take_seeds(target, corpus):
    """Copies the seeds of a target into its corpus; names tell where they come from."""
    seeds = sorted((DATA / "fuzz" / target).glob("*")) + files_of(SEEDS.get(target, []))
    for seed in seeds:
        if seed.stat().st_size <= LONGEST_INPUT:
            shutil.copyfile(seed, corpus / "-".join(seed.relative_to(ROOT).parts))
    return seeds


def write_dictionary(target, seeds, path):
    """The words of the seeds, and the short texts that stand in the reader's sources. False if there are none."""
    words = {word for seed in seeds for word in WORD.findall(seed.read_bytes()) if len(word) <= LONGEST_WORD}
    for source in files_of(WORDS.get(target, [])):
        words |= {text for text in LITERAL.findall(source.read_bytes())
                  if 1 < len(text) <= LONGEST_WORD and not text.endswith(b".hpp")}
    path.write_bytes(b"".join(b'"%s"\n' % word for word in sorted(words)))
    return bool(words)


def figure(pattern, log, otherwise="-"):
    found = re.findall(pattern, log)
    return found[-1] if found else otherwise


def line(target, runs, per_second, coverage, corpus, memory, finding):
    return f"{target:20} {runs:>9} {per_second:>8} {coverage:>6} {corpus:>6} {memory:>8}  {finding}"


def run(build, target, arguments):
    """Runs a target; returns whether it is without a finding."""
    corpus, findings = build / "corpus" / target, build / "findings" / target
    if arguments.fresh:
        shutil.rmtree(corpus, ignore_errors=True)
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    dictionary = build / f"{target}.dict"
    has_words = write_dictionary(target, take_seeds(target, corpus), dictionary)
    command = [build / f"tests/fuzz/fuzz_{target}", corpus, f"-runs={arguments.runs}", f"-seed={arguments.seed}",
               f"-max_len={LONGEST_INPUT}", f"-timeout={LONGEST_S}", f"-rss_limit_mb={MOST_MEMORY_MB}",
               f"-artifact_prefix={findings}/", "-print_final_stats=1"]
    if has_words:
        command.append(f"-dict={dictionary}")
    sanitizers = {"ASAN_OPTIONS": "quarantine_size_mb=16:detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
    log_file = build / f"{target}.log"
    start = time.monotonic()
    with log_file.open("wb") as log, tempfile.TemporaryDirectory(dir=MEMORY if os.path.isdir(MEMORY) else None) as scratch:
        status = subprocess.run(command, stdout=log, stderr=log, env=os.environ | sanitizers | {"TMPDIR": scratch},
                                check=False).returncode
    seconds = time.monotonic() - start
    log = log_file.read_text(errors="replace")
    runs = figure(r"stat::number_of_executed_units: *(\d+)", log, "0")
    stats = [runs, f"{int(runs) / seconds:.0f}", figure(r"cov: (\d+)", log), figure(r"corp: (\d+)", log)]
    stats.append(figure(r"stat::peak_rss_mb: *(\d+)", log))
    finding = "none" if status == 0 else figure(r"SUMMARY: (.*)", log, f"status {status}")
    print(line(target, *stats, finding), flush=True)
    if status != 0:
        message = figure(r"(?:what\(\)|runtime error): +(.*)", log)
        kept = figure(r"Test unit written to (.*)", log)
        print(f"  {message}\n  input {kept}, report {log_file}", file=sys.stderr, flush=True)
    return status == 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("build", type=Path)
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--runs", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fresh", action="store_true")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    known = sorted(path.name.removeprefix("fuzz_") for path in (build / "tests/fuzz").glob("fuzz_*") if path.is_file())
    unknown = [target for target in arguments.targets if target not in known]
    if unknown:
        parser.exit(2, f"unknown target {unknown[0]}; known: {', '.join(known)}\n")
    print(line("target", "runs", "runs/s", "cov", "corpus", "rss MiB", "finding"), flush=True)
    results = [run(build, target, arguments) for target in arguments.targets or known]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
