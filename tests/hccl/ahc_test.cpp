#include "hccl/collective/ahc.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "hccl/check/cuts.hpp"
#include "hccl/check/symmetry.hpp"
#include "tests/support/formula_platform.hpp"
#include "tests/support/rig.hpp"

namespace hcclsim::hccl {
namespace {

/// Servers of 4 and 2 NPUs, each NPU with a link to every other of its server and a port of its own to the others.
TEST(Ahc, TimeIsTheSumOfItsSteps) {
  const std::string path = test::write_platform(test::two_level_platform(2, 4));
  constexpr double n = 1 << 20;
  constexpr double inner = 2e-6 + 0.6e-6 + 0.3e-6;
  constexpr double outer = 2e-6 + 7e-6 + 1e-6;
  // Reduce-scatter and all-gather of the four; each of the two has two runs of a quarter, in rings of two.
  constexpr double expected = 2 * 3 * (inner + n / 4 / 10e9) + 2 * (2 * (outer + n / 8 / 5e9) + n / 8 / 4e9);
  for (const auto network : {sim::NetworkKind::simgrid, sim::NetworkKind::fluid}) {
    const std::vector<double> time = test::in_child([&] {
      test::Rig rig(path, network);
      const auto schedule = std::make_shared<const Schedule>(
          ahc_allreduce({.ranks = 6, .elements = (1U << 20U) / 4}, {{4, 2}, true, false}));
      return std::vector<double>{rig.time_of(schedule)};
    });
    EXPECT_NEAR(time[0] / expected, 1, 1e-9) << sim::name_of(network);
  }
}

// Every server sends 2 (G − 1)/G of the payload in all, whatever its size.
TEST(Ahc, BytesBetweenServersDoNotDependOnTheirSizes) {
  for (const std::vector<Rank>& sizes : std::vector<std::vector<Rank>>{{8, 4}, {3, 2}, {4, 4, 1}, {6, 4, 3}}) {
    std::vector<std::uint32_t> server;
    for (std::size_t s = 0; s < sizes.size(); ++s) server.insert(server.end(), sizes[s], static_cast<std::uint32_t>(s));
    const std::uint64_t elements = 32U * 24U * 6U;  // whole slices of 128 bytes, and whole parts of them
    Findings none(1);
    const TaskProgram program = unroll(
        ahc_allreduce({.ranks = static_cast<Rank>(server.size()), .elements = elements}, {sizes, true, true}), none);
    const Bytes expected = elements * 4 * 2 * (sizes.size() - 1) / sizes.size();
    for (const GroupBytes& bytes : crossing(program, server)) {
      EXPECT_EQ(bytes.out, expected);
      EXPECT_EQ(bytes.in, expected);
    }
  }
}

TEST(Ahc, RunsWithoutCommonOwnersAreAtTheSameTime) {
  const Schedule schedule = ahc_allreduce({.ranks = 5, .elements = 600}, {{3, 2}, true, true});
  ASSERT_EQ(schedule.stages.size(), 4U);  // two rounds between reduce-scatter and all-gather
  EXPECT_EQ(schedule.groups.at(schedule.stages[1].strands.at(0).group).order(), (std::vector<Rank>{0, 3}));
  EXPECT_EQ(schedule.groups.at(schedule.stages[1].strands.at(1).group).order(), (std::vector<Rank>{1, 4}));
  EXPECT_EQ(schedule.groups.at(schedule.stages[2].strands.at(0).group).order(), (std::vector<Rank>{1, 3}));
  EXPECT_EQ(schedule.groups.at(schedule.stages[2].strands.at(1).group).order(), (std::vector<Rank>{2, 4}));
}

TEST(Ahc, TooManySlicesAreRefused) {
  const std::vector<Rank> sizes{97, 101, 103, 107};
  try {
    static_cast<void>(ahc_allreduce({.ranks = 408, .elements = 600}, {sizes, true, true}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "ahc needs more than 16777216 slices for servers of 97, 101, 103, 107 NPUs; use ring");
  }
}

}  // namespace
}  // namespace hcclsim::hccl
