#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "hccl/collective/algorithm/direct.hpp"
#include "hccl/runtime/runtime.hpp"
#include "tests/support/rig.hpp"
#include "tests/support/simulation.hpp"
#include "tests/support/units.hpp"

/// Send and receive, matched by source, destination and tag; blocks of kernels.
namespace hcclsim::hccl {
namespace {

using test::us;
using testing::HasSubstr;

std::string platform() {
  test::TestPlatform platform;
  platform.properties = test::no_task_costs();
  return test::write_platform(platform);
}

/// A message of 10,240 bytes: 1 us of latency and 1.024 us at 10 GB/s.
std::shared_ptr<const Schedule> message(std::uint64_t elements = 2560) {
  return std::make_shared<const Schedule>(direct_send_recv({.ranks = 2,
                                                            .collective = Collective::send_recv,
                                                            .in_place = false,
                                                            .counts = BlockCounts::of_pairs(2, {0, elements, 0, 0})}));
}
constexpr double message_time = 2.024;

/// Two ranks with two streams each.
struct Ends {
  explicit Ends(const std::string& file) : rig(file, sim::NetworkKind::fluid) {
    for (const Rank rank : {0U, 1U, 0U, 1U}) streams.push_back(rig.runtime.create_stream(rank));
  }
  void send(std::size_t stream, Rank to, std::uint32_t tag) {
    rig.runtime.send(streams[stream], to, tag, message(), rig.trace.intern("send"));
  }
  void receive(std::size_t stream, Rank from, std::uint32_t tag) {
    rig.runtime.receive(streams[stream], from, tag, message(), rig.trace.intern("receive"));
  }
  void note(std::size_t stream, double& date) {
    rig.runtime.host_function(streams[stream], [this, &date] { date = rig.loop.now() / us; });
  }

  test::Rig rig;
  std::vector<StreamId> streams;
};

TEST(Message, BothEndsWaitForEachOther) {
  const std::vector<double> dates = test::in_child([] {
    Ends ends(platform());
    std::vector<double> seen(2, -1);
    ends.send(0, 1, 0);
    ends.note(0, seen[0]);
    ends.rig.runtime.delay(ends.streams[1], 5 * us);
    ends.receive(1, 0, 0);
    ends.note(1, seen[1]);
    ends.rig.runtime.run();
    return seen;
  });
  EXPECT_NEAR(dates[1], 5 + message_time, 1e-9);
  EXPECT_NEAR(dates[0], 5 + message_time, 1e-9);
}

TEST(Message, TagsKeepMessagesApartAndOneTagKeepsTheirOrder) {
  const std::vector<double> dates = test::in_child([] {
    Ends ends(platform());
    std::vector<double> seen(3, -1);
    // Rank 0 sends tag 1, then tag 2; rank 1 takes tag 2 in one stream at once, tag 1 in the other 10 us later.
    ends.send(0, 1, 1);
    ends.send(2, 1, 2);
    ends.send(2, 1, 2);
    ends.receive(1, 0, 2);
    ends.note(1, seen[0]);
    ends.receive(1, 0, 2);
    ends.note(1, seen[1]);
    ends.rig.runtime.delay(ends.streams[3], 10 * us);
    ends.receive(3, 0, 1);
    ends.note(3, seen[2]);
    ends.rig.runtime.run();
    return seen;
  });
  EXPECT_NEAR(dates[0], message_time, 1e-9);
  EXPECT_NEAR(dates[1], 2 * message_time, 1e-9);
  EXPECT_NEAR(dates[2], 10 + message_time, 1e-9);
}

TEST(Message, BothWaysAtOnce) {
  const std::vector<double> dates = test::in_child([] {
    Ends ends(platform());
    std::vector<double> seen(2, -1);
    ends.send(0, 1, 0);
    ends.send(1, 0, 0);
    ends.receive(2, 1, 0);
    ends.receive(3, 0, 0);
    ends.note(2, seen[0]);
    ends.note(3, seen[1]);
    ends.rig.runtime.run();
    return seen;
  });
  EXPECT_NEAR(dates[0], message_time, 1e-9);
  EXPECT_NEAR(dates[1], message_time, 1e-9);
}

std::string error_of(const std::function<void(Ends&)>& work) {
  return test::in_child([&]() -> std::string {
    Ends ends(platform());
    try {
      work(ends);
    } catch (const Error& error) {
      return std::string(error.kind()) + ": " + error.what();
    }
    return "no error";
  });
}

TEST(Message, WithoutTheOtherEndIsADeadlock) {
  EXPECT_THAT(error_of([](Ends& ends) {
                ends.send(0, 1, 4);
                ends.receive(1, 0, 5);
                ends.rig.runtime.run();
              }),
              AllOf(HasSubstr("deadlock"), HasSubstr("messages from 0 to 1 under tag 4"), HasSubstr("under tag 5")));
}

TEST(Message, RefusesEndsThatCannotBe) {
  EXPECT_THAT(error_of([](Ends& ends) { ends.send(0, 0, 0); }), HasSubstr("stream: a message from NPU 0 to NPU 0"));
  EXPECT_THAT(error_of([](Ends& ends) { ends.receive(0, 9, 0); }), HasSubstr("from NPU 9 to NPU 0 in a cluster of 2"));
}

TEST(Message, EndsOfDifferentSizesAreRefused) {
  EXPECT_THAT(error_of([](Ends& ends) {
                ends.send(0, 1, 0);
                ends.rig.runtime.receive(ends.streams[1], 0, 0, message(77), ends.rig.trace.intern("receive"));
                ends.rig.runtime.run();
              }),
              HasSubstr("all ranks must call the same"));
}

/// A kernel in the trace.
struct KernelSpan {
  std::uint32_t task = 0;
  std::uint32_t part = 0;
  std::int32_t iteration = 0;
  double start = 0;  ///< us
  double end = 0;

  bool operator==(const KernelSpan&) const = default;
};

std::vector<KernelSpan> spans_of(const std::function<void(Runtime&, StreamId, std::uint32_t)>& enqueue) {
  return test::in_child([&] {
    test::Rig rig(platform(), sim::NetworkKind::fluid);
    rig.trace.select({0}, 2, false);
    enqueue(rig.runtime, rig.runtime.create_stream(0), rig.trace.intern("kernel"));
    rig.runtime.run();
    std::vector<KernelSpan> spans;
    for (const sim::Span& span : rig.trace.spans()) {
      spans.push_back({span.id.task, span.id.part, span.id.iteration, span.start / us, span.end / us});
    }
    return spans;
  });
}

TEST(Block, IsItsKernelsOneBehindTheOther) {
  const std::vector<Seconds> durations{0.1 * us, 0.7 * us, 1.3 * us};
  constexpr double factor = 1 / 0.9;
  const auto alone = spans_of([&](Runtime& runtime, StreamId stream, std::uint32_t name) {
    for (std::uint32_t part = 0; part < durations.size(); ++part) {
      runtime.launch(stream, durations[part] * factor, name, {.task = 4, .part = part, .iteration = 2});
    }
  });
  const KernelTable table{.durations = durations, .names = {0, 0, 0}, .demands = {}};
  const auto block = spans_of([&](Runtime& runtime, StreamId stream, std::uint32_t) {
    runtime.launch(stream, {&table, 0, 3, factor}, {.task = 4, .iteration = 2});
  });
  ASSERT_EQ(alone.size(), 3U);
  EXPECT_EQ(alone, block) << "dates agree to the last bit";
}

TEST(Block, KernelsAreIdleFirst) {
  // The host, which is idle for 0.5 us before the first kernel and 1 us before the third one, is not slowed down.
  const KernelTable table{
      .durations = {0.1 * us, 0.7 * us, 1.3 * us}, .names = {0, 0, 0}, .demands = {}, .idles = {0.5 * us, 0, 1 * us}};
  const auto spans = spans_of([&](Runtime& runtime, StreamId stream, std::uint32_t) {
    runtime.launch(stream, {&table, 0, 3, 2}, {});
  });
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_NEAR(spans[0].start, 0.5, 1e-9);
  EXPECT_NEAR(spans[0].end, 0.7, 1e-9);
  EXPECT_NEAR(spans[1].start, 0.7, 1e-9);
  EXPECT_NEAR(spans[1].end, 2.1, 1e-9);
  EXPECT_NEAR(spans[2].start, 3.1, 1e-9);
  EXPECT_NEAR(spans[2].end, 5.7, 1e-9);
}

}  // namespace
}  // namespace hcclsim::hccl
