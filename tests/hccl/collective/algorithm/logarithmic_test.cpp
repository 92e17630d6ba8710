#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>

#include "hccl/check/check.hpp"
#include "hccl/check/symmetry/symmetry.hpp"
#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/algorithm/nhr_v1.hpp"
#include "tests/support/built.hpp"
#include "tests/support/check_text.hpp"

/// Algorithms with logarithmically many steps, or with as many as the root of the ranks: steps and bytes are those that
/// their headers state. That they are correct is proved and executed with all others (checker_property_test.cpp,
/// collective_test.cpp).
namespace hcclsim::hccl {
namespace {

using test::built;
using test::text_of;

struct Counted {
  std::string name;
  std::function<Schedule(const Operation&)> build;
  Collective collective;
  std::uint32_t phases;  ///< each of ceil(log2 p) steps with p−1 shares
};

TEST(Logarithmic, StepsAndBytesAreThoseOfTheFormula) {
  const std::vector<Counted> all{
      {"nhr reduce-scatter", built<Algorithm::nhr>, Collective::reduce_scatter, 1},
      {"nhr allgather", built<Algorithm::nhr>, Collective::allgather, 1},
      {"nhr allreduce", built<Algorithm::nhr>, Collective::allreduce, 2},
      {"nhr scatter", built<Algorithm::nhr>, Collective::scatter, 1},
      {"nhr broadcast", built<Algorithm::nhr>, Collective::broadcast, 2},
      {"nb reduce-scatter", built<Algorithm::nb>, Collective::reduce_scatter, 1},
      {"nb allgather", built<Algorithm::nb>, Collective::allgather, 1},
      {"nb allreduce", built<Algorithm::nb>, Collective::allreduce, 2},
      {"nb scatter", built<Algorithm::nb>, Collective::scatter, 1},
      {"nb broadcast", built<Algorithm::nb>, Collective::broadcast, 2},
  };
  for (const Counted& counted : all) {
    for (const Rank ranks : {2U, 3U, 5U, 6U, 7U, 8U, 12U, 16U, 21U, 32U, 33U}) {
      Operation operation{.ranks = ranks, .elements = 96, .collective = counted.collective};
      const Bytes share = 96 * 4;
      if (operation.blocks() == 1) operation.elements *= ranks;
      if (is_rooted(operation.collective)) operation.root = ranks / 3;
      const CheckReport report = check(counted.build(operation));
      ASSERT_TRUE(report.distances) << text_of(report);
      const std::string what = fmt::format("{} on {} ranks", counted.name, ranks);
      EXPECT_EQ(report.distances->steps, counted.phases * static_cast<std::uint32_t>(std::bit_width(ranks - 1)))
          << what;
      EXPECT_EQ(report.distances->sent, counted.phases * (ranks - 1) * share) << what;
      EXPECT_EQ(report.distances->reduced, reduces(counted.collective) ? (ranks - 1) * share : 0) << what;
    }
  }
}

TEST(Logarithmic, ReducedByACoreOneRankStandsForAll) {
  for (const Schedule& schedule :
       {built<Algorithm::nhr>({4096, 4096 * 64}, false), built<Algorithm::nb>({4096, 4096 * 64}, false)}) {
    EXPECT_TRUE(Rotation::of(schedule)) << schedule.algorithm;
    const CheckReport report = check(schedule);
    EXPECT_TRUE(report.ok) << text_of(report);
  }
}

TEST(RingGrid, IsARectangleOrHasLongerRows) {
  const auto grid = [](Rank ranks) {
    const RingGrid grid(ranks);
    return fmt::format("{}x{}+{}", grid.rows, grid.columns, grid.long_rows);
  };
  EXPECT_EQ(grid(1), "1x1+0");
  EXPECT_EQ(grid(5), "1x5+0");
  EXPECT_EQ(grid(7), "3x2+1");  // 3 2 2
  EXPECT_EQ(grid(8), "2x4+0");
  EXPECT_EQ(grid(11), "3x3+2");  // 4 4 3
  EXPECT_EQ(grid(13), "4x3+1");  // 4 3 3 3
  EXPECT_EQ(grid(16), "4x4+0");
  EXPECT_EQ(grid(17), "4x4+1");
  EXPECT_EQ(grid(32), "4x8+0");
  EXPECT_EQ(grid(128), "11x11+7");  // 8x16 is too long
  for (Rank ranks = 1; ranks < 400; ++ranks) {
    SCOPED_TRACE(fmt::format("{} ranks", ranks));
    const RingGrid made(ranks);
    EXPECT_EQ(made.start(made.rows - 1) + made.length(made.rows - 1), ranks);
    EXPECT_LE(made.long_rows, made.columns);
    EXPECT_LT(std::max(made.rows, made.length(0)) - std::min(made.rows, made.columns), 5U);
  }
}

TEST(RingGrid, StepsAndBytesOfARectangle) {
  for (const Rank ranks : {2U, 5U, 6U, 8U, 12U, 16U, 32U}) {
    const RingGrid grid(ranks);
    const std::uint32_t steps = grid.rows + grid.columns - 2;
    const Bytes share = 96 * 4;
    const auto distances = [&](const Schedule& schedule) {
      const CheckReport report = check(schedule);
      EXPECT_TRUE(report.ok) << text_of(report);
      return report.distances.value();
    };
    const Distances gather =
        distances(built<Algorithm::nhr_v1>({.ranks = ranks, .elements = 96, .collective = Collective::allgather}));
    EXPECT_EQ(gather.steps, steps) << ranks;
    EXPECT_EQ(gather.sent, (ranks - 1) * share) << ranks;
    const Distances scatter = distances(
        built<Algorithm::nhr_v1>({.ranks = ranks, .elements = 96, .collective = Collective::reduce_scatter}, true));
    EXPECT_EQ(scatter.steps, steps) << ranks;
    EXPECT_EQ(scatter.reduced, (ranks - 1) * share) << ranks;
    const Distances both = distances(built<Algorithm::nhr_v1>({.ranks = ranks, .elements = ranks * 96}, true));
    EXPECT_EQ(both.steps, 2 * steps) << ranks;
    EXPECT_EQ(both.sent, 2 * (ranks - 1) * share) << ranks;
    const Distances broadcast = distances(nhr_v1_broadcast(
        {.ranks = ranks, .elements = ranks * 96, .collective = Collective::broadcast, .root = ranks / 2}));
    EXPECT_EQ(broadcast.steps, grid.rows + 2 * grid.columns - 3) << ranks;
  }
}

}  // namespace
}  // namespace hcclsim::hccl
