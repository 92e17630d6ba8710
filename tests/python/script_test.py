"""`hcclsim script`: what scripts set is what `hcclsim run` simulates; what cannot be read is told with its line."""

import json
import subprocess
import unittest
from pathlib import Path

from script_case import COMMAND, SCRIPTS, ScriptTest, run, script

#: What the buckets of DistributedDataParallel are, but for their size.
BUCKETS = ("--framework=mindspore", "--hcom-parallel=on")


class Scripts(ScriptTest):
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
        told = script(SCRIPTS / "groups.py", status=2)
        self.assertIn("groups.py:6: the split ends at index 159, the last one of 160 gradients; resnet50 has 161", told)
        self.assertIn("networks with as many: --model resnet50 --fc-bias off", told)

    def test_hooks(self):
        result = json.loads(script(SCRIPTS / "ddp.py", "--model=lenet", "--iterations=4", "--format=json"))
        self.assertEqual(
            result,
            run("--model=lenet", "--iterations=4", "--compress=batched-powersgd:rank=2,start=2", *BUCKETS, "--fusion=size:25"),
        )

    def test_buckets_of_pytorch(self):
        path = self.written("import torch\nm = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=1)\n")
        result = json.loads(script(path, "--model=resnet18", "--format=json"))
        self.assertEqual(result["segments"], run("--model=resnet18", *BUCKETS, "--fusion=size:1")["segments"])
        self.assertIn("hcclsim run --model=lenet --split=none\n", script(path, "--model=lenet", "--split=none"))
        path = self.written("m = DistributedDataParallel(net)\nm.register_comm_hook(None, fp16_compress_hook)\n")
        self.assertIn("--fusion=size:25", script(path, "--model=lenet"))
        path = self.written("m = DistributedDataParallel(net, bucket_cap_mb=args.cap)\n")
        self.assertIn("bucket_cap_mb is no literal: args.cap; the script is read, not executed; give --fusion", script(path, status=2))

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
            "a = [80, 20]\nfor i in b:\n    a = [60, 40]\n",
        ):
            with self.subTest(text=text):
                told = script(self.written(f"{text}set_split_strategy_by_size(a)\n"), status=2)
                self.assertRegex(told, "dataSizeList is no literal: (a|list).*; give --split-by-size")
        for text, decided in (
            ("a = [80, 20]\nif x:\n    a = [60, 40]\n", "--branch 3 or --branch 'not x', or --split-by-size"),
            ("if x:\n    a = [80, 20]\nelse:\n    a = [60, 40]\n", "--branch 2 or --branch 4, or --split-by-size"),
            ("if d == 'Ascend':\n    a = [80, 20]\nelse:\n    a = [60, 40]\n", "--branch Ascend, or --split-by-size"),
        ):
            with self.subTest(text=text):
                path = self.written(f"{text}set_split_strategy_by_size(a)\n")
                told = script(path, status=2)
                self.assertRegex(told, r"dataSizeList is a, which is \[80, 20\] in line . and \[60, 40\] in line .; give ")
                self.assertIn(decided, told)
        self.assertIn("--split-by-size=80,20", script(path, "--branch=Ascend", "--npus=1", "--model=lenet"))
        self.assertIn("--split-by-size=60,40", script(path, "--branch", "GPU", "--npus=1", "--model=lenet"))

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
        self.assertIn("train.py:2: hcom_parallel is on in line 1 and off in line 2; give --hcom-parallel", script(path, status=2))
        self.assertTrue(json.loads(script(path, "--model=lenet", "--hcom-parallel=on", "--format=json"))["hcom_parallel"])
        # One after the other, of the same configuration, the last one counts; not in branches.
        path = self.written("a.parameter_map['hcom_parallel'].b = True\na.parameter_map['hcom_parallel'].b = False\n")
        self.assertIn("hcclsim run --hcom-parallel=off --npus=1", script(path, "--npus=1", "--model=lenet"))
        path = self.written(
            "if x:\n    a.parameter_map['hcom_parallel'].b = True\nelse:\n    a.parameter_map['hcom_parallel'].b = False\n"
        )
        self.assertIn("hcom_parallel is on in line 2 and off in line 4; give --branch 2 or --branch 4", script(path, status=2))

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
            ("create_group('g', FLAGS.n, [0])\nx.hcom_parallel = 1\n", ["--split=none"]),
            ("for k in keys:\n    op.parameter_map[k].b = True\n", ["--hcom-parallel=on"]),
            ("c = NPURunConfig(profiling_config=FLAGS.p)\n", [f"--step-trace={self.folder / 'trace.csv'}"]),
            ("m.register_comm_hook(args.state, powerSGD_hook)\ns = 1\n", ["--compress=fp16"]),
            ("import mindspore as ms\nms.set_auto_parallel_context(parallel_mode=args.mode)\n", ["--parallel-mode=data_parallel"]),
        ):
            with self.subTest(text=text):
                path = self.written(text)
                self.assertEqual(json.loads(script(path, "--model=lenet", "--npus=2", "--format=json", *options))["npus"], 2)
                self.assertIn(f"give {options[0].split('=')[0]}", script(path, "--model=lenet", status=2))
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
                self.assertIn("hcclsim run --compress=powersgd:rank=2,start=2 --framework=mindspore", told)
        path = self.written(state + "m.register_comm_hook(s, powerSGD_hook)\nn.register_comm_hook(None, fp16_compress_hook)\n")
        self.assertIn("train.py:3: compress is powersgd:rank=2,start=2 in line 2 and fp16 in line 3; give --compress", script(path, status=2))

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
        self.assertIn("device_num: as the run has it (--npus), global_rank: as the run has it (--rank)", told)
        self.assertIn("hcclsim run --parallel-mode=data_parallel --model=lenet", told)
        for text, message in (
            ("N = f()\nms.set_auto_parallel_context(full_batch=N)\n", "full_batch is no literal: f(); the script is read, not executed; give --full-batch"),
            ("ms.set_auto_parallel_context(**f())\n", "**f() is no literal: f(); the script is read, not executed; give --context"),
            ("ms.set_auto_parallel_context('data_parallel')\n", "by keyword only"),
            (
                "if x:\n    ms.set_auto_parallel_context(device_num=4)\nelse:\n    ms.set_auto_parallel_context(device_num=8)\n",
                "train.py:5: set_auto_parallel_context: device_num is 4 in line 3 and 8 in line 5; give --branch 3 or --branch 5, or --device-num or --npus",
            ),
            (
                "N = 4\nms.set_context(mode=ms.PYNATIVE_MODE)\nms.set_auto_parallel_context(device_num=N, parallel_mode='auto_parallel')\n",
                "train.py:3: mode=PYNATIVE_MODE: beside it set_auto_parallel_context must have literals and stand under no condition",
            ),
        ):
            with self.subTest(text=text):
                self.assertIn(message, script(self.written(f"import mindspore as ms\n{text}"), status=2))

    def told(self, text, *options, status=0):
        return script(self.written(text), *options, *(() if status else ("--npus=1", "--model=lenet")), status=status)

    def test_conditions(self):
        self.assertIn("--split-by-size=80,20, if line 1 holds\n", self.told("if x:\n    set_split_strategy_by_size([80, 20])\n"))
        eighty, sixty = (f"    set_split_strategy_by_size({cut})\n" for cut in ([80, 20], [60, 40]))
        for text, message in (
            (f"if x:\n{eighty}elif y:\n    pass\nelse:\n{sixty}", "line 2 and [60, 40] in line 6; give --branch 2 or --branch 3"),
            (f"if x:\n{eighty}if y:\n{sixty}", "split: by-size is [80, 20] in line 2 and [60, 40] in line 4; give --branch 2 or --branch 4"),
            (f"if x:\n{eighty}{sixty.strip()}\n", "[80, 20] in line 2 and [60, 40] in line 3; give --branch 2"),
            (f"try:\n{eighty}except E:\n{sixty}", "[80, 20] in line 2 and [60, 40] in line 4; give --branch 2 or --branch 4"),
            (f"def f():\n  if x:\n{eighty}    return\n  for i in y:\n{sixty}", "[80, 20] in line 3 and [60, 40] in line 6; give --branch 3"),
            (f"with f():\n  if x:\n{eighty}    sys.exit(0)\n  pass\n  set_split_strategy_by_size([60, 40])\n", "line 3 and [60, 40] in line 6"),
            (f"def f():\n{eighty}def g():\n{sixty}", "[80, 20] in line 2 and [60, 40] in line 4; give --branch 2"),
            (f"if t == 'Ascend':\n{eighty}else:\n    set_split_strategy_by_idx([3, 9])\n", "another branch; give --branch Ascend"),
        ):
            with self.subTest(text=text):
                self.assertIn(message, self.told(text, status=2))
                lines = [number for number, line in enumerate(text.splitlines(), 1) if line.startswith("  ") and "set_split" in line]
                options = self.told(text, f"--branch={lines[-1]}").split("hcclsim run ")[1].split()
                cut = text.splitlines()[lines[-1] - 1].split("[")[1].split("]")[0].replace(" ", "")
                self.assertEqual([option.split("=")[1] for option in options if "split-by" in option], [cut])
        self.assertIn("hcclsim run --split=none --npus=1", self.told(text, "--split=none"))
        # What is the same in all branches, or certain, is no difference.
        for text in (
            f"if x:\n{eighty}else:\n{eighty}",
            f"if 0:\n{sixty}set_split_strategy_by_size([80, 20])\n",
            f"DEBUG = False\nif DEBUG:\n{sixty}set_split_strategy_by_size([80, 20])\n",
            f"while 0:\n{sixty}set_split_strategy_by_size([80, 20])\n",
            f"if x:\n{eighty}{sixty}",
            "set_split_strategy_by_size([80, 20])\nif x:\n    set_split_strategy_by_size([60, 40])\n",
            f"if __name__ == '__main__':\n{eighty}else:\n{sixty}",
            f"try:\n{eighty}except E:\n    raise\n",
        ):
            with self.subTest(text=text):
                self.assertIn("hcclsim run --split-by-size=80,20 --npus=1", self.told(text))

    def test_branches_of_contexts(self):
        start = "from mindspore import context\n"
        ascend = (
            f"{start}if target == 'Ascend':\n    context.reset_auto_parallel_context()\n"
            "    context.set_auto_parallel_context(parallel_mode='data_parallel', all_reduce_fusion_config=[3, 9])\n"
        )
        # A reset is a setting of its branch.
        self.assertIn("hcclsim run --parallel-mode=data_parallel '--all-reduce-fusion-config=[3, 9]' ", self.told(ascend))
        for rest in ("else:\n    context.reset_auto_parallel_context()\n", "elif f():\n    context.reset_auto_parallel_context()\n"):
            with self.subTest(rest=rest):
                self.assertIn("data_parallel in line 4 and reset in line ", self.told(ascend + rest, status=2))
                self.assertIn("hcclsim run --parallel-mode=data_parallel ", self.told(ascend + rest, "--branch=Ascend"))
        text = f"{ascend}elif target == 'GPU':\n    context.reset_auto_parallel_context()\n    context.set_auto_parallel_context(parallel_mode='data_parallel')\n"
        self.assertIn("all_reduce_fusion_config is [3, 9] in line 4 and reset in line 6; give --branch Ascend", self.told(text, status=2))
        self.assertIn("hcclsim run --parallel-mode=data_parallel '--all-reduce-fusion-config=[3, 9]' ", self.told(text, "--branch=Ascend"))
        self.assertIn("hcclsim run --parallel-mode=data_parallel --npus", self.told(text, "--branch", "GPU"))
        self.assertIn("hcclsim run --parallel-mode=data_parallel '--all-reduce-fusion-config=[2,9]' --npus", self.told(text, "--all-reduce-fusion-config=[2,9]"))
        self.assertIn("--branch Asc decides nothing", self.told(text, "--branch=Asc", status=2))
        self.assertIn("--branch needs a value", self.told(text, "--branch", status=2))
        # Words, conditions, values of conditional expressions.
        text = f"{start}mode = 'data_parallel' if a.run else 'stand_alone'\ncontext.set_auto_parallel_context(parallel_mode=mode)\n"
        self.assertIn("give --branch 'a.run', or --branch 'not a.run', or --parallel-mode", self.told(text, status=2))
        self.assertIn("--parallel-mode=data_parallel", self.told(text, "--branch=a.run"))
        self.assertIn("--parallel-mode=stand_alone", self.told(text, "--branch", "not a.run"))
        text = (
            f"{start}if net in ('resnet50', 'resnet18'):\n    cut = [3, 9]\nelse:\n    cut = [4, 9]\n"
            "context.set_auto_parallel_context(parallel_mode='data_parallel', all_reduce_fusion_config=cut)\n"
        )
        self.assertIn("--all-reduce-fusion-config=[3, 9]", self.told(text, "--branch=resnet18"))
        self.assertIn("--all-reduce-fusion-config=[4, 9]", self.told(text, "--branch", "net == 'vgg16'"))
        self.assertIn("--all-reduce-fusion-config=[4, 9]", self.told(text, "--branch=5"))

    def test_what_the_run_has(self):
        for value in ("int(os.getenv('RANK_SIZE'))", "args.device_num", "get_group_size()"):
            text = (
                "from mindspore import context, ParallelMode\nmode = ParallelMode.DATA_PARALLEL\n"
                f"context.set_auto_parallel_context(device_num={value}, parallel_mode=mode, strategy_ckpt_load_file=args.path)\n"
            )
            path = self.written(text)
            with self.subTest(value=value):
                told = script(path, "--npus=2", "--model=lenet")
                self.assertIn("device_num: as the run has it (--npus), strategy_ckpt_load_file: no effect on time", told)
                self.assertIn("hcclsim run --parallel-mode=data_parallel --npus=2", told)
                done = subprocess.run([COMMAND, "script", path, "--npus=2", "--format=json"], capture_output=True, text=True, check=True)
                self.assertEqual(json.loads(done.stdout)["npus"], 2)
                self.assertIn("train.py:3: set_auto_parallel_context(device_num=", done.stderr)
                self.assertIn("train.py:1: network: resnet50, as no option says which network is trained; --model NAME does\n", done.stderr)

    def test_the_network(self):
        self.assertIn("it has 161 gradients, as the split says, which ends at index 160", script(self.written("set_split_strategy_by_idx([20, 160])\n")))
        told = script(self.written("from src.resnet import ResNet18\nnet = resnet_18()\nset_split_strategy_by_size([80, 20])\n"))
        self.assertIn("network is trained; --model NAME does, such as resnet18, which the script mentions\n", told)
        told = script(self.written("set_split_strategy_by_idx([20, 205])\n"), status=2)
        self.assertIn("train.py:1: the split ends at index 205, the last one of 206 gradients; resnet50 has 161; networks with as many: --model bert-base", told)
        told = script(self.written("set_split_strategy_by_idx([20, 1000000])\n"), status=2)
        self.assertIn("no network of 'hcclsim models list' has as many; --gradients FILE", told)
        self.assertIn("--split-by-idx=3,9 --model=lenet", script(self.written("set_split_strategy_by_idx([3, 9])\n"), "--model=lenet"))
        path = self.written("import mindspore as ms\nms.set_auto_parallel_context(parallel_mode='data_parallel', all_reduce_fusion_config=[90, 205])\n")
        self.assertIn("networks with as many: --model bert-base", script(path))

    def test_rewriting(self):
        path = self.written("r = c.graph_options.rewrite_options\nr.remapping = RewriterConfig.OFF\nr.memory_optimization = RewriterConfig.NO_MEM_OPT\n")
        self.assertIn("rewrite_options.memory_optimization = NO_MEM_OPT  as Ascend needs it", script(path))
        path = self.written("c.graph_options.rewrite_options.memory_optimization = RewriterConfig.ON\n")
        self.assertIn("must be RewriterConfig.OFF or RewriterConfig.NO_MEM_OPT on Ascend, it is ON", script(path, status=2))

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

    def test_parameter_servers(self):
        path = self.written("set_ps_context(enable_ps=True, server_num=2)\nset_ps_context(scheduler_port=8081)\n")
        result = json.loads(script(path, "--model=lenet", "--npus=4", "--format=json"))
        self.assertEqual((result["servers"], result["workers"]), (2, 4))
        self.assertIn("no effect: enable_ps is False", script(self.written("set_ps_context(enable_ps=False)\n"), "--npus=1", "--model=lenet"))

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
        self.assertIn("cannot read", script(self.folder / "none.py", status=2))

if __name__ == "__main__":
    unittest.main()
