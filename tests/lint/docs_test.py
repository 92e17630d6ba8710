#!/usr/bin/env python3
"""The check of the documents itself: pages are made, and every rule finds its breach in a small repository."""

import tempfile
import unittest
from pathlib import Path

import docs

GOOD = {
    "hccl/collective/algorithm.hpp": "enum class Algorithm : std::uint8_t {\n  automatic,\n  ring,  ///< slices go round\n};\n",
    "hccl/collective/algorithm.cpp": 'constexpr std::array<std::string_view, 2> algorithm_names{"auto", "ring"};\n'
    "constexpr std::array rows{\n    Row{Collective::allreduce, Algorithm::ring, flat<ring_allreduce>},\n};\n"
    "Algorithm parse_algorithm(Collective collective, std::string_view name) {\n"
    '  if (name == "o") return Algorithm::ring;\n}\n',
    "hccl/collective/algorithm/ring.hpp": "/// Ring: slices go\n/// round.\n///\n/// More of it.\n///\n///     time  p·alpha\n"
    "namespace hcclsim::hccl {\nSchedule ring_allreduce(const Operation& operation);\n}\n",
    "hccl/collective/algorithm/levels/level_stages.cpp": "Row{Algorithm::ring, Collective::broadcast, add_rooted<ring_broadcast>},\n",
    "hccl/schedule/operation.hpp": "enum class Collective : std::uint8_t {\n  allreduce,\n  broadcast,\n};\n",
    "hccl/schedule/operation.cpp": 'constexpr std::array collective_names{"allreduce", "broadcast"};\n',
    "sim/a.cpp": 'void f() {\n  // bad_input("comment", "");\n  bad_input("option", "{}, {}", g(1, 2));\n}\n',
    "docs/error_kinds.txt": "# comment\noption: a value is wrong\n",
    "docs/concepts.md": "| concept | meaning | files |\n| --- | --- | --- |\n| ring | slices go round | `hccl/`, `sim/a.cpp` |\n",
}


class DocsTest(unittest.TestCase):
    def run_on(self, changes, fix=True):
        """Breaches of the good repository with some files replaced or added, and the pages that were made."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**GOOD, **changes}.items():
                if text is not None:
                    file = Path(root) / path
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(text, encoding="utf-8")
            found = docs.problems(root, fix)
            pages = {page: Path(root) / page for page in docs.PAGES}
            return found, {page: file.read_text(encoding="utf-8") for page, file in pages.items() if file.exists()}

    def breaches(self, changes):
        return self.run_on(changes)[0]

    def errors_of(self, code, kinds):
        """The rows of docs/errors.md for a source."""
        found, pages = self.run_on({"sim/a.cpp": code, "docs/error_kinds.txt": kinds})
        self.assertEqual(found, [])
        return [line for line in pages["docs/errors.md"].splitlines() if line.startswith("| `")]

    def test_pages_are_made_and_compared(self):
        found, pages = self.run_on({})
        self.assertEqual(found, [])
        self.assertEqual(self.run_on(pages, fix=False)[0], [])
        stale = "not what the sources say; run tests/lint/docs.py --fix"
        self.assertEqual(
            self.run_on({**pages, "docs/errors.md": "old\n"}, fix=False)[0], [f"docs/errors.md: {stale}"]
        )
        self.assertEqual(
            self.run_on({}, fix=False)[0], [f"docs/algorithms.md: {stale}", f"docs/errors.md: {stale}"]
        )

    def test_algorithms(self):
        page = self.run_on({})[1]["docs/algorithms.md"]
        self.assertIn("| `ring`, `o` | Slices go round. | `ring.hpp` |\n", page)
        self.assertIn("| allreduce | x |\n| broadcast | (L) |\n", page)
        self.assertIn(
            "## ring: `hccl/collective/algorithm/ring.hpp`\n\nRing: slices go\nround.\n\nMore of it.\n\n    time  p·alpha\n", page
        )

    def test_algorithm_without_a_comment(self):
        header = GOOD["hccl/collective/algorithm.hpp"].replace("  ///< slices go round", "")
        self.assertEqual(
            self.breaches({"hccl/collective/algorithm.hpp": header}),
            ["hccl/collective/algorithm.hpp: Algorithm::ring has no comment"],
        )

    def test_builder_without_a_header(self):
        self.assertEqual(
            self.breaches({"hccl/collective/algorithm/ring.hpp": ""}),
            ["hccl/collective/algorithm.cpp: ring_allreduce is declared in 0 headers of algorithm/"],
        )

    def test_kinds(self):
        self.assertEqual(
            self.errors_of('bad_input(\n  "a", "");\nsimulated_failure("a", "");\ninternal_error("x");', "a: b\ninternal: c"),
            ["| `a` | 2, 3 | B. | `sim` |", "| `internal` | 4 | C. | any folder |"],
        )
        self.assertEqual(
            self.errors_of('throw Error(ErrorCode::check_failed, hot ? "a" : "b", "c");', "a: x\nb: y"),
            ["| `a` | 1 | X. | `sim` |", "| `b` | 1 | Y. | `sim` |"],
        )
        self.assertEqual(
            self.errors_of('constexpr std::string_view name = "a";\nvoid f() { bad_input(name, ""); }', "a: b"),
            ["| `a` | 2 | B. | `sim` |"],
        )

    def test_functions_that_are_given_a_kind(self):
        code = 'void g(int n, std::string_view kind) { bad_input(kind, "{}", n); }\nvoid h() { g(1, "a"); }\n'
        self.assertEqual(self.errors_of(code, "a: b"), ["| `a` | 2 | B. | `sim` |"])
        code = 'const auto g = [](const char* kind) { throw Error(ErrorCode::check_failed, kind, ""); };\ng("a");\n'
        self.assertEqual(self.errors_of(code, "a: b"), ["| `a` | 1 | B. | `sim` |"])

    def test_kind_that_nobody_can_name(self):
        self.assertEqual(
            self.breaches({"sim/a.cpp": 'bad_input(word, "");'}),
            ["sim/a.cpp: the kind of an error is `word`, neither a literal nor a named constant"],
        )

    def test_explanations(self):
        text = "docs/error_kinds.txt"
        self.assertEqual(self.breaches({text: ""}), [f"{text}: no sentence for option"])
        self.assertEqual(self.breaches({text: "option: a\nother: b\n"}), [f"{text}: nobody throws other"])
        self.assertEqual(
            self.breaches({text: "option: a\noption: b\n"}), [f"{text}:2: not a line `kind: sentence` of a new kind"]
        )

    def test_concepts(self):
        head = "| concept | meaning | files |\n| --- | --- | --- |\n"
        page = "docs/concepts.md"
        self.assertEqual(self.breaches({page: f"{head}| a | b | `sim/b.cpp` |\n"}), [f"{page}:3: there is no sim/b.cpp"])
        self.assertEqual(self.breaches({page: f"{head}| a | b | none |\n"}), [f"{page}:3: not a row of concept, meaning and files"])
        row = "| a | b | `sim/` |\n"
        self.assertEqual(self.breaches({page: head + row + row}), [f"{page}:4: a stands there twice"])
        self.assertEqual(self.breaches({page: None}), [f"{page}: there is no such file"])

    def test_names_in_documents(self):
        self.assertEqual(self.breaches({"docs/b.md": "see `sim/a.cpp`, `concepts.md` and `x.json`\n"}), [])
        self.assertEqual(self.breaches({"docs/b.md": "see\n`sim/b.cpp`\n"}), ["docs/b.md:2: there is no sim/b.cpp"])

    def rules(self, rows, source):
        """Breaches of a page of rules and of a source, beside the good repository."""
        head = "| rule | what it says | kept by |\n| --- | --- | --- |\n"
        page = head + "".join(f'| <a id="{rule}"></a>{rule} | Slices go round. | {files} |\n' for rule, files in rows)
        return self.breaches({"docs/rules.md": page, **source})

    def test_rules_that_are_cited(self):
        rows = [("Q1.2", "`sim/a.cpp`, `sim/`"), ("Q1.3", "`sim/a.cpp`"), ("QS4.10", "`sim/`")]
        cited = {
            "sim/b.hpp": "/// Q1.2: slices, and\nint f = 1'000;  ///< Q1.3's\n",
            "tests/b_test.cpp": "TEST(B, QS4_10_Slices) {\n}\n",
        }
        self.assertEqual(self.rules(rows, cited), [])
        elsewhere = {"sim/c.py": '"""Q1.2"""\nx = 1  # (Q1.3)\n', "tests/c.case": "# QS4.10: slices.\n$ hcclsim\n"}
        self.assertEqual(self.rules(rows, elsewhere), [])
        self.assertEqual(self.rules(rows[:2], {"docs/b.md": "Slices (Q1.2)\nor Q1.3.\n"}), [])

    def test_rules_that_are_not_there(self):
        self.assertEqual(self.breaches({"sim/b.hpp": "\n// as Q1.2 says\n"}), ["sim/b.hpp:2: docs/rules.md has no rule Q1.2"])
        self.assertEqual(
            self.breaches({"tests/b_test.cpp": "TEST_F(B, Q1_2_Slices) {\n}\n"}),
            ["tests/b_test.cpp:1: docs/rules.md has no rule Q1.2"],
        )

    def test_names_that_are_no_rules(self):
        source = '/// "Q1.2", `Q1.3`, C++20, 910B2, MindSpore 2.3, 8.1.RC1, Q1.2.3, xQ1.2, AR1\nauto text = "Q1.4";\n'
        self.assertEqual(self.breaches({"sim/b.hpp": source, "CHANGELOG.md": "Q1.2\n", "tests/c.case": "$ echo Q1.2\n"}), [])

    def test_rows_of_rules(self):
        cited = {"sim/b.hpp": "/// Q1.2, Q1.3\n"}
        page = "docs/rules.md"
        row = ("Q1.3", "`sim/`")
        self.assertEqual(self.rules([("Q1.2", "`sim/`"), row, ("Q1.4", "`sim/`")], cited), [f"{page}:5: nobody cites Q1.4"])
        self.assertEqual(self.rules([("Q1.2", "`sim/b/`"), row], cited), [f"{page}:3: there is no sim/b/"])
        self.assertEqual(self.rules([("Q1.2", "`sim/`"), row, row], cited), [f"{page}:5: Q1.3 stands there twice"])
        breach = "not a row of a rule with its anchor, what it says, and files"
        self.assertEqual(self.rules([("Q1.2", "none"), row], cited), [f"{page}:3: {breach}"])
        self.assertEqual(
            self.breaches({page: '| <a id="Q1.3"></a>Q1.2 | a | `sim/` |\n', "sim/b.hpp": "// Q1.2\n"}), [f"{page}:1: {breach}"]
        )


if __name__ == "__main__":
    unittest.main()
