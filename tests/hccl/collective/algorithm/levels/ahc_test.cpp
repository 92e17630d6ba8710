#include "hccl/collective/algorithm/levels/ahc.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "hccl/check/cuts.hpp"
#include "hccl/check/symmetry/symmetry.hpp"
#include "hccl/collective/formula.hpp"
#include "tests/support/collectives/formula_platform.hpp"
#include "tests/support/collectives/formula_time.hpp"
#include "tests/support/rig.hpp"

namespace hcclsim::hccl {
namespace {

struct Build {
  Collective collective;
  Schedule (*build)(const Operation&, const UnevenGroups&);
};
constexpr Build allreduce{Collective::allreduce, ahc};
constexpr Build reduce_scatter{Collective::reduce_scatter, ahc};
constexpr Build allgather{Collective::allgather, ahc};

// A step of test::two_level_platform.
constexpr double inner = 2e-6 + 0.6e-6 + 0.3e-6;
constexpr double outer = 2e-6 + 7e-6 + 1e-6;

/// Simulated time on the given ranks of a platform, and formula.
test::FormulaTimes times_of(const std::string& path, const std::vector<Rank>& ranks, const std::vector<Rank>& sizes,
                            const Build& build, std::uint64_t elements, sim::NetworkKind network,
                            bool inline_between = false) {
  return test::in_child([&]() -> test::FormulaTimes {
    test::Rig rig(path, network);
    const Communicator communicator{"some", ranks};
    std::vector<std::string> notes;
    const device::Soc soc = device::resolve_soc(rig.cluster, 0, notes);
    const Topology topology = topology_of(communicator, rig.cluster);
    const Operation operation{
        .ranks = static_cast<Rank>(ranks.size()), .elements = elements, .collective = build.collective};
    const auto schedule = std::make_shared<const Schedule>(build.build(operation, {sizes, true, inline_between}));
    const Formula formula = formula_of("ahc", operation, topology, soc, {}).value();
    const FormulaCosts costs = formula_costs(communicator, rig.cluster, soc, rig.costs, DataType::fp32, ReduceOp::sum);
    const CommunicatorId id = rig.runtime.create_communicator(communicator);
    for (const Rank rank : ranks)
      rig.runtime.collective(rig.runtime.create_stream(rank), id, schedule, rig.trace.intern("ahc"));
    rig.runtime.run();
    return {.simulated = rig.runtime.collectives().back().last_end, .formula = formula_time(formula, costs)};
  });
}

// Servers of 4 and 2: 2 + 1 steps each way; the two have two runs of a quarter each, whose bytes share a port and whose
// reductions overlap.
TEST(Ahc, TimeOfTheAllreduceIsTheSumOfItsSteps) {
  const std::string path = test::write_platform(test::two_level_platform(2, 4));
  constexpr double n = 1 << 20;
  constexpr double moving = 2 * (2 * inner + 3 * n / 4 / 10e9) + 2 * (outer + n / 4 / 5e9);
  for (const auto network : {sim::NetworkKind::simgrid, sim::NetworkKind::fluid}) {
    const test::FormulaTimes times = times_of(path, {0, 1, 2, 3, 4, 5}, {4, 2}, allreduce, (1U << 20U) / 4, network);
    EXPECT_NEAR(times.simulated / (moving + n / 8 / 4e9), 1, 1e-9) << sim::name_of(network);
    EXPECT_NEAR(times.formula / (moving + n / 4 / 4e9), 1, 1e-12) << sim::name_of(network);
  }
}

// Six blocks: two steps on three quarters of them all in the four, one between servers in which the two send two
// blocks each, and half a block that the two read of each other.
TEST(Ahc, TimeOfTheReduceScatterIsTheSumOfItsSteps) {
  const std::string path = test::write_platform(test::two_level_platform(2, 4));
  constexpr double block = 1 << 20;
  constexpr double expected =
      (2 * inner + 6 * block * 3 / 4 / 10e9) + (outer + 2 * block / 5e9 + 2 * block / 4e9) + (inner + block / 2 / 10e9);
  const test::FormulaTimes times =
      times_of(path, {0, 1, 2, 3, 4, 5}, {4, 2}, reduce_scatter, (1U << 20U) / 4, sim::NetworkKind::fluid);
  EXPECT_NEAR(times.formula / expected, 1, 1e-12);
}

struct Shape {
  std::vector<Rank> ranks;
  std::vector<Rank> sizes;
};

/// All three collectives take the time of their formulas.
void expect_formulas(const std::string& path, const Shape& shape, bool inline_between) {
  for (const Build& build : {allreduce, reduce_scatter, allgather}) {
    const std::uint64_t elements = 32ULL * 12 * 12 * (build.collective == Collective::allreduce ? 16 : 1);
    const test::FormulaTimes times =
        times_of(path, shape.ranks, shape.sizes, build, elements, sim::NetworkKind::fluid, inline_between);
    EXPECT_NEAR(times.simulated / times.formula, 1, 1e-9)
        << name_of(build.collective) << " in groups of " << fmt::format("{}", fmt::join(shape.sizes, ", "));
  }
}

TEST(Ahc, GroupsThatAreAlikeTakeTheTimeOfTheFormulas) {
  const std::string path = test::write_platform(test::two_level_platform(4, 4));
  for (const Shape& shape :
       {Shape{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {4, 4, 4, 4}},
        Shape{{0, 1, 2, 4, 5, 6, 8, 9, 10}, {3, 3, 3}}, Shape{{0, 1, 2, 3}, {4}}, Shape{{0, 4, 8}, {1, 1, 1}}}) {
    expect_formulas(path, shape, false);
  }
}

TEST(Ahc, GroupsThatDifferTakeTheTimeOfTheFormulasWithoutACore) {
  test::TestPlatform platform = test::two_level_platform(2, 4);
  platform.outer_kind = "hccs";
  const std::string path = test::write_platform(platform);
  for (const Shape& shape : {Shape{{0, 1, 2, 3, 4, 5}, {4, 2}}, Shape{{0, 1, 2, 3, 4}, {4, 1}},
                             Shape{{0, 1, 4, 5, 6, 7}, {2, 4}}, Shape{{0, 4, 5, 6}, {1, 3}}}) {
    expect_formulas(path, shape, true);
  }
}

// Every server sends 2 (G − 1)/G of the payload in all, whatever its size.
TEST(Ahc, BytesBetweenServersDoNotDependOnTheirSizes) {
  for (const std::vector<Rank>& sizes : std::vector<std::vector<Rank>>{{8, 4}, {3, 2}, {4, 4, 1}, {6, 4, 3}}) {
    SCOPED_TRACE(fmt::format("servers of {}", fmt::join(sizes, ", ")));
    std::vector<std::uint32_t> server;
    for (std::size_t s = 0; s < sizes.size(); ++s) server.insert(server.end(), sizes[s], static_cast<std::uint32_t>(s));
    const std::uint64_t elements = 32U * 24U * 6U;  // whole slices of 128 bytes, and whole parts of them
    Findings none(1);
    const TaskProgram program =
        unroll(ahc({.ranks = static_cast<Rank>(server.size()), .elements = elements}, {sizes, true, true}), none);
    const Bytes expected = elements * 4 * 2 * (sizes.size() - 1) / sizes.size();
    for (const GroupBytes& bytes : crossing(program, server)) {
      EXPECT_EQ(bytes.out, expected);
      EXPECT_EQ(bytes.in, expected);
    }
  }
}

TEST(Ahc, RunsOfARankAreOnQueuesOfTheirOwn) {
  const Schedule schedule = ahc({.ranks = 5, .elements = 600}, {{3, 2}, true, true});
  ASSERT_EQ(schedule.stages.size(), 3U);
  std::vector<std::vector<Rank>> owners;
  std::vector<std::uint32_t> queues;
  for (const Strand& strand : schedule.stages[1].strands) {
    owners.push_back(schedule.groups.at(strand.group).order());
    queues.push_back(strand.first_queue);
  }
  EXPECT_EQ(owners, (std::vector<std::vector<Rank>>{{0, 3}, {1, 4}, {1, 3}, {2, 4}}));
  EXPECT_EQ(queues, (std::vector<std::uint32_t>{0, 0, 1, 1}));
}

// Groups and runs share notifies, and what a schedule takes grows with its ranks, not with their square.
TEST(Ahc, ManyGroupsTakeFewNotifiesAndLittleMemory) {
  std::vector<Rank> sizes;
  for (int i = 0; i < 64; ++i) sizes.insert(sizes.end(), {64, 32});
  const Schedule schedule = ahc({.ranks = 6144, .elements = 1U << 20U}, {sizes, true, true});
  EXPECT_EQ(schedule.queues, 2U);
  // Six steps in a group, seven between 128, each with two.
  EXPECT_EQ(schedule.notifies, 2U * 6 + 2U * (2U * 7 + 2U * 7) + 2U * 6);
  std::size_t members = 0;
  for (const Group& group : schedule.groups) members += group.order().size();
  EXPECT_EQ(members, 6144U + 64U * 128);
}

std::string refusal(Schedule (*build)(const Operation&, const UnevenGroups&), Collective collective,
                    const std::vector<Rank>& sizes) {
  const Rank ranks = std::accumulate(sizes.begin(), sizes.end(), Rank{0});
  try {
    static_cast<void>(build({.ranks = ranks, .elements = 600, .collective = collective}, {sizes, true, true}));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Ahc, TooManySlicesAreRefused) {
  EXPECT_EQ(refusal(ahc, Collective::allreduce, {97, 101, 103, 107}),
            "ahc needs more than 16777216 slices for groups of 97, 101, 103, 107 NPUs; use ring");
}

TEST(Ahc, TooManyTransfersAreRefused) {
  std::vector<Rank> sizes(60, 2);
  sizes.front() = 1;
  EXPECT_EQ(refusal(ahc, Collective::reduce_scatter, sizes), "");
  sizes.resize(300, 2);
  EXPECT_EQ(refusal(ahc, Collective::reduce_scatter, sizes),
            "ahc: 179400 transfers between 300 groups of different sizes; up to 131072 are simulated; use ring");
  EXPECT_EQ(refusal(ahc, Collective::allreduce, sizes), "");
}

}  // namespace
}  // namespace hcclsim::hccl
