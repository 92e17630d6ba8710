#!/usr/bin/env python3
"""Sweeps as processes that are killed, interrupted, run twice at once, or cannot write. usage: sweep_process_test.py HCCLSIM"""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
from contextlib import closing
from pathlib import Path

HCCLSIM = None
POINTS = 120
GRID = ["run", "--model", "lenet", "--batch", f"1:{POINTS}:1"]
NOBODY = 65534
JOB = """apiVersion: mindspore.gitee.com/v1
kind: MSJob
metadata: {name: job}
spec:
  msReplicaSpecs:
    Worker:
      restartPolicy: OnFailure
      template:
        spec:
          containers: [{name: mindspore, image: "mindspore:2.0", resources: {limits: {huawei.com/Ascend910: 2}}}]
"""


class SweepProcess(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.database = Path(self.folder.name) / "sweep.db"
        self.grid = GRID

    def start(self, *options, **how):
        return subprocess.Popen([HCCLSIM, "sweep", "run", *options, str(self.database), *self.grid], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)

    def finish(self, *options):
        process = self.start(*options)
        out, err = process.communicate()
        self.assertEqual((process.returncode, err), (0, ""))
        return int(re.search(r"(\d+) computed now", out)[1])

    def rows(self, what, database=None):
        with closing(sqlite3.connect(database or self.database)) as connection:  # an open one would keep the log
            return connection.execute(f"SELECT {what} FROM points ORDER BY number").fetchall()

    def done(self):
        if not self.database.exists():
            return 0
        try:
            return sum(status == "done" for (status,) in self.rows("status"))
        except sqlite3.OperationalError:  # its tables are being made
            return 0

    def wait_for(self, points, process):
        while self.done() < points:
            self.assertIsNone(process.poll(), "ended too early")
            time.sleep(0.005)

    def children(self, pid):
        tasks = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(task) for task in tasks] + [each for task in tasks for each in self.children(task)]

    def test_removed_database(self):
        process = self.start("-j", "1")
        self.wait_for(2, process)
        self.database.unlink()
        _, err = process.communicate()
        self.assertEqual(process.returncode, 2)
        self.assertIn("was removed or replaced while the sweep ran", err)

    def test_killed_and_resumed(self):
        process = self.start("-j", "2")
        self.wait_for(POINTS // 6, process)
        children = self.children(process.pid)
        process.kill()
        process.communicate()
        deadline = time.monotonic() + 10
        while any(Path(f"/proc/{child}/exe").exists() for child in children) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse([child for child in children if Path(f"/proc/{child}/exe").exists()], "children live on")
        before = self.done()
        self.assertGreaterEqual(before, POINTS // 6)
        self.assertLess(before, POINTS)
        kept = {point: when for point, when in self.rows("id, finished_s") if when is not None}
        self.assertEqual(self.finish(), POINTS - before)  # nothing lost, nothing doubled
        rows = self.rows("id, status, finished_s, inputs, result")
        self.assertEqual(len({row[0] for row in rows}), POINTS)
        self.assertEqual({row[1] for row in rows}, {"done"})
        for point, when in kept.items():
            self.assertIn((point, when), [(row[0], row[2]) for row in rows])
        # The same results as without a break.
        whole = self.database.with_name("whole.db")
        subprocess.run([HCCLSIM, "sweep", "run", whole, *GRID], check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(self.rows("id, inputs, result"), self.rows("id, inputs, result", whole))

    def test_interrupted(self):
        self.interrupt()

    def test_interrupted_sweep_of_jobs(self):
        file = Path(self.folder.name) / "job.yaml"
        file.write_text(JOB)
        # Each point simulates a step in a child of its own.
        self.grid = ["job", str(file), "--model", "lenet", "--batch", "1:40:1", "--fail",
                     "none;worker-0 exit 1 at 35s;worker-0 exit 1 at 35s,worker-0 exit 1 at 50s"]
        self.interrupt()
        self.assertEqual({(status, restarts) for status, restarts in self.rows("status, restarts")},
                         {("done", 0), ("done", 1), ("done", 2)})

    def interrupt(self):
        process = self.start("-j", "2", start_new_session=True)
        self.wait_for(5, process)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, _ = process.communicate()
        self.assertEqual(process.returncode, 128 + signal.SIGINT)
        done = self.done()
        self.assertIn(f"Points {POINTS}: {done} done, 0 failed, {POINTS - done} left; {done} computed now", out)
        self.assertEqual({status for (status,) in self.rows("status")}, {"done", "waiting"})
        self.assertEqual(self.finish(), POINTS - done)

    def test_two_at_once(self):
        first = self.start("-j", "1")
        second = self.start("-j", "1")
        computed = []
        for process in (first, second):
            out, err = process.communicate()
            self.assertEqual((process.returncode, err), (0, ""))
            computed.append(int(re.search(r"(\d+) computed now", out)[1]))
        self.assertEqual(sum(computed), POINTS)
        self.assertEqual(self.done(), POINTS)

    def test_one_of_two_is_killed(self):
        first = self.start("-j", "1")
        self.wait_for(1, first)
        second = self.start("-j", "1")
        self.wait_for(POINTS // 4, first)
        first.kill()
        first.communicate()
        out, err = second.communicate()  # takes over what the other had begun
        self.assertEqual((second.returncode, err), (0, ""))
        self.assertEqual(self.done(), POINTS)

    def test_shards_make_the_whole(self):
        computed = 0
        for part in (1, 2, 3):
            database = self.database.with_name(f"part{part}.db")
            out = subprocess.run([HCCLSIM, "sweep", "run", "--shard", f"{part}/3", database, *GRID], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout
            computed += int(re.search(r"(\d+) computed now", out)[1])
        self.assertEqual(computed, POINTS)
        parts = [self.database.with_name(f"part{part}.db") for part in (1, 2, 3)]
        subprocess.run([HCCLSIM, "sweep", "merge", self.database, *parts], check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(self.done(), POINTS)
        self.assertEqual(self.finish(), 0)

    def test_disk_that_is_full(self):
        """On a file system of 300 KB of its own, which then grows."""
        own = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-e", "-c"]
        mount = f"mount -t tmpfs -o size=300k none {self.folder.name}"
        if subprocess.run([*own, mount], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no file system can be mounted here")
        grid = ["run", "--model", "lenet", "--batch", "1:200:1"]
        command = " ".join([HCCLSIM, "sweep", "run", "-j", "1", str(self.database), *grid])
        count = f"{HCCLSIM} sweep export csv {self.database} | grep -c ,done,"
        script = f"{mount}; set +e; {command}; echo status $?; {count}; mount -o remount,size=20m {self.folder.name}; {command}"
        done = subprocess.run([*own, script], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertRegex(done.stderr, r"sweep\.db: database or disk is full: the disk is full; finished points are stored")
        kept = int(re.search(r"status 2\n(\d+)\n", done.stdout)[1])
        self.assertGreater(kept, 0)
        self.assertLess(kept, 200)
        self.assertIn(f"Points 200: 200 done, 0 failed, 0 left; {200 - kept} computed now", done.stdout)

    def test_killed_and_looked_at(self):
        process = self.start("-j", "1")
        self.wait_for(5, process)
        process.kill()
        process.communicate()
        log = Path(f"{self.database}-wal")
        self.assertTrue(log.exists())
        shown = subprocess.run([HCCLSIM, "sweep", "show", self.database], text=True, stdout=subprocess.PIPE, check=True)
        self.assertGreaterEqual(shown.stdout.count("done"), 5)
        self.finish()
        self.assertFalse(log.exists())  # it is in the file

    def test_folder_that_cannot_be_written(self):
        folder = Path(self.folder.name)
        self.finish()
        for file in (folder, self.database):
            file.chmod(0o555 if file.is_dir() else 0o444)
        self.addCleanup(folder.chmod, 0o755)
        how = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        try:
            process = self.start(**how)
        except PermissionError:
            self.skipTest("the command lies in a folder of root alone")
        _, err = process.communicate()
        self.assertEqual(process.returncode, 2)
        self.assertRegex(err, r"sweep\.db: attempt to write a readonly database: the file or its folder cannot be written")
        shown = subprocess.run([HCCLSIM, "sweep", "show", self.database], text=True, stdout=subprocess.PIPE, **how)
        self.assertEqual(shown.returncode, 0)
        self.assertEqual(shown.stdout.count("done"), POINTS)
        fresh = subprocess.run([HCCLSIM, "sweep", "run", folder / "new.db", *GRID], text=True, stderr=subprocess.PIPE, **how)
        self.assertEqual(fresh.returncode, 2)
        self.assertIn("new.db: unable to open database file", fresh.stderr)


if __name__ == "__main__":
    HCCLSIM = sys.argv.pop(1)
    unittest.main()
