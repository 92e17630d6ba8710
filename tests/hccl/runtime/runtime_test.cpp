#include "hccl/runtime/runtime.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "hccl/collective/algorithm/builder.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "tests/support/rig.hpp"
#include "tests/support/simulation.hpp"
#include "tests/support/units.hpp"

/// The runtime driven by hand, without a plan: tasks arrive from callbacks at any date.
namespace hcclsim::hccl {
namespace {

using test::us;

std::string two_npus() {
  test::TestPlatform platform;
  platform.properties = test::no_task_costs();
  return test::write_platform(platform);
}

std::shared_ptr<const Schedule> ring_of_two() {
  return std::make_shared<const Schedule>(ring_allreduce({2, 5120}, true));  // two rounds of 1 us + 1.024 us
}
constexpr double ring_time = 2 * 2.024;

class RuntimeTest : public testing::TestWithParam<sim::NetworkKind> {
 protected:
  std::vector<double> simulate(const std::function<std::vector<double>(test::Rig&)>& work) {
    return test::in_child([&] {
      test::Rig rig(two_npus(), GetParam());
      return work(rig);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Runtime, RuntimeTest, testing::Values(sim::NetworkKind::simgrid, sim::NetworkKind::fluid),
                         [](const auto& info) { return std::string(sim::name_of(info.param)); });

TEST_P(RuntimeTest, StreamsAreInOrderAndTakeTasksAtAnyDate) {
  const auto dates = simulate([](test::Rig& rig) {
    std::vector<double> seen;
    const StreamId stream = rig.runtime.create_stream(0);
    const auto note = [&] { seen.push_back(rig.loop.now() / us); };
    rig.runtime.launch(stream, 3 * us, 0);
    rig.runtime.host_function(stream, note);  // 3
    rig.loop.at(1 * us, {}, [&] {
      rig.runtime.launch(stream, 2 * us, 0);    // starts at 3
      rig.runtime.host_function(stream, note);  // 5
    });
    rig.loop.at(10 * us, {}, [&] {
      rig.runtime.launch(stream, 1 * us, 0);
      rig.runtime.host_function(stream, [&] {
        note();  // 11
        rig.runtime.launch(stream, 4 * us, 0);
        rig.runtime.host_function(stream, note);  // 15
      });
    });
    rig.runtime.run();
    return seen;
  });
  EXPECT_THAT(dates, testing::Pointwise(testing::DoubleNear(1e-9), std::vector<double>{3, 5, 11, 15}));
}

TEST_P(RuntimeTest, AWaitRefersToTheLatestRecordBeforeIt) {
  const auto dates = simulate([](test::Rig& rig) {
    std::vector<double> seen;
    const StreamId a = rig.runtime.create_stream(0);
    const StreamId b = rig.runtime.create_stream(0);
    const EventId event = rig.runtime.create_event();
    const auto note = [&] { seen.push_back(rig.loop.now() / us); };
    rig.runtime.wait(b, event);          // nothing recorded: passes
    rig.runtime.host_function(b, note);  // 0
    rig.runtime.launch(a, 5 * us, 0);
    rig.runtime.record(a, event);
    rig.runtime.wait(b, event);
    rig.runtime.host_function(b, note);  // 5
    rig.runtime.launch(a, 5 * us, 0);
    rig.runtime.record(a, event);
    rig.runtime.wait(b, event);
    rig.runtime.host_function(b, note);  // 10
    rig.runtime.run();
    return seen;
  });
  EXPECT_THAT(dates, testing::Pointwise(testing::DoubleNear(1e-9), std::vector<double>{0, 5, 10}));
}

TEST_P(RuntimeTest, ACollectiveFormsFromCallsAtDifferentDates) {
  const auto dates = simulate([](test::Rig& rig) {
    std::vector<double> seen(4, -1);
    const CommunicatorId world = rig.runtime.create_communicator(world_communicator(2));
    const StreamId streams[] = {rig.runtime.create_stream(0), rig.runtime.create_stream(1)};
    const auto schedule = ring_of_two();
    for (const Rank rank : {0U, 1U}) {
      rig.loop.at((rank == 0 ? 2 : 7) * us, {}, [&, rank] {
        for (const std::size_t call : {0U, 1U}) {
          rig.runtime.collective(streams[rank], world, schedule, rig.trace.intern("allreduce"));
          rig.runtime.host_function(streams[rank], [&, rank, call] { seen[2 * call + rank] = rig.loop.now() / us; });
        }
      });
    }
    rig.runtime.run();
    return seen;
  });
  // The first begins when the second rank has come; the second follows at once.
  const std::vector<double> expected{7 + ring_time, 7 + ring_time, 7 + 2 * ring_time, 7 + 2 * ring_time};
  EXPECT_THAT(dates, testing::Pointwise(testing::DoubleNear(1e-9), expected));
}

TEST_P(RuntimeTest, TwoCommunicatorsShareALink) {
  const auto dates = simulate([](test::Rig& rig) {
    std::vector<double> seen(2, -1);
    const auto schedule = ring_of_two();
    for (const std::size_t number : {0U, 1U}) {
      const CommunicatorId group = rig.runtime.create_communicator(world_communicator(2));
      for (const Rank rank : {0U, 1U}) {
        const StreamId stream = rig.runtime.create_stream(rank);
        rig.runtime.collective(stream, group, schedule, rig.trace.intern("allreduce"));
        rig.runtime.host_function(stream, [&, number] { seen[number] = rig.loop.now() / us; });
      }
    }
    rig.runtime.run();
    return seen;
  });
  // Both move at the same time at half the speed: two rounds of 1 + 2.048.
  EXPECT_THAT(dates, testing::Pointwise(testing::DoubleNear(1e-9), std::vector<double>{6.096, 6.096}));
}

TEST_P(RuntimeTest, ARankThatNeverCallsIsADeadlockWithNames) {
  try {
    (void)simulate([](test::Rig& rig) {
      const CommunicatorId world = rig.runtime.create_communicator(world_communicator(2));
      const StreamId stream = rig.runtime.create_stream(1);
      rig.runtime.collective(stream, world, ring_of_two(), rig.trace.intern("allreduce1"));
      rig.runtime.run();
      return std::vector<double>{};
    });
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::simulated_failure);
    EXPECT_THAT(error.what(), testing::HasSubstr("rank 1, stream 0: allreduce1 #0"));
    EXPECT_THAT(error.what(), testing::HasSubstr("1 of 2 ranks have arrived"));
  }
}

TEST_P(RuntimeTest, RanksThatCallDifferentThingsAreToldSo) {
  try {
    (void)simulate([](test::Rig& rig) {
      const CommunicatorId world = rig.runtime.create_communicator(world_communicator(2));
      for (const Rank rank : {0U, 1U}) {
        const auto schedule = std::make_shared<const Schedule>(ring_allreduce({2, 100 + rank}, true));
        rig.runtime.collective(rig.runtime.create_stream(rank), world, schedule, rig.trace.intern("allreduce1"));
      }
      rig.runtime.run();
      return std::vector<double>{};
    });
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_THAT(error.what(), testing::HasSubstr("rank 1 calls allreduce of 101 fp32 by ring, another rank called"));
  }
}

TEST_P(RuntimeTest, ANonMemberMayNotCall) {
  EXPECT_THROW((void)simulate([](test::Rig& rig) {
                 const CommunicatorId alone = rig.runtime.create_communicator({"alone", {0}});
                 const auto schedule = std::make_shared<const Schedule>(ring_allreduce({1, 100}, true));
                 rig.runtime.collective(rig.runtime.create_stream(1), alone, schedule, rig.trace.intern("allreduce"));
                 return std::vector<double>{};
               }),
               Error);
}

TEST_P(RuntimeTest, CallsThatTheClusterCannotServeAreRefused) {
  const auto refused = [&](const std::function<void(test::Rig&)>& call) {
    try {
      (void)simulate([&](test::Rig& rig) {
        call(rig);
        return std::vector<double>{};
      });
      return std::string("accepted");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refused([](test::Rig& rig) { rig.runtime.create_stream(2); }), "no NPU 2 in a cluster of 2");
  EXPECT_EQ(refused([](test::Rig& rig) {
              rig.runtime.create_communicator({"pair", {1, 2}});
            }),
            "pair: no NPU 2 in a cluster of 2");
  EXPECT_EQ(refused([](test::Rig& rig) {
              rig.runtime.create_communicator({"pair", {1, 1}});
            }),
            "pair: NPU 1 takes part twice");
  EXPECT_EQ(refused([](test::Rig& rig) {
              const CommunicatorId world = rig.runtime.create_communicator(world_communicator(2));
              const auto schedule = std::make_shared<const Schedule>(ring_allreduce({3, 100}, true));
              rig.runtime.collective(rig.runtime.create_stream(0), world, schedule, rig.trace.intern("allreduce"));
            }),
            "NPU 0 calls allreduce on hccl_world_group, which has 2 ranks, with a schedule for 3");
}

TEST_P(RuntimeTest, RecordsOfOneEventInTwoStreamsAreToldApart) {
  const auto dates = simulate([](test::Rig& rig) {
    double first_wait_ends = -1;
    double second_wait_ends = -1;
    const StreamId first_record = rig.runtime.create_stream(0);
    const StreamId first_wait = rig.runtime.create_stream(0);
    const StreamId second_record = rig.runtime.create_stream(0);
    const StreamId second_wait = rig.runtime.create_stream(0);
    const EventId event = rig.runtime.create_event();
    // The first record lies behind a host function and is reached after the second.
    rig.runtime.launch(first_record, 7 * us, 0);
    rig.runtime.host_function(first_record, [] {});
    rig.runtime.record(first_record, event);
    rig.runtime.wait(first_wait, event);
    rig.runtime.host_function(first_wait, [&] { first_wait_ends = rig.loop.now() / us; });
    rig.runtime.launch(second_record, 2 * us, 0);
    rig.runtime.record(second_record, event);
    rig.runtime.wait(second_wait, event);
    rig.runtime.host_function(second_wait, [&] { second_wait_ends = rig.loop.now() / us; });
    rig.runtime.run();
    return std::vector<double>{first_wait_ends, second_wait_ends};
  });
  EXPECT_THAT(dates, testing::Pointwise(testing::DoubleNear(1e-9), std::vector<double>{7, 2}));
}

/// A collective of two ranks in which rank 0 has tasks of its own and rank 1 others.
Schedule one_sided(std::vector<Task> tasks_of_0, std::vector<Task> tasks_of_1) {
  Builder builder({.ranks = 2, .elements = 2560}, "one-sided");
  builder.add_group(Group::block(2));
  const std::uint16_t first = builder.add_group(Group::ordered(2, {0}));
  const std::uint16_t second = builder.add_group(Group::ordered(2, {1}));
  builder.reserve_notifies(1);
  builder.add_stage("test").strands = {{.group = first, .loops = {{.tasks = std::move(tasks_of_0)}}},
                                       {.group = second, .loops = {{.tasks = std::move(tasks_of_1)}}}};
  return std::move(builder).finish();
}
constexpr Peer only_member_of(std::uint16_t group) { return {Peer::Kind::offset, group, {}}; }

TEST_P(RuntimeTest, AReadComesTheOtherWayThanAWriteToTheSamePeer) {
  const auto dates = simulate([](test::Rig& rig) {
    const Task write_to_1 = transfer(TaskKind::write, only_member_of(2), output({}), output({}));
    const Task read_from_1 = transfer(TaskKind::read, only_member_of(2), output({}), output({}));
    const Task write_to_0 = transfer(TaskKind::write, only_member_of(1), output({}), output({}));
    const auto schedule =
        std::make_shared<const Schedule>(one_sided({write_to_1, read_from_1}, {write_to_0, write_to_0}));
    return std::vector<double>{rig.time_of(schedule) / us};
  });
  // 1 us + 1.024 us, both ways at once; then the read and the second write share the way from 1 to 0.
  EXPECT_NEAR(dates[0], 2.024 + 3.048, 1e-9);
}

TEST_P(RuntimeTest, TheEndOfOneRankMayBringTheCallOfAnother) {
  const auto dates = simulate([](test::Rig& rig) {
    std::vector<double> seen(2, -1);
    const Task write_to_1 = transfer(TaskKind::write, only_member_of(2), output({}), output({}));
    const auto send =
        std::make_shared<const Schedule>(one_sided({write_to_1, post(only_member_of(2), {0})}, {wait({0})}));
    const CommunicatorId world = rig.runtime.create_communicator(world_communicator(2));
    const StreamId streams[] = {rig.runtime.create_stream(0), rig.runtime.create_stream(1)};
    const EventId sent = rig.runtime.create_event();
    // Rank 1 calls only when rank 0 has ended its part, and then at once a second time.
    rig.runtime.collective(streams[0], world, send, rig.trace.intern("send"));
    rig.runtime.record(streams[0], sent);
    rig.runtime.wait(streams[1], sent);
    for (const Rank rank : {1U, 1U, 0U}) rig.runtime.collective(streams[rank], world, send, rig.trace.intern("send"));
    for (const Rank rank : {0U, 1U}) {
      rig.runtime.host_function(streams[rank], [&, rank] { seen[rank] = rig.loop.now() / us; });
    }
    rig.runtime.run();
    return seen;
  });
  EXPECT_THAT(dates, testing::Pointwise(testing::DoubleNear(1e-9), std::vector<double>{2 * 2.024, 2 * 2.024}));
}

}  // namespace
}  // namespace hcclsim::hccl
