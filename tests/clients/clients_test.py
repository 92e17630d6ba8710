#!/usr/bin/env python3
"""What programs for HCCL call, on simulated NPUs: results, times, and what is wrong.

usage: clients_test.py HCCLSIM
"""

import json
import os
import re
import struct
import subprocess
import unittest

from pathlib import Path

from support import EXAMPLES, FOLDER, HCCLSIM, HERE, ProgramsTest, on_npus, program, run


def features(case, *arguments, **settings):
    return on_npus(settings.pop("processes", 1), program(HERE / "programs/features.cpp"), case, *arguments, **settings)


RANK_TABLE = {"status": "completed", "version": "1.0", "server_count": "1", "server_list": [
    {"server_id": "10.0.0.1", "device": [{"device_id": device, "device_ip": f"192.168.1.{device}", "rank_id": rank}
                                         for rank, device in (("0", "3"), ("1", "1"), ("2", "0"))]}]}


class ClientsTest(ProgramsTest):
    def test_headers_stand_alone(self):
        include = run(HCCLSIM, "exec", "--flags").stdout.split()[0]
        for header in ("acl/acl.h", "acl/acl_base.h", "acl/acl_prof.h", "acl/acl_rt.h", "hccl/hccl.h", "hccl/hccl_rank_graph.h",
                       "hccl/hccl_types.h", "mpi.h"):
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
        cases += [("broadcast", "atlas800-9000", 4, ["-w", "0", "-n", "3"]), ("scatter", "atlas800-9000", 4, ["-w", "0", "-n", "3"])]
        cases += [("allreduce", "atlas800-9000", 8, []), ("allgather", "atlas800-9000", 4, ["-n", "1", "-w", "0"]),
                  ("allreduce", "atlas800-9000-x4", 32, ["-n", "3"])]
        for op, platform, ranks, more in cases:
            for launch in ("op", "graph"):
                ours = run(HCCLSIM, "collective", op, "--platform", platform, "--ranks", str(ranks), "--launch", launch,
                           "--uncertainty", "off", *sizes, *more).stdout
                done = on_npus(ranks, program(EXAMPLES / "hccl_bench.cpp"), op, *sizes, *more, platform=platform,
                               options=("--launch", launch))
                rows = [re.findall(r"^(\d+) *\| *([\d.]+) *\| *([\d.]+)", text, re.MULTILINE)
                        for text in (ours, self.passes(done))]
                self.assertEqual(len(rows[0]), 4)
                self.assertEqual((op, platform, launch, rows[1]), (op, platform, launch, rows[0]))

    def test_sizes_are_those_of_the_command(self):
        """Of payloads that have no whole blocks."""
        for op, ranks, more in (("alltoall", 6, ["-b", "99328", "-d", "fp16"]), ("alltoall", 8, ["-b", "98761", "-d", "int8"]),
                                ("allgather", 7, ["-b", "100001", "-d", "fp16"]), ("scatter", 3, ["-b", "17000001", "-d", "fp32"])):
            sizes = [*more, "-e", more[1], "-n", "4", "-w", "2", "-c", "0"]
            ours = run(HCCLSIM, "collective", op, "--platform", "atlas800t-a2", "--ranks", str(ranks), "--uncertainty", "off",
                       *sizes).stdout
            theirs = self.passes(on_npus(ranks, program(EXAMPLES / "hccl_bench.cpp"), op, *sizes))
            rows = [re.findall(r"^(\d+) *\| *([\d.]+) *\| *([\d.]+)", text, re.MULTILINE) for text in (ours, theirs)]
            self.assertEqual(len(rows[0]), 1)
            self.assertEqual((op, ranks, rows[1]), (op, ranks, rows[0]))

    def test_bandwidths_are_those_of_the_command(self):
        """To the last digit, which is what events as floats leave: the exact one is 62.78356."""
        sizes = ["-b", "16M", "-e", "16M", "-n", "4", "-w", "0", "-c", "0"]
        ours = run(HCCLSIM, "collective", "broadcast", "--platform", "atlas800t-a2", "--ranks", "8", "--uncertainty", "off",
                   *sizes).stdout
        theirs = self.passes(on_npus(8, program(EXAMPLES / "hccl_bench.cpp"), "broadcast", *sizes))
        rows = [re.findall(r"^(\d+) *\| *([\d.]+) *\| *([\d.]+)", text, re.MULTILINE) for text in (ours, theirs)]
        self.assertEqual(rows[0], [("16777216", "267.22", "62.78357")])
        self.assertEqual(rows[1], rows[0])

    def test_types_and_reductions(self):
        """On data that are exact in every type."""
        bench = program(EXAMPLES / "hccl_bench.cpp")
        cases = [("allreduce", name, "sum") for name in ("int8", "int16", "int32", "fp16", "fp32", "int64", "uint64", "uint8",
                                                         "uint16", "uint32", "fp64", "bfp16")]
        cases += [("reducescatter", name, op) for name in ("int8", "fp16", "bfp16", "uint64") for op in ("prod", "max", "min")]
        for collective, name, op in cases:
            said = self.passes(on_npus(4, bench, collective, "-b", "1M", "-e", "1M", "-n", "1", "-w", "0", "-d", name, "-o",
                                       op))
            self.assertEqual((collective, name, op, said.count("success")), (collective, name, op, 1))

    def test_memory_that_peers_access_directly(self):
        """Ranges and windows; times to the last digit of the events', with what the command says of both ways."""
        for launch in ("op", "graph"):
            wanted = {}
            for zero_copy, how in (("0", "buffers"), ("1", "direct")):
                line = ["--ranks", "4", "-b", "16M", "-e", "16M", "-n", "10", "-w", "2", "-c", "0", "-z", zero_copy]
                done = run(HCCLSIM, "collective", "allreduce", "--platform", "atlas800t-a2", "--uncertainty", "off",
                           "--launch", launch, "--format", "json", *line)
                wanted[how] = json.loads(done.stdout)["rows"][0]["time_s"] * 10e3
            done = features("direct_memory", processes=4, options=("--launch", launch))
            found = [line.split() for line in self.passes_with_refusals(done).splitlines()]
            self.assertEqual([how for how, _ in found],
                             ["buffers", "buffers", "direct", "direct", "buffers", "buffers", "direct", "buffers"])
            for how, milliseconds in found:
                as_event = struct.unpack("f", struct.pack("f", wanted[how]))[0]
                self.assertEqual((launch, how, float(milliseconds)), (launch, how, float(f"{as_event:.9g}")))

    def test_rank_tables(self):
        file = Path(FOLDER.name) / "table.json"
        file.write_text(json.dumps(RANK_TABLE))
        said = self.passes_with_refusals(features("rank_table", str(file), processes=4)).splitlines()
        world, sub = "hccl_world_group: 7", "hccl_world_group_sub_7: 5"
        self.assertEqual(sorted(said), sorted(
            [f"process {process}: rank {rank} of 3 in {name}"
             for process, rank in ((3, 0), (1, 1), (0, 2)) for name in (world, "configured: 7")] +
            [f"process {process}: rank {rank} of 2 in {sub}" for process, rank in ((0, 0), (3, 1))]))

    def interface(self, case, **settings):
        done = on_npus(settings.pop("processes", 1), program(HERE / "programs/interface.cpp"), case, **settings)
        return self.passes_with_refusals(done), done.stderr

    def test_root_info_is_no_longer_than_its_handle(self):
        self.interface("small_root", processes=2)

    def test_types_that_the_chip_lacks(self):
        _, told = self.interface("types")
        self.assertIn("HcclAllReduce: dataType 14, HIF8: the Ascend 950 has it, Ascend910B", told)
        self.assertIn("HcclSend: dataType 13; accepted: 0 to 11", told)

    def test_newer_settings_of_communicators(self):
        said, told = self.interface("config")
        self.assertEqual(said, "old\n")
        for part in ("of the 1 GB for the windows of a rank (hcclSymWinMaxMemSizePerRank) 0 bytes are left",
                     "config: hcclAlgo: ", "config: hcclSymWinMaxMemSizePerRank: 0; accepted: 1 to",
                     "config: hcclOpExpansionMode: 5; accepted: 0 to 4",
                     "Note: the HcclCommConfig of impatient sets hcclExecTimeOut, which has no effect"):
            self.assertIn(part, told)

    def test_copies_of_the_host_alone(self):
        self.assertEqual(self.interface("host_to_host"), ("", ""))

    def test_waits_before_a_record(self):
        said, told = self.interface("events")
        self.assertEqual(said, "no tasks to wait for: 10.000 us\nheld: 110.000 us\nheld: 110.000 us\nthe latest: 30.000 us\n")
        self.assertEqual(told.count("aclrtStreamWaitEvent: the event was never recorded: call aclrtRecordEvent before"), 2)

    def poison(self, case, *options):
        return on_npus(4, program(HERE / "programs/poison.cpp"), case, options=options)

    def test_poison(self):
        """Fresh memory is no zero, and what uses memory too early is found; what does not, is not."""
        self.assertEqual(self.passes(self.poison("right", "--poison")), "right\n" * 4)
        self.assertEqual(self.passes(self.poison("fresh")), "00000000 00000000\n" * 4)
        self.assertEqual(self.passes(self.poison("fresh", "--poison")), "7f7f7f7f 7f7f7f7f\n" * 4)
        said = self.passes(self.poison("host_destination", "--poison"))
        self.assertEqual(sorted(said.splitlines()), [f"7f7f7f7f, then {5 + rank}" for rank in range(4)])
        allreduce = r"that HcclAllReduce #2 on hccl_root_1 in stream 0 of NPU \d"
        cases = {
            "result_to_host": rf"a copy of 4096 bytes in stream \d of NPU \d reads 4096 bytes at 0x\w+ of NPU \d {allreduce} writes",
            "result_in_other_stream": rf"a copy of 4096 bytes .* reads 4096 bytes .* {allreduce} writes",
            "input_is_written": rf"a copy of 4096 bytes in stream 1 of NPU \d writes 4096 bytes .* {allreduce} reads",
            "input_is_filled": rf"filling 40 bytes in stream \d of NPU \d writes 40 bytes .* {allreduce} reads",
            "result_is_given": rf"HcclBroadcast #3 on .* in stream 1 of NPU \d (reads|writes) 4096 bytes .* {allreduce} writes",
            "pinned_source": r"process \d has written to the memory that a copy of 4096 bytes .* reads, at 0x\w+, before",
        }
        for case, wanted in cases.items():
            self.passes(self.poison(case))
            done = self.poison(case, "--poison")
            self.assertEqual((case, done.returncode), (case, 3))
            self.assertRegex(done.stderr, rf"process \d.*{wanted}" if case != "pinned_source" else wanted)

    def test_poison_lets_right_programs_be(self):
        for name, processes in (("1_allreduce", 1), ("2_overlap", 8), ("3_groups", 8)):
            done = on_npus(processes, program(EXAMPLES / f"{name}.cpp"), options=("--poison",))
            self.assertEqual(self.passes(done), (EXAMPLES / f"{name}.txt").read_text())
        done = on_npus(4, program(HERE / "programs/all_calls.cpp"), options=("--poison",))
        lines = self.passes(done).splitlines()
        self.assertEqual((len(lines), [line for line in lines if line.endswith("DIFFERS")]), (72, []))

    def test_suspended_communicators(self):
        self.passes_with_refusals(features("suspend", processes=2))

    def test_visible_devices_and_copies_between_npus(self):
        """HCCS of the A2 has 19.3 GB/s: 1 MiB in 54.330 us."""
        more = "1 MiB more takes 54.330 us"
        for listed, devices in ((None, 8), ("", 8), ("3,1,7", 3), ("5", 1), ("2,x,3", 1), ("1,1", 1), ("0,9,1", 1)):
            variables = {} if listed is None else {"ASCEND_RT_VISIBLE_DEVICES": listed}
            said = self.passes_with_refusals(features("devices", **variables)).splitlines()
            self.assertEqual((listed, said), (listed, [f"{devices} devices"] + ([more] if devices > 1 else [])))
        done = features("devices", ASCEND_RT_VISIBLE_DEVICES="9")
        self.assertEqual(done.returncode, 3)
        self.assertIn("there is no device 0: the program has 0 (ASCEND_RT_VISIBLE_DEVICES=9)", done.stderr)

    def test_limits_of_a_device_and_its_end(self):
        for platform, streams in (("atlas800t-a2", 1984), ("atlas800-9000", 2048)):
            said = self.passes_with_refusals(features("limits", platform=platform))
            self.assertEqual(said, f"{streams} streams, then status 207008\n")

    def test_rank_graph(self):
        said = self.passes_with_refusals(features("graph", processes=16, platform="atlas800t-a2-x2"))
        inside, all_ranks = " ".join(map(str, range(8, 16))), " ".join(map(str, range(16)))
        self.assertEqual(said, f"layers 0 1\nlayer 0: type 1, parts of 8 8, ranks {inside}\n"
                               "  to rank 8: protocol 0, device 0 of server 1\n"
                               f"layer 1: type 0, parts of 16, ranks {all_ranks}\n"
                               "  to rank 0: protocol 1, device 0 of server 0\n")
        done = features("graph", processes=2, platform="atlas800-9000")
        self.assertIn("HCCL has no rank graph of the 910A", done.stderr)

    def test_groups_connect_call_by_call(self):
        self.passes(features("group", processes=4))

    def test_timelines(self):
        """In all formats, and until a program stands still."""
        file = Path(FOLDER.name) / "timeline.json"
        said = self.passes(on_npus(1, program(EXAMPLES / "1_allreduce.cpp"), options=("--trace", str(file))))
        spans = [event for event in json.loads(file.read_text()) if event.get("ph") == "X"]
        calls = [event for event in spans if event["args"].get("trace point") == "HcclAllReduce"]
        self.assertEqual(len(calls), 1)
        # Events are recorded around the call; the host issues it meanwhile.
        self.assertLess(calls[0]["dur"], float(re.search(r"rank 0: ([\d.]+) us", said).group(1)))
        self.assertEqual(calls[0]["args"]["size(Byte)"], 4 << 20)
        self.assertTrue(any(event["args"].get("task type") == "Memcpy" for event in spans))
        for name, begin in (("timeline.paje", b"%EventDef"), ("timeline.pftrace", b"\n")):
            path = Path(FOLDER.name) / name
            self.passes(on_npus(8, program(EXAMPLES / "2_overlap.cpp"),
                                options=("--trace", str(path), "--trace-ranks", "all")))
            self.assertTrue(path.read_bytes().startswith(begin))
        file.unlink()
        done = on_npus(4, program(HERE / "programs/broken.cpp"), "orders_differ",
                       options=("--trace", str(file), "--trace-ranks", "1"))
        self.assertEqual(done.returncode, 3)
        self.assertIn("HcclAllReduce", file.read_text())
        for words, said in ((("--trace-ranks", "1"), "needs --trace FILE"),
                            (("--trace", str(file), "--trace-ranks", "8"), "--trace-ranks 8")):
            done = on_npus(1, "true", options=words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)

    def test_one_thread_for_all_npus(self):
        """Communicators and calls in groups, and what a rank sends to itself."""
        done = on_npus(1, program(HERE / "programs/one_thread.cpp"))
        self.assertEqual(self.passes_with_refusals(done), (HERE / "programs/one_thread.txt").read_text())
        self.assertIn("calls of one thread for several NPUs belong between HcclGroupStart and HcclGroupEnd", done.stderr)

    @unittest.skipUnless("HCCLSIM_HCCL_TEST" in os.environ, "HCCLSIM_HCCL_TEST is not the folder of hccl_test's sources")
    def test_hccl_test(self):
        """The unmodified programs, if there are any: never in a repository of ours. Rank 0's times, zero copy over several sizes,
        and without the hosts."""
        folder = Path(os.environ["HCCLSIM_HCCL_TEST"])
        flags = run(HCCLSIM, "exec", "--flags").stdout.replace("-lascendcl", "-lacl_rt -lmsprofiler").split()
        common = sorted(map(str, folder.glob("common/src/*.cc")))
        built = {}
        for source in sorted(folder.glob("opbase_test/*.cc")):
            path = Path(FOLDER.name) / source.stem
            done = run("g++", "-std=c++11", "-Werror", "-O1", f"-I{folder}/common/src", f"-I{folder}/opbase_test", "-o", str(path),
                       str(source), *common, *flags)
            self.assertEqual((source.name, done.stderr), (source.name, ""))
            built[source.stem.split("_")[1]] = str(path)
        self.assertEqual(len(built), 11)
        sizes = ["-b", "64K", "-e", "64M", "-f", "32"]
        for name, path in built.items():
            said = self.passes(on_npus(8, path, *sizes, "-p", "8"))
            self.assertEqual((name, said.count("success")), (name, 3), said)
        for op, name in (("allreduce", "allreduce"), ("allgather", "allgather"), ("reducescatter", "reducescatter")):
            for zero_copy in ("0", "1"):
                line = [*sizes, "-z", zero_copy]
                ours = run(HCCLSIM, "collective", op, "--platform", "atlas800t-a2", "--ranks", "8", "--uncertainty", "off", "-c", "0",
                           *line).stdout
                theirs = self.passes(on_npus(8, built[name], *line, "-p", "8"))
                rows = [re.findall(r"^(\d+) *\| *([\d.]+) *\| *([\d.]+)", text, re.MULTILINE) for text in (ours, theirs)]
                self.assertEqual((op, zero_copy, rows[1]), (op, zero_copy, rows[0]))
        for more in (["-m", "1"], ["-s", "1"], ["-t", "1"]):
            said = self.passes(on_npus(8, built["allreduce"], *sizes, "-p", "8", *more))
            self.assertEqual((more, said.count("success")), (more, 3))

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
            "buffers_overlap": [r"sendBuf and recvBuf overlap: 20 bytes apart, with 256 bytes each"],
            "threads_receive_first": [r"process 0: HcclRecv: .* for rank 3 on hccl_all_\d; process 0, thread \d+ waits in HcclRecv, "
                                      r"which connects for the first time, for rank 2 on hccl_all"],
            "use_after_free": [r"sendBuf: 0x\w+ was freed"],
            "host_buffer": [r"sendBuf: 0x\w+ is not memory of a device"],
            "no_device": [r"aclrtCreateStream: the thread has set no device"],
            "no_memory": [r"aclrtMalloc: 1099511627776 bytes: NPU 0 has \d+ of 68719476736 left"],
            "destroyed_communicator": [r"comm is no communicator, or it was destroyed"],
            "lock": [r"stands still", r"process 0, thread 1: waits for a lock"],
            "not_done": [r"process 0 ended before its device was done: .*, the first is long"],
            "abort": [r"process 2 has called MPI_Abort\(5\)"],
            "count_overflows": [r"HcclAllReduce: 4611686018427387904 elements of fp32: an NPU has memory for 17179869184"],
            "root_used_twice": [r"rootInfo has made a communicator already"],
            "rank_twice": [r"process 3: HcclCommInitRootInfo: rank 2 is there already: process 2 has called"],
            "sizes_differ": [r"rank 3 of 5, but rank 0 \(process 0\) has called with 4 ranks"],
            "roots_differ": [r"rank 3 \(process 3\) calls HcclBroadcast of 16 fp32, root 1, .* root 0"],
            "empty_on_one": [r"waits for rank 1 \(process 1\), which has not called it "
                             r"\(it has called HcclAllReduce of 0 fp32, sum, which does nothing\)"],
            "after_finalize": [r"comm is no communicator, or it was destroyed"],
            "after_reset": [r"comm is no communicator, or it was destroyed"],
            "freed_under_way": [r"HcclAllReduce #1 on hccl_root_1: memory of rank \d on NPU \d was freed"],
            "group_without_end": [r"process 0 ended between HcclGroupStart and HcclGroupEnd: 1 call of the group was"],
            "stream_of_other_device": [r"the stream is on NPU 0, the thread has set NPU 1"],
            "no_peer_access": [r"dst is memory of NPU 4, src of NPU 0: call aclrtDeviceEnablePeerAccess"],
            "exception_in_thread": [r"of a thread", r"process 0 was killed by signal 6"],
            "closes_all": [r"process 0 ended with status 70, as it had lost its connection to the simulator"],
            "freed_in_copy": [r"a copy of 1024 bytes in stream \d of NPU \d: memory of NPU \d was freed before it had ended"],
            "freed_source": [r"a copy of 1024 bytes in stream \d of NPU \d: memory of NPU \d was freed before it had ended"],
            "freed_in_fill": [r"filling 1024 bytes in stream \d of NPU \d: memory of NPU \d was freed before it had ended"],
            "freed_host": [r"process 0 frees pinned memory \(aclrtFreeHost\) that a copy of 1024 bytes .* uses, which is under way"],
            "blocks_differ": [r"rank 2 .* has called .*, of block 0 3 and 4 elements; all ranks must call the same"],
            "pairs_differ": [r"rank 3 .* has called .*, from rank 1 to rank 2 2 and 1 elements; all ranks"],
            "message_counts_differ": [r"calls HcclRecv of 11 fp32, rank 0 \(process 0\) has called HcclSend of 10 fp32"],
            "connects_to_one_who_has_ended": [r"has waited 120 s .* for rank 2 of 4 on hccl_root_1; process 2 has ended"],
            "connects_to_one_who_waits": [r"for rank 2 of 4 on hccl_root_1; process 2 waits in MPI for ranks 0, 1, 3 of 4"],
            "never_recorded": [r"stands still", r"stream 0 \(process \d\): the wait for an event that is still to be recorded"],
            "config_is_not_filled": [r"config: call HcclCommConfigInit first"],
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

    def test_time_outs(self):
        done = features("timeout", processes=4, HCCL_EXEC_TIMEOUT="68")
        self.assertEqual((done.returncode, done.stdout), (3, "told\n" * 4))
        self.assertIn("HCCL_EXEC_TIMEOUT lets it wait 68 s", done.stderr)
        done = on_npus(4, program(HERE / "programs/broken.cpp"), "rank_is_missing_in_init", HCCL_CONNECT_TIMEOUT="300")
        self.assertIn("rank 0 has waited 300 s (HCCL_CONNECT_TIMEOUT) for rank 3 of 4", done.stderr)
        done = on_npus(4, program(HERE / "programs/broken.cpp"), "rank_is_missing_goes_on")
        self.assertEqual(re.findall(r"rank \d has waited 120 s .* for (.*)", done.stderr), ["rank 3 of 4"] * 4)


if __name__ == "__main__":
    unittest.main()
