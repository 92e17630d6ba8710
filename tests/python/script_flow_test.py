"""`hcclsim script`: which statements of a script are executed, and which values they have there."""

import sys
import unittest

from script_case import ScriptTest, script

MINDSPORE = "import mindspore as ms\n"
SPLIT = "set_split_strategy_by_size"


class Flow(ScriptTest):
    def told(self, text, *options, status=0):
        """What is told up to the run, or the error."""
        told = script(self.written(text), *options, *(() if status else ("--npus=1", "--model=lenet")), status=status)
        return told.split("\n\n")[0] + "\n"

    def splits(self, text, *options):
        """The options of splits that the script becomes."""
        words = self.told(text, *options).split("hcclsim run ")[1].split()
        return [word for word in words if word.startswith("--split-by") and word not in options]

    def test_parts_of_objects_may_be_set_elsewhere(self):
        call = "    ms.set_auto_parallel_context(parallel_mode='data_parallel', all_reduce_fusion_config=[3, 9])\n"
        start = f"{MINDSPORE}if target == 'CPU':\n    config.run = False\nif config.run:\n"
        told = self.told(start + call)
        self.assertIn("if line 4 holds\n", told)
        self.assertIn("hcclsim run --parallel-mode=data_parallel '--all-reduce-fusion-config=[3, 9]' ", told)
        for text, message in (
            (f"if a.debug:\n    c.cut = [80, 20]\n{SPLIT}(c.cut)\n", "is c.cut, which is [80, 20] in line 2 and not known in another branch; give --branch 2"),
            (f"if a.debug:\n    cut = [80, 20]\nelse:\n    cut = other\n{SPLIT}(cut)\n", "is cut, which is [80, 20] in line 2 and not known in another branch"),
            (f"from cuts import cut\nif a.debug:\n    cut = [80, 20]\n{SPLIT}(cut)\n", "is cut, which is [80, 20] in line 3 and not known in another branch"),
            (f"c.cut = [80, 20]\nc = load()\n{SPLIT}(c.cut)\n", "dataSizeList is no literal: c.cut"),
            (f"def f(d):\n    d.cut = [60, 40]\nc.cut = [80, 20]\nf(c)\n{SPLIT}(c.cut)\n", "dataSizeList is no literal: c.cut"),
            (f"c.cut = [80, 20]\nsetattr(c, 'cut', [60, 40])\n{SPLIT}(c.cut)\n", "dataSizeList is no literal: c.cut"),
        ):
            with self.subTest(text=text):
                self.assertIn(message, self.told(text, status=2))
        # What is known otherwise is known.
        self.assertEqual(self.splits(f"if a.debug:\n    cut = [80, 20]\n{SPLIT}(cut)\n"), ["--split-by-size=80,20"])
        self.assertEqual(self.splits(f"if a.debug:\n    c.cut = [80, 20]\n{SPLIT}(c.cut)\n", "--branch=2"), ["--split-by-size=80,20"])
        path = self.written("if a:\n    self.m = op.parameter_map\nself.m['hcom_parallel'].b = True\n")
        self.assertIn("--hcom-parallel=on", script(path, "--npus=1", "--model=lenet"))

    def test_values_that_change_on_the_way(self):
        for text in (
            "x = [60, 40]\ny = x\ny[0] = 70\ny[1] = 30\n",
            "x = [60, 30]\ny = x\ny.append(10)\n",
            "x = [60, 30]\ny = x\ny += [10]\n",
            "x = [60, 40]\ny = {'a': x}\ny['a'][0] = 70\n",
            "x = [60, 40]\ny = [x]\ny[0].reverse()\n",
            "x = [60, 40]\ndef f():\n    global x\n    x = [80, 20]\nf()\n",
            "def f():\n    global x\n    x = [80, 20]\nx = [60, 40]\nf()\n",
            "x = [60, 40]\ndef f():\n    x[0] = 80\n",
            "def f(y):\n    y[0] = 80\nx = [60, 40]\nf(x)\n",
            "class A:\n    def f(self, y):\n        y.reverse()\nx = [60, 40]\nA().f(y=x)\n",
            "def f():\n    global x\n    x = [80, 20]\ndef g():\n    f()\nx = [60, 40]\ng()\n",
        ):
            with self.subTest(text=text):
                self.assertIn("dataSizeList is no literal: x", self.told(f"{text}{SPLIT}(x)\n", status=2))
        for text in (
            f"x = [60, 40]\ndef main():\n    {SPLIT}(x)\nx = [80, 20]\nmain()\n",
            f"x = [60, 40]\ndef main():\n    {SPLIT}(x)\nx.reverse()\nmain()\n",
            f"class A:\n    def f(self):\n        self.x = [60, 40]\n    def g(self):\n        self.x = [80, 20]\n    def h(self):\n        {SPLIT}(self.x)\n",
        ):
            with self.subTest(text=text):
                self.assertRegex(self.told(text, status=2), "dataSizeList is no literal: (self.)?x")
        # Numbers and copies do not change with others; nor do objects of another class, or names of a function's own.
        for text in (
            f"x = [80, 20]\ny = list(x)\ny[0] = 70\n{SPLIT}(x)\n",
            f"n = 80\nm = n\nm += 5\n{SPLIT}([n, 20])\n",
            f"c.x = [80, 20]\nc.n += 1\nc.y.append(3)\n{SPLIT}(c.x)\n",
            f"i = 1\nx = [80, 20]\ny[i] = 3\n{SPLIT}([80, 20 * i])\n",
            f"x = [80, 20]\ndef f():\n    x = [60, 40]\n    x[0] = 1\nf()\n{SPLIT}(x)\n",
            f"class A:\n    def f(self):\n        self.x = 1\nclass B:\n    def f(self):\n        self.x = [80, 20]\n        {SPLIT}(self.x)\n",
        ):
            with self.subTest(text=text):
                self.assertEqual(self.splits(text), ["--split-by-size=80,20"])

    def test_splits_of_two_kinds_in_branches(self):
        size, index = "    set_split_strategy_by_size([60, 40])\n", "    set_split_strategy_by_idx([3, 9])\n"
        both = "by-idx is by-size [60, 40] in line 2 and by-idx [3, 9] in line 4; give --branch 2 or --branch "
        for text in (
            f"if a.x:\n{size}if not a.x:\n{index}",
            f"if a.x == 's':\n{size}if a.x == 't':\n{index}",
            f"def f():\n{size}def g():\n{index}if a.x:\n    f()\nelse:\n    g()\n",
        ):
            with self.subTest(text=text):
                self.assertIn(f"train.py:4: split: {both}", self.told(text, status=2))
                self.assertEqual(self.splits(text, "--branch=2"), ["--split-by-size=60,40"])
                self.assertEqual(self.splits(text, "--branch=4"), ["--split-by-idx=3,9"])
        text = f"{SPLIT}([60, 40])\nset_split_strategy_by_idx([3, 9])\n"
        self.assertEqual(self.splits(text), ["--split-by-idx=3,9", "--split-by-size=60,40"])

    def test_groups_of_one_name(self):
        text = "create_group('g', 2, [0, 1])\ncreate_group('g', 2, [0, 1])\n"
        self.assertIn("train.py:2: the group 'g' exists", self.told(text, status=2))

    def test_resets_in_branches(self):
        call = "ms.set_auto_parallel_context(parallel_mode='data_parallel')\n"
        for text, message in (
            (f"{call}if d == 'GPU':\n    ms.reset_auto_parallel_context()\n", "data_parallel in line 2 and reset in line 4; give --branch Ascend"),
            (f"if x:\n    {call}else:\n    ms.reset_auto_parallel_context()\n", "data_parallel in line 3 and reset in line 5; give --branch 3 or --branch 5"),
            (
                f"{call}if x:\n    ms.reset_auto_parallel_context()\nelse:\n    ms.set_auto_parallel_context(gradients_mean=True)\n",
                "data_parallel in line 2 and reset in line 4; give --branch 4 or --branch 6",
            ),
            ("ms.set_ps_context(enable_ps=True)\nif x:\n    ms.reset_ps_context()\n", "enable_ps is True in line 2 and reset in line 4; give --branch 4"),
        ):
            with self.subTest(text=text):
                self.assertIn(message, self.told(MINDSPORE + text, status=2))
        text = f"{MINDSPORE}{call}if d == 'GPU':\n    ms.reset_auto_parallel_context()\n"
        self.assertIn("hcclsim run --parallel-mode=data_parallel ", self.told(text, "--branch=Ascend"))
        self.assertIn("hcclsim run --parallel-mode=stand_alone ", self.told(text, "--branch=GPU"))

    def test_texts_in_texts(self):
        text = (
            f"if net == 'resnet50':\n    pass\nif 'resnet' in net:\n    {SPLIT}([80, 20])\n"
            f"elif 'vgg' not in net:\n    {SPLIT}([60, 40])\nelse:\n    {SPLIT}([50, 50])\n"
        )
        for word, cut in (("resnet50", "80,20"), ("resnet", "80,20"), ("vgg", "50,50"), ("net == 'unet'", "60,40"), ("net == 'vgg16'", "50,50")):
            with self.subTest(word=word):
                self.assertEqual(self.splits(text, f"--branch={word}"), [f"--split-by-size={cut}"])

    def test_what_is_never_executed(self):
        sixty, eighty = f"{SPLIT}([60, 40])", f"{SPLIT}([80, 20])"
        for text in (
            f"0 and {sixty}\n{eighty}\n",
            f"1 or {sixty}\n{eighty}\n",
            f"x = {sixty} if 0 else None\n{eighty}\n",
            f"if False and x:\n    {sixty}\n{eighty}\n",
            f"def f():\n    return 1\n    {sixty}\n{eighty}\n",
            f"{eighty}\nraise SystemExit\nset_split_strategy_by_idx([3, 9])\n",
            f"{eighty}\nif 1:\n    sys.exit()\nset_split_strategy_by_idx([3, 9])\n",
            f"def f():\n    if x:\n        return 1\n    else:\n        return 2\n    {sixty}\n{eighty}\n",
            f"for x in y:\n    break\nelse:\n    {eighty}\n",
            f"def f():\n    with x:\n        return 1\n    {sixty}\n{eighty}\n",
        ):
            with self.subTest(text=text):
                self.assertEqual(self.splits(text), ["--split-by-size=80,20"])
        # The command reads contexts itself, but for those that are not executed.
        call = "ms.set_auto_parallel_context(parallel_mode='data_parallel'{})\n"
        text = f"{MINDSPORE}if False and x:\n    {call.format(', gradients_mean=True')}{call.format('')}"
        self.assertIn("hcclsim run --parallel-mode=data_parallel --npus=1", self.told(text))

    def test_branches_in_expressions(self):
        for text, message in (
            (f"f = lambda: {SPLIT}([60, 40])\n{SPLIT}([80, 20])\n", "[60, 40] in line 1 and [80, 20] in line 2; give --branch 1"),
            (f"a.x and {SPLIT}([60, 40])\na.x or {SPLIT}([80, 20])\n", "[60, 40] in line 1 and [80, 20] in line 2; give --branch 1 or --branch 2"),
            (f"x = {SPLIT}([60, 40]) if a.x else {SPLIT}([80, 20])\n", "in line 1 and [80, 20] in line 1; give --branch 'a.x' or --branch 'not a.x'"),
        ):
            with self.subTest(text=text):
                self.assertIn(message, self.told(text, status=2))
        self.assertEqual(self.splits(text, "--branch=a.x"), ["--split-by-size=60,40"])
        self.assertEqual(self.splits(text, "--branch", "not a.x"), ["--split-by-size=80,20"])
        self.assertIn("--split-by-size=60,40, if line 1 holds\n", self.told(f"a.x and b.x and {SPLIT}([60, 40])\n"))

        # Long conditions are read, too.
        self.assertEqual(self.splits(f"x = {' and '.join(['y'] * 3000)}\n{SPLIT}([80, 20])\n"), ["--split-by-size=80,20"])

    @unittest.skipIf(sys.version_info < (3, 10), "match is of Python 3.10")
    def test_matches(self):
        text = "cut = [80, 20]\nmatch x:\n    case 1:\n        cut = [60, 40]\n    case {}:\n        cut = [60, 40]\n"
        text += f"{SPLIT}(cut)\n"
        self.assertEqual(self.splits(text.format("_")), ["--split-by-size=60,40"])
        self.assertIn("[80, 20] in line 1 and [60, 40] in line 4 and [60, 40] in line 6; give --branch 4 or --branch 6", self.told(text.format("2"), status=2))

    def test_branches_in_branches(self):
        call = "ms.set_auto_parallel_context(device_num={}, parallel_mode='data_parallel')\n"
        text = (
            f"{MINDSPORE}if a.cloud:\n    {call.format(2)}elif a.run:\n    if d == 'Ascend':\n        {call.format(4)}"
            f"    else:\n        {call.format(8)}"
        )
        self.assertIn("give --branch 3 or --branch 4, or --device-num", self.told(text, status=2))
        self.assertIn("give --branch Ascend, or --device-num", self.told(text, "--branch=4", status=2))
        for options, count in ((["--branch=3"], 2), (["--branch=Ascend", "--branch=3"], 2), (["--branch=Ascend", "--branch=4"], 4)):
            with self.subTest(options=options):
                self.assertIn(f"hcclsim run --device-num={count} ", script(self.written(text), *options, "--model=lenet"))
        for wrong in ("Ascent", "12", "a.runs", "d == Ascend"):
            self.assertIn(f"--branch {wrong} decides nothing", self.told(text, f"--branch={wrong}", status=2))


if __name__ == "__main__":
    unittest.main()
