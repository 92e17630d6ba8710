#!/usr/bin/env python3
"""Programs for HCCL, compiled with g++ as a user would, on simulated NPUs.

usage: clients_test.py HCCLSIM
"""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HCCLSIM = ""
HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples" / "clients"
FOLDER = tempfile.TemporaryDirectory()
LIMIT_S = 300


def run(*words, **settings):
    return subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False, **settings)


def program(source):
    """The program of a source, compiled when it is first asked for."""
    path = Path(FOLDER.name) / source.stem
    if not path.exists():
        flags = run(HCCLSIM, "exec", "--flags").stdout.split()
        standard = ["-std=c++20"] if source.stem == "threads" else []
        done = run("g++", "-O1", "-Wall", "-Wextra", "-Werror", *standard, "-o", str(path), str(source), *flags)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
    return str(path)


def on_npus(processes, *words, platform="atlas800t-a2", options=()):
    return run(HCCLSIM, "exec", "--platform", platform, "-n", str(processes), *options, "--", *words)


class ClientsTest(unittest.TestCase):
    maxDiff = None

    def passes(self, done):
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_headers_stand_alone(self):
        include = run(HCCLSIM, "exec", "--flags").stdout.split()[0]
        for header in ("acl/acl.h", "acl/acl_base.h", "acl/acl_prof.h", "acl/acl_rt.h", "hccl/hccl.h", "hccl/hccl_types.h",
                       "mpi.h"):
            for compiler in (["g++", "-x", "c++", "-std=c++11"], ["gcc", "-x", "c", "-std=c99"]):
                line = [*compiler, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", include, "-"]
                done = subprocess.run(line, input=f"#include <{header}>\n", capture_output=True, text=True, check=False)
                self.assertEqual((header, done.stderr), (header, ""))

    def test_what_is_not_there_does_not_link(self):
        source = Path(FOLDER.name) / "missing.cpp"
        source.write_text('extern "C" int aclmdlLoadFromFile(const char*, unsigned*);\n'
                          "int main() { unsigned id; return aclmdlLoadFromFile(\"m.om\", &id); }\n")
        done = run("g++", "-o", f"{FOLDER.name}/missing", str(source), *run(HCCLSIM, "exec", "--flags").stdout.split())
        self.assertIn("undefined reference to `aclmdlLoadFromFile'", done.stderr)

    def test_examples(self):
        for name, processes in (("1_allreduce", 1), ("2_overlap", 8), ("3_groups", 8)):
            expected = (EXAMPLES / f"{name}.txt").read_text()
            self.assertEqual(self.passes(on_npus(processes, program(EXAMPLES / f"{name}.cpp"))), expected)

    def test_all_calls_give_what_mpi_gives(self):
        for platform, processes, options in (("atlas800t-a2", 4, ()), ("atlas800-9000-x4", 16, ("--per-server", "4")),
                                             ("atlas800t-a2", 4, ("--launch", "graph")), ("atlas800t-a2", 1, ())):
            if processes == 1:
                continue
            done = on_npus(processes, program(HERE / "programs/all_calls.cpp"), platform=platform, options=options)
            lines = self.passes(done).splitlines()
            self.assertEqual(len(lines), 72)
            self.assertEqual([line for line in lines if line.endswith("DIFFERS")], [])

    def test_times_are_those_of_the_command(self):
        """To the last digit of the table."""
        sizes = ["-b", "1K", "-e", "4M", "-f", "16", "-c", "0"]
        cases = [(op, "atlas800t-a2", 8, []) for op in
                 ("allreduce", "broadcast", "reduce", "reducescatter", "allgather", "scatter", "alltoall")]
        cases += [("allreduce", "atlas800-9000", 8, []), ("allgather", "atlas800-9000", 4, ["-n", "1", "-w", "0"]),
                  ("allreduce", "atlas800-9000-x4", 32, ["-n", "3"])]
        for op, platform, ranks, more in cases:
            for launch in ("op", "graph"):
                ours = run(HCCLSIM, "collective", op, "--platform", platform, "--ranks", str(ranks), "--launch", launch,
                           "--uncertainty", "off", *sizes, *more).stdout
                done = on_npus(ranks, program(EXAMPLES / "hccl_bench.cpp"), op, *sizes, *more, platform=platform,
                               options=("--launch", launch))
                rows = [re.findall(r"^(\d+) *\| *([\d.]+)", text, re.MULTILINE) for text in (ours, self.passes(done))]
                self.assertEqual(len(rows[0]), 4)
                self.assertEqual((op, platform, launch, rows[1]), (op, platform, launch, rows[0]))

    def test_threads(self):
        done = on_npus(1, program(HERE / "programs/threads.cpp"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, (HERE / "programs/threads.txt").read_text())
        self.assertEqual(len(done.stderr.splitlines()), 2)

    def test_every_run_is_the_same(self):
        words = [program(HERE / "programs/all_calls.cpp")]
        broken = [program(HERE / "programs/broken.cpp"), "orders_differ"]
        for line in (words, broken):
            first = on_npus(4, *line)
            for _ in range(3):
                again = on_npus(4, *line)
                self.assertEqual((again.stdout, again.stderr), (first.stdout, first.stderr))

    def test_broken_programs(self):
        """Each ends with the kind of its error, and with what is wrong."""
        cases = {
            "rank_does_not_call": [r"stands still", r"HcclAllReduce #1 .* waits for rank 2 \(process 2\), which has not called it",
                                   r"process 2: waits in MPI for ranks 0, 1, 3 of 4"],
            "early_exit": [r"process 3: has ended", r"waits for rank 3 \(process 3\), which has not called it"],
            "exit_with_error": [r"process 1 ended with status 7"],
            "crash": [r"process 1 was killed by signal 11"],
            "counts_differ": [r"rank 3 \(process 3\) calls HcclAllReduce of 128 fp32, sum, rank 0 \(process 0\) has called "
                              r"HcclAllReduce of 256 fp32, sum"],
            "types_differ": [r"calls HcclAllReduce of 128 fp32, sum, .* of 128 int64, sum"],
            "collectives_differ": [r"rank 1 \(process 1\) calls HcclBroadcast of 256 fp32, root 0, .*HcclAllReduce of 256 fp32"],
            "orders_differ": [r"waits for rank 1 \(process 1\), whose stream 0 is at HcclAllReduce #1 on hccl_root_2"],
            "nobody_sends": [r"message #1 from rank 1 to rank 0 .* waits for rank 1 \(process 1\), which has not called it"],
            "all_send_first": [r"HcclSend: it connects for the first time, and has waited 120 s \(HCCL_CONNECT_TIMEOUT\) for rank 1"],
            "rank_is_missing_in_init": [r"HcclCommInitRootInfo: rank 0 has waited 120 s .* for rank 3 of 4"],
            "buffer_too_small": [r"sendBuf: 4000000 bytes at .* leave their block, which has 1024"],
            "use_after_free": [r"sendBuf: 0x\w+ was freed"],
            "host_buffer": [r"sendBuf: 0x\w+ is not memory of a device"],
            "no_device": [r"aclrtCreateStream: the thread has set no device"],
            "no_memory": [r"aclrtMalloc: 1099511627776 bytes: NPU 0 has \d+ of 68719476736 left"],
            "destroyed_communicator": [r"comm is no communicator, or it was destroyed"],
            "lock": [r"stands still", r"process 0, thread 1: waits for a lock"],
            "not_done": [r"process 0 ended before its device was done: .*, the first is long"],
            "abort": [r"process 2 has called MPI_Abort\(5\)"],
        }
        for case, wanted in cases.items():
            done = on_npus(4, program(HERE / "programs/broken.cpp"), case)
            self.assertEqual((case, done.returncode), (case, 3))
            for pattern in wanted:
                self.assertRegex(done.stderr, pattern)

    def test_faults_reach_the_program(self):
        done = on_npus(4, program(EXAMPLES / "hccl_bench.cpp"), "allreduce", "-b", "1M", "-e", "1M",
                       options=("--fault", "npu[2].lost at 100us"))
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, "(?s)aclrtSynchronizeStream: the simulated cluster has failed: .*lost")

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
    HCCLSIM = str(Path(sys.argv.pop(1)).resolve())
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
