#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "study/files/context/auto_parallel_context.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::study {
namespace {

using testing::HasSubstr;

/// A file that lives as long as the test.
class ContextFile {
 public:
  ContextFile(const std::string& ending, const std::string& text)
      : path_((std::filesystem::temp_directory_path() /
               ("hcclsim_context_" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "_" +
                ::testing::UnitTest::GetInstance()->current_test_info()->name() + ending))
                  .string()) {
    std::ofstream(path_) << text;
  }
  ~ContextFile() { std::filesystem::remove(path_); }
  ContextFile(const ContextFile&) = delete;
  ContextFile& operator=(const ContextFile&) = delete;

  [[nodiscard]] AutoParallelContext read() const { return read_context(path_, false); }

 private:
  std::string path_;
};

TEST(ReadContext, Python) {
  const ContextFile file(".py", R"(
import mindspore as ms
"""set_auto_parallel_context(device_num=3) in a text"""
# set_auto_parallel_context(device_num=5)
def set_auto_parallel_context(**options): pass
ms.set_context(device_target="Ascend", mode=ms.GRAPH_MODE)
ms.set_auto_parallel_context(device_num=64)
ms.reset_auto_parallel_context()
context.set_auto_parallel_context(
    parallel_mode=ms.ParallelMode.SEMI_AUTO_PARALLEL,  # a comment (with a bracket
    comm_fusion={"allreduce": {"mode": "size", "config": 32}},
    dataset_strategy=((1, 1), (1,)),
)
)");
  const AutoParallelContext context = file.read();
  EXPECT_FALSE(context.is_set("device_num"));
  EXPECT_EQ(context.text("parallel_mode"), "semi_auto_parallel");
  EXPECT_EQ(to_string(context.get("dataset_strategy")), "((1, 1), (1,))");
  EXPECT_TRUE(context.graph_mode());
}

TEST(ReadContext, PythonThatIsNoLiteral) {
  const ContextFile file(".py", "import os\nset_auto_parallel_context(\n    device_num=int(os.environ['N']))\n");
  EXPECT_THAT(test::refusal("context", [&] { static_cast<void>(file.read()); }),
              testing::AllOf(HasSubstr(".py:3: the value of device_num must be a literal"), HasSubstr("int")));
}

TEST(ReadContext, PositionalArguments) {
  const ContextFile file(".py", "set_auto_parallel_context('semi_auto_parallel')\n");
  EXPECT_THAT(test::refusal("type-error", [&] { static_cast<void>(file.read()); }), HasSubstr("by keyword only"));
}

TEST(ReadContext, AWrongValueNamesItsLine) {
  const ContextFile file(".py", "\n\nset_auto_parallel_context(pipeline_stages=0)\n");
  EXPECT_THAT(test::refusal("value-error", [&] { static_cast<void>(file.read()); }),
              HasSubstr(".py:3: pipeline_stages"));
}

TEST(ReadContext, PynativeMode) {
  const ContextFile file(".py", "set_context(mode=1)\nset_auto_parallel_context(parallel_mode='semi_auto_parallel')\n");
  EXPECT_THAT(test::refusal("value-error", [&] { static_cast<void>(file.read()); }), HasSubstr("graph mode"));
}

std::string refused(const char* kind, const std::string& text, const char* ending = ".py") {
  const ContextFile file(ending, text);
  return test::refusal(kind, [&] { static_cast<void>(file.read()); });
}

TEST(ReadContext, NamesOfImports) {
  for (const char* const text :
       {"from mindspore import context\ncontext.set_auto_parallel_context(device_num=8)",
        "import mindspore as foo\nfoo.set_auto_parallel_context(device_num=8)",
        "import mindspore.context as c\nc.set_auto_parallel_context(device_num=8)",
        "import mindspore\nmindspore.context.set_auto_parallel_context(device_num=8)",
        "from mindspore import (\n  Tensor as T,  # of it\n  set_auto_parallel_context as go)\ngo(device_num=8)",
        "from mindspore.context import set_auto_parallel_context\nset_auto_parallel_context(device_num=8)",
        "from mindspore import *\nset_auto_parallel_context(device_num=8)",
        "ms.set_auto_parallel_context(device_num=8)", "ms.set_auto_parallel_context(device_num = 0x8)"}) {
    EXPECT_EQ(ContextFile(".py", text).read().integer("device_num"), 8) << text;
  }
  EXPECT_EQ(ContextFile(".py",
                        "from mindspore import ParallelMode as PM\n"
                        "set_auto_parallel_context(parallel_mode=PM.HYBRID_PARALLEL)")
                .read()
                .text("parallel_mode"),
            "hybrid_parallel");
  // What is not MindSpore's is passed over.
  for (const char* const text :
       {"import torch as ms\nms.set_auto_parallel_context(device_num=8)",
        "from mine import set_auto_parallel_context\nset_auto_parallel_context(device_num=8)",
        "from . import context\ncontext.set_auto_parallel_context(device_num=8)",
        "self.set_auto_parallel_context(device_num=8)", "make().set_auto_parallel_context(device_num=8)"}) {
    EXPECT_THAT(refused("context", text), HasSubstr("no call")) << text;
  }
}

TEST(ReadContext, RepeatedKeywordsAndOpenCalls) {
  EXPECT_THAT(refused("context", "ms.set_auto_parallel_context(device_num=8,\n  device_num=8)"),
              HasSubstr(".py:2: keyword argument repeated: device_num"));
  EXPECT_THAT(refused("context", "ms.set_auto_parallel_context(device_num=8,"),
              HasSubstr(".py:1: this is no Python: '(' of line 1 is not closed"));
  EXPECT_THAT(refused("value-error", "ms.set_auto_parallel_context(device_nun=8)"),
              HasSubstr("did you mean device_num?"));
  EXPECT_THAT(refused("context", "ms.set_auto_parallel_context(comm_fusion=dict(a=1, a=2))"), HasSubstr("repeated"));
}

/// F2.6 across calls; the mode of set_context wherever it stands.
TEST(ReadContext, CallsInTheirOrder) {
  const ContextFile file(".py",
                         "ms.set_context(device_target=os.environ['T'], save_graphs=(1 + 2), mode=ms.PYNATIVE_MODE)\n"
                         "ms.set_seed(1)\n"
                         "ms.set_auto_parallel_context(comm_fusion={'allreduce': {'mode': 'size', 'config': 8}})\n"
                         "ms.set_auto_parallel_context(comm_fusion=dict(allgather=dict(mode='auto', config=None)))\n");
  const AutoParallelContext context = file.read();
  EXPECT_EQ(context.fusion_size("allreduce"), 8);
  EXPECT_EQ(context.fusion_size("allgather"), 64);
  EXPECT_FALSE(context.graph_mode());
  EXPECT_TRUE(context.seeded());
  EXPECT_THAT(refused("value-error",
                      "ms.set_auto_parallel_context(parallel_mode='semi_auto_parallel')\nms.set_context(mode=1)"),
              HasSubstr(".py:2: parallel_mode semi_auto_parallel needs graph mode"));
  EXPECT_THAT(refused("value-error", "ms.set_context(mode=7)\nms.set_auto_parallel_context(device_num=8)"),
              HasSubstr(".py:1: mode of set_context: accepted"));
  EXPECT_THAT(refused("context", "ms.set_context(mode=args.mode)\nms.set_auto_parallel_context(device_num=8)"),
              HasSubstr("got args.mode"));
  EXPECT_TRUE(ContextFile(".py", "ms.set_context(**options)\nms.set_auto_parallel_context(device_num=8)")
                  .read()
                  .is_set("device_num"));
}

/// R1.1: keys of files are set in their order.
TEST(ReadContext, OrderAndLinesOfFiles) {
  const ContextFile toml(".toml",
                         "seed = 3\nfull_batch = true\ndataset_strategy = \"data_parallel\"\n"
                         "[comm_fusion]\nreducescatter = {mode = \"size\", config = 4}\nopenstate = false\n"
                         "allgather = {mode = \"size\", config = 8}\n");
  const AutoParallelContext of_toml = toml.read();
  EXPECT_EQ(of_toml.text("dataset_strategy"), "data_parallel");
  EXPECT_EQ(of_toml.fusion_size("reducescatter"), 4);
  EXPECT_EQ(of_toml.fusion_size("allgather"), 8);
  EXPECT_TRUE(of_toml.seeded());
  const ContextFile json(".json", "{\"dataset_strategy\": \"full_batch\",\n \"full_batch\": false, \"seed\": 1}");
  EXPECT_EQ(json.read().text("dataset_strategy"), "data_parallel");
  EXPECT_TRUE(json.read().seeded());

  EXPECT_THAT(refused("value-error", "device_num = 8\npipeline_stages = 0\n", ".toml"), HasSubstr(".toml:2: pipeline"));
  EXPECT_THAT(refused("value-error", "[auto_parallel_context]\ndevice_nun = 8\n", ".toml"),
              testing::AllOf(HasSubstr(".toml:2:"), HasSubstr("did you mean device_num?")));
  EXPECT_THAT(refused("config", "device_num = \n", ".toml"), HasSubstr(".toml:1:"));
  EXPECT_THAT(refused("value-error", "{\n\"device_num\": 8,\n\"pipeline_stages\": 18446744073709551615}", ".json"),
              testing::AllOf(HasSubstr(".json:3: pipeline_stages"), HasSubstr("got 18446744073709551615")));
  EXPECT_THAT(refused("type-error", "{\n\"device_num\": null}", ".json"), HasSubstr(".json:2: device_num"));
  EXPECT_THAT(refused("context", "{\n\"device_num\": }", ".json"), HasSubstr(".json:2:"));
  EXPECT_THAT(refused("context", "{\"device_num\": 1, \"device_num\": 2}", ".json"), HasSubstr("given twice"));
  EXPECT_THAT(refused("value-error", "{\"mode\": \"eager\"}", ".json"), HasSubstr("accepted: graph, pynative"));
  EXPECT_THAT(refused("type-error", "seed = true\n", ".toml"), HasSubstr("seed must be of type int"));
  EXPECT_THAT(refused("context", "auto_parallel_context = 3\n", ".toml"), HasSubstr("no table"));
  EXPECT_THAT(refused("context", "[1]", ".json"), HasSubstr("no table"));
}

TEST(ReadContext, Toml) {
  const ContextFile file(".toml",
                         "mode = \"graph\"\nparallel_mode = \"semi_auto_parallel\"\npipeline_stages = 4\n"
                         "[comm_fusion.allreduce]\nmode = \"size\"\nconfig = 16\n");
  const AutoParallelContext context = file.read();
  EXPECT_EQ(context.integer("pipeline_stages"), 4);
  EXPECT_EQ(context.get("comm_fusion").find("allreduce")->find("config")->integer, 16);
}

TEST(ReadContext, Json) {
  const ContextFile file(".json",
                         R"({"auto_parallel_context": {"dataset_strategy": [[1, 1]], "gradients_mean": true}})");
  EXPECT_TRUE(file.read().flag("gradients_mean"));
  EXPECT_EQ(to_string(file.read().get("dataset_strategy")), "((1, 1),)");  // JSON has no tuples
  EXPECT_THAT(refused("context", R"({"auto_parallel_context": {"device_num": 8}, "device_num": 4})", ".json"),
              HasSubstr("'device_num' stands beside the table"));
}

TEST(ReadContext, DeviceTarget) {
  const ContextFile file(".py", "ms.set_context(device_target='CPU')\nms.set_auto_parallel_context()\n");
  EXPECT_EQ(file.read().device_target(), "CPU");
  EXPECT_THAT(file.read().warnings(), testing::Contains(HasSubstr("only data_parallel is supported on CPU")));
  EXPECT_THAT(refused("value-error", "ms.set_context(device_target='TPU')\nms.set_auto_parallel_context()"),
              HasSubstr(".py:1: device_target"));
  EXPECT_EQ(ContextFile(".json", R"({"device_target": "GPU"})").read().device_target(), "GPU");
}

TEST(ReadContext, FilesThatSayNothing) {
  for (const char* text : {"", "x = 1\n", "'''set_auto_parallel_context(device_num=1)'''"}) {
    const ContextFile file(".py", text);
    EXPECT_THAT(test::refusal("context", [&] { static_cast<void>(file.read()); }), HasSubstr("no call")) << text;
  }
  const ContextFile broken(".json", "{");
  EXPECT_THAT(test::refusal("context", [&] { static_cast<void>(broken.read()); }), HasSubstr("not JSON"));
}

TEST(ReadContext, WhatIsNoPythonIsRefused) {
  const std::string call = "ms.set_auto_parallel_context(device_num=8)\n";
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {call + "'''never closed\n", ".py:2: this is no Python: the text that begins here does not end"},
           {call + "x = 'a\n", ".py:2: this is no Python: the text that begins here does not end"},
           {call + "x = = 1\n", ".py:2: this is no Python: '=' stands where a value has to"},
           {call + "def f(:\n", ".py:2: this is no Python: ':' stands where a value has to"},
           {call + "x = (1]\n", ".py:2: this is no Python: ']' closes the '(' of line 2"},
           {call + "x = 1)\n", ".py:2: this is no Python: ')' closes nothing"},
           {call + "print 'x'\n", ".py:2: this is no Python: a text follows without an operator"},
           {call + "these are words\n", ".py:2: this is no Python: 'are' follows without an operator"},
           {call + "x = $HOME\n", ".py:2: this is no Python: the character '$' stands in no text"},
           {call + "if x\n", ".py:2: this is no Python: a ':' is missing behind 'if'"},
           {call + "if x:\ny = 1\n", ".py:3: this is no Python: an indented block is missing behind line 2"},
           {call + "  y = 1\n", ".py:2: this is no Python: the line is indented as no block is"},
           {call + "if x:\n    y = 1\n  z = 1\n", ".py:4: this is no Python: the line is indented as no block is"},
           {call + "if x = 1:\n    y = 1\n", ".py:2: this is no Python: '=' stands where no name gets a value"},
           {call + "from mindspore\n", ".py:2: this is no Python: 'import' is missing behind 'from'"},
           {call + "x = 1 +\n", ".py:2: this is no Python: a value is missing at the end"},
           {"parallel_mode: semi auto\n" + call, ".py:1: this is no Python: 'auto' follows without an operator"}}) {
    EXPECT_THAT(refused("context", text), HasSubstr(message)) << text;
  }
  // All of this is Python.
  for (const char* const text :
       {"x, = f\"{y['a']!r:>{w}}\", '''a\n'b''', rb'\\\\'\n", "a = [i for i, in z if not i is not None][::2, 1:]\n",
        "async def f(*, a: int = 1, **k) -> None:\n  async with g() as h: return\n",
        "match x:\n  case [1, *_] | {'a': 2}: pass\n", "match = case = 1\nmatch [0]\nprint(match, case)\n",
        "from ...a.b import (c as d, e)\nimport os; x = lambda *a, b=1: (yield)\n",
        "if x: import y\nelse : z = 1 \\\n  + 2\n", "@a.b(c)\nclass D(E, metaclass=F):\n\tx: int = ...\n",
        "try:\n  raise\nexcept* (A, B) as e:\n  pass\nfinally:\n  del a[0]\n"}) {
    EXPECT_TRUE(ContextFile(".py", text + call).read().is_set("device_num")) << text;
  }
}

/// Conditions that a literal decides; a lone condition counts with a warning.
TEST(ReadContext, WhatStandsUnderConditions) {
  const auto devices = [](const std::string& text) { return ContextFile(".py", text).read().integer("device_num"); };
  const std::string eight = "ms.set_auto_parallel_context(device_num=8)\n";
  const std::string four = "ms.set_auto_parallel_context(device_num=4)\n";
  for (const char* const condition :
       {"if 0:", "if False:", "if not 1:", "if '':", "if None: # never", "while 0:", "if ():"}) {
    EXPECT_EQ(devices(fmt::format("{}{}\n  {}", eight, condition, four)), 8) << condition;
  }
  for (const char* const condition : {"if 1:", "if True:", "if not 0:", "if __name__ == '__main__':", "while True:",
                                      "with f():", "for i in x:", "class A:", "def f():"}) {
    EXPECT_EQ(devices(std::string(condition) + "\n  " + four), 4) << condition;
    EXPECT_TRUE(ContextFile(".py", std::string(condition) + "\n  " + four).read().warnings().empty()) << condition;
  }
  EXPECT_EQ(devices("if 0: " + four + "elif 1: " + eight + "else: " + four), 8);
  EXPECT_EQ(devices("if 1: " + eight + "else:\n  " + four), 8);
  EXPECT_EQ(devices("try:\n  " + eight + "except E:\n  raise\nfinally:\n  pass\n"), 8);
  EXPECT_EQ(devices("if x:\n  " + eight + "elif y:\n  pass\nelse:\n  ms.reset_auto_parallel_context()\n"), 8);
  EXPECT_EQ(devices("if x:\n  " + eight + "else:\n  " + eight), 8);
  EXPECT_THAT(ContextFile(".py", "y = 1\nif x:\n  " + eight).read().warnings(),
              testing::ElementsAre(HasSubstr(".py:3: set_auto_parallel_context counts if line 2 holds")));
  EXPECT_EQ(devices("def f():\n  if 0:\n    " + eight + "    return\n  " + four), 4);
  EXPECT_EQ(devices("def f():\n  if x:\n    " + eight + "    return\n  " + eight), 8);
  EXPECT_TRUE(ContextFile(".py", "if x:\n  ms.set_seed(1)\n" + eight).read().seeded());
}

TEST(ReadContext, BranchesThatDifferAreRefused) {
  const std::string eight = "  ms.set_auto_parallel_context(device_num=8)\n";
  const std::string four = "  ms.set_auto_parallel_context(device_num=4)\n";
  const std::string mode = "  ms.set_auto_parallel_context(parallel_mode='data_parallel')\n";
  // NOLINTBEGIN(performance-inefficient-string-concatenation): it takes the table for the body of the loop
  for (const auto& [text, lines] : std::vector<std::pair<std::string, std::string>>{
           {"if x:\n" + eight + "else:\n" + four, "2,4"},
           {"if x:\n" + eight + "elif y:\n  pass\nelse:\n" + four, "2,6"},
           {"if x:\n" + eight + "if y:\n" + four, "2,4"},
           {"try:\n" + eight + "except E:\n" + four, "2,4"},
           {"match x:\n  case 1:\n  " + eight + "  case 2:\n  " + four, "3,5"},
           {"def f():\n" + eight + "def g():\n" + four, "2,4"},
           {"def f():\n  if x:\n  " + eight + "    return\n" + four, "3,5"},
           {"if x:\n" + eight + mode + "else:\n" + mode, "3,5"},
           {"if 1:\n" + eight + "if x:\n  ms.reset_auto_parallel_context()\n" + mode, "2,5"}}) {
    const std::string first = lines.substr(0, lines.find(','));
    const std::string second = lines.substr(lines.find(',') + 1);
    EXPECT_THAT(refused("context", text),
                testing::AllOf(HasSubstr(".py:" + second + ": the context is set otherwise in line " + first),
                               HasSubstr("with --branch " + first + " or --branch " + second)))
        << text;
  }
  // NOLINTEND(performance-inefficient-string-concatenation)
}

TEST(ReadContext, ValuesOfTheRunAreLeftToTheReaderOfScripts) {
  EXPECT_THAT(refused("context", "ms.set_auto_parallel_context(device_num=get_group_size())\n"),
              testing::AllOf(HasSubstr("'hcclsim script "), HasSubstr("takes it from the run")));
  EXPECT_THAT(refused("context", "ms.set_auto_parallel_context(full_batch=x)\n"),
              HasSubstr("follows names of literals"));
}

}  // namespace
}  // namespace hcclsim::study
