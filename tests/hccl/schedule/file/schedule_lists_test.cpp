#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.hpp"
#include "hccl/check/check.hpp"
#include "hccl/collective/staging.hpp"
#include "hccl/schedule/difference.hpp"
#include "hccl/schedule/explicit_form.hpp"
#include "hccl/schedule/file/listed_task.hpp"
#include "hccl/schedule/file/schedule_file.hpp"
#include "tests/support/collectives/collective_algorithms.hpp"
#include "tests/support/collectives/two_queues.hpp"

/// Lists of tasks in files, and JSON; what is wrong with the form of a schedule, all of it.
namespace hcclsim::hccl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Rank 0 sends 128 bytes to rank 1.
constexpr const char* one_message = R"(version: 1
collective: send_recv
ranks: 2
elements: 32
out_of_place: true
notifies: 2
counts: [0, 32, 0, 0]
stage {
  name: "send"
  list {
    rank: 0
    queue: 0
    task: "wait notify 0"
    task: "write 1 input[0:128] -> output[0:128]"
    task: "post 1 notify 1"
  }
  list {
    rank: 1
    task: "post 0 notify 0"
    task: "wait notify 1"
  }
}
)";

std::string problem_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "schedule");
    return error.what();
  }
  return "no error";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ScheduleLists, TasksAreWrittenAsTheyAreRead) {
  for (const char* text :
       {"write 3 output[0:512] -> scratch[512:1024]", "read_reduce 3 scratch[0:512] -> output[0:512]",
        "write_reduce 3 output[0:512,1024:1536]", "read 0 ccl[0:0] -> input[0:0]", "copy input[0:512] -> output[0:512]",
        "reduce scratch[0:512] -> output[0:512]", "reduce scratch[0:512] -> output[0:512] by_core false",
        "post 3 notify 1", "wait notify 1", "local_post notify 2", "local_wait notify 2"}) {
    EXPECT_EQ(text_of_listed(parse_listed_task(text)), text);
  }
  const Task task = parse_listed_task(" write  7 output [ 0 : 4 ]->scratch[4:8]  ");
  EXPECT_EQ(task.kind, TaskKind::write);
  EXPECT_EQ(task.peer, (Peer{Peer::Kind::rank, 0, {7, 0, 0, 0}}));
  EXPECT_THAT(task.source.intervals, ElementsAre(ByteInterval{0, 4}));
  EXPECT_THAT(task.destination.intervals, ElementsAre(ByteInterval{4, 8}));
}

TEST(ScheduleLists, TasksSayWhereTheyAreWrong) {
  const auto error = [](const char* text) { return problem_of([&] { static_cast<void>(parse_listed_task(text)); }); };
  EXPECT_THAT(error("wriet 3 output[0:4]"),
              HasSubstr("'wriet 3 output[0:4]': 'wriet 3 output[0:4]' stands at character "
                        "1, where one of copy, reduce, write, read, write_reduce"));
  EXPECT_THAT(error("write output[0:4]"), HasSubstr("at character 7, where the rank of the peer should be"));
  EXPECT_THAT(error("write 1 output"), HasSubstr("it ends at character 15, where '[', the first byte"));
  EXPECT_THAT(error("write 1 output[0-4]"), HasSubstr("':' and the byte behind the last should be"));
  EXPECT_THAT(error("write 1 output[0:4] > scratch[0:4]"), HasSubstr("'> scratch[0:4]' stands at character 21"));
  EXPECT_THAT(error("post 1"), HasSubstr("'notify' and its number"));
  EXPECT_THAT(error("local_post 1 notify 0"), HasSubstr("'notify' and its number"));
  EXPECT_THAT(error("copy input[0:4] -> output[0:4] by_core false"), HasSubstr("where the end should be"));
  EXPECT_THAT(error("wait notify 99999999999"), HasSubstr("a number up to 2147483647"));
}

TEST(ScheduleLists, AHandWrittenOneIsRight) {
  const Schedule schedule = parse_schedule_text(one_message, "x");
  const CheckReport report = check(schedule);
  EXPECT_TRUE(report.ok) << report.verdict;
  EXPECT_EQ(report.distances->steps, 1U);
  EXPECT_EQ(report.distances->sent, 128U);
  EXPECT_EQ(parse_schedule_text(text_of(schedule), "x"), schedule);
  EXPECT_TRUE(
      check(parse_schedule_text(replaced(one_message, " -> output[0:128]", " -> output[0:64,64:128]"), "x")).ok);
}

/// Written out, every schedule stays the same to all that read it, in every form.
TEST(ScheduleLists, EveryAlgorithmIsTheSameWrittenOut) {
  std::size_t schedules = 0;
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    for (const Rank ranks : {1U, 2U, 3U, 8U, 9U}) {
      if (!algorithm.fits(ranks)) continue;
      Operation operation = test::operation_of(algorithm, ranks, 97);
      if (is_rooted(operation.collective)) operation.root = ranks / 2;
      SCOPED_TRACE(fmt::format("{} {}, {} ranks", name_of(algorithm.collective), algorithm.name, ranks));
      std::vector<Schedule> forms{algorithm.build(operation)};
      if (algorithm.collective != Collective::barrier && ranks < 9) {
        operation.in_place = false;
        forms.push_back(staged(operation, {LaunchMode::op, Bytes{512} * ranks}, algorithm.build));
      }
      for (const Schedule& schedule : forms) {
        const Schedule listed = explicit_form(schedule);
        ASSERT_TRUE(difference(schedule, listed).equal());
        ASSERT_TRUE(difference(listed, schedule).equal());
        ASSERT_EQ(parse_schedule_text(text_of(listed), "text"), listed);
        ASSERT_EQ(parse_schedule_binary(binary_of(listed), "binary"), listed);
        ASSERT_EQ(parse_schedule_json(json_of(listed), "json"), listed);
        ASSERT_EQ(parse_schedule_json(json_of(schedule), "json"), schedule);
        const CheckReport closed = check(schedule);
        const CheckReport open = check(listed);
        ASSERT_EQ(open.verdict, closed.verdict);
        if (closed.order) {
          ASSERT_EQ(open.order->signature, closed.order->signature);
        }
        ASSERT_EQ(open.distances->steps, closed.distances->steps);
        ++schedules;
      }
    }
  }
  EXPECT_GT(schedules, 500U);
}

TEST(ScheduleLists, WhatNobodyCouldRunIsRefusedAtItsPlace) {
  const std::vector<std::tuple<std::string, std::string, std::string>> wrong{
      {"rank: 1", "rank: 2", "x:18:5: stage[0].list[1].rank: 2 given; accepted: 0 to 1"},
      {"rank: 1", "rank: 0", "stage[0].list[1].queue: queue 0 of rank 0 already follows list[0] of this stage"},
      {"rank: 1", "rank: 1 window: 1", "list[1].window: 1 given; accepted: 0 to 0"},
      {"rank: 1", "rank: 1 queue: 5000", "list[1].queue: 5000 given"},
      {"write 1", "write 2", "x:14:5: stage[0].list[0].task[1].peer: 2 given; accepted: 0 to 1"},
      {"write 1", "write 0",
       "x:14:5: stage[0].list[0].task[1].peer: rank 0, queue 0, round 0: the rank is its own peer"},
      {"wait notify 1", "wait notify 2", "x:20:5: stage[0].list[1].task[1].notify: notify 2; the schedule has 2"},
      {"input[0:128]", "input[128:0]", "task[1].source: bytes 128:0 end before they begin"},
      {"input[0:128]", "input[0:9999999999999999]", "task[1].source: byte 9999999999999999; a buffer has at most"},
      {"input[0:128]", "input[0:256]", "bytes 0+256 leave the input memory of 128 bytes"},
      {"-> output[0:128]", "-> output[0:64]",
       "task[1].destination: rank 0, queue 0, round 0: 128 bytes into a range of 64"},
      {"write 1 input", "write 1 inptu", "x:14:5: stage[0].list[0].task[1]: 'write 1 inptu[0:128]"},
      {"  list {", "  strand { loop { } }\n  list {", "there is no group 0"},
      {"task: \"post 0 notify 0\"\n    task: \"wait notify 1\"", "task: [\"post 0 notify 0\",\n \"wait notify 9\"]",
       "x:19:5: stage[0].list[1].task[1].notify: notify 9"},
  };
  for (const auto& [from, to, message] : wrong) {
    const std::string text = replaced(one_message, from, to);
    EXPECT_THAT(problem_of([&] { static_cast<void>(parse_schedule_text(text, "x")); }), HasSubstr(message)) << to;
  }
  const std::string both = replaced(replaced(one_message, "stage {", "group { span: 2 }\nstage {"), "  list {",
                                    "  strand { loop { } }\n  list {");
  EXPECT_THAT(problem_of([&] { static_cast<void>(parse_schedule_text(both, "x")); }),
              HasSubstr("list[0].queue: queue 0 of rank 0 already follows strand[0] of this stage"));
}

TEST(ScheduleLists, WindowsMixWithStrandsOfOtherQueues) {
  std::string text = replaced(one_message, "notifies: 2", "notifies: 2 window: 16\ngroup { span: 2 }");
  text = replaced(text, "input[0:128] -> output[0:128]", "input[0:64] -> output[0:64]");
  const std::string second = text.substr(text.find("  list {"), text.rfind('}') - text.find("  list {"));
  std::string later = second;
  for (const char* from : {"rank: 0", "rank: 1"}) later = replaced(later, from, std::string(from) + " window: 1");
  later = replaced(later, "input[0:64] -> output[0:64]", "input[64:128] -> output[64:128]");
  const Schedule schedule = parse_schedule_text(text.insert(text.rfind('}'), later), "x");
  EXPECT_EQ(schedule.windows(), 2U);
  EXPECT_TRUE(check(schedule).ok) << check(schedule).verdict;
}

TEST(ScheduleJson, SaysWhereItIsWrong) {
  const std::string json = json_of(parse_schedule_text(one_message, "x"));
  EXPECT_THAT(json, HasSubstr("\"elements\": 32,"));
  EXPECT_THAT(json, HasSubstr("\"task\": ["));
  EXPECT_THAT(json, HasSubstr("\"write 1 input[0:128] -> output[0:128]\""));
  const auto error = [](const std::string& text) {
    return problem_of([&] { static_cast<void>(parse_schedule_json(text, "x.json")); });
  };
  EXPECT_EQ(error(json), "no error");
  EXPECT_EQ(error(replaced(json, "\"elements\": 32", "\"elements\": \"32\"")), "no error");
  EXPECT_THAT(error(replaced(json, "\"ranks\":", "\"ranks\"")), HasSubstr("x.json:"));
  EXPECT_THAT(error(json.substr(0, json.size() / 2)), HasSubstr("x.json:"));
  EXPECT_THAT(error(replaced(json, "\"ranks\"", "\"rnaks\"")), HasSubstr("rnaks"));
  EXPECT_THAT(error(replaced(json, "\"ranks\": 2", "\"ranks\": -2")), HasSubstr("x.json: "));
  EXPECT_THAT(error(replaced(json, "\"version\": 1", "\"version\": 3")), HasSubstr("is a schedule of version 3"));
  EXPECT_THAT(error("{}"), HasSubstr("has no 'version: 1'"));
  EXPECT_THAT(error(replaced(json, "write 1 ", "write 5 ")), HasSubstr("stage[0].list[0].task[1].peer: 5 given"));
}

/// Kinds and messages of all defects of a text.
std::vector<std::string> defects_in(const std::string& text) {
  std::vector<Defect> defects;
  static_cast<void>(parse_schedule_text(text, "x", &defects));
  std::vector<std::string> found;
  for (const Defect& defect : defects) found.push_back(defect.kind + ' ' + defect.message);
  return found;
}

constexpr const char* plain = R"(version: 1
collective: allreduce
ranks: 4
elements: 32
group { span: 4 }
stage {
  strand {
    loop {
      task { kind: copy source: "output" }
    }
  }
}
)";

TEST(ScheduleDefects, AreAllFound) {
  EXPECT_THAT(defects_in(plain), ElementsAre());
  EXPECT_THAT(
      defects_in(replaced(plain, "elements: 32", "elements: 32\nroot: 1 counts: [1, 2] alignment: 6")),
      ElementsAre("schedule x:5:9: counts: 2 given; allreduce among 4 ranks takes 4",
                  "alignment x:5:24: alignment: 6 bytes are not a multiple of the 4 bytes of an element of fp32",
                  "schedule x:5:1: root: 1 given; allreduce has none"));
  EXPECT_THAT(defects_in(replaced(plain, "span: 4", "span: 0 stride: 0")),
              ElementsAre("group x:5:9: group[0].span: 0 given; accepted: 1 to 1048576",
                          "group x:5:17: group[0].stride: 0 given; accepted: 1 to 1048576"));
  EXPECT_THAT(defects_in(replaced(plain, "span: 4", "span: 4 order: [0, 0, 7]")),
              ElementsAre("group x:5:17: group[0].order: 0 is named twice",
                          "group x:5:17: group[0].order: 7 is beyond the span of 4"));
  EXPECT_THAT(defects_in(replaced(plain, "ranks: 4", "ranks: 0")), ElementsAre(HasSubstr("ranks: 0 given")));
  EXPECT_THAT(
      defects_in(replaced(plain, "kind: copy source: \"output\"",
                          "kind: write notify: \"1\" by_core: true } task { source: \"output\" } task { kind: "
                          "post source: \"output\" peer: \"p+1\" notify: \"3\"")),
      ElementsAre(HasSubstr("task[0].by_core: a write is no reduce"), HasSubstr("task[0].notify: a write has no"),
                  HasSubstr("task[0].source: a write must have a source"),
                  HasSubstr("task[1].kind: there must be one of copy, reduce"),
                  HasSubstr("task[2].source: a post moves no bytes"), HasSubstr("task[0]: there must be a peer"),
                  HasSubstr("task[2].notify: notify slots 3 to 3 are named")));
  EXPECT_THAT(
      defects_in(replaced(plain, "\"output\"", "\"scratch slot q stride 0\"")),
      ElementsAre(HasSubstr("range x:9:25: stage[0].strand[0].loop[0].task[0].source: 'scratch slot q stride 0'")));
  EXPECT_THAT(defects_in(replaced(plain, "strand {", "strand { group: 70000 } strand { first_queue: 9999 } strand {")),
              ElementsAre(HasSubstr("strand[0].group: there is no group 65535 or above; the schedule has 1"),
                          HasSubstr("strand[1].first_queue: 9999 given")));
}

/// What cannot be read is no finding.
TEST(ScheduleDefects, AreNoneOfWhatCannotBeRead) {
  const auto error = [](const std::string& text) { return problem_of([&] { static_cast<void>(defects_in(text)); }); };
  EXPECT_THAT(error(replaced(plain, "\"output\"", "\"output[\"")), HasSubstr("x:9:25: "));
  EXPECT_THAT(error(replaced(plain, "ranks: 4", "ranks: 4294967296")), HasSubstr("x:3:8: "));
  EXPECT_THAT(error(replaced(plain, "ranks: 4", "ranks: -1")), HasSubstr("x:3:8: "));
  EXPECT_THAT(error(replaced(plain, "ranks: 4", "rnaks: 4")), HasSubstr("x:3:"));
  EXPECT_THAT(error(replaced(plain, "ranks: 4", "ranks: 4 algorithm: \"\xff\"")), HasSubstr("not UTF-8"));
}

TEST(ScheduleLists, LocalNotifiesComeBackInClosedForms) {
  const std::string text =
      replaced(plain, "task { kind: copy source: \"output\" }",
               "task { kind: local_post notify: \"q\" }\n      task { kind: local_wait notify: \"q\" }");
  const Schedule schedule = parse_schedule_text(replaced(text, "elements: 32", "elements: 32 notifies: 1"), "x");
  EXPECT_EQ(schedule.stages[0].strands[0].loops[0].tasks[0].kind, TaskKind::local_post);
  EXPECT_EQ(parse_schedule_text(text_of(schedule), "x"), schedule);
  EXPECT_THAT(problem_of([&] { static_cast<void>(parse_schedule_text(text, "x")); }),
              HasSubstr("task[0].notify: notify slots 0 to 0 are named; the schedule has 0"));
  EXPECT_THAT(problem_of([&] {
                static_cast<void>(parse_schedule_text(replaced(text, "local_post", "local_post peer: \"p+1\""), "x"));
              }),
              HasSubstr("task[0].peer: a local-post has no peer"));
}

TEST(ScheduleLists, TooManyTasksAreNotWrittenOut) {
  Schedule schedule = parse_schedule_text(
      replaced(replaced(plain, "kind: copy source: \"output\"", "kind: wait"), "ranks: 4", "ranks: 4 notifies: 1"),
      "x");
  schedule.stages[0].strands[0].loops[0].rounds = {static_cast<std::int32_t>(most_listed_tasks), 0, 0, 0};
  EXPECT_THAT(problem_of([&] { static_cast<void>(explicit_form(schedule)); }),
              HasSubstr("20,000,000 tasks are too many to be written one by one; accepted are up to 5,000,000"));
}

}  // namespace
}  // namespace hcclsim::hccl
