#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "hccl/collective/selection/selection.hpp"
#include "study/replay/goal/goal_messages.hpp"
#include "study/replay/goal/read_goal.hpp"
#include "study/replay/goal/write_goal.hpp"
#include "tests/study/replay/replayed.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::study {
namespace {

using test::message_time;
using test::refusal;
using test::replayed;
using testing::HasSubstr;

constexpr const char* ping = R"(num_ranks 2
rank 0 {
l1: calc 1000
l2: send 1000000b to 1 tag 7   // behind the computation
l2 requires l1
l3: calc 500
l3 irequires l2
}
/* the other
   side */
rank 1 {
# it waits
r: recv 1000000b from 0 tag 7
c: calc 2000 cpu 1
c requires r
}
)";

TEST(ReadGoal, OperationsAndDependencies) {
  const ExecutionTrace trace = parse_goal(ping, "ping.goal");
  ASSERT_EQ(trace.ranks(), 2);
  const RankTrace& first = trace.of(0);
  ASSERT_EQ(first.nodes.size(), 3);
  EXPECT_DOUBLE_EQ(first.nodes[0].duration, 1e-6);
  EXPECT_EQ(first.nodes[1].kind, NodeKind::send);
  EXPECT_EQ(first.nodes[1].tag, 7);
  EXPECT_EQ(first.ends_before(first.nodes[1]).size(), 1);
  EXPECT_EQ(first.begins_before(first.nodes[2]).size(), 1);
  EXPECT_EQ(trace.of(1).nodes[1].stream, 1);
}

TEST(ReadGoal, Makespan) {
  const ReplayResult result = replayed(parse_goal(ping, "ping.goal"));
  EXPECT_DOUBLE_EQ(result.makespan, 1e-6 + message_time(1e6) + 2e-6);
  EXPECT_DOUBLE_EQ(result.by_rank[0].computing, 1.5e-6);  // the second one begins with the send
}

TEST(ReadGoal, WrongFiles) {
  const std::map<std::string, std::string> wrong{
      {"rank 0 { }", "'num_ranks' is expected, not 'rank'"},
      {"num_ranks 0", "there must be ranks"},
      {"num_ranks x", "the number of ranks is expected"},
      {std::string("\0\1goal", 6), "1.goal:1: 'num_ranks' is expected, not '??goal'"},
      {"num_ranks 2\nrank 0 { calc 1 }", "rank 1 is missing, of 2 ranks"},
      {"num_ranks 1\nrank 0 { calc 1", "1.goal:2: the file ends within rank 0"},
      {"num_ranks 1\nrank 1 { }", "a rank is expected"},
      {"num_ranks 1\nrank 0 { calc 1 }\nrank 0 { }", "1.goal:3: rank 0 has two schedules"},
      {"num_ranks 1\nrank 0 {\na: calc 1\na: calc 2\n}", "1.goal:4: there are two operations 'a'"},
      {"num_ranks 1\nrank 0 {\na: calc 1\na requires b\n}", "1.goal:4: there is no operation 'b' above"},
      {"num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}", "wait for each other in a circle"},
      {"num_ranks 1\nrank 0 {\na: walk 1\n}", "send, recv or calc is expected, not 'walk'"},
      {"num_ranks 1\nrank 0 {\na walk 1\n}", "an operation, a label, or 'requires' is expected"},
      {"num_ranks 1\nrank 0 {\ncalc -4\n}", "nanoseconds is expected"},
      {"num_ranks 2\nrank 0 {\nsend 8k to 1\n}", "a size such as 8b is expected, not '8k'"},
      {"num_ranks 2\nrank 0 {\nsend 8b from 1\n}", "'to' is expected, not 'from'"},
      {"num_ranks 2\nrank 0 {\nsend 8b to 2\n}", "a rank is expected, a number from 0 to 1"},
      {"num_ranks 2\nrank 0 {\nsend 8b to 1 nic 1\n}", "nic 0 alone is accepted"},
      {"num_ranks 1\nrank 0 { }", "no rank does anything"}};
  for (const auto& [text, message] : wrong) {
    EXPECT_THAT(refusal("trace", [&text = text] { static_cast<void>(parse_goal(text, "1.goal")); }), HasSubstr(message))
        << text;
  }
}

/// A Chakra trace written as GOAL.
std::string goal_of(const ExecutionTrace& trace, const std::string& platform) {
  sim::Cluster cluster(platform);
  LoadedPlatform loaded({}, {}, obeyed_by_schedules, cluster);
  TraceSchedules schedules(trace, cluster, loaded.soc, loaded.config, DataType::fp32);
  std::string text;
  write_goal(trace, schedules, [&](std::string_view piece) { text += piece; });
  return text;
}

TEST(WriteGoal, ComputationsAndMessagesKeepTheirTimes) {
  const ExecutionTrace trace =
      test::chakra_trace({{test::compute_node(1, 7), test::send_node(2, 1, 1'000'000, {1}), test::compute_node(3, 900)},
                          {test::receive_node(1, 0, 1'000'000), test::compute_node(2, 11, {1})}});
  const std::string platform = test::hand_platform(2);
  const ExecutionTrace goal = parse_goal(goal_of(trace, platform), "written.goal");
  EXPECT_DOUBLE_EQ(replayed(goal, {}, platform).makespan, replayed(trace, {}, platform).makespan);
}

TEST(WriteGoal, CollectivesMoveTheirBytes) {
  const std::string platform = test::hand_platform(4);
  for (const std::int64_t type : {0, 1, 2, 3, 4, 5, 6, 7}) {
    std::vector<std::vector<test::ChakraNode>> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      ranks.push_back({test::compute_node(1, 5), test::collective_node(2, type, 1 << 20, {1}),
                       test::collective_node(3, type, 1 << 20, {2}), test::compute_node(4, 5, {3})});
    }
    const ExecutionTrace trace = test::chakra_trace(ranks);
    const ExecutionTrace goal = parse_goal(goal_of(trace, platform), "written.goal");
    Bytes sent = 0;
    for (Rank rank = 0; rank < 4; ++rank) {
      for (const TraceNode& node : goal.of(rank).nodes) sent += node.kind == NodeKind::send ? node.bytes : 0;
    }
    const Bytes size = 1 << 20;
    const std::map<std::int64_t, Bytes> least{{0, 6 * size},     {1, 3 * size / 2}, {2, 12 * size}, {3, 3 * size},
                                              {4, 3 * size / 4}, {5, 3 * size},     {6, 3 * size},  {7, 3 * size}};
    EXPECT_GE(sent, 2 * least.at(type)) << type;
    const ReplayResult result = replayed(goal, {}, platform);  // it comes to its end, and takes as long as it must
    const Seconds chakra = replayed(trace, {}, platform).makespan;
    EXPECT_GT(result.makespan, 0.3 * chakra) << type;
    EXPECT_LT(result.makespan, 3 * chakra) << type;
  }
}

}  // namespace
}  // namespace hcclsim::study
