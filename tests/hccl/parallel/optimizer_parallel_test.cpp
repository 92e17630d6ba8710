#include "hccl/parallel/optimizer_parallel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using models::Sharding;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Parameters (1000, 64), (512) and a number, fp32.
models::Graph three_parameters() {
  models::Graph graph;
  graph.title = "three";
  graph.parameters = {{.name = "table", .shape = {1000, 64}, .elements = 64000},
                      {.name = "bias", .shape = {512}, .elements = 512},
                      {.name = "large", .shape = {16, 4096}, .elements = 65536}};
  return graph;
}

std::vector<std::uint32_t> shards(const OptimizerParallel& options, Rank replicas, std::vector<std::string>& notes) {
  return share_parameters(three_parameters(), options, replicas, 4, notes).shards;
}

TEST(OptimizerParallel, LargeParametersWhoseFirstAxisDivides) {
  std::vector<std::string> notes;
  const OptimizerParallel on{.kind = OptimizerParallelKind::on};
  EXPECT_THAT(shards(on, 8, notes), ElementsAre(8, 1, 8));
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_THAT(shards(on, 16, notes), ElementsAre(1, 1, 16));  // 1000 rows are no multiple of 16
  EXPECT_THAT(notes, ElementsAre(HasSubstr("leaves 1 of 3 parameters whole")));
  EXPECT_THAT(shards(on, 1, notes), IsEmpty());
}

TEST(OptimizerParallel, ShardSize) {
  std::vector<std::string> notes;
  EXPECT_THAT(shards({.kind = OptimizerParallelKind::on, .shard = 2}, 4, notes), ElementsAre(2, 1, 2));
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_THAT(shards({.kind = OptimizerParallelKind::on, .shard = 3}, 4, notes), ElementsAre(1, 1, 1));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("a shard size of 3 does not divide the 4 replicas")));
  EXPECT_EQ(shard_ranks({.kind = OptimizerParallelKind::on, .shard = 2}, 4), 2U);
  // MindSpore ignores a shard size of 1: all replicas share.
  notes.clear();
  EXPECT_THAT(shards({.kind = OptimizerParallelKind::on, .shard = 1}, 4, notes), ElementsAre(4, 1, 4));
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_EQ(shard_ranks({.kind = OptimizerParallelKind::on, .shard = 1}, 4), 4U);
  EXPECT_EQ(shard_ranks({.kind = OptimizerParallelKind::off}, 4), 4U);
}

TEST(OptimizerParallel, ThresholdCountsTheWholeParameter) {
  std::vector<std::string> notes;
  EXPECT_THAT(shards({.kind = OptimizerParallelKind::on, .threshold = 0}, 8, notes), ElementsAre(8, 8, 8));
  EXPECT_THAT(shards({.kind = OptimizerParallelKind::on, .threshold = 256'001}, 8, notes), ElementsAre(1, 1, 8));
  EXPECT_THAT(shards({.kind = OptimizerParallelKind::on, .threshold = 256'000}, 8, notes), ElementsAre(8, 1, 8));
}

TEST(OptimizerParallel, ZeroCutsEverything) {
  std::vector<std::string> notes;
  const OptimizerParallel zero{.kind = OptimizerParallelKind::zero2};
  const models::ShardingOptions sharding = share_parameters(three_parameters(), zero, 7, 4, notes);
  EXPECT_THAT(sharding.shards, ElementsAre(7, 7, 7));
  EXPECT_EQ(sharding.kind, Sharding::gradients);
  EXPECT_TRUE(sharding.keeps_gradient_parts());
  EXPECT_THAT(
      test::refusal("option",
                    [] { static_cast<void>(shard_ranks({.kind = OptimizerParallelKind::zero1, .shard = 3}, 8)); }),
      HasSubstr("does not divide the 8 replicas"));
  EXPECT_THAT(
      test::refusal("option",
                    [] { static_cast<void>(shard_ranks({.kind = OptimizerParallelKind::zero1, .shard = 9}, 8)); }),
      HasSubstr("more than the 8 replicas"));
}

/// Rule 5 of 4.2: a shard size that is more than the replicas is that of all replicas.
TEST(OptimizerParallel, ShardsLargerThanTheReplicas) {
  std::vector<std::string> notes;
  EXPECT_EQ(shard_ranks({.kind = OptimizerParallelKind::on, .shard = 9}, 8), 8U);
  EXPECT_THAT(shards({.kind = OptimizerParallelKind::on, .shard = 9}, 8, notes), ElementsAre(8, 1, 8));
  EXPECT_THAT(notes, IsEmpty());
}

TEST(OptimizerParallel, IsRead) {
  EXPECT_EQ(parse_optimizer_parallel("off"), OptimizerParallel{});
  EXPECT_EQ(parse_optimizer_parallel("zero3:shard=8,threshold=16"),
            (OptimizerParallel{.kind = OptimizerParallelKind::zero3, .shard = 8, .threshold = Bytes{16} << 10U}));
  EXPECT_EQ(parse_optimizer_parallel("on:threshold=0").threshold, Bytes{0});
  for (const char* wrong :
       {"zero4", "on:shard=0", "on:shard", "on:shard=-1", "on:size=2", "on:", "on:shard=2,shard=2",
        "on:threshold=1,shard=2,threshold=1", "off:shard=2", "dealt:threshold=1", "zero2:shard=1", ""}) {
    EXPECT_THAT(test::refusal("option", [&] { static_cast<void>(parse_optimizer_parallel(wrong)); }),
                HasSubstr("accepted: off|dealt|on|zero1|zero2|zero3"))
        << wrong;
  }
}

}  // namespace
}  // namespace hcclsim::hccl
