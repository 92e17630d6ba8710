#!/usr/bin/env python3
"""Every command has examples in its --help, and every example does what it says.

usage: help_examples_test.py HCCLSIM

The examples of all commands run in one folder with the files that they name. What follows two spaces is a remark.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HCCLSIM = ""
DATA = Path(__file__).resolve().parents[1] / "data"
JOBS = Path(__file__).resolve().parents[2] / "examples" / "msjob"
CLIENTS = Path(__file__).resolve().parents[2] / "examples" / "clients"
TRACES = Path(__file__).resolve().parents[2] / "examples" / "traces"

# What makes the files that examples read.
FILES = [
    "hcclsim run --format json > stored.json",
    "hcclsim plan show --model gpt2-small --stages 4 --batch 8 --micro-batches 8 --format json > plan.json",
    "hcclsim ranktable generate --platform atlas800-9000-x4 -o hccl.json",
    "hcclsim platform generate --soc 910B2 --servers 2 --output cluster.xml",
    "hcclsim collective allreduce -b 8K -e 64M -f 2 -c 0 > ar8.log",
    "hcclsim schedule generate --algorithm ring --bytes 4M -o ring.txt",
    "hcclsim schedule generate --algorithm halving-doubling --bytes 4M -o hd.txt",
    "hcclsim schedule generate --algorithm ring --ranks 4 --bytes 4M -o four.txt",
    "hcclsim schedule convert ring.txt -o ring.bin",
    "cp ring.txt golden.txt && cp ring.txt a.txt && cp hd.txt b.txt",
    "hcclsim sweep run part1.db run --model lenet --batch 8,16",
    "hcclsim sweep run part2.db run --model lenet --batch 32",
    # Times of HCCS as those of RDMA, which two servers have between them.
    "sed 's/\"RDMA\"/\"X\"/; s/\"HCCS\"/\"RDMA\"/; s/\"X\"/\"HCCS\"/' hccs.json > communication.json",
    "printf '[run]\\nmodel = \"lenet\"\\nbatch = [1, 2, 4, 8, 16, 32]\\n' > grid.toml",
    "printf '[eight]\\nwhat = \"steps\"\\nproduct = \"910A\"\\nsoftware = \"ours\"\\nsource = \"our log\"\\ndate = \"2026\"\\n"
    "conditions = \"batch 32\"\\ncommand = \"run\"\\nfigure = \"/step_time_s\"\\nfactor = 1e3\\nunit = \"ms\"\\n"
    "measured = 22.0\\nuncertainty = 0.1\\n' > mine.toml",
    "for job in a,0-3 b,4-7; do printf 'npus-list = \"%s\"\\n' ${job#*,} > ${job%,*}.toml; done",
    f"cp {JOBS}/data_parallel.yaml job.yaml && cp {JOBS}/ps_distributed.yaml ps.yaml",
    f"cp {TRACES}/* .",
    "sed 's/Never/ExitCode/; s/GLOG_v/MS_ENABLE_RECOVERY/' job.yaml > elastic.yaml",
    f"g++ -o program {CLIENTS}/1_allreduce.cpp $(hcclsim exec --flags)",
    "printf 'if target == \"Ascend\":\n    set_split_strategy_by_size([80, 20])\n' > train.py",
    "printf 'index,name,bytes,ready_us\\n0,b,4000000,1000\\n1,a,4000000,2000\\n' > profile.csv",
]
DIFFERS = {"hcclsim schedule diff ring.txt hd.txt --platform atlas800-9000"}
# A cluster of its own: tests/slurm does these.
NEEDS_SLURM = "hcclsim sweep submit "


def text_of_help(words):
    return subprocess.run([HCCLSIM, *words, "--help"], check=True, capture_output=True, text=True).stdout


def sub_commands(text):
    section = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.MULTILINE)
    return re.findall(r"^  ([a-z]+)\b", section[1], re.MULTILINE) if section else []


def examples_in(text):
    section = re.search(r"^Examples:\n((?:  .*\n)+)", text, re.MULTILINE)
    return [re.split(r"\s{2,}", line.strip())[0] for line in section[1].splitlines()] if section else []


def commands(words=()):
    """Each command with the examples of its help."""
    text = text_of_help(words)
    yield list(words), examples_in(text)
    for name in sub_commands(text):
        yield from commands((*words, name))


class HelpExamplesTest(unittest.TestCase):
    def shell(self, line, folder):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HCCL_")}
        environment.pop("RANK_TABLE_FILE", None)
        environment["PATH"] = f"{Path(HCCLSIM).resolve().parent}:{environment['PATH']}"
        return subprocess.run(line, shell=True, cwd=folder, env=environment, capture_output=True, text=True)

    def test_every_command_has_an_example_of_itself(self):
        all_commands = list(commands())
        self.assertGreater(len(all_commands), 30)
        for words, examples in all_commands:
            name = " ".join(["hcclsim", *words])
            self.assertTrue([one for one in examples if one.startswith(name)], f"{name} --help has no example of it")

    def test_every_example_works(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(DATA / "profile" / "communication.json", Path(folder) / "hccs.json")
            for line in FILES:
                made = self.shell(line, folder)
                self.assertEqual(made.returncode, 0, f"{line}\n{made.stderr}")
            examples = dict.fromkeys(example for _, of_one in commands() for example in of_one)
            for example in examples:
                if example.startswith(NEEDS_SLURM):
                    continue
                with self.subTest(example):
                    result = self.shell(example, folder)
                    self.assertEqual(result.returncode, 1 if example in DIFFERS else 0, result.stderr[:500])
                    self.assertNotIn("warning", result.stderr)


if __name__ == "__main__":
    HCCLSIM = sys.argv.pop(1)
    unittest.main()
