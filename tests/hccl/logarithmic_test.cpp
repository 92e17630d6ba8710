#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "hccl/check/check.hpp"
#include "hccl/collective/nb.hpp"
#include "hccl/collective/nhr.hpp"
#include "tests/support/check_text.hpp"
#include "tests/support/collective_algorithms.hpp"

/// Algorithms with logarithmically many steps: proved for every number of ranks, with the steps and bytes that their
/// headers state.
namespace hcclsim::hccl {
namespace {

using test::text_of;

TEST(Logarithmic, EveryAlgorithmIsCorrect) {
  std::uint64_t seed = 0;
  for (const test::CollectiveAlgorithm& algorithm : test::logarithmic_algorithms()) {
    for (Rank ranks = 1; ranks <= 33; ++ranks) {
      if (!algorithm.fits(ranks)) continue;
      for (const std::uint64_t elements : {0U, 1U, 257U}) {
        Operation operation = test::operation_of(algorithm, ranks, elements);
        if (is_rooted(operation.collective)) operation.root = static_cast<Rank>(++seed % ranks);
        const CheckReport report = check(algorithm.build(operation));
        ASSERT_TRUE(report.ok) << fmt::format("{} on {} ranks, {} elements, root {}: ", algorithm.name, ranks, elements,
                                              operation.root)
                               << text_of(report);
      }
    }
  }
}

struct Counted {
  std::string name;
  std::function<Schedule(const Operation&)> build;
  Collective collective;
  std::uint32_t phases;  ///< each of ceil(log2 p) steps with p−1 shares
};

TEST(Logarithmic, StepsAndBytesAreThoseOfTheFormula) {
  const std::vector<Counted> all{
      {"nhr reduce-scatter", [](const Operation& o) { return nhr_reduce_scatter(o, true); }, Collective::reduce_scatter,
       1},
      {"nhr allgather", nhr_all_gather, Collective::allgather, 1},
      {"nhr allreduce", [](const Operation& o) { return nhr_allreduce(o, true); }, Collective::allreduce, 2},
      {"nhr scatter", nhr_scatter, Collective::scatter, 1},
      {"nhr broadcast", nhr_broadcast, Collective::broadcast, 2},
      {"nb reduce-scatter", [](const Operation& o) { return nb_reduce_scatter(o, true); }, Collective::reduce_scatter,
       1},
      {"nb allgather", nb_all_gather, Collective::allgather, 1},
      {"nb allreduce", [](const Operation& o) { return nb_allreduce(o, true); }, Collective::allreduce, 2},
      {"nb scatter", nb_scatter, Collective::scatter, 1},
      {"nb broadcast", nb_broadcast, Collective::broadcast, 2},
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

}  // namespace
}  // namespace hcclsim::hccl
