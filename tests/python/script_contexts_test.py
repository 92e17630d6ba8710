"""`hcclsim script`: MindSpore's contexts, of which not all can be simulated together, and options in their place."""

import json
import unittest

from script_case import ScriptTest, run, script

START = "import mindspore as ms\nfrom mindspore import context\n"
SERVERS = "if args.ps:\n    ms.set_ps_context(enable_ps=True)\n"
PARALLEL = "ms.set_auto_parallel_context(parallel_mode='data_parallel', gradients_mean=True{})\n"


class Contexts(ScriptTest):
    def told(self, text, *options, status=0):
        """What is told up to the run, or the error."""
        told = script(self.written(START + text), *options, *(() if status else ("--npus=2", "--model=lenet")), status=status)
        return told.split("\n\n")[0] + "\n"

    def test_parameter_servers_are_simulated_without_the_rest(self):
        text = f"{SERVERS}{PARALLEL.format('')}{PARALLEL.format(', all_reduce_fusion_config=args.cut')}"
        told = self.told(text)
        self.assertIn("hcclsim run --mode=ps --ps-context=enable_ps=True --npus=2", told)
        self.assertEqual(told.count("not simulated beside parameter servers; --mode allreduce simulates it instead"), 2)
        done = script(self.written(START + text), "--npus=2", "--model=lenet", "--format=json")
        self.assertEqual(json.loads(done), run("--mode=ps", "--npus=2", "--model=lenet"))
        self.assertIn("--mode ps --npus=2", self.told(text, "--mode", "ps"))
        cut = "--all-reduce-fusion-config=[3,9]"
        self.assertIn("hcclsim run --parallel-mode=data_parallel --gradients-mean=True --mode=allreduce", self.told(text, "--mode=allreduce", cut))
        self.assertIn("hcclsim run --parallel-mode=data_parallel --gradients-mean=True", self.told(text, "--branch", "not args.ps", cut))
        for options, message in (
            ([cut], "train.py:4: --all-reduce-fusion-config does not go with the parameter servers of set_ps_context; give --mode allreduce"),
            (["--mode=allreduce"], "train.py:6: all_reduce_fusion_config is no literal: args.cut"),
            (["--branch", "not args.ps"], "train.py:6: all_reduce_fusion_config is no literal: args.cut"),
        ):
            with self.subTest(options=options):
                self.assertIn(message, self.told(text, *options, status=2))

    def test_keywords(self):
        for call, message in (
            ("context.set_auto_parallel_context(\n    radients_mean=True)", "train.py:4: set_auto_parallel_context has no option 'radients_mean'; did you mean gradients_mean?"),
            ("context.set_auto_parallel_context(**{'xyz': 1})", "train.py:3: set_auto_parallel_context has no option 'xyz'; leave it out"),
            ("context.set_ps_context(enable_pss=True)", "train.py:3: set_ps_context has no option 'enable_pss'; did you mean enable_ps?"),
        ):
            with self.subTest(call=call):
                self.assertIn(message, self.told(f"{call}\n", status=2))
        told = self.told("context.set_auto_parallel_context(parallel_mode='data_parallel', mirror_mean=True)\n")
        self.assertIn("mirror_mean: the former name of gradients_mean\n", told)
        self.assertIn("hcclsim run --parallel-mode=data_parallel --gradients-mean=True ", told)
        told = self.told("context.set_ps_context(**{'enable_ps': True, 'server_num': 2})\n")
        self.assertIn("hcclsim run --mode=ps '--ps-context=enable_ps=True, server_num=2' ", told)

    def test_allreduces_that_are_not_fused(self):
        text = PARALLEL.format("") + "ms.set_auto_parallel_context(comm_fusion={'allreduce': {'mode': 'size', 'config': 0}})\n"
        self.assertIn("hcclsim run --parallel-mode=data_parallel --gradients-mean=True --fusion=none ", self.told(text))
        self.assertIn("--gradients-mean=True --fusion=all --npus=2", self.told(text, "--fusion=all"))
        text = text.replace("data_parallel", "semi_auto_parallel")
        self.assertIn("train.py:4: comm_fusion: in semi_auto_parallel the size of allreduce must be 1 MB or more, not 0", self.told(text, status=2))
        # Dicts are set key by key.
        text = (
            "N = 32\nms.set_auto_parallel_context(parallel_mode='semi_auto_parallel', comm_fusion={'allreduce': {'mode': 'size', 'config': N}})\n"
            "ms.set_auto_parallel_context(comm_fusion={'allgather': {'mode': 'size', 'config': N}})\n"
        )
        told = self.told(text).replace("'\"'\"'", "'")  # as a shell quotes it
        self.assertIn("--comm-fusion={'allreduce': {'mode': 'size', 'config': 32}, 'allgather': {'mode': 'size', 'config': 32}}", told)

    def test_what_an_option_stands_for_is_told(self):
        context = self.folder / "context.py"
        context.write_text("set_auto_parallel_context(parallel_mode='data_parallel')\n", encoding="utf-8")
        text = f"{PARALLEL.format('')}if x:\n    ms.set_auto_parallel_context(**f())\n    ms.reset_auto_parallel_context()\n"
        told = self.told(text, f"--context={context}")
        self.assertEqual(told.count("no effect: --context is given"), 3)
        told = self.told("hccl.set_split_strategy_by_size([80, 20])\n", "--split-by-size=60,40")
        self.assertIn("no effect: --split-by-size is given\n", told)
        self.assertIn("parallel_mode: --parallel-mode is given\n", self.told(PARALLEL.format(""), "--parallel-mode=hybrid_parallel"))

    def test_buckets_of_which_an_option_says_the_size(self):
        text = "m = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=args.cap)\n"
        self.assertIn("give --fusion", self.told(text, status=2))
        told = self.told(text, "--fusion=size:10")
        self.assertIn("hcclsim run --framework=mindspore --hcom-parallel=on --fusion=size:10", told)

    def test_lists_that_end_before_the_last_gradient(self):
        text = PARALLEL.format(", all_reduce_fusion_config=[{}]")
        told = script(self.written(START + text.format("15, 18")), "--npus=2")
        self.assertIn("resnet50, as no option says which network is trained; --model NAME does\n", told)
        told = script(self.written(START + text.format("90, 205")), "--npus=2")
        self.assertIn("the split ends at index 205, the last one of 206 gradients or more; resnet50 has 161", told)

    def test_files_are_not_written_where_the_script_says(self):
        text = PARALLEL.replace("data_parallel", "semi_auto_parallel").format(", device_num=2, group_ckpt_save_file='gg/group.pb'")
        told = self.told(text, "--device-num=2")
        self.assertIn("group_ckpt_save_file: not written; --group-ckpt-save-file writes it", told)
        self.assertIn("hcclsim run --parallel-mode=semi_auto_parallel --gradients-mean=True --device-num=2", told)
        self.assertNotIn("--group-ckpt-save-file=", told)


if __name__ == "__main__":
    unittest.main()
