#!/usr/bin/env python3
"""The structure check itself: every rule finds its breach in a small bad repository, and a good one passes."""

import tempfile
import unittest
from pathlib import Path

import structure

GOOD = {
    "README.md": "long\n" * 100,
    "base/README.md": "map\n",
    "base/units.hpp": "#pragma once\n",
    "sim/README.md": "map\n",
    "sim/simgrid/network.cpp": '#include <simgrid/s4u.hpp>\n#include "base/units.hpp"\n',
    "sim/network/network.hpp": "#pragma once\n",
    "models/README.md": "map\n",
    "models/graph.hpp": '#include "base/units.hpp"\n',
    "hccl/README.md": "map\n",
    "hccl/runtime/README.md": "map\n",
    "hccl/runtime/runtime.cpp": '#include "hccl/collective/algorithm/ring.hpp"\n#include "sim/network/network.hpp"\n',
    "hccl/collective/README.md": "map\n",
    "hccl/collective/algorithm/ring.hpp": '#include "hccl/collective/algorithm/ring.hpp"\n#include <vector>\n',
}


class StructureTest(unittest.TestCase):
    def problems(self, changes):
        """Breaches of the good repository with some files replaced or added."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**GOOD, **changes}.items():
                if text is not None:
                    file = Path(root) / path
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(text, encoding="utf-8")
            return structure.problems(root)

    def test_good_repository(self):
        self.assertEqual(self.problems({}), [])

    def test_include_climbs(self):
        self.assertEqual(
            self.problems({"base/units.hpp": '#pragma once\n  # include "sim/network/network.hpp"\n'}),
            ['base/units.hpp:2: "sim/network/network.hpp" climbs: sim stands above base'],
        )
        self.assertEqual(
            self.problems({"hccl/collective/algorithm/ring.hpp": '#include "hccl/runtime/runtime.cpp"\n'}),
            ['hccl/collective/algorithm/ring.hpp:1: "hccl/runtime/runtime.cpp" climbs: hccl/runtime stands above hccl/collective'],
        )

    def test_include_on_one_floor(self):
        self.assertEqual(
            self.problems({"models/graph.hpp": '#include "sim/network/network.hpp"\n'}),
            ['models/graph.hpp:1: "sim/network/network.hpp": models and sim do not know each other'],
        )

    def test_include_of_simgrid(self):
        found = self.problems({"models/graph.hpp": "#include <xbt/log.h>\n"})
        self.assertEqual(found, ["models/graph.hpp:1: <xbt/log.h> may be included in sim/simgrid, tests/sim only"])

    def test_include_of_heavy_headers(self):
        found = self.problems({"sim/simgrid/network.cpp": "#include <nlohmann/json.hpp>\n#include <CLI/CLI.hpp>\n"})
        self.assertEqual(
            found,
            [
                "sim/simgrid/network.cpp:1: <nlohmann/json.hpp> may be included in base/json_text.cpp, "
                "tests/hccl/comm/rank_table_test.cpp only",
                "sim/simgrid/network.cpp:2: <CLI/CLI.hpp> may be included in cli/options/parse/command.cpp only",
            ],
        )

    def test_command_that_simulates(self):
        files = {"cli/README.md": "map\n", "base/child_process.hpp": "", "hccl/runtime/runtime.hpp": ""}
        include = '#include "hccl/runtime/runtime.hpp"\n'
        said = '"hccl/runtime/runtime.hpp": cli parses and prints only; what simulates or starts processes is in study'
        figures = {"hccl/training/README.md": "map\n", "hccl/training/step_view.hpp": ""}
        figures |= {"cli/print/run.cpp": '#include "hccl/training/step_view.hpp"\n'}
        self.assertEqual(self.problems({**files, **figures}), [])
        self.assertEqual(
            self.problems({**files, "cli/print/run.cpp": include}), [f"cli/print/run.cpp:1: {said}"]
        )
        found = self.problems({**files, "cli/commands/sweep/sweep.cpp": '#include "base/child_process.hpp"\n'})
        self.assertEqual(len(found), 1)

    def test_include_is_no_path_from_the_root(self):
        found = self.problems({"sim/simgrid/network.cpp": '#include "network.hpp"\n'})
        self.assertEqual(found, ['sim/simgrid/network.cpp:1: "network.hpp" is not a path from the root of the repository'])

    def test_examples_include_what_lies_beside_them(self):
        example = {"examples/README.md": "map\n", "examples/a.hpp": "#pragma once\n", "examples/a.cpp": '#include "a.hpp"\n'}
        self.assertEqual(self.problems(example), [])
        found = self.problems({**example, "examples/a.cpp": '#include "b.hpp"\n'})
        self.assertEqual(found, ['examples/a.cpp:1: "b.hpp" is not a path from the root of the repository'])

    def test_file_on_no_floor(self):
        found = self.problems({"extra/README.md": "map\n", "extra/a.hpp": "", "sim/simgrid/network.cpp": '#include "extra/a.hpp"'})
        self.assertEqual(
            found, ["extra/a.hpp:1: stands on no floor", 'sim/simgrid/network.cpp:1: "extra/a.hpp" stands on no floor']
        )

    def test_lengths(self):
        self.assertEqual(self.problems({"sim/simgrid/network.cpp": "\n" * 500}), [])
        self.assertEqual(self.problems({"sim/simgrid/network.cpp": "\n" * 501}), ["sim/simgrid/network.cpp:1: 501 lines; at most 500"])
        self.assertEqual(self.problems({"sim/README.md": "x\n" * 40}), [])
        self.assertEqual(
            self.problems({"sim/README.md": "x\n" * 41}), ["sim/README.md:1: 41 lines; a map has at most 40"]
        )

    def test_missing_map(self):
        self.assertEqual(self.problems({"sim/README.md": None}), ["sim:1: no README.md"])
        self.assertEqual(self.problems({"hccl/runtime/README.md": None}), ["hccl/runtime:1: no README.md"])

    def test_folder_without_a_map(self):
        room = {f"sim/network/{name}.hpp": "" for name in ("fluid", "max_min", "network", "more")}
        missing = "sim/network:1: 4 files without a map: neither a README.md here nor `network/` in sim/README.md"
        self.assertEqual(self.problems(room), [missing])
        self.assertEqual(self.problems({**room, "sim/README.md": "network/, `other/`\n"}), [missing])
        self.assertEqual(self.problems({**room, "sim/README.md": "`network/`: bytes\n"}), [])
        self.assertEqual(self.problems({**room, "sim/README.md": "`network/fluid.hpp`\n"}), [])
        self.assertEqual(self.problems({**room, "sim/network/README.md": "map\n"}), [])

    def test_folder_with_too_many_sources(self):
        room = {"sim/README.md": "`network/`: bytes\n", **{f"sim/network/part_{number}.hpp": "" for number in range(29)}}
        self.assertEqual(self.problems(room), [])
        room["sim/network/one_more.hpp"] = ""
        self.assertEqual(self.problems(room), ["sim/network:1: 31 sources; at most 30, the others in sub-folders"])

    def test_tests_mirror_the_sources(self):
        room = {f"tests/sim/network/{name}_test.cpp": "" for name in "abcd"}
        self.assertEqual(self.problems({"tests/README.md": "map\n", **room}), [])
        room = {f"tests/support/{name}.cpp": "" for name in "abcd"}
        self.assertEqual(
            self.problems({"tests/README.md": "map\n", **room}),
            ["tests/support:1: 4 files without a map: neither a README.md here nor `support/` in tests/README.md"],
        )

    def test_map_names_a_file_that_is_gone(self):
        self.assertEqual(self.problems({"sim/README.md": "`network/network.hpp`, `base/units.hpp`, `NAME.cpp`, `*.hpp`\n"}), [])
        self.assertEqual(self.problems({"sim/README.md": "\n`units.hpp`\n"}), ["sim/README.md:2: there is no units.hpp"])

    def test_settings_that_are_copied(self):
        spec = "struct StepSpec {\n  Rank npus = 1;\n  std::vector<int> levels{};\n};\n"
        files = {"hccl/parallel/README.md": "map\n", "hccl/parallel/step_spec.hpp": spec}
        self.assertEqual(self.problems({**files, "hccl/parallel/a.cpp": "step.npus = cluster.size();\n"}), [])
        problems = self.problems({**files, "hccl/parallel/a.cpp": "training.step.levels = spec.levels;\n"})
        self.assertEqual(len(problems), 1)
        self.assertIn("hccl/parallel/a.cpp:1: StepSpec::levels is copied", problems[0])

    def test_functions_that_are_long(self):
        def function(signature, inner, indent=""):
            return f"{indent}{signature} {{\n" + f"{indent}  if (x) y();\n" * inner + f"{indent}}}\n"

        maps = {"study/README.md": "map\n", "study/run/README.md": "map\n"}
        good = function("int one(int x)", 78) + function("void two(int x,\n         int y)", 77)
        self.assertEqual(self.problems({**maps, "study/run/run.cpp": good}), [])
        for signature, begin in (("int one(int x)", 1), ("class A {\n  void one(int x) const", 2)):
            indent = "  " if begin == 2 else ""
            text = function(signature, 79, indent).removeprefix(indent)
            found = self.problems({**maps, "study/run/run.cpp": text})
            self.assertEqual(found, [f"study/run/run.cpp:{begin}: a function of 81 lines; at most 80"])
        self.assertEqual(self.problems({"models/graph.hpp": function("int one(int x)", 79)}), [])

    def test_rooms_that_know_each_other(self):
        rooms = {f"study/compare/{room}/{room}.hpp": "#pragma once\n" for room in ("sweep", "tune", "plans")}
        maps = {"study/README.md": "map\n"}
        tune = {"study/compare/tune/tune.hpp": '#include "study/compare/sweep/sweep.hpp"\n'}
        self.assertEqual(self.problems({**maps, **rooms, **tune}), [])
        circle = {
            **tune,
            "study/compare/sweep/sweep.hpp": '#include "study/compare/plans/plans.hpp"\n',
            "study/compare/plans/plans.hpp": '#include "study/compare/tune/tune.hpp"\n',
        }
        self.assertEqual(
            self.problems({**maps, **rooms, **circle}),
            [
                "study/compare/plans/plans.hpp:1: study/compare/plans and study/compare/tune know each other",
                "study/compare/sweep/sweep.hpp:1: study/compare/sweep and study/compare/plans know each other",
                "study/compare/tune/tune.hpp:1: study/compare/tune and study/compare/sweep know each other",
            ],
        )

    def test_rooms_that_climb(self):
        maps = {"study/README.md": "map\n", "study/run/run.hpp": "#pragma once\n"}
        self.assertEqual(
            self.problems({**maps, "study/platform/platform.hpp": '#include "study/run/run.hpp"\n'}),
            ['study/platform/platform.hpp:1: "study/run/run.hpp" climbs: study/run stands above study/platform'],
        )

    def test_machine_path(self):
        machine = "/" + "home/someone/data.xml"
        self.assertEqual(self.problems({"base/README.md": f"x\nsee {machine}\n"}), ["base/README.md:2: path of one machine"])
        self.assertEqual(self.problems({"base/README.md": f"https://host{machine}\n"}), [])


if __name__ == "__main__":
    unittest.main()
