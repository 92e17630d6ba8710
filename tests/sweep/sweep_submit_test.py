#!/usr/bin/env python3
"""`hcclsim sweep submit` and `status` when Slurm or files misbehave: sbatch and squeue are scripts that the test tells
what to say. usage: sweep_submit_test.py HCCLSIM"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HCCLSIM = None
GRID = ["run", "--model", "lenet", "--batch", "1:12:1"]
POINTS = 12

# Runs those tasks of the array at once that the file `tasks` names, all without it; counts jobs.
SBATCH = """#!/bin/sh
cd "$(dirname "$0")"
test -e refuse && { cat refuse; exit 1; }
job=$(($(cat job) + 1)); echo $job > job
count=$(sed -n 's/^#SBATCH --array=1-//p' "$2")
for task in $(cat tasks 2> /dev/null || seq $count); do
  test $task -le $count && SLURM_ARRAY_JOB_ID=$job SLURM_ARRAY_TASK_ID=$task sh "$2" > /dev/null 2>&1
done
echo "sbatch: warning: this is no cluster"
echo "$job;nowhere"
"""
# Fails as often as the file `failures` says, then prints the file `states`.
SQUEUE = """#!/bin/sh
cd "$(dirname "$0")"
left=$(cat failures 2> /dev/null || echo 0)
test "$left" -gt 0 && { echo $((left - 1)) > failures; echo "slurm_load_jobs error: Unable to contact slurm controller"; exit 1; }
cat states
"""


class SweepSubmit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.slurm = Path(folder.name) / "bin"
        self.slurm.mkdir()
        for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE)):
            (self.slurm / name).write_text(text)
            (self.slurm / name).chmod(0o755)
        self.say(job="100", states="COMPLETED")
        self.database = Path(folder.name) / "sweep.db"
        self.shards = Path(f"{self.database}.slurm")

    def say(self, **files):
        for name, text in files.items():
            (self.slurm / name).write_text(f"{text}\n")

    def sweep(self, *arguments, expect=0):
        done = subprocess.run([HCCLSIM, "sweep", *map(str, arguments)], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env={**os.environ, "PATH": f"{self.slurm}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def done(self, database=None):
        with sqlite3.connect(database or self.database) as connection:
            return connection.execute("SELECT count(*) FROM points WHERE status = 'done'").fetchone()[0]

    def test_another_number_of_tasks_loses_no_shard(self):
        self.say(tasks="4")
        out = self.sweep("submit", "--tasks", 4, self.database, *GRID, expect=1)
        computed = self.done(self.shards / "shard-101-4.db")
        self.assertGreater(computed, 0)
        self.assertIn(f"Points {POINTS}: {computed} done, 0 failed, {POINTS - computed} left; {computed} computed now", out)
        with sqlite3.connect(self.database) as connection:  # as if it had ended before the shard was merged
            connection.execute("UPDATE points SET status = 'waiting', result = NULL")
        self.say(tasks="1 2")
        out = self.sweep("submit", "--tasks", 2, self.database, *GRID)
        self.assertIn(f"Submitted job 102: {POINTS - computed} points in 2 tasks", out)
        self.assertIn(f"Points {POINTS}: {POINTS} done, 0 failed, 0 left; {POINTS - computed} computed now", out)
        self.assertFalse((self.shards / "shard-101-4.db").exists())  # its points are in the database

    def test_nothing_left_is_not_submitted(self):
        self.sweep("run", self.database, *GRID)
        self.say(refuse="sbatch must not be asked")
        out = self.sweep("submit", self.database, *GRID)
        self.assertIn("Nothing is left to submit", out)
        self.assertIn(f"Points {POINTS}: {POINTS} done, 0 failed, 0 left; 0 computed now", out)

    def test_failed_points_are_computed_anew_if_asked_for(self):
        grid = ["run", "--model", "lenet", "--npus", "1,2,9"]
        out = self.sweep("submit", "--tasks", 2, self.database, *grid, expect=1)
        self.assertIn("Points 3: 2 done, 1 failed, 0 left; 3 computed now", out)
        out = self.sweep("submit", "--tasks", 2, self.database, *grid, expect=1)
        self.assertIn("Nothing is left to submit", out)
        self.assertIn("1 of 3 points failed; --retry-failed computes them anew", out)
        out = self.sweep("submit", "--tasks", 2, "--retry-failed", self.database, *grid, expect=1)
        self.assertIn("Submitted job 102: 1 points in 1 tasks", out)
        self.assertIn("Points 3: 2 done, 1 failed, 0 left; 1 computed now", out)

    def test_a_second_job_waits_for_the_first(self):
        self.say(tasks="1", states="PENDING\nREQUEUED\nCOMPLETING")
        self.sweep("submit", "--detach", "--tasks", 3, self.database, *GRID)
        out = self.sweep("submit", self.database, *GRID, expect=2)
        self.assertIn("job 101 of this sweep has not ended: 3 tasks: 2 pending, 1 running, 0 ended; wait for it", out)
        self.say(states="NODE_FAIL\nOUT_OF_MEMORY\nOUT_OF_MEMORY")
        out = self.sweep("status", self.database)
        self.assertIn("Job 101: 3 tasks: 0 pending, 0 running, 3 ended (1 NODE_FAIL, 2 OUT_OF_MEMORY)", out)

    def test_squeue_that_fails(self):
        self.say(failures="1", states="COMPLETED\nTIMEOUT")
        out = self.sweep("submit", "--tasks", 2, self.database, *GRID)
        self.assertIn("Job 101: 2 tasks: 0 pending, 0 running, 2 ended (1 TIMEOUT); logs in", out)
        self.assertIn(f"Points {POINTS}: {POINTS} done", out)
        self.say(failures="1")
        out = self.sweep("status", self.database)
        self.assertIn("Job 101: 2 tasks of which nothing is known: squeue: slurm_load_jobs error: Unable to contact", out)
        self.assertIn(f"{POINTS} points: {POINTS} done", out)

    def test_shards_that_are_empty_or_damaged_do_not_stop_the_others(self):
        self.say(tasks="2")
        self.sweep("submit", "--detach", "--tasks", 2, self.database, *GRID)
        (self.shards / "shard-101-1.db").write_bytes(b"")
        (self.shards / "shard-101-3.db").write_bytes(b"x" * 5000)
        out = self.sweep("status", self.database)
        self.assertIn("shard-101-1.db: the file is empty", out)
        self.assertIn("shard-101-3.db: file is not a database", out)
        self.assertRegex(out, r"shard-101-2\.db: \d+ points: [1-9]\d* done")
        self.assertEqual(self.done(), self.done(self.shards / "shard-101-2.db"))
        (self.slurm / "tasks").unlink()
        out = self.sweep("submit", "--tasks", 2, self.database, *GRID)
        self.assertIn(f"Points {POINTS}: {POINTS} done, 0 failed, 0 left", out)

    def test_a_job_file_of_something_else(self):
        self.sweep("run", self.database, *GRID)
        self.shards.mkdir()
        for text in ("garbage", "{}", '{"job": 7, "tasks": 2}', '{"job": "7", "tasks": "2"}'):
            (self.shards / "job.json").write_text(text)
            for command in (["status", self.database], ["submit", self.database, *GRID]):
                self.assertRegex(self.sweep(*command, expect=2), r"job\.json: not what .* writes; remove it")

    def test_status_needs_a_database(self):
        self.assertIn("there is no such file", self.sweep("status", self.database, expect=2))
        self.assertFalse(self.database.exists())

    def test_the_database_of_a_job_has_no_write_ahead_log(self):
        self.sweep("submit", "--tasks", 1, self.database, *GRID)
        process = subprocess.Popen([HCCLSIM, "sweep", "run", "-j", "1", self.database, "run", "--model", "lenet", "--batch",
                                    "13:200:1"], stdout=subprocess.DEVNULL)
        while process.poll() is None:
            self.assertFalse(Path(f"{self.database}-wal").exists())
        self.assertEqual(process.returncode, 0)


if __name__ == "__main__":
    HCCLSIM = sys.argv.pop(1)
    unittest.main()
