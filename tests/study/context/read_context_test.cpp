#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "study/context/auto_parallel_context.hpp"
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
  EXPECT_TRUE(context.graph_mode);
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
}

TEST(ReadContext, FilesThatSayNothing) {
  for (const char* text :
       {"", "x = 1\n", "set_auto_parallel_context()\n", "'''never closed\nset_auto_parallel_context(device_num=1)"}) {
    const ContextFile file(".py", text);
    EXPECT_THAT(test::refusal("context", [&] { static_cast<void>(file.read()); }), HasSubstr("no call")) << text;
  }
  const ContextFile broken(".json", "{");
  EXPECT_THAT(test::refusal("context", [&] { static_cast<void>(broken.read()); }), HasSubstr("not JSON"));
  const ContextFile open(".py", "set_auto_parallel_context(device_num=8");
  EXPECT_THAT(test::refusal("context", [&] { static_cast<void>(open.read()); }), HasSubstr("must be a literal"));
}

}  // namespace
}  // namespace hcclsim::study
