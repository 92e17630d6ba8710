#include "study/files/strategy/strategy_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "models/zoo/zoo.hpp"
#include "study/files/strategy/batch_parallel.hpp"

namespace hcclsim::study {
namespace {

class StrategyFiles : public testing::Test {
 protected:
  StrategyFiles() : folder_(std::filesystem::temp_directory_path() / ("hcclsim_strategy_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~StrategyFiles() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }

 private:
  std::filesystem::path folder_;
};

StrategyMap small() {
  return {.current_stage = 0,
          .nodes = {{"MatMul_fc1.weight", 1, {{8, 1}, {1, 1}}}},
          .parameters = {{.name = "fc1.weight",
                          .dev_matrix = {8},
                          .tensor_map = {-1, 0},
                          .tensor_shape = {64, 4},
                          .field = 0,
                          .shard_step = 1,
                          .shard_size = 8,
                          .split_shape = {10, 20},
                          .indices_offset = {0, 10}}}};
}

TEST_F(StrategyFiles, AreReadAsTheyWereWritten) {
  for (const char* const name : {"strategy.json", "strategy.ckpt"}) {
    const std::string file = path(name);
    write_strategies(file, small());
    StrategyMap expected = small();
    expected.current_stage = 1;
    // The ProtoBuf form has no shapes of parts.
    if (std::string_view(name) == "strategy.ckpt") expected.parameters[0].tensor_shape.clear();
    EXPECT_EQ(read_strategies(file), expected) << name;
    write_strategies(file, small());  // every save counts
    EXPECT_EQ(read_strategies(file).current_stage, 2U) << name;
    struct stat status {};
    ASSERT_EQ(stat(file.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U) << name;
  }
}

TEST_F(StrategyFiles, GroupsAreReadAsTheyWereWritten) {
  const GroupMap groups{{{"hccl_world_group", {0, 1, 2, 3}}, {"2-5", {1, 3}}}, {1, 3}};
  write_groups(path("group.pb"), groups);
  EXPECT_EQ(read_groups(path("group.pb")), groups);
}

TEST_F(StrategyFiles, WhatCannotBeRead) {
  const auto kind_of = [](const std::string& file) {
    try {
      static_cast<void>(read_strategies(file));
    } catch (const Error& error) {
      return std::string(error.kind());
    }
    return std::string("none");
  };
  EXPECT_EQ(kind_of(path("missing.json")), "runtime-error");
  std::ofstream(path("list.json")) << "[]";
  EXPECT_EQ(kind_of(path("list.json")), "strategy");
  std::ofstream(path("text.ckpt")) << "no strategy";
  EXPECT_EQ(kind_of(path("text.ckpt")), "strategy");
}

TEST(BatchParallel, CutsSamplesAndNothingElse) {
  const models::Graph graph = models::make_model({.name = "mlp:64,32,16", .batch = 4});
  const BatchParallel of{.graph = graph, .devices = 8};
  const StrategyMap map = batch_parallel_strategies(of);
  ASSERT_EQ(map.nodes.size(), 4U);
  EXPECT_EQ(map.nodes[0], (NodeStrategy{"MatMul_fc1.weight", 0, {{8, 1}, {1, 1}}}));
  EXPECT_EQ(map.nodes[1], (NodeStrategy{"BiasAdd_fc1.bias", 0, {{8, 1}, {1}}}));
  EXPECT_EQ(map.parameters[0].tensor_map, (std::vector<std::int32_t>{-1, -1}));
  std::vector<std::string> notes;
  require_batch_parallel(map, of, "file", notes);
  EXPECT_TRUE(notes.empty());
  StrategyMap cut = map;
  cut.nodes[0].inputs[1] = {8, 1};
  EXPECT_THROW(require_batch_parallel(cut, of, "file", notes), Error);
  cut = map;
  cut.nodes[0].name = "MatMul_other.weight";
  require_batch_parallel(cut, of, "file", notes);
  EXPECT_EQ(notes.size(), 1U);
}

/// MindSpore's Gather is of (parameters, indices), its BatchNorm of five inputs.
TEST(BatchParallel, InputsComeAsThePrimitiveTakesThem) {
  const auto inputs_of = [](const std::string& model, const std::string& node) {
    const models::Graph graph = models::make_model({.name = model, .batch = 4});
    const StrategyMap map = batch_parallel_strategies({.graph = graph, .devices = 8});
    const auto found = std::ranges::find(map.nodes, node, &NodeStrategy::name);
    return found == map.nodes.end() ? std::vector<std::vector<std::uint32_t>>{} : found->inputs;
  };
  using Inputs = std::vector<std::vector<std::uint32_t>>;
  EXPECT_EQ(inputs_of("llama2-7b", "Gather_model.embed_tokens.weight"), (Inputs{{1, 1}, {8, 1}}));
  EXPECT_EQ(inputs_of("resnet50", "BatchNorm_bn1.weight"), (Inputs{{8, 1, 1, 1}, {1}, {1}, {1}, {1}}));
}

/// R1.35
TEST(BatchParallel, LayoutsOfCopies) {
  const models::Graph graph = models::make_model({.name = "resnet50", .batch = 4});
  BatchParallel of{.graph = graph, .devices = 8, .optimizer = models::Optimizer::adam, .accumulates = true};
  const auto has = [&](const std::string& name) {
    const StrategyMap map = batch_parallel_strategies(of);
    return std::ranges::find(map.parameters, name, &ParameterLayout::name) != map.parameters.end();
  };
  for (const char* const name : {"fc.weight", "moment1.fc.weight", "moment2.fc.weight", "accu_grads.fc.weight"}) {
    EXPECT_TRUE(has(name)) << name;
  }
  EXPECT_FALSE(has("bn1.moving_mean"));
  of.only_trainable = false;
  EXPECT_TRUE(has("bn1.moving_mean"));
  EXPECT_TRUE(has("layer1.0.bn1.moving_variance"));
  of.optimizer.reset();
  EXPECT_FALSE(has("moment1.fc.weight"));
}

TEST(GroupName, SameRanksSameName) {
  EXPECT_EQ(group_name({0, 1, 2, 3}, 4), "hccl_world_group");
  EXPECT_EQ(group_name({0, 2}, 4), group_name({0, 2}, 8));
  EXPECT_NE(group_name({0, 2}, 4), group_name({1, 3}, 4));
}

}  // namespace
}  // namespace hcclsim::study
