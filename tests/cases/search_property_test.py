#!/usr/bin/env python3
"""What `hcclsim search` prints is what its own commands give, in time and in memory, whatever options it gets.

usage: search_property_test.py HCCLSIM

Options are drawn with a fixed seed. Every plan of a front is run by its command, and strategies that a search saves by
theirs; and no way to reduce the gradients of plain data parallelism is faster than the best plan.
"""

import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
import unittest

HCCLSIM = ""
GPT = "--model gpt2-small --layers 2 --hidden 128 --heads 4 --sequence 64 --vocabulary 512"
NETWORKS = ["--model lenet", "--model mlp:256,1024,64", "--model smallres", GPT]
PLATFORMS = ["atlas800-9000", "atlas800t-a2"]


def hcclsim(arguments):
    run = subprocess.run([HCCLSIM, *shlex.split(arguments)], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise AssertionError(f"hcclsim {arguments}: status {run.returncode}\n{run.stderr}")
    return run.stdout


def run_of(command):
    """Step and memory of the command that a search prints."""
    result = json.loads(hcclsim(command.removeprefix("hcclsim ") + " --uncertainty off --format json"))
    return result["step_time_s"], max(stage["hbm_peak_bytes"] for stage in result.get("stages") or [result])


def drawn(choice, options):
    """Some of the options, each with one of its values."""
    return " ".join(f"{name} {choice.choice(values)}" for name, values in options.items() if choice.random() < 0.4)


class SearchProperty(unittest.TestCase):
    def test_plans_are_their_commands(self):
        choice = random.Random(1)
        for _ in range(8):
            npus = choice.choice([2, 4])
            common = f"{choice.choice(NETWORKS)} --platform {choice.choice(PLATFORMS)} --npus {npus}"
            options = drawn(choice, {
                "--framework": ["tf", "mindspore"], "--hcom-parallel": ["on", "off"], "--optimizer": ["sgd", "adamw"],
                "--comm-dtype": ["fp16"], "--split": ["none", "default"], "--hbm-contention": ["on"],
                "--recompute": ["none"], "--iterations": ["1", "3"], "--speed-spread": ["0.1"]})
            search = f"search {common} --global-batch {npus * choice.choice([2, 8])} --stages 1 {options} --format json"
            with self.subTest(search):
                front = json.loads(hcclsim(search))["pareto"]
                for plan in [front[0], *choice.sample(front, min(2, len(front)))]:
                    self.assertEqual(run_of(plan["command"]), (plan["step_time_s"], plan["hbm_peak_bytes"]),
                                     plan["command"])

    def test_strategies_are_their_commands(self):
        choice = random.Random(2)
        for number in range(10):
            mode = ["recursive_programming", "dynamic_programming", "sharding_propagation", "exact"][number % 4]
            network = choice.choice(NETWORKS)
            options = drawn(choice, {
                "--optimizer-parallel": ["zero1", "on", "zero3"], "--optimizer": ["sgd", "adamw"], "--iterations": ["1"],
                "--micro-batch-size": ["2"], "--global-batch": ["32"], "--fusion": ["none"], "--comm-dtype": ["fp16"]})
            if mode == "sharding_propagation":
                network, given = NETWORKS[1], "given.toml"
                with open(given, "w", encoding="utf-8") as file:
                    file.write('"fc1" = [[1, 1], [2, 1]]\n')
                options += f" --given {given}"
            if mode == "exact":
                network = "--model mlp:64,512"
            search = (f"search {network} --platform {choice.choice(PLATFORMS)} --npus {choice.choice([2, 4])} --mode {mode}"
                      f" --save cuts.json {options} --format json")
            with self.subTest(search):
                found = json.loads(hcclsim(search))
                best = found["compared"][0]
                self.assertEqual(run_of(found["command"]), (best["step_time_s"], best["hbm_peak_bytes"]))

    def test_no_reduction_of_whole_gradients_is_faster(self):
        for network in NETWORKS[0], NETWORKS[2]:
            common = f"{network} --npus 4 --global-batch 32"
            best = json.loads(hcclsim(f"search {common} --format json"))["step_time_s"]
            tuned = json.loads(hcclsim(f"tune {network} --npus 4 --batch 8 --format json"))["best"]["by_idx"]
            for reduction in ["", "--hcom-parallel on", "--hcom-parallel on --split none", "--hcom-parallel on --split each",
                              f"--hcom-parallel on --split-by-idx {','.join(map(str, tuned))}"]:
                with self.subTest(f"{network} {reduction}"):
                    self.assertLessEqual(best, run_of(f"hcclsim run {common} --iterations 1 {reduction}")[0] * (1 + 1e-9))


if __name__ == "__main__":
    HCCLSIM = os.path.abspath(sys.argv.pop(1))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        unittest.main(argv=[sys.argv[0], "-v"], exit=True)
