#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "hccl/check/check.hpp"
#include "hccl/schedule/file/schedule_file.hpp"
#include "tests/support/check_text.hpp"
#include "tests/support/collectives/collective_result.hpp"
#include "tests/support/collectives/executed.hpp"
#include "tests/support/refused.hpp"

/// Local notifies between queues of a rank: a right schedule, and wrong ones with one defect each.
namespace hcclsim::hccl {
namespace {

/// Queue 1 of both ranks adds what queue 0 has received, then queue 0 goes on.
constexpr const char* handed_over = R"(version: 1
collective: allreduce
ranks: 2
elements: 32
type: int64
scratch: 256
notifies: 4
group { span: 2 }
stage {
  name: "exchange"
  strand {
    loop {
      task { kind: post peer: "p+1" notify: "0" }
      task { kind: wait notify: "0" }
      task { kind: write peer: "p+1" source: "output" destination: "scratch" }
      task { kind: post peer: "p+1" notify: "1" }
      task { kind: wait notify: "1" }
      task { kind: local_post notify: "2" }
      task { kind: local_wait notify: "3" }
    }
  }
  strand {
    first_queue: 1
    loop {
      task { kind: local_wait notify: "2" }
      task { kind: reduce source: "scratch" destination: "output" }
      task { kind: local_post notify: "3" }
    }
  }
}
)";

Schedule with(const std::string& from = "", const std::string& to = "") {
  std::string text = handed_over;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return parse_schedule_text(text.replace(at, from.size(), to), "local");
}

TEST(CheckerLocalNotifies, HandWorkToAnotherQueue) {
  const Schedule schedule = with();
  const CheckReport report = check(schedule);
  EXPECT_TRUE(report.ok) << test::text_of(report);
  EXPECT_EQ(report.distances->steps, 1U);
  const std::vector<test::Values> input = test::make_input(schedule, 1);
  EXPECT_EQ(test::problem_of_result(schedule, input, test::executed(schedule, input)), "");
}

TEST(CheckerLocalNotifies, WithOneDefectEach) {
  const std::string reduce = "task { kind: reduce source: \"scratch\" destination: \"output\" }\n";
  const std::string local_wait = "task { kind: local_wait notify: \"2\" }\n";
  const std::string local_post = "task { kind: local_post notify: \"2\" }\n";
  test::expect_refused(check(with(local_post)), {"no local post", "L1", "wait-without-post",
                                                 "notify 2 of rank 0 is posted 0 times and waited for 1 times; rank 0, "
                                                 "queue 1, task 0 (local-wait for notify 2, stage 'exchange')"});
  test::expect_refused(check(with(local_wait)),
                       {"no local wait", "L1", "post-without-wait",
                        "rank 0, queue 0, task 5 (local-post of notify 2, stage 'exchange') has no wait"});
  test::expect_refused(check(with(local_post, local_post + local_post)),
                       {"posted twice", "L1", "post-without-wait", "posted 2 times and waited for 1 times"});
  test::expect_refused(check(with("local_wait notify: \"2\"", "wait notify: \"2\"")),
                       {"a local post for a wait for others", "L1", "mixed-notify",
                        "rank 0, queue 1, task 0 (wait for notify 2, stage 'exchange'): the notify is of two ranks here"
                        " and local elsewhere"});
  test::expect_refused(
      check(with("local_post notify: \"2\"", "post peer: \"p+1\" notify: \"2\"")),
      {"a local wait for another rank", "L1", "mixed-notify", "the notify is of two ranks here and local"});
  // Queue 0 first waits for what queue 1 does only after what queue 0 does later.
  std::string swapped = handed_over;
  swapped.replace(swapped.find("local_post notify: \"2\""), 22, "local_wait notify: \"3\"");
  swapped.replace(swapped.rfind("local_wait notify: \"3\"", swapped.find("strand {\n    first_queue")), 22,
                  "local_post notify: \"2\"");
  test::expect_refused(check(parse_schedule_text(swapped, "local")),
                       {"queues wait for each other", "L2", "deadlock",
                        "4 queues stop; shortest cycle of 2: rank 0, queue 0, task 5 (local-wait for notify 3, stage "
                        "'exchange') waits for what comes after rank 0, queue 1, task 0 (local-wait for notify 2"});
  // Added before it has come, and while the own payload is still being sent.
  std::string early = handed_over;
  early.replace(early.find(local_post), local_post.size(), "");
  early.insert(early.find("task { kind: wait notify: \"0\" }"), local_post + "      ");
  test::expect_refused(check(parse_schedule_text(early, "local")),
                       {"handed over too early", "L3", "race", "touch scratch 0+256 of rank"});
  test::expect_refused(check(with(reduce, "task { kind: copy source: \"scratch\" destination: \"output\" }\n")),
                       {"copied instead of added", "L4", "contribution", "the contribution of rank"});
}

TEST(CheckerLocalNotifies, CountAsNotifiesOfTheChip) {
  EXPECT_TRUE(check(with(), {.notifies = 4}).ok);
  test::expect_refused(check(with(), {.notifies = 3}),
                       {"one too many", "L0", "notifies", "the schedule needs 4 notifies of every rank; there are 3"});
}

/// Two queues wait for the same notify, one after the other; without the local notify either may take the first post.
TEST(CheckerLocalNotifies, LetQueuesTakeTurns) {
  const auto turns = [](const char* first, const char* second) {
    return parse_schedule_text(std::string(R"(version: 1 collective: barrier ranks: 2 notifies: 3
stage {
  list { rank: 0 task: ["post 1 notify 0", "wait notify 1", "post 1 notify 0", "wait notify 1"] }
  list { rank: 1 queue: 0 task: ["wait notify 0", ")") +
                                   first + R"("] }
  list { rank: 1 queue: 1 task: [")" +
                                   second +
                                   R"(wait notify 0", "post 0 notify 1"] }
})",
                               "turns");
  };
  const CheckReport right = check(turns("post 0 notify 1\", \"local_post notify 2", "local_wait notify 2\", \""));
  EXPECT_TRUE(right.ok) << test::text_of(right);
  test::expect_refused(check(turns("post 0 notify 1", "")),
                       {"no turns", "L1", "two-waiters", "nothing but the posts orders them"});
}

/// L5 sees through local notifies: whichever queue adds first.
TEST(CheckerLocalNotifies, FixTheOrderOfReduction) {
  const auto star = [](const char* first_adds, const char* second_adds) {
    return parse_schedule_text(std::string(R"(version: 1 collective: reduce_to_root ranks: 3 elements: 32 notifies: 4
stage {
  list { rank: 0 queue: 0 task: ["post 1 notify 0", "wait notify 0", "local_post notify 2"] }
  list { rank: 0 queue: 1 task: ["local_wait notify 2", "post 2 notify 0", "wait notify 1"] }
  list { rank: 1 queue: 0 task: ["wait notify 0", ")") +
                                   first_adds + R"("] }
  list { rank: 2 queue: 0 task: ["wait notify 0", ")" +
                                   second_adds + R"("] }
})",
                               "star");
  };
  const char* add = "write_reduce 0 output[0:128]\", \"post 0 notify 0";
  const char* add_later = "write_reduce 0 output[0:128]\", \"post 0 notify 1";
  const CheckReport report = check(star(add, add_later));
  ASSERT_TRUE(report.ok) << test::text_of(report);
  EXPECT_EQ(report.order->additions, 2U);
  // Without the local notify both may add at once.
  Schedule free = star(add, add_later);
  std::vector<TaskList> lists(free.stages[0].lists.begin(), free.stages[0].lists.end());
  lists[0].tasks.pop_back();
  lists[1].tasks.erase(lists[1].tasks.begin());
  free.stages[0].lists = TaskLists(lists);
  test::expect_refused(check(free), {"no local notify", "L3", "reduction-order", "output 0+128 of rank 0"});
}

}  // namespace
}  // namespace hcclsim::hccl
