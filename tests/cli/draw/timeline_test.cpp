#include "cli/draw/timeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/json.hpp"
#include "tests/cli/sample_run.hpp"

namespace hcclsim::cli {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

Json timeline(const sim::Trace& trace, const std::vector<Rank>& ranks) {
  std::string text;
  write_timeline({}, trace, ranks, [&](std::string_view piece) { text += piece; });
  return Json::parse(text);
}

/// Names of processes by pid, or of the threads of a process by tid.
std::map<int, std::string> names(const Json& events, const std::string& kind, const std::string& key, int pid = -1) {
  std::map<int, std::string> found;
  for (const Json& event : events) {
    if (event["name"] == kind && (pid < 0 || event["pid"] == pid))
      found[event[key].get<int>()] = event["args"]["name"].text();
  }
  return found;
}

/// "name start end" of the spans of a thread, in microseconds.
std::vector<std::string> spans(const Json& events, int pid, int tid) {
  std::vector<std::string> found;
  for (const Json& event : events) {
    if (event["ph"] != "X" || event["pid"] != pid || event["tid"] != tid) continue;
    const auto start = event["ts"].get<double>();
    found.push_back(
        fmt::format("{} {} {}", event["name"].get<std::string>(), start, start + event["dur"].get<double>()));
  }
  return found;
}

TEST(Timeline, ProcessesAndThreadsOfMsprof) {
  const Json events = timeline(sample_run().step.trace, {0});
  EXPECT_THAT(names(events, "process_name", "pid"),
              UnorderedElementsAre(Pair(0, "Ascend Hardware"), Pair(1, "Communication"), Pair(2, "Overlap Analysis")));
  EXPECT_THAT(names(events, "thread_name", "tid", 0), UnorderedElementsAre(Pair(0, "Stream 0")));
  EXPECT_THAT(names(events, "thread_name", "tid", 1),
              UnorderedElementsAre(Pair(0, "Group hccl_world_group Communication"), Pair(3, "Plane 2")));
  EXPECT_THAT(names(events, "thread_name", "tid", 2),
              UnorderedElementsAre(Pair(0, "Computing"), Pair(1, "Communication"),
                                   Pair(2, "Communication(Not Overlapped)"), Pair(3, "Free")));
}

TEST(Timeline, TheHostHasAProcessOfItsOwn) {
  hccl::Plan plan;
  plan.role_of = {0, 0};
  hccl::Role& role = plan.roles.emplace_back();
  role.streams = {hccl::StreamKind::data, hccl::StreamKind::host};
  role.tasks = {{.work = hccl::InputWork{8}, .purpose = {.phase = hccl::StepPhase::input}},
                {.work = hccl::HostWork{1e-3}, .purpose = {.phase = hccl::StepPhase::checkpoint}, .stream = 1}};
  sim::Trace trace;
  const auto add = [&](std::uint32_t stream, const char* name, Seconds start, std::uint32_t task) {
    trace.add({.rank = 1,
               .stream = stream,
               .name = trace.intern(name),
               .kind = sim::SpanKind::host,
               .start = start,
               .end = start + 1e-3,
               .id = {task, 0, 0}});
  };
  add(0, "batch", 0, 0);
  add(1, "checkpoint", 2e-3, 1);
  add(2, "conv", 1e-3, 0);  // behind the streams of the rank: it is issued
  std::string text;
  write_timeline(plan, trace, {1}, [&](std::string_view piece) { text += piece; });
  const Json events = Json::parse(text);
  constexpr int host = 2 * 3 + 1;
  EXPECT_EQ(names(events, "process_name", "pid").at(host), "Host");
  EXPECT_THAT(names(events, "thread_name", "tid", host),
              UnorderedElementsAre(Pair(0, "batch"), Pair(1, "checkpoint"), Pair(2, "launches")));
  EXPECT_THAT(spans(events, host, 0), ElementsAre("batch 0 1000"));
  EXPECT_THAT(spans(events, host, 1), ElementsAre("checkpoint 2000 3000"));
  EXPECT_THAT(spans(events, host, 2), ElementsAre("conv 1000 2000"));
}

TEST(Timeline, JobsHaveTheirNamesAndTheNumbersOfTheirNpus) {
  const auto run = sample_run();
  const std::vector<Rank> npus_of_a{4, 5};
  const std::vector<Rank> npus_of_b{1, 0};
  const std::vector<TimelineJob> jobs{
      {.plan = run.step.plan, .trace = run.step.trace, .ranks = {0}, .name = "a", .npus = npus_of_a},
      {.plan = run.step.plan, .trace = run.step.trace, .ranks = {0}, .name = "b \"2\"", .npus = npus_of_b}};
  std::string text;
  write_timeline(jobs, [&](std::string_view piece) { text += piece; });
  const Json events = Json::parse(text);
  EXPECT_THAT(names(events, "process_name", "pid"),
              UnorderedElementsAre(Pair(12, "a: Ascend Hardware"), Pair(13, "a: Communication"),
                                   Pair(14, "a: Overlap Analysis"), Pair(3, "b \"2\": Ascend Hardware"),
                                   Pair(4, "b \"2\": Communication"), Pair(5, "b \"2\": Overlap Analysis")));
  EXPECT_EQ(spans(events, 12, 0), spans(events, 3, 0));
  EXPECT_EQ(spans(events, 12, 0), spans(timeline(run.step.trace, {0}), 0, 0));
}

TEST(Timeline, Spans) {
  const Json events = timeline(sample_run().step.trace, {0});
  EXPECT_THAT(spans(events, 0, 0), ElementsAre("a:forward 0 2000", "b:weight 2000 4000", "a:weight 4000 6000",
                                               "momentum 9000 10000", "a:forward 10000 12000", "b:weight 12000 14000",
                                               "a:weight 14000 16000", "momentum 19000 20000"));
  EXPECT_THAT(spans(events, 1, 0), ElementsAre("allreduce1 6000 8000", "allreduce2 8000 9000", "allreduce1 16000 18000",
                                               "allreduce2 18000 19000"));
  EXPECT_THAT(spans(events, 1, 3), ElementsAre("Memcpy 6000 7000", "Memcpy 16000 17000"));
}

TEST(Timeline, TasksSayWhoMovedHowMuch) {
  const Json events = timeline(sample_run().step.trace, {0});
  const auto task = std::find_if(events.begin(), events.end(), [](const Json& e) { return e["name"] == "Memcpy"; });
  ASSERT_NE(task, events.end());
  const Json& args = (*task)["args"];
  EXPECT_EQ(args["src rank"], 0);
  EXPECT_EQ(args["dst rank"], 1);
  EXPECT_EQ(args["size(Byte)"], 1'250'000);
  EXPECT_EQ(args["bandwidth(GB/s)"], 1.25);
}

TEST(Timeline, ReadsComeFromThePeerAndRdmaHasItsOwnName) {
  sim::Trace trace;
  trace.select({0}, 8, true);
  trace.add({.name = trace.intern("allreduce1"),
             .kind = sim::SpanKind::copy,
             .start = 0,
             .end = 1e-6,
             .bytes = 1000,
             .peer = 5,
             .reads = true,
             .link = sim::LinkKind::pcie});
  trace.add({.name = trace.intern("allreduce1"),
             .kind = sim::SpanKind::copy,
             .start = 1e-6,
             .end = 2e-6,
             .bytes = 1000,
             .peer = 5,
             .transport = sim::Transport::rdma,
             .link = sim::LinkKind::roce});
  const Json events = timeline(trace, {0});
  const auto args = [&](std::string_view name) {
    return (*std::find_if(events.begin(), events.end(), [&](const Json& e) { return e["name"] == name; }))["args"];
  };
  EXPECT_EQ(args("Memcpy")["src rank"], 5);
  EXPECT_EQ(args("Memcpy")["dst rank"], 0);
  EXPECT_EQ(args("Memcpy")["link type"], "PCIE");
  EXPECT_EQ(args("RDMASend")["src rank"], 0);
  EXPECT_EQ(args("RDMASend")["transport type"], "RDMA");
}

TEST(Timeline, AnArrowLeadsFromAPostToItsWait) {
  sim::Trace trace;
  trace.select({0, 1}, 8, true);
  trace.add({.kind = sim::SpanKind::notify_post, .start = 0, .end = 1e-6, .peer = 1, .notify = 3, .flow = 7});
  trace.add({.kind = sim::SpanKind::notify_post, .start = 1e-6, .end = 2e-6, .peer = 2, .flow = 8});  // not traced
  trace.add(
      {.rank = 1, .kind = sim::SpanKind::notify_wait, .start = 0, .end = 3e-6, .peer = 0, .notify = 3, .flow = 7});
  trace.intern("allreduce1");
  const auto ends = [](const Json& events, const char* phase) {
    std::vector<double> dates;
    for (const Json& event : events) {
      if (event["ph"] == phase && event["id"] == 1) dates.push_back(event["ts"].get<double>());
    }
    return dates;
  };
  const Json both = timeline(trace, {0, 1});
  EXPECT_THAT(ends(both, "s"), ElementsAre(1.0));
  EXPECT_THAT(ends(both, "f"), ElementsAre(3.0));
  EXPECT_EQ(std::count_if(both.begin(), both.end(), [](const Json& e) { return e["ph"] == "s"; }), 1);
  const Json alone = timeline(trace, {0});
  EXPECT_THAT(ends(alone, "s"), testing::IsEmpty());
}

/// The runtime numbers them within a communicator.
TEST(Timeline, ArrowsOfSeveralCommunicatorsHaveNumbersOfTheirOwn) {
  sim::Trace trace;
  trace.select({0, 1, 2, 3}, 4, true);
  for (const Rank rank : {0U, 2U}) {
    trace.add({.rank = rank, .kind = sim::SpanKind::notify_post, .end = 1e-6, .peer = rank + 1, .flow = 7});
    trace.add({.rank = rank + 1, .kind = sim::SpanKind::notify_wait, .end = 3e-6, .peer = rank, .flow = 7});
  }
  trace.add({.kind = sim::SpanKind::notify_post, .end = 1e-6, .id = {.iteration = 1}, .peer = 1, .flow = 7});
  trace.add({.rank = 1, .kind = sim::SpanKind::notify_wait, .end = 3e-6, .id = {.iteration = 1}, .peer = 0, .flow = 7});
  trace.intern("allreduce1");
  std::map<int, std::string> phases;  // by number
  for (const Json& event : timeline(trace, {0, 1, 2, 3})) {
    if (event["ph"] == "s" || event["ph"] == "f") phases[event["id"].get<int>()] += event["ph"].text();
  }
  ASSERT_EQ(phases.size(), 3);
  for (const auto& [number, ends] : phases) EXPECT_THAT(ends, testing::AnyOf("sf", "fs")) << number;
}

TEST(Timeline, OverlapAnalysis) {
  sim::Trace trace;
  trace.select({0}, 1, false);
  const auto add = [&](sim::SpanKind kind, Seconds start, Seconds end) {
    trace.add({.name = trace.intern("x"), .kind = kind, .start = start * 1e-6, .end = end * 1e-6});
  };
  add(sim::SpanKind::kernel, 0, 10);
  add(sim::SpanKind::kernel, 10, 20);
  add(sim::SpanKind::collective, 5, 30);
  add(sim::SpanKind::kernel, 25, 28);
  add(sim::SpanKind::kernel, 40, 50);
  const Json events = timeline(trace, {0});
  EXPECT_THAT(spans(events, 2, 0), ElementsAre("Computing 0 20", "Computing 25 28", "Computing 40 50"));
  EXPECT_THAT(spans(events, 2, 1), ElementsAre("Communication 5 30"));
  EXPECT_THAT(spans(events, 2, 2),
              ElementsAre("Communication(Not Overlapped) 20 25", "Communication(Not Overlapped) 28 30"));
  EXPECT_THAT(spans(events, 2, 3), ElementsAre("Free 30 40"));
}

TEST(Timeline, CommunicationOfSeveralStreamsHasThreadsOfItsOwn) {
  sim::Trace trace;
  trace.select({0}, 1, true);
  const auto add = [&](sim::SpanKind kind, std::uint32_t stream, std::uint32_t plane, double start, double end) {
    sim::Span span{.stream = stream, .name = trace.intern("x"), .kind = kind, .start = start * 1e-6, .end = end * 1e-6};
    span.plane = plane;
    trace.add(span);
  };
  add(sim::SpanKind::collective, 1, 0, 0, 20);
  add(sim::SpanKind::copy, 1, 1, 5, 15);
  add(sim::SpanKind::collective, 4, 0, 10, 30);
  add(sim::SpanKind::copy, 4, 0, 12, 25);
  const Json events = timeline(trace, {0});
  EXPECT_THAT(names(events, "thread_name", "tid", 1),
              UnorderedElementsAre(Pair(0, "Group hccl_world_group Communication (stream 1)"), Pair(2, "Plane 1"),
                                   Pair(3, "Group hccl_world_group Communication (stream 4)"), Pair(4, "Plane 0")));
  EXPECT_THAT(spans(events, 1, 0), ElementsAre("x 0 20"));
  EXPECT_THAT(spans(events, 1, 2), ElementsAre("Memcpy 5 15"));
  EXPECT_THAT(spans(events, 1, 3), ElementsAre("x 10 30"));
  EXPECT_THAT(spans(events, 1, 4), ElementsAre("Memcpy 12 25"));
}

TEST(Timeline, RanksHaveProcessesOfTheirOwn) {
  sim::Trace trace;
  trace.select({0, 5, 7}, 8, false);
  for (const Rank rank : {0, 5, 7}) {
    trace.add({.rank = rank, .name = trace.intern("k\"1"), .kind = sim::SpanKind::kernel, .start = 0, .end = 1e-6});
  }
  const Json events = timeline(trace, {5, 7});
  EXPECT_THAT(
      names(events, "process_name", "pid"),
      UnorderedElementsAre(Pair(15, "Ascend Hardware"), Pair(16, "Communication"), Pair(17, "Overlap Analysis"),
                           Pair(21, "Ascend Hardware"), Pair(22, "Communication"), Pair(23, "Overlap Analysis")));
  EXPECT_THAT(spans(events, 15, 0), ElementsAre("k\"1 0 1"));
}

TEST(Timeline, NothingTraced) { EXPECT_EQ(timeline(sim::Trace(), {}), Json::array()); }

}  // namespace
}  // namespace hcclsim::cli
