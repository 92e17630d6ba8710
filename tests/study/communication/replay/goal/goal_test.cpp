#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "hccl/collective/selection/selection.hpp"
#include "study/communication/replay/goal/goal_messages.hpp"
#include "study/communication/replay/goal/read_goal.hpp"
#include "study/communication/replay/goal/write_goal.hpp"
#include "tests/study/communication/replay/replayed.hpp"
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
      {"num_ranks 2\nrank 0 {\nsend 8b to 1 nic -1\n}", "a network card is expected"},
      {"num_ranks 2\nrank 0 {\nsend 8b to -1\n}", "a rank is expected, a number from 0 to 1"},
      {"num_ranks 2\nrank 0 {\nsend 8b to 1 tag -1\n}", "a tag is expected"},
      {"num_ranks 2\nrank 0 {\nget 8b from 1\n}", "an operation, a label, or 'requires' is expected, not 'get'"},
      {"num_ranks 2\nrank 0 {\nappend 8b to some_list\n}", "priority_list or overflow_list is expected, not 'some"},
      {"num_ranks 2\nrank 0 {\nappend 8b to priority_list hh 2 ct 1\n}", "hh: handlers"},
      {"num_ranks 2\nrank 0 {\ntput 8b to 1 ct 1\n}", "'when COUNTER reaches NUMBER' is expected"},
      {"num_ranks 2\nrank 0 {\nput 8b to 1 ct 1\ntest 1 for 2\n}",
       "1.goal:4: counter 1 is to reach 2, but 1 operation"},
      {"num_ranks 1\nrank 0 { }", "no rank does anything"}};
  for (const auto& [text, message] : wrong) {
    EXPECT_THAT(refusal("trace", [&text = text] { static_cast<void>(parse_goal(text, "1.goal")); }), HasSubstr(message))
        << text;
  }
}

Seconds makespan_of(const std::string& text) { return replayed(parse_goal(text, "1.goal")).makespan; }

/// LogGOPSim's binomial tree: a rank sends on in the rounds after that in which it has received.
std::string binomial_broadcast(Rank ranks, Bytes bytes) {
  std::string text = fmt::format("num_ranks {}\n", ranks);
  for (Rank rank = 0; rank < ranks; ++rank) {
    text += fmt::format("rank {} {{\n", rank);
    Rank from = 1;  // distance
    for (; from <= rank; from *= 2) continue;
    if (rank > 0) text += fmt::format("r: recv {}b from {}\n", bytes, rank - from / 2);
    for (Rank to = from; rank + to < ranks; to *= 2) {
      text += fmt::format("s{}: send {}b to {}\n", to, bytes, rank + to);
      if (rank > 0) text += fmt::format("s{} requires r\n", to);
    }
    text += "}\n";
  }
  return text;
}

TEST(ReplayGoal, SendsOfARankGoOneAfterTheOther) {
  for (const Rank ranks : {2, 4, 8, 16}) {
    const double rounds = std::log2(ranks);
    EXPECT_NEAR(makespan_of(binomial_broadcast(ranks, 1'000'000)), rounds * message_time(1e6), 1e-12) << ranks;
    EXPECT_NEAR(makespan_of(binomial_broadcast(ranks, 10'000)), rounds * message_time(1e4), 1e-12) << ranks;  // eager
  }
}

TEST(ReplayGoal, TheNextSendBeginsWhenTheBytesHaveLeft) {
  const auto two_sends = [](const std::string& card) {
    return "num_ranks 3\nrank 0 {\nsend 1000000b to 1\nsend 1000000b to 2 " + card +
           "\n}\nrank 1 { recv 1000000b from 0 }\nrank 2 { recv 1000000b from 0 }\n";
  };
  // The latency of the first one is that of its bytes alone; on cards of their own each has its link.
  EXPECT_NEAR(makespan_of(two_sends("")), 201e-6, 1e-12);
  EXPECT_NEAR(makespan_of(two_sends("nic 1")), 101e-6, 1e-12);
  EXPECT_NEAR(replayed(parse_goal(two_sends(""), "1.goal")).by_rank[1].end, 101e-6, 1e-12);
}

TEST(ReplayGoal, ASendThatWaitsForItsReceiveHoldsNoCard) {
  const ReplayResult result = replayed(parse_goal(R"(num_ranks 2
rank 0 {
send 1000000b to 1 tag 1
send 1000000b to 1 tag 2
}
rank 1 {
b: recv 1000000b from 0 tag 2
a: recv 1000000b from 0 tag 1
a requires b
})",
                                                  "1.goal"));
  EXPECT_NEAR(result.makespan, 2 * message_time(1e6), 1e-12);
}

TEST(ReplayGoal, EagerMessagesComeToABuffer) {
  const auto late_receive = [](Bytes bytes) {
    return fmt::format(
        "num_ranks 2\nrank 0 {{\ns: send {0}b to 1\nc: calc 7000\nc requires s\n}}\n"
        "rank 1 {{\nc: calc 300000\nr: recv {0}b from 0\nr requires c\n}}\n",
        bytes);
  };
  const ReplayResult eager = replayed(parse_goal(late_receive(60'000), "1.goal"));
  EXPECT_NEAR(eager.makespan, 300e-6, 1e-12);
  EXPECT_NEAR(eager.by_rank[0].computing + eager.by_rank[0].exposed, message_time(60'000), 1e-12);
  const ReplayResult rendezvous = replayed(parse_goal(late_receive(1'000'000), "1.goal"));
  EXPECT_NEAR(rendezvous.makespan, 300e-6 + message_time(1e6) + 7e-6, 1e-12);
}

TEST(ReplayGoal, ReceivesFromAnyoneTakeWhatBeginsFirst) {
  // Rank 2 sends first, whatever the order of ranks; the computation behind the first receive shows it.
  const auto text = [](std::string_view first, std::string_view second) {
    return fmt::format(
        "num_ranks 3\nrank 0 {{\na: recv 1000000b from {}\nb: recv 1000000b from {}\nb requires a\nc: calc 900000\n"
        "c requires a\n}}\n"
        "rank 1 {{\nc: calc 500000\ns: send 1000000b to 0 tag 3\ns requires c\n}}\n"
        "rank 2 {{ send 1000000b to 0 tag 4 }}\n",
        first, second);
  };
  EXPECT_NEAR(makespan_of(text("-1 tag -1", "-1 tag -1")), message_time(1e6) + 900e-6, 1e-12);
  EXPECT_NEAR(makespan_of(text("-1 tag 3", "2 tag -1")), 500e-6 + message_time(1e6) + 900e-6, 1e-12);
  EXPECT_NEAR(makespan_of(text("1 tag -1", "-1 tag 4")), 500e-6 + message_time(1e6) + 900e-6, 1e-12);
}

TEST(ReplayGoal, OpenEndsThatDoNotMeet) {
  const std::string few = "num_ranks 3\nrank 0 { recv 8b from -1 }\nrank 1 { send 8b to 0 }\nrank 2 { send 8b to 0 }\n";
  EXPECT_THAT(
      refusal("trace", [&] { static_cast<void>(makespan_of(few)); }),
      HasSubstr("rank 2: node 0 (send) sends 8 B to rank 0 under tag 0, but rank 0 has no receive that belongs"));
  const std::string many =
      "num_ranks 2\nrank 0 {\nrecv 8b from -1\nrecv 8b from -1 tag -1\n}\nrank 1 { send 8b to 0 }\n";
  EXPECT_THAT(refusal("trace", [&] { static_cast<void>(makespan_of(many)); }),
              HasSubstr("receives 8 B from any rank, but no rank has a send that belongs to it"));
  // Both are taken by the receives that want them less, and the tag of the last one never comes.
  const std::string wrong =
      "num_ranks 2\nrank 0 {\nrecv 8b from -1\nrecv 8b from 1 tag 5\n}\nrank 1 {\nsend 8b to 0\nsend 8b to 0\n}\n";
  try {
    static_cast<void>(makespan_of(wrong));
    ADD_FAILURE() << "came to its end";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "deadlock");
    EXPECT_THAT(error.what(), HasSubstr("rank 0, node 1 (recv) waits for a message that fits"));
  }
}

TEST(ReplayGoal, OperationsOfPortals) {
  // An append waits for nothing, its counter for the message: 1 sends on what 0 put, and computes behind the test.
  const std::string text = R"(num_ranks 3
rank 0 {
l0: put 1000000b to 1 arg1 4 ct 0 tag 10
c: calc 5000
c requires l0
}
rank 1 {
l0: append 1000000b to priority_list allowed -1 ct 9 use_once tag 10
early: calc 1000
early requires l0
l1: tput 1000000b to 2 when 9 reaches 1 tag 11
l2: test 9 for 1
late: calc 2000
late requires l2
}
rank 2 {
l0: append 1000000b to overflow_list allowed 1 ct 0 use_once tag 11
})";
  const ReplayResult result = replayed(parse_goal(text, "1.goal"));
  EXPECT_NEAR(result.makespan, 2 * message_time(1e6), 1e-12);
  EXPECT_NEAR(result.by_rank[0].computing, 5e-6, 1e-12);
  EXPECT_NEAR(result.by_rank[0].exposed, message_time(1e6) - 5e-6, 1e-12);  // the computation does not wait
  EXPECT_NEAR(result.by_rank[1].computing, 3e-6, 1e-12);
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
