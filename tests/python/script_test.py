"""`hcclsim script`: what scripts set is what `hcclsim run` simulates; what cannot be read is told with its line."""

import json
import os
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
        result = json.loads(script(path, "--model", "resnet18", "--format", "json"))
        self.assertEqual(result, run("--model=resnet18", "--hcom-parallel=on", "--split-by-size=80,20"))
        trace = (output / "step_trace_0.csv").read_text(encoding="utf-8").splitlines()
        self.assertTrue(trace[0].startswith("Iteration ID,FP Start(us),BP End(us)"))
        self.assertEqual(len(trace), 4)
        told = script(path)
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
        # What changes on the way is not known.
        for text in (
            "a = [80]\na += [20]\n",
            "a = [80]\na.append(20)\n",
            "a = [60, 40]\na[0] = 80\n",
            "a = a\n",
            "a = b\nb = a\n",
            "for a in ([80, 20], [60, 40]):\n    pass\n",
            "a = [80, 20]\ndel a\n",
            "a = [80, 20]\nwith f() as a:\n    pass\n",
            "a = [80, 20]\ndef f(a):\n    pass\n",
        ):
            with self.subTest(text=text):
                told = script(self.written(f"{text}set_split_strategy_by_size(a)\n"), status=2)
                self.assertIn("dataSizeList is no literal: a", told)

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
        told = script(path, "--npus=1", "--model=lenet")
        self.assertIn(f"hcclsim run --hcom-parallel=on --step-trace={output}/step_trace_0.csv", told)
        self.assertIn("NPURunConfig(precision_mode=…)", told)
        self.assertTrue((output / "step_trace_0.csv").exists())

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
            ("create_group('g', 2, [0])\n", "rank_num is 2, but rank_ids is [0]"),
            ("o.parameter_map['hcom_parallel'].b = 1\n", "hcom_parallel must be True or False, not 1"),
            ("o.parameter_map['hcom_paralel'].b = True\n", "no 'hcom_paralel' that is known here"),
            ("o.parameter_map['profiling_options'].s = 'x'\n", "profiling_options is no JSON"),
            ("o.parameter_map['profiling_options'].s = '[]'\n", "must be a JSON object"),
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
            ("set_split_strategy_by_idx(list(range('a')))\n", "is no literal: range('a')"),
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
