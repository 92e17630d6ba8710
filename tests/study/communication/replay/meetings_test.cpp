#include "study/communication/replay/meetings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/study/communication/replay/replayed.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::study {
namespace {

using test::chakra_trace;
using test::ChakraNode;
using test::collective_node;
using test::compute_node;
using test::receive_node;
using test::send_node;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::int64_t allreduce = test::chakra::all_reduce;
constexpr std::int64_t allgather = test::chakra::all_gather;

std::string refused_ranks(const std::vector<std::vector<ChakraNode>>& ranks, const ChakraGroups& groups = {}) {
  const ExecutionTrace trace = chakra_trace(ranks, groups);
  return test::refusal("trace", [&] { const Meetings meetings(trace); });
}

TEST(Meetings, MessagesOfOneTagMeetInOrder) {
  // The first send of 8 B meets the first receive of 8 B, though another size comes between.
  const ExecutionTrace trace =
      chakra_trace({{send_node(1, 1, 8), send_node(2, 1, 16, {1}), send_node(3, 1, 8, {2})},
                    {receive_node(4, 0, 8), receive_node(5, 0, 8, {4}), receive_node(6, 0, 16, {5})}});
  const Meetings meetings(trace);
  ASSERT_EQ(meetings.messages().size(), 3);
  EXPECT_EQ(meetings.message_of(0, 0), meetings.message_of(1, 0));
  EXPECT_EQ(meetings.message_of(0, 1), meetings.message_of(1, 2));
  EXPECT_EQ(meetings.message_of(0, 2), meetings.message_of(1, 1));
}

TEST(Meetings, MessagesWithOneEnd) {
  EXPECT_THAT(
      refused_ranks({{send_node(3, 1, 8, {}, 5)}, {compute_node(1, 1)}}),
      HasSubstr("t.0.et: node 3 sends 8 B to rank 1 under tag 5, but rank 1 has no receive that belongs to it"));
  EXPECT_THAT(refused_ranks({{compute_node(1, 1)}, {receive_node(3, 0, 8, {}, 5)}}),
              HasSubstr("t.1.et: node 3 receives 8 B from rank 0 under tag 5, but rank 0 has no send"));
  EXPECT_THAT(refused_ranks({{send_node(3, 1, 8)}, {receive_node(7, 0, 16)}}),
              AllOf(HasSubstr("node 3 sends 8 B"), HasSubstr("there is one of 16 B: node 7")));
  EXPECT_THAT(refused_ranks({{send_node(3, 1, 8)}, {receive_node(7, 0, 8, {}, 1)}}), HasSubstr("node 3 sends 8 B"));
  EXPECT_THAT(refused_ranks({{send_node(3, 0, 8)}, {compute_node(1, 1)}}), HasSubstr("a message of rank 0 to itself"));
  EXPECT_THAT(refused_ranks({{send_node(3, 2, 8)}, {compute_node(1, 1)}}),
              HasSubstr("a message to rank 2, which is missing: the trace has ranks 0 to 1"));
}

TEST(Meetings, CollectivesThatDoNotAgree) {
  EXPECT_THAT(
      refused_ranks({{collective_node(1, allreduce, 64)}, {compute_node(1, 1)}}),
      HasSubstr("rank 0 calls allreduce of 64 B (node 1) on group hccl_world_group, but rank 1 has no such call"));
  EXPECT_THAT(refused_ranks({{collective_node(1, allreduce, 64)}, {collective_node(2, allreduce, 128)}}),
              AllOf(HasSubstr("number 1 on group hccl_world_group"), HasSubstr("rank 0 allreduce of 64 B (node 1)"),
                    HasSubstr("rank 1 allreduce of 128 B (node 2)")));
  EXPECT_THAT(refused_ranks({{collective_node(1, allreduce, 64), collective_node(2, allgather, 64, {1})},
                             {collective_node(1, allgather, 64), collective_node(2, allreduce, 64, {1})}}),
              HasSubstr("ranks do not call the same collectives in the same order"));
  EXPECT_THAT(refused_ranks({{collective_node(1, allreduce, 64)}}), HasSubstr("a collective among one rank"));
}

TEST(Meetings, Groups) {
  const std::vector<std::vector<ChakraNode>> ranks{
      {collective_node(1, allreduce, 64, {}, "1")}, {collective_node(1, allreduce, 64, {}, "1")}, {compute_node(1, 1)}};
  EXPECT_NO_THROW(Meetings(chakra_trace(ranks, {{"1", {0, 1}}})));
  EXPECT_THAT(refused_ranks(ranks, {{"1", {0, 2}}}), HasSubstr("rank 1 is not in group 1 (ranks 0,2)"));
  EXPECT_THAT(refused_ranks(ranks, {{"1", {0, 1, 3}}}),
              HasSubstr("group 1 has rank 3, but the trace has ranks 0 to 2"));
  EXPECT_THAT(refused_ranks(ranks, {{"1", {0, 1, 1}}}), HasSubstr("group 1 has rank 1 twice"));
  EXPECT_THAT(refused_ranks(ranks, {{"1", {1}}}), HasSubstr("a collective among one rank (group 1)"));
  std::vector<std::vector<ChakraNode>> named_alike{{collective_node(2, allreduce, 64, {}, "1")},
                                                   {collective_node(2, allreduce, 64, {}, "1")}};
  for (const int rank : {0, 1}) {
    ChakraNode groups{.id = 1, .type = test::chakra::metadata};
    groups.values = rank == 0 ? R"([{"pg_name": "1", "ranks": [0, 1]}])" : R"([{"pg_name": "1", "ranks": [1, 0]}])";
    named_alike[static_cast<std::size_t>(rank)].push_back(groups);
  }
  EXPECT_THAT(refused_ranks(named_alike), HasSubstr("two groups of this name, one of ranks 0,1 and one of ranks 1,0"));
  std::vector<std::vector<ChakraNode>> rooted = ranks;
  for (auto& nodes : rooted) {
    if (nodes.front().type == test::chakra::collective) {
      nodes.front() = collective_node(1, 5, 64, {}, "1");
      nodes.front().attributes.push_back(test::integer("root", 2));
    }
  }
  EXPECT_THAT(refused_ranks(rooted, {{"1", {0, 1}}}), HasSubstr("root 2 of a group of 2 ranks"));
}

}  // namespace
}  // namespace hcclsim::study
