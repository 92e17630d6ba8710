// What fuzzing found, and the inputs that it began with, through the same functions: tests/data/fuzz/TARGET/.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/fuzz/targets.hpp"

namespace hcclsim::fuzz {
namespace {

namespace fs = std::filesystem;

struct Target {
  const char* name;
  int (*run)(Input);
};

constexpr std::array targets{Target{"config_file", fuzz_config_file},
                             Target{"quantities", fuzz_quantities},
                             Target{"platform", fuzz_platform},
                             Target{"platform_edit", fuzz_platform_edit},
                             Target{"gradients", fuzz_gradients},
                             Target{"mnist", fuzz_mnist},
                             Target{"cifar10", fuzz_cifar10},
                             Target{"image_file", fuzz_image_file},
                             Target{"image_labels", fuzz_image_labels},
                             Target{"rank_table", fuzz_rank_table},
                             Target{"split_lists", fuzz_split_lists},
                             Target{"hccl_variables", fuzz_hccl_variables},
                             Target{"schedule_text", fuzz_schedule_text},
                             Target{"schedule_binary", fuzz_schedule_binary},
                             Target{"checkpoint", fuzz_checkpoint},
                             Target{"checkpoint_records", fuzz_checkpoint_records},
                             Target{"profile", fuzz_profile},
                             Target{"calibration_log", fuzz_calibration_log},
                             Target{"communication", fuzz_communication},
                             Target{"baseline", fuzz_baseline},
                             Target{"validation", fuzz_validation},
                             Target{"msjob", fuzz_msjob},
                             Target{"chakra", fuzz_chakra},
                             Target{"goal", fuzz_goal},
                             Target{"sweep_rows", fuzz_sweep_rows},
                             Target{"sweep_grid", fuzz_sweep_grid},
                             Target{"option_texts", fuzz_option_texts},
                             Target{"onnx", fuzz_onnx},
                             Target{"mindformers", fuzz_mindformers},
                             Target{"megatron", fuzz_megatron},
                             Target{"platform_loading", fuzz_platform_loading}};

std::vector<std::uint8_t> bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Files of a folder, in the order of their names.
std::set<fs::path> files_of(const std::string& folder) {
  std::set<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) files.insert(entry.path());
  return files;
}

class Replay : public testing::TestWithParam<Target> {};

// Inputs are named by what must become of them: accepted-… or refused-….
TEST_P(Replay, KeptInputs) {
  std::set<int> verdicts;
  for (const fs::path& path : files_of(std::string(HCCLSIM_TEST_DATA) + "/fuzz/" + GetParam().name)) {
    SCOPED_TRACE(path);
    const bool accept = path.filename().string().starts_with("accepted-");
    ASSERT_TRUE(accept || path.filename().string().starts_with("refused-"));
    EXPECT_EQ(GetParam().run(bytes_of(path)), accept ? accepted : refused);
    verdicts.insert(accept ? accepted : refused);
  }
  EXPECT_TRUE(verdicts.contains(accepted)) << "no input that reaches the end of the target";
}

TEST_P(Replay, NothingAndNonsense) {
  EXPECT_NO_THROW(GetParam().run({}));
  const std::vector<std::uint8_t> zeros(4096);
  EXPECT_NO_THROW(GetParam().run(zeros));
  std::vector<std::uint8_t> all(256);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i);
  EXPECT_NO_THROW(GetParam().run(all));
}

INSTANTIATE_TEST_SUITE_P(Targets, Replay, testing::ValuesIn(targets),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(FuzzTargets, AllAreReplayed) {
  std::istringstream built(HCCLSIM_FUZZ_TARGETS);
  std::vector<std::string> names;
  for (const Target& target : targets) names.emplace_back(target.name);
  EXPECT_THAT(std::vector<std::string>(std::istream_iterator<std::string>(built), {}),
              testing::UnorderedElementsAreArray(names));
}

}  // namespace
}  // namespace hcclsim::fuzz
