#!/usr/bin/env python3
"""Processes and threads of programs for HCCL: how they start, run one at a time, wait for each other and end.

usage: hosts_test.py HCCLSIM
"""

import os
import socket
import struct
import subprocess
import sys
import unittest

from pathlib import Path

from support import EXAMPLES, HCCLSIM, HERE, LIMIT_S, ProgramsTest, on_npus, program, run


class HostsTest(ProgramsTest):
    def waits(self, case, *options):
        return on_npus(4, program(HERE / "programs/waits.cpp"), case, options=options)

    def test_processes_that_meet_over_tcp(self):
        """They wait in real time, as long as it takes, and no simulated time passes."""
        lines = sorted(self.passes(self.waits("tcp")).splitlines())
        self.assertEqual([line[:6] for line in lines], [f"rank {rank}" for rank in range(4)])
        self.assertEqual(len({line[6:] for line in lines}), 1)

    def test_threads_that_watch(self):
        self.assertEqual(sorted(self.passes(self.waits("watched")).splitlines()), [f"rank {rank}" for rank in range(4)])

    def test_programs_that_look_in_vain(self):
        """Nobody can go on, though threads poll: found after some seconds."""
        for case, looks in (("watched_in_vain", "errors: HcclGetCommAsyncError"), ("asks_for_event", "an event: aclrtQueryEvent"),
                            ("asks_for_errors", "errors: HcclGetCommAsyncError"), ("asks_for_date", "the date: MPI_Wtime")):
            done = self.waits(case)
            self.assertEqual((case, done.returncode), (case, 3))
            self.assertIn("stands still", done.stderr)
            self.assertIn(f"looks again and again at {looks}", done.stderr)

    def test_processes_that_spin(self):
        """On each other's memory, without a call, and on what a copy brings: eight kernels of 100 us in turn, and one more."""
        done = self.waits("spins")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "949.3 us\n")
        self.assertRegex(done.stderr, r"^Note: process \d has computed for 10 s without a call, and others went on beside it: .*\n$")

    def test_wall_timeout(self):
        for case, doing in (("computes", "computes, or waits in a loop without a call"), ("sleeps", "sleeps in a call of the system")):
            done = self.waits(case, "--wall-timeout", "2")
            self.assertEqual((case, done.returncode), (case, 3))
            self.assertIn("the program has not ended within 2 s of real time (--wall-timeout):", done.stderr)
            self.assertIn(f"process 1: {doing}", done.stderr)
            self.assertIn("waits for", done.stderr)
        done = on_npus(1, "sleep", "1000", options=("--wall-timeout", "0.5"))
        self.assertEqual(done.returncode, 3)
        self.assertIn("within 0.5 s", done.stderr)

    def test_libraries_that_a_program_loads_itself(self):
        """Python's ctypes; its threads are not those of our libraries."""
        wanted = [f"device {npu}: 10.0 at 2.57504665e-05 s" for npu in range(4)]
        for case, processes in (("main", 4), ("thread", 4), ("threads", 1)):
            done = on_npus(processes, sys.executable, str(HERE / "programs/loaded.py"), case)
            self.assertEqual((case, sorted(self.passes(done).splitlines())), (case, wanted))

    def test_threads(self):
        done = on_npus(1, program(HERE / "programs/threads.cpp"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, (HERE / "programs/threads.txt").read_text())
        self.assertEqual(len(done.stderr.splitlines()), 2)

    def test_threads_that_begin_together(self):
        for _ in range(3):
            done = on_npus(4, program(HERE / "programs/beginning.cpp"))
            self.assertEqual(self.passes(done), "all have begun\n" * 4)

    def visitor(self, user, *values):
        """Comes to the socket of a run that lasts a second, as this user, with a first message; what the run says."""
        line = [HCCLSIM, "exec", "--platform", "atlas800t-a2", "--", "sh", "-c", "echo $HCCLSIM_EXEC_SOCKET; sleep 1; echo ran"]
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            name = running.stdout.readline().strip()
            self.assertRegex(name, r"^hcclsim-[0-9a-f]{32}$")
            child = os.fork()
            if child == 0:
                try:
                    os.setuid(user)
                    visitor = socket.socket(socket.AF_UNIX)
                    visitor.connect("\0" + name)
                    visitor.sendall(struct.pack("=2I8Q", 0, 0, *values, *[0] * (8 - len(values))))
                    visitor.recv(1)
                finally:
                    os._exit(0)
            said = running.communicate(timeout=LIMIT_S)
            os.waitpid(child, 0)
        self.assertEqual((running.returncode, said[0]), (0, "ran\n"))
        return said[1]

    def test_nobody_is_killed_whom_a_message_names(self):
        """Of the same user, and of another one, who is sent away."""
        with subprocess.Popen(["sleep", "60"]) as victim:
            self.visitor(os.geteuid(), 2**64 - 1, victim.pid, victim.pid)
            if os.geteuid() == 0:
                self.assertIn("user 65534 has come to the socket of this program and was sent away",
                              self.visitor(65534, 2**64 - 1, victim.pid, victim.pid))
            self.assertIsNone(victim.poll())
            victim.kill()

    def test_runs_in_separate_pid_namespaces(self):
        """Two at the same time, with the same numbers of processes; /proc may be that of the outer namespace."""
        bench = [program(EXAMPLES / "hccl_bench.cpp"), "allreduce", "-b", "1M", "-e", "1M"]
        apart = ["unshare", "-pf"] if os.geteuid() == 0 else ["unshare", "-Upfr"]
        line = [*apart, HCCLSIM, "exec", "--platform", "atlas800t-a2", "-n", "4", "--", *bench]
        if run(*apart, "true").returncode != 0:
            self.skipTest("no namespaces here")
        both = [subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        said = [one.communicate(timeout=LIMIT_S) for one in both]
        alone = on_npus(4, *bench)
        self.assertEqual(said, [(alone.stdout, "")] * 2)

    def test_every_run_is_the_same(self):
        words = [program(HERE / "programs/all_calls.cpp")]
        broken = [program(HERE / "programs/broken.cpp"), "orders_differ"]
        for line in (words, broken):
            first = on_npus(4, *line)
            for _ in range(3):
                again = on_npus(4, *line)
                self.assertEqual((again.stdout, again.stderr), (first.stdout, first.stderr))

    def test_what_cannot_be_started(self):
        for words, said in ((["./no-such-program"], "cannot be started: No such file"), ([], "no program"),
                            (["--bogus"], "unknown option --bogus")):
            done = run(HCCLSIM, "exec", *(["--"] if not words or words[0] != "--bogus" else []), *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)
        done = run(HCCLSIM, "exec", "-n", "9", "--", "true")
        self.assertIn("9 on a server need" if "9 on" in done.stderr else "--processes 9", done.stderr)

    def test_other_programs(self):
        """What is not linked with our libraries, and scripts that start what is."""
        self.assertEqual(self.passes(on_npus(2, "echo", "hello")), "hello\nhello\n")
        line = f"{program(EXAMPLES / '3_groups.cpp')}; echo $?"
        self.assertEqual(self.passes(on_npus(8, "sh", "-c", line)).count("\n0\n"), 8)


if __name__ == "__main__":
    unittest.main()
