"""`hcclsim script`: what scripts set is what `hcclsim run` simulates; what cannot be read is told with its line."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

COMMAND = os.environ["HCCLSIM_COMMAND"]
SCRIPTS = Path(__file__).parent / "scripts"


def script(path, *options, status=0):
    """Standard output, or of a failure standard error."""
    done = subprocess.run([COMMAND, "script", str(path), *options], capture_output=True, text=True, check=False)
    if done.returncode != status:
        raise AssertionError(f"status {done.returncode}, not {status}: {done.stdout}{done.stderr}")
    return done.stderr if status else done.stdout


def run(*options):
    return json.loads(subprocess.run([COMMAND, "run", *options, "--format=json"], capture_output=True, check=True).stdout)


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def written(self, text):
        path = self.folder / "train.py"
        path.write_text(text, encoding="utf-8")
        return path

    def test_the_npu_optimizer(self):
        output = self.folder / "profile" / "output"
        text = (SCRIPTS / "npu_optimizer.py").read_text(encoding="utf-8").replace("OUTPUT", str(output))
        path = self.written(text)
        result = json.loads(script(path, "--model", "resnet18", "--output-dir", str(self.folder), "--format", "json"))
        self.assertEqual(result, run("--model=resnet18", "--hcom-parallel=on", "--split-by-size=80,20"))
        self.assertFalse(output.exists())
        below = self.folder / str(output)[1:]
        trace = (below / "step_trace_0.csv").read_text(encoding="utf-8").splitlines()
        self.assertTrue(trace[0].startswith("Iteration ID,FP Start(us),BP End(us)"))
        self.assertEqual(len(trace), 4)
        told = script(path, f"--output-dir={self.folder}")
        self.assertIn("hcclsim run --hcom-parallel=on --split-by-size=80,20 --step-trace=", told)
        self.assertIn("no effect: the network runs on the NPU", told)

    def test_groups(self):
        result = json.loads(script(SCRIPTS / "groups.py", "--fc-bias=off", "--format=json"))
        self.assertEqual([(segment["first"], segment["last"]) for segment in result["segments"]], [(0, 20), (21, 100), (101, 159)])
        self.assertIn("last index must be 160 (161 gradients), got 159", script(SCRIPTS / "groups.py", status=2))

    def test_hooks(self):
        result = json.loads(script(SCRIPTS / "ddp.py", "--model=lenet", "--iterations=4", "--format=json"))
        self.assertEqual(
            result, run("--model=lenet", "--iterations=4", "--compress=batched-powersgd:rank=2,start=2")
        )

    def test_contexts(self):
        result = json.loads(script(SCRIPTS / "mindspore_context.py", "--model=lenet", "--format=json"))
        self.assertEqual((result["npus"], result["framework"], len(result["segments"])), (4, "mindspore", 2))

    def test_options_of_the_command_line_count_first(self):
        path = self.written('m["x"] = 1\ncustom_op.parameter_map["hcom_parallel"].b = True\n')
        self.assertTrue(json.loads(script(path, "--format=json"))["hcom_parallel"])
        self.assertFalse(json.loads(script(path, "--hcom-parallel=off", "--format=json"))["hcom_parallel"])

    def test_calls_that_are_almost_those_of_the_split_api_are_told(self):
        call = 'split.set_split_strategy_by_sise([60, 20, 20], "g")\n'
        near = "no effect: there is no set_split_strategy_by_sise; did you mean set_split_strategy_by_size?"
        self.assertIn(near, script(self.written(f"set_split_strategy_by_idx([160])\n{call}")))
        own = "def set_split_strategy_by_sise(cut, group):\n    set_split_strategy_by_idx([160])\n"
        self.assertNotIn("did you mean", script(self.written(own + call)))

    def test_names_of_literals(self):
        path = self.written("from hccl.split.api import *\ncut = [50, 50]\nset_split_strategy_by_size(dataSizeList=cut)\n")
        self.assertEqual(len(json.loads(script(path, "--format=json"))["segments"]), 2)

    def test_what_names_stand_for(self):
        for text, cut in (
            ("a, b = 80, 20\nset_split_strategy_by_size([a, b])\n", "80,20"),
            ("b = [80, 20]\na = b\nb = [60, 40]\nset_split_strategy_by_size(a)\n", "80,20"),
            ("a: list = [80, 20]\nset_split_strategy_by_size(a)\n", "80,20"),
            ("x = a = [80, 20]\nset_split_strategy_by_size(a)\n", "80,20"),
            ("if False:\n    a = [80, 20]\nelse:\n    a = [60, 40]\nset_split_strategy_by_size(a)\n", "60,40"),
        ):
            with self.subTest(text=text):
                self.assertIn(f"hcclsim run --split-by-size={cut} --npus=1 --model=lenet\n", script(self.written(text), "--npus=1", "--model=lenet"))
        # Names of functions are their own.
        text = "a = [80, 20]\ndef f(a):\n    a = 3\nset_split_strategy_by_size(a)\n"
        self.assertIn("--split-by-size=80,20", script(self.written(text), "--npus=1", "--model=lenet"))
        # What changes on the way is not known.
        for text in (
            "a = [80]\na += [20]\n",
            "a = [80]\na.append(20)\n",
            "a = [60, 40]\na[0] = 80\n",
            "a = a\n",
            "a = b\nb = a\n",
            "a = list(a)\n",
            "a = list(b)\nb = list(a)\na = list(b)\n",
            "for a in ([80, 20], [60, 40]):\n    pass\n",
            "a = [80, 20]\ndel a\n",
            "a = [80, 20]\nwith f() as a:\n    pass\n",
            "a = [80, 20]\nif x:\n    a = [60, 40]\n",
            "if x:\n    a = [80, 20]\nelse:\n    a = [60, 40]\n",
            "a = [80, 20]\nfor i in b:\n    a = [60, 40]\n",
        ):
            with self.subTest(text=text):
                told = script(self.written(f"{text}set_split_strategy_by_size(a)\n"), status=2)
                self.assertRegex(told, "dataSizeList is no literal: (a|list)")

    def test_parts_of_objects_have_names(self):
        for text in (
            "pm = op.parameter_map\npm['hcom_parallel'].b = True\n",
            "p = op.parameter_map['hcom_parallel']\np.b = True\n",
            "def f(config):\n    op = config.add()\n    m = op.parameter_map\n    m['hcom_parallel'].b = True\n",
            "class A:\n    def f(self):\n        self.on = True\n        self.m.parameter_map['hcom_parallel'].b = self.on\n",
            "class Config:\n    on = True\nop.parameter_map['hcom_parallel'].b = Config.on\n",
        ):
            with self.subTest(text=text):
                self.assertIn("hcclsim run --hcom-parallel=on --npus=1", script(self.written(text), "--npus=1", "--model=lenet"))
        path = self.written("r = c.graph_options.rewrite_options\nr.remapping = RewriterConfig.ON\n")
        self.assertIn("train.py:2: rewrite_options.remapping must be RewriterConfig.OFF", script(path, status=2))
        path = self.written("from hccl.split.api import set_split_strategy_by_size as cut\ncut([80, 20])\n")
        self.assertIn("--split-by-size=80,20", script(path, "--npus=1", "--model=lenet"))

    def test_values_that_are_put_together(self):
        for text, cut in (
            ("N = 160\nset_split_strategy_by_idx([20, N // 2, N])\n", "20,80,160"),
            ("set_split_strategy_by_idx([20] + [160])\n", "20,160"),
        ):
            with self.subTest(text=text):
                self.assertIn(f"--split-by-idx={cut}", script(self.written(text)))
        output = self.folder / "o"
        for options in (
            "'{\"output\":\"' + OUT + '\",\"training_trace\":\"on\"}'",
            "f'{{\"output\":\"{OUT}\",\"training_trace\":\"on\"}}'.encode()",
            "tf.compat.as_bytes(json.dumps({'output': OUT, 'training_trace': 'on'}))",
        ):
            with self.subTest(options=options):
                path = self.written(
                    f"OUT = {str(output)!r}\no.parameter_map['profiling_mode'].b = True\n"
                    f"o.parameter_map['profiling_options'].s = {options}\n"
                )
                told = script(path, "--npus=1", "--model=lenet", "--output-dir", str(self.folder))
                self.assertIn(f"--step-trace={self.folder}{output}/step_trace_0.csv", told)

    def test_several_configurations(self):
        both = "a.parameter_map['hcom_parallel'].b = True\nb.parameter_map['hcom_parallel'].b = {}\n"
        self.assertIn("hcom_parallel = True  as before", script(self.written(both.format(True)), "--npus=1", "--model=lenet"))
        path = self.written(both.format(False))
        self.assertIn("train.py:2: hcom_parallel is set otherwise in line 1; give --hcom-parallel", script(path, status=2))
        self.assertTrue(json.loads(script(path, "--model=lenet", "--hcom-parallel=on", "--format=json"))["hcom_parallel"])
        # One after the other, of the same configuration, the last one counts; not in branches.
        path = self.written("a.parameter_map['hcom_parallel'].b = True\na.parameter_map['hcom_parallel'].b = False\n")
        self.assertIn("hcclsim run --hcom-parallel=off --npus=1", script(path, "--npus=1", "--model=lenet"))
        path = self.written(
            "if x:\n    a.parameter_map['hcom_parallel'].b = True\nelse:\n    a.parameter_map['hcom_parallel'].b = False\n"
        )
        self.assertIn("set otherwise in line 2", script(path, status=2))

    def test_splits_of_the_command_line_count_before_all_of_the_script(self):
        path = self.written("set_split_strategy_by_size([80, 20])\nset_split_strategy_by_idx([3, 9])\n")
        for options, segments in ((("--split-by-idx=1,3,9",), 3), (("--split", "none"), 1), (("--split-by-size", "50,50"), 2)):
            with self.subTest(options=options):
                found = json.loads(script(path, "--model=lenet", "--format=json", *options))
                self.assertEqual((len(found["segments"]), found["notes"]), (segments, []))

    def test_what_is_no_literal_beside_an_option(self):
        for text, options in (
            ("op.parameter_map['hcom_parallel'].b = FLAGS.hcom\n", ["--hcom-parallel=off"]),
            ("c = NPURunConfig(hcom_parallel=FLAGS.hcom)\n", ["--hcom-parallel=off"]),
            ("set_split_strategy_by_size(FLAGS.cut)\n", ["--split-by-size=80,20"]),
            ("m.register_comm_hook(args.state, powerSGD_hook)\ns = 1\n", ["--compress=fp16"]),
            ("import mindspore as ms\nms.set_auto_parallel_context(device_num=args.n, parallel_mode='data_parallel')\n", ["--npus=2"]),
        ):
            with self.subTest(text=text):
                path = self.written(text)
                self.assertEqual(json.loads(script(path, "--model=lenet", "--npus=2", "--format=json", *(set(options) - {"--npus=2"})))["npus"], 2)
                self.assertIn("train.py", script(path, "--model=lenet", status=2))
        # What has no effect need not be known.
        path = self.written("m['x'] = 1\nop.parameter_map['precision_mode'].s = f(x)\nop.parameter_map['jit_compile'].b = x\n")
        told = script(path, "--npus=1", "--model=lenet")
        self.assertIn("no effect: see --amp", told)
        self.assertIn('parameter_map["jit_compile"] = x  ', told)

    def test_hooks_by_keyword_and_twice(self):
        state = "s = PowerSGDState(None, 2, 2)\n"
        for text in (
            "m.register_comm_hook(state=s, hook=powerSGD_hook)\n",
            "m.register_comm_hook(s, hook=powerSGD_hook)\nn.register_comm_hook(s, powerSGD_hook)\n",
        ):
            with self.subTest(text=text):
                told = script(self.written(state + text), "--npus=2", "--model=lenet")
                self.assertIn("hcclsim run --compress=powersgd:rank=2,start=2 --npus=2", told)
        path = self.written(state + "m.register_comm_hook(s, powerSGD_hook)\nn.register_comm_hook(None, fp16_compress_hook)\n")
        self.assertIn("train.py:3: compress is set otherwise in line 2; give --compress", script(path, status=2))

    def test_contexts_with_names(self):
        path = self.written(
            "from mindspore import context, ParallelMode\nN = 4\nCUTS = [3, 9]\n"
            "context.set_context(mode=context.GRAPH_MODE, device_target='Ascend', device_id=0)\n"
            "context.set_auto_parallel_context(device_num=N, parallel_mode=ParallelMode.DATA_PARALLEL)\n"
            "context.set_auto_parallel_context(all_reduce_fusion_config=CUTS)\n"
        )
        result = json.loads(script(path, "--model=lenet", "--format=json"))
        self.assertEqual((result["npus"], result["framework"], len(result["segments"])), (4, "mindspore", 2))
        path = self.written(
            "from mindspore import context\nsize = get_group_size()\n"
            "context.set_auto_parallel_context(device_num=size, global_rank=get_rank(), parallel_mode='data_parallel')\n"
        )
        told = script(path, "--model=lenet", "--npus=2")
        self.assertIn("device_num: as the run has it, global_rank: as the run has it", told)
        self.assertIn("hcclsim run --parallel-mode=data_parallel --model=lenet", told)
        for text, message in (
            ("N = f()\nms.set_auto_parallel_context(device_num=N)\n", "device_num is no literal: f()"),
            ("ms.set_auto_parallel_context('data_parallel')\n", "by keyword only"),
            (
                "if x:\n    ms.set_auto_parallel_context(device_num=4)\nelse:\n    ms.set_auto_parallel_context(device_num=8)\n",
                "train.py:5: set_auto_parallel_context: device_num is set otherwise in another branch, line 3; give --device-num",
            ),
            ("N = 4\nms.set_context(mode=ms.PYNATIVE_MODE)\nms.set_auto_parallel_context(device_num=N)\n", "must be literals"),
        ):
            with self.subTest(text=text):
                self.assertIn(message, script(self.written(f"import mindspore as ms\n{text}"), status=2))

    def test_conditions(self):
        path = self.written("if x:\n    set_split_strategy_by_size([80, 20])\n")
        self.assertIn("--split-by-size=80,20, if line 1 holds\n", script(path, "--npus=1", "--model=lenet"))
        path = self.written(
            "if x:\n    set_split_strategy_by_size([80, 20])\nelif y:\n    pass\nelse:\n    set_split_strategy_by_size([60, 40])\n"
        )
        self.assertIn("train.py:6: by-size is set otherwise in another branch: [80, 20]", script(path, status=2))
        # One behind the other: the first stays.
        path = self.written("if x:\n    set_split_strategy_by_size([80, 20])\nset_split_strategy_by_size([60, 40])\n")
        self.assertIn("no effect: the first setting stays", script(path, "--npus=1", "--model=lenet"))

    def test_a_run_config(self):
        output = self.folder / "output"
        options = json.dumps({"output": str(output), "training_trace": "on"})
        path = self.written(
            f"p = ProfilingConfig(enable_profiling=True, profiling_options={options!r})\n"
            "c = NPURunConfig(hcom_parallel=True, profiling_config=p, precision_mode='x', model_dir='y')\n"
        )
        told = script(path, "--npus=1", "--model=lenet", "--output-dir", str(self.folder))
        self.assertIn(f"hcclsim run --hcom-parallel=on --step-trace={self.folder}{output}/step_trace_0.csv", told)
        self.assertIn("NPURunConfig(precision_mode=…)", told)
        self.assertTrue(Path(f"{self.folder}{output}/step_trace_0.csv").exists())

    def test_outputs_go_below_a_folder_that_the_user_names(self):
        outside = self.folder / "outside"
        inside = self.folder / "a" / "inside"
        for output in (str(outside), "../../outside", "../.././../outside", f"{inside}/../../outside"):
            path = self.written(
                "p = ProfilingConfig(enable_profiling=True, "
                f"profiling_options={json.dumps({'output': output, 'training_trace': 'on'})!r})\n"
                "c = NPURunConfig(hcom_parallel=True, profiling_config=p)\n"
            )
            with self.subTest(output=output):
                told = script(path, "--npus=1", "--model=lenet")
                self.assertIn(f"Note: output {output!r} of profiling_options is not written; --output-dir DIR", told)
                self.assertNotIn("--step-trace", told)
                script(path, "--npus=1", "--model=lenet", f"--output-dir={inside}")
                self.assertEqual(sorted(entry.name for entry in self.folder.iterdir()), ["a", "train.py"])
                self.assertEqual([entry.name for entry in (self.folder / "a").iterdir()], ["inside"])
                self.assertEqual(len(list(inside.rglob("step_trace_0.csv"))), 1)
                shutil.rmtree(self.folder / "a")
        trace = self.folder / "trace.csv"
        self.assertNotIn("Note: output", script(path, "--npus=1", "--model=lenet", f"--step-trace={trace}"))
        self.assertTrue(trace.exists())

    def test_pipes_and_devices(self):
        text = "set_auto_parallel_context(parallel_mode='data_parallel', gradients_mean=True)\n"
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        options = [COMMAND, "script", str(pipe), "--npus=2", "--model=lenet"]
        process = subprocess.Popen(options, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        pipe.write_text(text, encoding="utf-8")
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertIn("- sets\n  line    1  set_auto_parallel_context", out)
        self.assertIn("hcclsim run --context=- ", out)
        self.assertIn("cannot read /dev/zero: it is a device", script("/dev/zero", status=2))
        path = self.written(text)
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([COMMAND, "script", str(path)], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "hcclsim: error: cannot write to standard output: No space left on device\n")
        for environment in ({}, {"HCCLSIM_MESSAGES": "json"}):
            reading, writing = os.pipe()
            os.close(reading)
            done = subprocess.run(
                [COMMAND, "script", str(path)], stdout=writing, stderr=subprocess.PIPE, text=True, check=False, env={**os.environ, **environment}
            )
            os.close(writing)
            self.assertEqual((done.returncode, done.stderr), (141, ""))

    def test_messages_are_short(self):
        long = "x" * 100_000
        for text in (f"set_split_strategy_by_idx({long})\n", f"set_split_strategy_by_size(['{long}é'])\n", f"{long} = \n"):
            with self.subTest(text=text[:30]):
                message = script(self.written(text), "--npus=1", status=2)
                self.assertLessEqual(len(message.encode()), 2048)
                self.assertIn("train.py:1", message)

    def test_parameter_servers(self):
        path = self.written("set_ps_context(enable_ps=True, server_num=2)\nset_ps_context(scheduler_port=8081)\n")
        result = json.loads(script(path, "--model=lenet", "--npus=4", "--format=json"))
        self.assertEqual((result["servers"], result["workers"]), (2, 4))
        self.assertIn("no effect: enable_ps is False", script(self.written("set_ps_context(enable_ps=False)\n"), "--npus=1", "--model=lenet"))

    def test_nothing_is_executed(self):
        made = self.folder / "made"
        path = self.written(
            f"open({str(made)!r}, 'w').close()\nimport os\nos.system('touch {made}')\n"
            "from hccl.split.api import *\nset_split_strategy_by_size([60, 40])\n"
        )
        script(path)
        self.assertFalse(made.exists())

    def test_what_is_refused(self):
        for text, message in (
            ("set_split_strategy_by_size(sizes)\n", "train.py:1: dataSizeList is no literal: sizes"),
            ("x = f()\nset_split_strategy_by_size(x)\n", "train.py:1: dataSizeList is no literal: f()"),
            ("set_split_strategy_by_size()\n", "train.py:1: set_split_strategy_by_size needs dataSizeList"),
            ("set_split_strategy_by_size([1], 'g', 2)\n", "takes 2 arguments"),
            ("set_split_strategy_by_size([60, 40], gruop='g')\n", "has no argument 'gruop'"),
            ("set_split_strategy_by_idx([1], 'g')\n", "the group 'g' does not exist"),
            ("set_split_strategy_by_idx(5)\n", "must be a list with values, not 5"),
            ("set_split_strategy_by_idx([20, '100', 160])\n", "train.py:1: idxList must hold ints from 0 on"),
            ("set_split_strategy_by_idx([20, -1])\n", "train.py:1: idxList must hold ints from 0 on"),
            ("set_split_strategy_by_idx([160, 20])\n", "train.py:1: indices must ascend"),
            ("set_split_strategy_by_size([True, 99])\n", "train.py:1: dataSizeList must hold ints or floats"),
            ("set_split_strategy_by_size([50, 30, 10])\n", "train.py:1: percentages must sum to 100, not to 90"),
            ("s = PowerSGDState(None, [2])\nm.register_comm_hook(s, powerSGD_hook)\n", "must be a number or a bool, not [2]"),
            ("m.register_comm_hook(hook=powerSGD_hook)\n", "takes a state and a hook"),
            ("create_group('g', 2, [0])\n", "rank_num is 2, but rank_ids is [0]"),
            ("o.parameter_map['hcom_parallel'].b = 1\n", "hcom_parallel must be True or False, not 1"),
            ("o.parameter_map['hcom_paralel'].b = True\n", "no 'hcom_paralel' that is known here"),
            ("o.parameter_map['profiling_options'].s = 'x'\n", "profiling_options is no JSON"),
            ("o.parameter_map['profiling_options'].s = '[]'\n", "must be a JSON object"),
            (
                "o.parameter_map['profiling_options'].s = '{\"training_trace\": \"yes\"}'\n",
                "training_trace must be \"on\" or \"off\", not 'yes'",
            ),
            ("o.parameter_map['profiling_options'].s = '{\"out\": \"x\"}'\n", "has no 'out'"),
            (
                "o.parameter_map['profiling_mode'].b = True\n"
                "o.parameter_map['profiling_options'].s = '{\"training_trace\": \"on\"}'\n",
                "has no output",
            ),
            ("c.graph_options.rewrite_options.remapping = RewriterConfig.ON\n", "must be RewriterConfig.OFF"),
            ("m.register_comm_hook(s, my_hook)\n", "the hook 'my_hook' is not known"),
            ("m.register_comm_hook(s, powerSGD_hook)\n", "must be a PowerSGDState"),
            ("x = 1\n", "sets nothing that is known here"),
            ("def f(:\n", "train.py:1: this is no Python"),
            ("set_split_strategy_by_size([80, 20])\0", "train.py:1: this is no Python"),
            ("x = " + "-" * 5000 + "1\n", "train.py"),
            ("set_split_strategy_by_idx(**d)\n", "**d is no literal"),
            ("set_split_strategy_by_idx(list(range(10 ** 3)))\n", "is no literal"),
            ("set_split_strategy_by_idx(list(range(10000000000)))\n", "idxList is too long"),
            ("set_split_strategy_by_idx(list(range('a')))\n", "is no literal: list(range('a'))"),
            ("o.parameter_map['profiling_options'].s = tf.compat.as_bytes()\n", "is no literal: tf.compat.as_bytes()"),
            ("o.parameter_map['profiling_options'].s = b'\\xff'\n", "profiling_options is no JSON"),
            ("o.parameter_map['hcom_parallel'].s = True\n", "True is set by .b, not by .s"),
            ("c = NPURunConfig(profiling_config=f())\n", "must be a ProfilingConfig"),
        ):
            with self.subTest(text=text):
                told = script(self.written(text), status=2)
                self.assertIn("hcclsim: error: ", told)
                self.assertIn(message, told)
        self.assertIn("cannot be read", script(self.folder / "none.py", status=2))

    def test_a_folder_that_cannot_be_made(self):
        path = self.written(
            "o.parameter_map['profiling_mode'].b = True\n"
            "o.parameter_map['profiling_options'].s = '{\"output\": \"/dev/null/x\", \"training_trace\": \"on\"}'\n"
        )
        self.assertIn("--step-trace FILE writes it elsewhere", script(path, status=2))
        script(path, f"--step-trace={self.folder / 'trace.csv'}")
        self.assertTrue((self.folder / "trace.csv").exists())


if __name__ == "__main__":
    unittest.main()
