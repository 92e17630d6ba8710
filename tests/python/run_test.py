"""Calls of the helper: results, exceptions, progress, and that a notebook with threads may call it."""

import ast
import contextlib
import inspect
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
from pathlib import Path

import numpy

import hcclsim
from hcclsim import errors, helper, options, records, results


class Runs(unittest.TestCase):
    def test_the_result_is_that_of_the_command(self):
        result = hcclsim.run(model="lenet", batch=4, hcom_parallel=True, split_by_size=[80, 20])
        words = ["run", "--model=lenet", "--batch=4", "--hcom-parallel=on", "--split-by-size=80,20", "--format=json"]
        self.assertEqual(result, json.loads(helper.call(words).output))
        self.assertIsInstance(result, hcclsim.RunResult)
        self.assertEqual(result.segments.column("bytes").sum(), result.gradients.column("bytes").sum())
        self.assertEqual(result.ready_times_s().shape, (10,))
        self.assertEqual(result.trace.fp_start_s, 0)

    def test_real_gradients(self):
        seen = []
        result = hcclsim.run(model="lenet", batch=4, numerics=True, iterations=3, progress=seen.append)
        self.assertEqual(result.losses().shape, (3,))
        self.assertLess(result.losses()[-1], result.losses()[0])
        self.assertTrue(all(text.startswith("iteration") for text in seen))
        with self.assertRaises(ValueError):
            hcclsim.run(model="lenet").losses()

    def test_weights_of_a_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "w.ckpt")
            hcclsim.run(model="lenet", batch=4, numerics=True, iterations=2, save=path)
            found = hcclsim.read_checkpoint(path)
            self.assertEqual(found["iteration"], 2)
            shapes = [array.shape for array in found["tensors"]["weights"].values()]
            self.assertIn((6, 1, 5, 5), shapes)
            self.assertTrue(all(array.dtype == numpy.float32 for array in found["tensors"]["weights"].values()))
            self.assertTrue(all(numpy.isfinite(array).all() for array in found["tensors"]["weights"].values()))
            path.write_bytes(path.read_bytes()[:-3])
            with self.assertRaises(hcclsim.BadInput) as raised:
                hcclsim.read_checkpoint(str(path))
            self.assertEqual(raised.exception.kind, "checkpoint")

    def test_values_of_numpy(self):
        result = hcclsim.run(
            model="lenet", batch=numpy.int64(4), hcom_parallel=numpy.bool_(True), split_by_size=numpy.array([80, 20])
        )
        self.assertEqual(result, hcclsim.run(model="lenet", batch=4, hcom_parallel=True, split_by_size=[80, 20]))
        self.assertEqual(hcclsim.run(model="lenet", batch=2, numerics=numpy.bool_(True), iterations=1).losses().shape, (1,))
        for sizes in (range(1024, 4096, 1024), numpy.array([1024, 2048, 3072])):
            self.assertEqual(list(hcclsim.measure(size=sizes).rows.column("bytes")), [1024, 2048, 3072])

    def test_values_that_are_none(self):
        for keywords, message in (
            ({"split_by_size": []}, "split_by_size must not be empty"),
            ({"gradients": 5}, "gradients are a file, a DataFrame or rows"),
            ({"inputs": [1], "model": "lenet"}, "inputs go with a Cell"),
            ({"progress": 3}, "progress must be a function"),
        ):
            with self.subTest(keywords=keywords), self.assertRaisesRegex(TypeError, message):
                hcclsim.run(**keywords)
        with self.assertRaisesRegex(hcclsim.BadInput, "no compression ;|no compression '?'?;"):
            hcclsim.run(compress="")
        with self.assertRaisesRegex(TypeError, "size must not be empty"):
            hcclsim.measure(size=[])

    def test_messages_name_no_temporary_file(self):
        with self.assertRaisesRegex(hcclsim.BadInput, "^gradient 0: bytes must be"):
            hcclsim.run(gradients=[("a", -3, 0)])

    def test_gradients_as_rows(self):
        rows = [("b", 400_000, 100e-6), ("a", 800_000, 200e-6)]
        result = hcclsim.run(gradients=rows, split="each")
        self.assertEqual(list(result.gradients.column("name")), ["b", "a"])
        numpy.testing.assert_allclose(result.ready_times_s(), [100e-6, 200e-6], rtol=1e-9)
        self.assertEqual(hcclsim.run(gradients=[('a, "b"', 4, 1e-6)]).gradients[0].name, 'a, "b"')
        for wrong in (("a", 4), ("a", "many", 1e-6), {"name": "a", "bytes": 4}):
            with self.subTest(row=wrong), self.assertRaisesRegex(TypeError, "gradient 0 must be"):
                hcclsim.run(gradients=[wrong])
        for ready, message in ((-1.0, "must not be negative, got -1.0"), (float("nan"), "must be a number, got 'nan'")):
            with self.subTest(ready=ready), self.assertRaisesRegex(hcclsim.BadInput, f"^gradient 1: ready_s {message}$"):
                hcclsim.run(gradients=[("b", 4, 0.0), ("a", 4, ready)])
        with self.assertRaisesRegex(TypeError, "^gradients must not be empty$"):
            hcclsim.run(gradients=[])

    def test_numbers_of_times_and_speeds_are_seconds_and_bytes_per_second(self):
        late = hcclsim.run(model="lenet", start_skew=1e-3, uncertainty=False)
        self.assertEqual(late.settings["start-skew"], "0.001")
        slow = hcclsim.run(model="lenet", set={"link[hccs*].bandwidth": "1GBps"}, uncertainty=False)
        fast = hcclsim.run(model="lenet", uncertainty=False)
        self.assertGreater(slow.step_time_s, fast.step_time_s)
        as_number = hcclsim.run(model="lenet", set={"link[hccs*].bandwidth": 1e9}, uncertainty=False)
        self.assertEqual(as_number.step_time_s, slow.step_time_s)

    def test_threads_call_side_by_side(self):
        results = [None] * 4

        def work(number):
            results[number] = hcclsim.run(model="lenet", batch=number + 1).batch

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [1, 2, 3, 4])

    def test_tuning_and_search_and_measuring(self):
        tuned = hcclsim.tune(model="lenet")
        self.assertIn("best", tuned)
        measured = hcclsim.measure("allgather", size=["1K", "64M"], iters=2)
        self.assertEqual(list(measured.rows.column("bytes")), [1024, 64 << 20])
        self.assertTrue(numpy.all(numpy.diff(measured.rows.column("time_s")) > 0))
        found = hcclsim.search(model="gpt2-small", npus=2, global_batch=4, layers=2, sequence=64)
        self.assertGreater(found.pareto.column("step_time_s").min(), 0)

    def test_a_schedule_is_timed_on_the_platform_that_it_was_made_for(self):
        one = hcclsim.schedule.generate("allreduce", platform="atlas800t-a2", ranks=4, bytes="64K")
        self.assertEqual(hcclsim.schedule.time(one).platform, "atlas800t-a2.xml")
        self.assertEqual(hcclsim.schedule.time(one, platform="atlas800-9000").platform, "atlas800-9000.xml")
        other = hcclsim.schedule.generate("allreduce", platform="atlas800-9000", ranks=4, bytes="64K")
        with self.assertRaisesRegex(ValueError, "atlas800-9000, atlas800t-a2"):
            hcclsim.schedule.time(one, other)

    def test_defaults_are_as_nothing(self):
        plain = hcclsim.run(model="lenet", uncertainty=False)
        given = {"sequence_parallel": False, "chunks": 1, "schedule": "1f1b", "stages": 1, "jitter_shape": "normal", "lr": 0.01,
                 "optimizer_parallel": False, "recompute": False, "weight_decay": 0.0, "profile_level": 1, "mode": "allreduce"}
        for keyword, value in given.items():
            with self.subTest(keyword=keyword):
                self.assertEqual(hcclsim.run(model="lenet", uncertainty=False, **{keyword: value}), plain)
        for keyword in ("split_by_idx", "levels", "npus", "context", "compat", "output_dir"):
            with self.subTest(keyword=keyword), self.assertRaisesRegex(TypeError, f"{keyword} cannot be False"):
                hcclsim.run(**{keyword: False})

    def test_every_default_of_the_command_is_accepted(self):
        for option in options.command("run").options:
            if not option.default or " " in option.default or option.is_argument or option.name in ("--format", "--data", "--model"):
                continue
            with self.subTest(option=option.name):
                helper.call(["run", "--model=lenet", f"{option.name}={option.default}"])

    def test_gradients_of_a_data_frame(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        frame = pandas.DataFrame({"name": ["b", "a"], "bytes": [400, 800], "ready_s": [1e-4, 2e-4]})
        result = hcclsim.run(gradients=frame, split="each")
        self.assertEqual(list(result.gradients.column("bytes")), [400, 800])
        self.assertEqual([one.name for one in hcclsim.run(gradients=result.gradients, split="each").gradients], ["b", "a"])

    def test_compression_has_its_plain_step(self):
        result = hcclsim.run(model="lenet", compress="powersgd:start=2")
        self.assertEqual(result.compression.plain_step_s, hcclsim.run(model="lenet").step_time_s)

    def test_tensors_of_arrays(self):
        image = hcclsim.Tensor(numpy.zeros((2, 3)))
        self.assertEqual((image.shape, image.dtype), ((2, 3), "float32"))
        self.assertEqual(hcclsim.Tensor(numpy.zeros(4, dtype=numpy.int32)).dtype, "int64")
        self.assertEqual(hcclsim.Tensor(image).shape, (2, 3))
        with self.assertRaises(TypeError):
            hcclsim.Tensor(numpy.zeros(4, dtype=bool))

    def test_schedules(self):
        ring = hcclsim.schedule.generate("allreduce", algorithm="ring", bytes="1M")
        report = hcclsim.schedule.check(ring, platform="atlas800-9000")
        self.assertTrue(report.ok)
        self.assertGreater(hcclsim.schedule.time(ring).schedules[0].time_s, 0)
        self.assertTrue(hcclsim.schedule.execute(ring))
        wrong = ring.replace('rounds: "7"', 'rounds: "6"', 1)
        with self.assertRaises(hcclsim.CheckFailed) as raised:
            hcclsim.schedule.check(wrong)
        self.assertFalse(raised.exception.result.ok)

    def test_platforms_and_networks(self):
        self.assertIn("atlas800t-a2", hcclsim.platform.names())
        self.assertEqual(hcclsim.platform.show("atlas800t-a2-x2").servers, 2)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "cluster.xml")
            path.write_text(hcclsim.platform.generate(soc="910B2", servers=2), encoding="utf-8")
            hcclsim.platform.check(path)
            self.assertEqual(hcclsim.run(model="lenet", platform=path).npus, 16)
        self.assertIn("resnet50", list(hcclsim.networks.listing().column("name")))

    def test_sweeps(self):
        with tempfile.TemporaryDirectory() as folder:
            database = Path(folder, "s.db")
            grid = {"model": "lenet", "hcom_parallel": True, "split_by_size": [[80, 20], [50, 50]], "batch": [1, 2]}
            points = hcclsim.sweep.run(database, "run", grid)
            self.assertEqual(len(points), 4)
            self.assertTrue(numpy.all(points.column("step_time_s") > 0))
            best = hcclsim.sweep.best(database)
            self.assertEqual((best.columns()[0], best[0].inputs.model), ("point", "lenet"))
            most = hcclsim.sweep.best(database, by="images_per_s:max")[0]
            self.assertEqual(most.images_per_s, hcclsim.sweep.results(database).column("images_per_s").max())
            # Columns of inputs are numbers; a grid gives its own points, whatever else the database has.
            self.assertEqual(sorted(points.column("batch")), [1, 1, 2, 2])
            self.assertEqual(set(points.column("split_by_size")), {(80, 20), (50, 50)})
            again = hcclsim.sweep.run(database, "run", {**grid, "batch": 2, "split_by_size": [[80, 20]]})
            self.assertEqual([(one.batch, one.split_by_size) for one in again], [(2, (80, 20))])
            self.assertEqual(len(hcclsim.sweep.results(database)), 4)
            with self.assertRaises(TypeError):
                hcclsim.sweep.run(database, "run", {"modell": ["lenet"]})
            with self.assertRaisesRegex(hcclsim.CheckFailed, "retry_failed=True computes them anew") as raised:
                hcclsim.sweep.run(database, "run", {"model": "lenet", "npus": [8, 999]})
            self.assertIn("failed", set(raised.exception.result.column("status")))

    def test_columns_of_sweeps_are_what_keywords_take(self):
        with tempfile.TemporaryDirectory() as folder:
            database = Path(folder, "s.db")
            common = {"model": "lenet", "npus": 2, "batch": 2, "iterations": 1}
            grid = {**common, "split_by_size": [[80, 20], [100]], "hcom_parallel": [True, False], "numerics": [True]}
            points = hcclsim.sweep.run(database, "run", grid)
            found = {(point.split_by_size, point.hcom_parallel, point.numerics) for point in points}
            self.assertEqual(found, {(split, overlap, True) for split in ((80, 20), (100,)) for overlap in (True, False)})
            self.assertEqual(points.column("hcom_parallel").dtype, numpy.bool_)
            # A column has the name that the grid has.
            points = hcclsim.sweep.run(database, "run", {"model": "tinygpt", "npus": 2, "tp": [1, 2]})
            self.assertEqual(list(points.column("tp")), [1, 2])
            self.assertNotIn("model_parallel", points.columns())
            self.assertEqual([point.get("model_parallel") for point in hcclsim.sweep.results(database)][-2:], [1, 2])
            with self.assertRaisesRegex(TypeError, "numerics cannot be swept over .*: it is True or False for all points"):
                hcclsim.sweep.run(database, "run", {"numerics": [True, False]})
            with self.assertRaisesRegex(TypeError, "tp and model_parallel are the same"):
                hcclsim.sweep.run(database, "run", {"tp": [1], "model_parallel": [2]})

    def test_points_of_a_search(self):
        with tempfile.TemporaryDirectory() as folder:
            database = Path(folder, "s.db")
            hcclsim.search(model="tinygpt", npus=2, global_batch=4, database=database)
            self.assertEqual(set(hcclsim.sweep.results(database).column("model")), {"tinygpt"})


class Failures(unittest.TestCase):
    def test_by_kind_and_status(self):
        with self.assertRaises(hcclsim.BadInput) as raised:
            hcclsim.run(platform="nope")
        self.assertEqual((raised.exception.kind, raised.exception.status), ("platform", 2))
        self.assertEqual(type(raised.exception).__name__, "PlatformError")
        with self.assertRaises(hcclsim.SimulatedFailure) as raised:
            hcclsim.run(model="lenet", fault="link[hccs-0-1].bandwidth=0 at 0.1ms")
        self.assertEqual((raised.exception.kind, raised.exception.status), ("timeout", 3))
        self.assertIn("rank", str(raised.exception))

    def test_a_failed_comparison_has_its_result(self):
        with tempfile.TemporaryDirectory() as folder:
            stored = Path(folder, "stored.json")
            stored.write_text(json.dumps(hcclsim.run(model="lenet", uncertainty=False)), encoding="utf-8")
            hcclsim.run(model="lenet", uncertainty=False, baseline=stored)
            with self.assertRaises(hcclsim.CheckFailed):
                hcclsim.run(model="lenet", uncertainty=False, baseline=stored, hcom_parallel=True)

    def test_sweeps_that_are_none(self):
        for arguments, error in ((("x.db", "tune", {}), ValueError), (("x.db", "run", ["batch"]), TypeError)):
            with self.assertRaises(error):
                hcclsim.sweep.run(*arguments)

    def test_they_can_be_pickled(self):
        error = pickle.loads(pickle.dumps(errors.of_kind("deadlock", 3, "who waits")))
        self.assertIsInstance(error, hcclsim.SimulatedFailure)
        self.assertEqual((error.kind, str(error)), ("deadlock", "who waits"))

    def test_wrong_keywords_are_python_errors(self):
        with self.assertRaisesRegex(TypeError, "did you mean hcom_parallel"):
            hcclsim.run(hcom_paralel=True)
        with self.assertRaisesRegex(TypeError, "numerics must be True or False"):
            hcclsim.run(numerics="yes")
        with self.assertRaises(TypeError):
            hcclsim.run(model=object())

    def test_progress_of_simulations(self):
        seen = []
        keywords = {"model": "lenet", "batch": 4, "jitter": 0.1}
        hcclsim.run(**keywords, iterations=1000, progress=seen.append)
        self.assertRegex(seen[-1], r"^lenet: (\d+ s so far|\d+ of \d+ steps simulated)")
        sizes = []
        hcclsim.measure(size="1G", network="simgrid", iters=60, progress=sizes.append)
        self.assertRegex(sizes[-1], r"^allreduce: (\d+ s so far|\d+ of \d+ sizes simulated)")

        def stop(_line):
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            hcclsim.run(**keywords, iterations=10_000, progress=stop)

    def test_what_progress_raises_ends_the_run(self):
        def stop(_):
            raise StopAsyncIteration("enough")

        begin = time.monotonic()
        with self.assertRaisesRegex(StopAsyncIteration, "enough"):
            hcclsim.run(model="lenet", batch=8, numerics=True, iterations=10000, progress=stop)
        self.assertLess(time.monotonic() - begin, 60)  # all of them take minutes

    def test_no_command(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(unittest.mock.patch.dict("os.environ", {"HCCLSIM_COMMAND": "/nowhere/hcclsim"}))
            with self.assertRaises(FileNotFoundError):
                hcclsim.run()


PROGRAM = """
import hcclsim, time
with hcclsim.settings.Folder() as folder:
    print(folder, flush=True)
    hcclsim.helper.call(["run", "--model=lenet", "--iterations=10000", "--jitter=0.1", "--numerics", "--uncertainty=off"])
"""


SEARCH = "import hcclsim; hcclsim.search(model='gpt2-xl', npus=8, global_batch=64)"


class Endings(unittest.TestCase):
    def test_killed_searches_leave_nothing(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            with self.subTest(signal=number), tempfile.TemporaryDirectory() as folder:
                program = subprocess.Popen([sys.executable, "-c", SEARCH], env={**os.environ, "TMPDIR": folder})
                self.waited_for(lambda: list(Path(folder).rglob("search.db")))
                program.send_signal(number)
                program.wait()
                self.waited_for(lambda: not list(Path(folder).iterdir()))

    def test_killed_programs_leave_nothing(self):
        program = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
        folder = Path(program.stdout.readline().strip())
        self.assertTrue(folder.is_dir())
        children = self.waited_for(lambda: children_of(program.pid, "hcclsim"))
        program.kill()
        program.wait()
        program.stdout.close()
        self.waited_for(lambda: not folder.exists())
        self.waited_for(lambda: not any(Path(f"/proc/{child}").exists() for child in children))

    def waited_for(self, what):
        for _ in range(200):
            found = what()
            if found:
                return found
            time.sleep(0.05)
        self.fail("it did not happen")


def children_of(parent, name):
    """Processes of this name below a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        _, _, behind = text.rpartition(")")
        if int(behind.split()[1]) == parent and f"({name})" in text:
            found.append(int(stat.parent.name))
    return found


class Documentation(unittest.TestCase):
    def test_help_has_every_keyword(self):
        signature = inspect.signature(hcclsim.run)
        for word in ("model", "hcom_parallel", "split_by_size", "numerics", "progress"):
            self.assertIn(word, signature.parameters)
        self.assertNotIn("format", signature.parameters)
        for keyword in options.command("run").by_keyword:
            self.assertIn(keyword, hcclsim.run.__doc__)

    def test_every_public_name_is_documented(self):
        for name in hcclsim.__all__:
            thing = getattr(hcclsim, name)
            if callable(thing) or inspect.ismodule(thing):
                self.assertTrue(inspect.getdoc(thing), name)

    def test_stubs_have_the_same_keywords(self):
        stub = Path(hcclsim.__file__).parent / "experiments.pyi"
        functions = {node.name: node for node in ast.parse(stub.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)}
        for name in ("run", "tune", "search", "measure", "check_plan"):
            keywords = {argument.arg for argument in functions[name].args.kwonlyargs}
            taken = set(options.command(*{"measure": ("collective",), "check_plan": ("plan", "check")}.get(name, (name,))).by_keyword)
            self.assertEqual(keywords - {"progress", "use_settings", "inputs", "keep_gradients"}, taken - {"help"}, name)

    def test_aliases_are_keywords(self):
        command = options.command("run")
        self.assertIs(command.by_keyword["tp"], command.by_keyword["model_parallel"])


class Tables(unittest.TestCase):
    def test_columns(self):
        rows = records.of_json([{"a": 1, "b": None, "c": "x"}, {"a": 2, "b": 1.5, "c": None}])
        self.assertEqual(rows.column("a").dtype, numpy.int64)
        self.assertTrue(numpy.isnan(rows.column("b")[0]))
        self.assertEqual(list(rows.column("c")), ["x", None])
        self.assertEqual(rows.columns(), ["a", "b", "c"])
        with self.assertRaises(KeyError):
            rows.column("d")
        with self.assertRaises(AttributeError):
            rows[0].d

    def test_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        frame = hcclsim.run(model="lenet").gradients.to_pandas()
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(len(frame), 10)

    def test_they_print_what_they_are(self):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            print(records.of_json([{"a": 1}]))
        self.assertEqual(printed.getvalue(), "<1 records of a>\n")
        self.assertRegex(repr(hcclsim.run(model="lenet")), r"^RunResult\(lenet on 8 NPUs of atlas800-9000.xml: [0-9.]+ ms per step\)$")
        other_chip = hcclsim.run(model="lenet", platform="atlas800t-a2")
        self.assertEqual(str(other_chip).splitlines()[1:], [f"Note: {note}" for note in other_chip.notes])
        self.assertGreater(len(other_chip.notes), 0)
        many = records.of_json({f"k{number}": number for number in range(30)})
        self.assertTrue(repr(many).endswith("k7=7, 22 more)"))
        self.assertIn("<th>a</th>", records.of_json([{"a": "<b>"}])._repr_html_())
        self.assertIn("<td>&#x27;&lt;b&gt;&#x27;</td>", records.of_json([{"a": "<b>"}])._repr_html_())
        self.assertIn("<th>k29</th>", many._repr_html_())

    def test_records_are_of_their_declared_types(self):
        result = hcclsim.run(model="lenet", numerics=True, batch=2, iterations=1)
        self.assertIsInstance(result.trace, results.TracePoints)
        self.assertIsInstance(result.segments[0], results.Segment)
        self.assertIsInstance(result.numerics.iterations[0], results.Iteration)


class Segments(unittest.TestCase):
    def test_as_hccl_cuts(self):
        self.assertEqual(hcclsim.segments([100] * 20).tolist(), [[0, 18], [19, 19]])
        self.assertEqual(hcclsim.segments([1, 1, 1, 1], by_idx=[1, 3]).tolist(), [[0, 1], [2, 3]])
        with self.assertRaises(hcclsim.BadInput):
            hcclsim.segments([1, 1], by_idx=[0])
        self.assertEqual(hcclsim.segments(numpy.array([100] * 20)).tolist(), [[0, 18], [19, 19]])


if __name__ == "__main__":
    unittest.main()
