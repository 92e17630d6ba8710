#!/usr/bin/env python3
"""A sweep on a real Slurm cluster of one node. usage: sweep_slurm_test.py HCCLSIM

Without root or without Slurm the test is skipped (status 77); with HCCLSIM_CI=1 that is a failure.
"""

import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import one_node

HCCLSIM = None
GRID = ["run", "--model", "lenet", "--batch", "1:12:1", "--split-by-size", "60,40;80,20"]
POINTS = 24
SKIPPED = 77


class SweepOnSlurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.slurm = cls.enterClassContext(one_node.OneNode())

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.database = Path(folder.name) / "it's a sweep.db"

    def sweep(self, *arguments):
        return subprocess.run([HCCLSIM, "sweep", *map(str, arguments)], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=self.slurm.environment)

    def results(self, database):
        with sqlite3.connect(database) as connection:
            return connection.execute("SELECT id, status, inputs, result, error FROM points ORDER BY number").fetchall()

    def points_of_shards(self):
        return [len(self.results(shard)) for shard in Path(f"{self.database}.slurm").glob("shard-*.db")]

    def test_array_computes_what_one_machine_does(self):
        done = self.sweep("submit", "--tasks", 3, "--cpus-per-task", 1, self.database, *GRID)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"{POINTS} points in 3 tasks", done.stdout)
        self.assertIn(f"Points {POINTS}: {POINTS} done, 0 failed, 0 left; {POINTS} computed now", done.stdout)
        here = self.database.with_name("here.db")
        self.assertEqual(self.sweep("run", here, *GRID).returncode, 0)
        self.assertEqual(self.results(self.database), self.results(here))
        shards = self.points_of_shards()
        self.assertEqual(len(shards), 3)
        self.assertEqual(sum(shards), POINTS)
        self.assertGreater(min(shards), 0)
        # The same command on this machine has nothing left to do.
        self.assertIn("; 0 computed now", self.sweep("run", self.database, *GRID).stdout)

    def test_detached_job_is_followed_by_status(self):
        done = self.sweep("submit", "--detach", "--tasks", 2, self.database, *GRID)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        job = re.match(r"Submitted job (\d+):", done.stdout)[1]
        deadline = time.monotonic() + 60
        while True:
            status = self.sweep("status", self.database)
            self.assertEqual((status.returncode, status.stderr), (0, ""))
            self.assertIn(f"Job {job}: 2 tasks:", status.stdout)
            if "2 ended" in status.stdout or time.monotonic() > deadline:
                break
            time.sleep(0.5)
        self.assertIn(f"{POINTS} points: {POINTS} done, 0 failed, 0 running, 0 waiting", status.stdout)

    def test_what_is_done_is_not_computed_again(self):
        self.assertEqual(self.sweep("run", self.database, "run", "--model", "lenet", "--batch", "1:12:1",
                                    "--split-by-size", "60,40").returncode, 0)
        done = self.sweep("submit", "--tasks", 2, self.database, *GRID)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"Points {POINTS}: {POINTS} done, 0 failed, 0 left; {POINTS // 2} computed now", done.stdout)
        shards = self.points_of_shards()
        self.assertEqual(sum(shards), POINTS // 2)

    def test_points_that_fail(self):
        done = self.sweep("submit", "--tasks", 2, self.database, "run", "--model", "lenet", "--npus", "1,2,9")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Points 3: 2 done, 1 failed, 0 left", done.stdout)
        self.assertIn("accepted: 1 to 8", done.stdout)

    def test_what_sbatch_refuses(self):
        done = self.sweep("submit", "--partition", "nowhere", self.database, *GRID)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"sbatch refused .*sweep\.sh: .*invalid partition")


if __name__ == "__main__":
    HCCLSIM = sys.argv.pop(1)
    reason = one_node.missing()
    if reason is not None:
        print(f"skipped: {reason}")
        sys.exit(1 if os.environ.get("HCCLSIM_CI") == "1" else SKIPPED)
    unittest.main()
