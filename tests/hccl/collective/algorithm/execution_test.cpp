#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/algorithm/levels/hierarchical.hpp"
#include "hccl/collective/algorithm/mesh.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "tests/support/built.hpp"
#include "tests/support/collectives/interpreter.hpp"
#include "tests/support/rig.hpp"
#include "tests/support/simulation.hpp"

/// What the runtime times is what the schedule means: the same transfers of the same bytes as the interpreter moves,
/// when ranks arrive at different dates and share ports, and in the same time on both networks.
namespace hcclsim::hccl {
namespace {

std::vector<Schedule> all_algorithms(Rank servers, Rank inside) {
  const Operation spec{servers * inside, 9973};
  std::vector<Schedule> all{ring_allreduce(spec, false), ring_allreduce(spec, true),
                            mesh_one_shot_allreduce(spec, true), test::built<Algorithm::mesh_two_shot>(spec, false),
                            test::built<Algorithm::halving_doubling>(spec, false)};
  all.push_back(
      build_algorithm(Algorithm::multi_ring, spec, {.inline_reduce = true, .rings = double_ring(spec.ranks)}));
  for (const auto inner : {Algorithm::multi_ring, Algorithm::mesh}) {
    for (const auto outer : {Algorithm::ring, Algorithm::halving_doubling}) {
      all.push_back(
          hierarchical(spec, {{inside, inner, double_ring(inside)}, {spec.ranks / inside, outer, {}, false}}));
    }
  }
  return all;
}

/// The date of the end, the number of transfers, and the bytes that each rank moved.
std::vector<double> simulate(const std::string& path, sim::NetworkKind kind, const Schedule& schedule) {
  return test::in_child([&] {
    test::Rig rig(path, kind);
    std::vector<Rank> everybody(schedule.ranks);
    std::iota(everybody.begin(), everybody.end(), Rank{0});
    rig.trace.select(everybody, schedule.ranks, true);
    std::mt19937_64 random(5);
    const CommunicatorId world = rig.runtime.create_communicator(world_communicator(schedule.ranks));
    const auto shared = std::make_shared<const Schedule>(schedule);
    for (Rank rank = 0; rank < schedule.ranks; ++rank) {
      const StreamId stream = rig.runtime.create_stream(rank);
      rig.runtime.delay(stream, static_cast<double>(random() % 50) * microsecond);
      rig.runtime.collective(stream, world, shared, rig.trace.intern("allreduce"));
    }
    rig.runtime.run();
    std::vector<double> numbers{rig.runtime.collectives().back().last_end,
                                static_cast<double>(rig.network->completed())};
    std::vector<double> bytes(schedule.ranks, 0);
    for (const sim::Span& span : rig.trace.spans()) {
      const bool transfer = span.kind == sim::SpanKind::copy || span.kind == sim::SpanKind::reduce;
      if (transfer) bytes[span.rank] += static_cast<double>(span.bytes);
    }
    numbers.insert(numbers.end(), bytes.begin(), bytes.end());
    return numbers;
  });
}

class Execution : public testing::TestWithParam<std::pair<Rank, Rank>> {};  // servers, NPUs in each
INSTANTIATE_TEST_SUITE_P(Collective, Execution,
                         testing::Values(std::pair{1U, 6U}, std::pair{2U, 3U}, std::pair{3U, 4U}, std::pair{6U, 4U}),
                         [](const auto& info) {
                           return fmt::format("{}_servers_of_{}", info.param.first, info.param.second);
                         });

TEST_P(Execution, MovesTheBytesOfTheSchedule) {
  const auto [servers, inside] = GetParam();
  const std::string path = test::write_platform({.servers = servers, .npus_per_server = inside});
  for (const Schedule& schedule : all_algorithms(servers, inside)) {
    const auto meant = test::execute(schedule, std::vector(schedule.ranks, test::Values(schedule.elements, 1)), 1);
    const auto fluid = simulate(path, sim::NetworkKind::fluid, schedule);
    const auto simgrid = simulate(path, sim::NetworkKind::simgrid, schedule);
    EXPECT_NEAR(fluid[0] / simgrid[0], 1, 1e-9) << schedule.algorithm;
    std::vector<double> expected{static_cast<double>(meant.transfers)};
    expected.insert(expected.end(), meant.bytes_written.begin(), meant.bytes_written.end());
    EXPECT_EQ(std::vector(fluid.begin() + 1, fluid.end()), expected) << schedule.algorithm;
    EXPECT_EQ(std::vector(simgrid.begin() + 1, simgrid.end()), expected) << schedule.algorithm;
  }
}

}  // namespace
}  // namespace hcclsim::hccl
