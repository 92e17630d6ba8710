"""`hcclsim script`: where files are read and written, and that nothing of a script is executed."""

import json
import os
import shutil
import subprocess
import unittest

from script_case import COMMAND, ScriptTest, script


class Files(ScriptTest):
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

    def test_encodings(self):
        text = "# -*- coding: {} -*-\nname = '训练'\nset_split_strategy_by_size([80, 20])\n"
        for encoding, written in (("utf-8", "utf-8-sig"), ("gbk", "gbk"), ("utf-8", "utf-8")):
            with self.subTest(encoding=written):
                path = self.folder / "train.py"
                path.write_text(text.format(encoding), encoding=written)
                self.assertIn("--split-by-size=80,20", script(path, "--npus=1", "--model=lenet"))
        path.write_text(text.format("no-such"), encoding="utf-8")
        self.assertIn("train.py: cannot be read: unknown encoding", script(path, status=2))

    def test_messages_are_short(self):
        long = "x" * 100_000
        for text in (f"set_split_strategy_by_idx({long})\n", f"set_split_strategy_by_size(['{long}é'])\n", f"{long} = \n"):
            with self.subTest(text=text[:30]):
                message = script(self.written(text), "--npus=1", status=2)
                self.assertLessEqual(len(message.encode()), 2048)
                self.assertIn("train.py:1", message)

    def test_nothing_is_executed(self):
        made = self.folder / "made"
        path = self.written(
            f"open({str(made)!r}, 'w').close()\nimport os\nos.system('touch {made}')\n"
            "from hccl.split.api import *\nset_split_strategy_by_size([60, 40])\n"
        )
        script(path)
        self.assertFalse(made.exists())

    def test_a_folder_that_cannot_be_made(self):
        path = self.written(
            "o.parameter_map['profiling_mode'].b = True\n"
            "o.parameter_map['profiling_options'].s = '{\"output\": \"/dev/null/x\", \"training_trace\": \"on\"}'\n"
        )
        self.assertIn("--step-trace FILE writes it elsewhere", script(path, "--output-dir=/dev/null/y", status=2))
        script(path, "--output-dir=/dev/null/y", f"--step-trace={self.folder / 'trace.csv'}")
        self.assertTrue((self.folder / "trace.csv").exists())


if __name__ == "__main__":
    unittest.main()
