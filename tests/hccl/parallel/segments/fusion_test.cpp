#include "hccl/parallel/segments/fusion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "models/zoo/zoo.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Groups = std::vector<std::vector<std::uint32_t>>;

std::vector<FusedTensor> tensors(const std::vector<std::uint64_t>& elements, Bytes element = 4) {
  std::vector<FusedTensor> tensors;
  for (const std::uint64_t count : elements) {
    tensors.push_back({static_cast<std::uint32_t>(tensors.size()), count * element, count});
  }
  return tensors;
}

TEST(Fusion, SizesInBytes) {
  EXPECT_EQ(fuse(tensors({4, 5, 3, 8, 12, 1}, 1), {.threshold = 10}), (Groups{{0, 1}, {2}, {3}, {4}, {5}}));
}

TEST(Fusion, SizesAsMindSporeCountsThem) {
  EXPECT_EQ(fuse(tensors({4, 5, 3, 8, 12, 1}), {.threshold = 40, .counts_as_mindspore = true}),
            (Groups{{0, 1}, {2, 3}, {4, 5}}));
}

// 161 gradients of ResNet50 in fp32: tensors and MiB of each collective, by the threshold in MB.
TEST(Fusion, ResNet50AsMindSporeCounts) {
  const models::Graph graph = models::make_model({.name = "resnet50", .batch = 1});
  // MindSpore's order of parameters: the branch of a block before its shortcut.
  std::vector<FusedTensor> all;
  for (const models::Parameter& parameter : graph.parameters) {
    all.push_back({static_cast<std::uint32_t>(all.size()), parameter.elements * 4, parameter.elements});
  }
  const auto counts = [&](Bytes megabytes) {
    std::vector<std::size_t> counts;
    for (const auto& group : fuse(all, {.threshold = megabytes << 20U, .counts_as_mindspore = true})) {
      counts.push_back(group.size());
    }
    return counts;
  };
  EXPECT_THAT(counts(64), ElementsAre(144, 17));
  EXPECT_THAT(counts(32), ElementsAre(126, 18, 17));
  EXPECT_THAT(counts(25), ElementsAre(111, 27, 15, 8));
  EXPECT_THAT(counts(16), ElementsAre(93, 33, 12, 9, 9, 5));
}

TEST(Fusion, OtherModes) {
  const std::vector<FusedTensor> six = tensors({1, 1, 1, 1, 1, 1});
  EXPECT_EQ(fuse(six, {.mode = FusionMode::all}), (Groups{{0, 1, 2, 3, 4, 5}}));
  EXPECT_EQ(fuse(six, {.mode = FusionMode::none}).size(), 6U);
  EXPECT_EQ(fuse(six, {.mode = FusionMode::index, .last = {1, 3}}), (Groups{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(fuse(six, {.mode = FusionMode::index, .last = {1, 9}}), (Groups{{0, 1}, {2, 3, 4, 5}}));
  EXPECT_EQ(fuse(six, {.mode = FusionMode::index, .last = {5}}), (Groups{{0, 1, 2, 3, 4, 5}}));
  EXPECT_EQ(fuse(six, {.mode = FusionMode::id, .ids = {2, 1, 2, 0, 0}}), (Groups{{0, 2}, {1, 5}, {3}, {4}}));
  EXPECT_TRUE(fuse({}, {}).empty());
}

TEST(Fusion, RulesAreRead) {
  EXPECT_EQ(parse_fusion_rule("auto").threshold, Bytes{64} << 20U);
  EXPECT_EQ(to_string(parse_fusion_rule("size:25")), "size 25 MB");
  EXPECT_EQ(to_string(parse_fusion_rule("index:85,160")), "index 85,160");
  EXPECT_EQ(to_string(parse_fusion_rule("none")), "one collective per tensor");
  EXPECT_EQ(to_string(parse_fusion_rule("all")), "one collective for all");
  EXPECT_EQ(to_string(parse_fusion_rule("id")), "ids of parameters");
  EXPECT_EQ(to_string(FusionRule{.mode = FusionMode::index, .last = {3}, .ends_above = true}), "index 3 within 64 MB");
  for (const char* wrong : {"size:0", "size:", "size:-1", "size:1.5", "", "some"}) {
    EXPECT_THAT(test::refusal("option", [&] { static_cast<void>(parse_fusion_rule(wrong)); }), HasSubstr("accepted"));
  }
}

TEST(FusionRules, AreReadAsTheyAreWritten) {
  for (const char* const text : {"none", "all", "id", "size:32", "allreduce=none;reducescatter=size:8;allgather=all",
                                 "allreduce=index:3,7;reducescatter=size:64;allgather=size:64"}) {
    EXPECT_EQ(option_text(parse_fusion_rules(text)), text);
  }
  EXPECT_EQ(option_text(parse_fusion_rules("auto")), "size:64");
}

TEST(FusionRules, OfEachKind) {
  EXPECT_EQ(parse_fusion_rules("size:32"),
            (FusionRules{parse_fusion_rule("size:32"), parse_fusion_rule("size:32"), parse_fusion_rule("size:32")}));
  const FusionRules index = parse_fusion_rules("index:85,160");
  EXPECT_EQ(to_string(index), "allreduce index 85,160, reduce-scatter size 64 MB, allgather size 64 MB");
  EXPECT_EQ(to_string(parse_fusion_rules("allgather=none; reducescatter=size:8")),
            "allreduce size 64 MB, reduce-scatter size 8 MB, allgather one collective per tensor");
  EXPECT_THAT(test::refusal("option", [] { (void)parse_fusion_rules("allgather=index:3"); }),
              HasSubstr("index is for allreduce"));
  EXPECT_THAT(test::refusal("option", [] { (void)parse_fusion_rules("broadcast=all"); }),
              HasSubstr("'broadcast=all' is not understood"));
  EXPECT_THAT(test::refusal("option", [] { (void)parse_fusion_rules("allreduce=size:0"); }),
              HasSubstr("no rule of fusion"));
}

}  // namespace
}  // namespace hcclsim::hccl
