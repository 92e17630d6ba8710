#!/usr/bin/env python3
"""The case runner itself: every kind of expectation can be met and can fail."""

import tempfile
import unittest
from pathlib import Path

import run_case


class RunCaseTest(unittest.TestCase):
    def run_text(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "some.case"
            path.write_text(text if text.startswith("#") else f"# A block.\n{text}", encoding="utf-8")
            run_case.run_case(path, Path("/bin/true"))

    def assert_fails(self, text, reason):
        with self.assertRaises(run_case.Failure) as caught:
            self.run_text(text)
        self.assertIn(reason, str(caught.exception))

    def test_met(self):
        self.run_text(
            "# all kinds\n$ echo out; echo err >&2; echo kept > f; pwd; exit 3\n"
            "status 3\nstdout contains out\nstdout lacks err\nstderr matches ^err$\nfile f exists\nfile f contains kept\n"
            "file {tmp}/g absent\nstdout contains {tmp}\n$ cat f\nstdout matches ^kept\nstderr is empty\n"
        )

    def test_status(self):
        self.assert_fails("$ exit 2\n", "status 2")
        self.assert_fails("$ exit 2\n$ true\n", "status 2")
        self.assert_fails("$ true\nstatus 2\n", "status 0")
        self.assert_fails("$ true\nstatus 0\nstatus 0\n", "second status")

    def test_text(self):
        self.assert_fails("$ echo a\nstdout contains b\n", "it is:\na")
        self.assert_fails("$ echo a\nstdout lacks a\n", "it is:\na")
        self.assert_fails("$ echo ab\nstdout matches ^b\n", "it is:\nab")
        self.assert_fails("$ echo a >&2\nstderr is empty\n", "it is:\na")
        self.assert_fails("$ echo a\nstdout is no-such-golden\n", "there is no some/no-such-golden beside the case file")

    def test_golden(self):
        with tempfile.TemporaryDirectory() as folder:
            case = Path(folder) / "a.case"
            case.write_text("# A block.\n$ echo {tmp}/a\nstdout is g.txt\n", encoding="utf-8")
            run_case.run_case(case, Path("/bin/true"), update=True)
            golden = Path(folder) / "a/g.txt"
            self.assertEqual(golden.read_text(encoding="utf-8"), "{tmp}/a\n")
            run_case.run_case(case, Path("/bin/true"))
            golden.write_text("other\n", encoding="utf-8")
            with self.assertRaisesRegex(run_case.Failure, r"(?s)--- a/g\.txt.*-other.*\+\{tmp\}/a"):
                run_case.run_case(case, Path("/bin/true"))

    def test_golden_of_another_case_file(self):
        with tempfile.TemporaryDirectory() as folder:
            case = Path(folder) / "b.case"
            case.write_text("# A block.\n$ echo shared\nstdout is a/g.txt\n", encoding="utf-8")
            with self.assertRaisesRegex(run_case.Failure, "there is no a/g.txt beside the case file"):
                run_case.run_case(case, Path("/bin/true"))
            (Path(folder) / "a").mkdir()
            (Path(folder) / "a/g.txt").write_text("shared\n", encoding="utf-8")
            run_case.run_case(case, Path("/bin/true"))

    def test_files(self):
        self.assert_fails("$ true\nfile f exists\n", "no such file")
        self.assert_fails("$ touch f\nfile f absent\n", "it exists")
        self.assert_fails("$ echo a > f\nfile f contains b\n", "it is:\na")

    def test_blocks(self):
        text = (
            "# A remark.\n\n# Setup\n$ touch made\n\n# One: it is new.\n$ touch one\nfile made exists\n\n$ true\n"
            "# Not a block.\n\n# Two.\nlabel long\n$ echo a\nfile one absent\nfile made exists\nstdout is a.txt\n\n# Two?\n$ true\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            case = Path(folder) / "a.case"
            case.write_text(text, encoding="utf-8")
            blocks = run_case.blocks_of(case)
            self.assertEqual([block.name for block in blocks], ["One_it_is_new", "Two", "Two.2"])
            self.assertEqual([block.golden for block in blocks], [False, True, False])
            self.assertEqual([block.labels for block in blocks], [[], ["long"], []])
            self.assertEqual(len(blocks[0].lines), 4)
            run_case.run_case(case, Path("/bin/true"), name="One_it_is_new")
            run_case.run_case(case, Path("/bin/true"), name="Two.2")
            with self.assertRaisesRegex(run_case.Failure, "a.txt"):
                run_case.run_case(case, Path("/bin/true"), name="Two")
            with self.assertRaisesRegex(run_case.Failure, "no block Three"):
                run_case.run_case(case, Path("/bin/true"), name="Three")
            case.write_text("$ true\n", encoding="utf-8")
            with self.assertRaisesRegex(run_case.Failure, "begins with a comment"):
                run_case.blocks_of(case)

    def test_malformed(self):
        self.assert_fails("stdout contains a\n$ true\n", "before the first command")
        self.assert_fails("#\n$ true\n", "names no block")
        self.assert_fails("# One.\n$ true\n\n# Setup\n$ true\n", "a setup is the first block")
        self.assert_fails("# Setup\nlabel long\n$ true\n\n# One.\n$ true\n", "a setup is the first block")
        self.assert_fails("# nothing\n", "no command")
        self.assert_fails("$ true\nstdout equals a\n", "not understood")
        self.assert_fails("$ true\nstdout contains\n", "not understood")
        self.assert_fails("$ true\nwhatever\n", "not understood")


if __name__ == "__main__":
    unittest.main()
