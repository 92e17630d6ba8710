#include "hccl/collective/algorithm/levels/hierarchical.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "hccl/check/check.hpp"
#include "hccl/check/program/task_program.hpp"
#include "tests/support/check_text.hpp"
#include "tests/support/collectives/collective_result.hpp"
#include "tests/support/collectives/interpreter.hpp"

/// Collectives over levels: proved by the checker for many shapes; transfers stay within their level, and each level
/// moves the bytes of its formula.
namespace hcclsim::hccl {
namespace {

using Sizes = std::vector<Rank>;

const std::vector<Sizes> shapes{{2, 2}, {2, 3},    {3, 2},    {4, 4},    {8, 3},    {1, 5},
                                {6, 1}, {2, 2, 2}, {2, 3, 4}, {3, 4, 2}, {4, 1, 3}, {2, 2, 2, 3}};

Rank ranks_of(const Sizes& sizes) { return std::accumulate(sizes.begin(), sizes.end(), Rank{1}, std::multiplies<>()); }

/// Different algorithms on the levels, and a core that reduces on every second one.
std::vector<HierarchyLevel> levels_of(const Sizes& sizes, const std::vector<Algorithm>& algorithms) {
  std::vector<HierarchyLevel> levels;
  for (std::size_t l = 0; l < sizes.size(); ++l) {
    std::vector<Rank> back(sizes[l]);
    std::iota(back.rbegin(), back.rend(), Rank{0});
    levels.push_back({sizes[l], algorithms[l % algorithms.size()], {back}, l % 2 == 0});
  }
  return levels;
}

std::string text_of(Collective collective, const Sizes& sizes) {
  return fmt::format("{} over {}", name_of(collective), fmt::join(sizes, " x "));
}

const std::vector<std::vector<Algorithm>> mixtures{
    {Algorithm::ring}, {Algorithm::mesh, Algorithm::ring}, {Algorithm::multi_ring, Algorithm::mesh}};
const std::vector<std::vector<Algorithm>> logarithmic{{Algorithm::mesh, Algorithm::nhr},
                                                      {Algorithm::nb, Algorithm::nhr}};

constexpr std::array collectives{Collective::allreduce, Collective::reduce_scatter, Collective::allgather};

TEST(Hierarchical, TheCheckerProvesEveryShape) {
  for (const Collective collective : collectives) {
    for (const Sizes& sizes : shapes) {
      for (const auto& algorithms : mixtures) {
        for (const std::uint64_t elements : {1U, 1009U}) {
          const Operation operation{.ranks = ranks_of(sizes), .elements = elements, .collective = collective};
          const Schedule schedule = hierarchical(operation, levels_of(sizes, algorithms));
          const CheckReport report = check(schedule);
          ASSERT_TRUE(report.ok) << schedule.algorithm << ", " << text_of(collective, sizes) << ": "
                                 << test::text_of(report);
        }
      }
    }
  }
}

TEST(Hierarchical, TheCheckerProvesLogarithmicAlgorithmsOnLevels) {
  for (const Collective collective : collectives) {
    for (const Sizes& sizes : shapes) {
      for (const auto& algorithms : logarithmic) {
        const Operation operation{.ranks = ranks_of(sizes), .elements = 1009, .collective = collective};
        const Schedule schedule = hierarchical(operation, levels_of(sizes, algorithms));
        const CheckReport report = check(schedule);
        ASSERT_TRUE(report.ok) << schedule.algorithm << ", " << text_of(collective, sizes) << ": "
                               << test::text_of(report);
      }
    }
  }
}

TEST(Hierarchical, TheCheckerProvesEveryRoot) {
  for (const Collective collective :
       {Collective::broadcast, Collective::reduce, Collective::scatter, Collective::gather}) {
    for (const Sizes& sizes : {Sizes{2, 2}, Sizes{3, 2}, Sizes{2, 2, 2}, Sizes{2, 3, 4}, Sizes{3, 4, 2}}) {
      for (const auto& algorithms : mixtures) {
        for (Rank root = 0; root < ranks_of(sizes); ++root) {
          const Operation operation{.ranks = ranks_of(sizes), .elements = 1009, .collective = collective, .root = root};
          const Schedule schedule = hierarchical(operation, levels_of(sizes, algorithms));
          const CheckReport report = check(schedule);
          ASSERT_TRUE(report.ok) << schedule.algorithm << ", " << text_of(collective, sizes) << ", root " << root
                                 << ": " << test::text_of(report);
        }
      }
    }
  }
}

TEST(Hierarchical, BlocksOfDifferentSizes) {
  for (const Collective collective : {Collective::reduce_scatter, Collective::allgather}) {
    for (const Sizes& sizes : shapes) {
      for (const auto& algorithms : mixtures) {
        Operation operation{.ranks = ranks_of(sizes), .collective = collective};
        std::vector<std::uint64_t> counts;
        for (Rank rank = 0; rank < operation.ranks; ++rank) counts.push_back(rank * 37 % 23 * (rank % 3));
        operation.counts = BlockCounts::of_blocks(counts);
        const Schedule schedule = hierarchical(operation, levels_of(sizes, algorithms));
        const std::vector<test::Values> input = test::make_input(operation, 7);
        const test::Execution run = test::execute(schedule, input, 7);
        ASSERT_EQ(test::problem_of_result(operation, input, run.output), "")
            << schedule.algorithm << ", " << text_of(collective, sizes);
      }
    }
  }
}

/// The level within which two ranks lie, if they differ in one digit.
std::optional<std::size_t> level_between(const Sizes& sizes, Rank a, Rank b) {
  std::optional<std::size_t> level;
  for (std::size_t l = 0; l < sizes.size(); ++l) {
    if (a % sizes[l] != b % sizes[l]) {
      if (level.has_value()) return std::nullopt;
      level = l;
    }
    a /= sizes[l];
    b /= sizes[l];
  }
  return level;
}

/// Bytes that every rank sends on each level, if all send the same.
std::vector<Bytes> sent_of(const Schedule& schedule, const Sizes& sizes) {
  Findings findings(1);
  const TaskProgram program = unroll(schedule, findings);
  std::vector<std::vector<Bytes>> sent(schedule.ranks, std::vector<Bytes>(sizes.size(), 0));
  for (Rank rank = 0; rank < schedule.ranks; ++rank) {
    for (std::size_t i = program.first_part[rank]; i < program.first_part[rank + 1]; ++i) {
      for (std::uint32_t k = 0; k < program.parts[i].count; ++k) {
        const ProgramTask& task = program.tasks[program.parts[i].first + k];
        if (!is_transfer(task.kind)) continue;
        const std::optional<std::size_t> level = level_between(sizes, rank, task.peer);
        if (!level.has_value()) {
          ADD_FAILURE() << "a transfer between " << rank << " and " << task.peer;
          return {};
        }
        for (const Movement& movement : program.movements_of(task)) {
          sent[source_rank(task, rank)][*level] += movement.source.length;
        }
      }
    }
  }
  EXPECT_THAT(sent, testing::Each(sent.front()));
  return sent.front();
}

TEST(Hierarchical, EveryLevelMovesTheBytesOfItsFormula) {
  for (const Collective collective : collectives) {
    for (const Sizes& sizes : shapes) {
      const Rank ranks = ranks_of(sizes);
      // Divisible by all levels at 128 bytes.
      const Bytes payload = Bytes{128} * 5 * ranks;
      const bool blocks = collective != Collective::allreduce;
      const Operation operation{
          .ranks = ranks, .elements = payload / 4 / (blocks ? ranks : 1), .collective = collective};
      for (const auto& algorithms : mixtures) {
        std::vector<Bytes> expected;
        Bytes inside = 1;
        for (const Rank size : sizes) {
          // Reduce-scatter or all-gather of the level, or both.
          const Bytes of_level = blocks ? payload / ranks * size * inside : 2 * (payload / inside);
          expected.push_back(of_level / size * (size - 1));
          inside *= size;
        }
        const Schedule schedule = hierarchical(operation, levels_of(sizes, algorithms));
        ASSERT_EQ(sent_of(schedule, sizes), expected) << schedule.algorithm << ", " << text_of(collective, sizes);
      }
    }
  }
}

// Slices of NHR_V1 and of halving-doubling would not be those that the next level takes.
TEST(Hierarchical, RefusesSlicesOfAlgorithmsOfBlocksInside) {
  for (const Algorithm algorithm : {Algorithm::nhr_v1, Algorithm::halving_doubling}) {
    SCOPED_TRACE(name_of(algorithm));
    const Operation operation{.ranks = 4, .elements = 100, .collective = Collective::allreduce};
    EXPECT_THROW(static_cast<void>(hierarchical(operation, {{2, algorithm}, {2}})), Error);
    EXPECT_TRUE(check(hierarchical(operation, {{2}, {2, algorithm}})).ok);
    const Operation blocks{.ranks = 4, .elements = 100, .collective = Collective::reduce_scatter};
    EXPECT_TRUE(check(hierarchical(blocks, {{2, algorithm}, {2, algorithm}})).ok);
  }
}

std::string refusal(const Operation& operation, const std::vector<HierarchyLevel>& levels) {
  try {
    static_cast<void>(hierarchical(operation, levels));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Hierarchical, AnAlltoallHasTwoLevelsAndBlocksThatAreAlike) {
  Operation operation{.ranks = 8, .elements = 5, .collective = Collective::alltoall, .in_place = false};
  const HierarchyLevel two{2, Algorithm::pairwise};
  EXPECT_EQ(refusal(operation, {two, two, two}), "alltoall over 3 levels; there are two at most");
  EXPECT_EQ(refusal(operation, {two, {1, Algorithm::pairwise}, {4, Algorithm::mesh}}), "");
  std::vector<std::uint64_t> counts(64, 7);
  operation.counts = BlockCounts::of_pairs(8, counts);
  const Schedule alike = hierarchical(operation, {{4, Algorithm::mesh}, two});
  EXPECT_TRUE(check(alike).ok);
  const std::vector<test::Values> input = test::make_input(operation, 5);
  EXPECT_EQ(test::problem_of_result(operation, input, test::execute(alike, input, 5).output), "");
  counts.back() = 8;
  operation.counts = BlockCounts::of_pairs(8, counts);
  EXPECT_EQ(refusal(operation, {{4, Algorithm::mesh}, two}),
            "alltoall over levels has blocks of one size; here they differ: use pairwise");
}

// Every rank sends n (m − 1)/m in its server, and n (S − 1)/S to the ranks in its place alone.
TEST(Hierarchical, AnAlltoallMovesAllOnBothLevels) {
  for (const Sizes& sizes : {Sizes{4, 2}, Sizes{2, 3}, Sizes{3, 3}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(sizes, " x ")));
    const Rank ranks = ranks_of(sizes);
    const Operation operation{.ranks = ranks, .elements = 96, .collective = Collective::alltoall, .in_place = false};
    const Bytes all = operation.payload();
    const Schedule schedule = hierarchical(operation, {{sizes[0], Algorithm::mesh}, {sizes[1], Algorithm::pairwise}});
    EXPECT_EQ(sent_of(schedule, sizes),
              (std::vector<Bytes>{all / sizes[0] * (sizes[0] - 1), all / sizes[1] * (sizes[1] - 1)}));
  }
}

TEST(Hierarchical, RefusesWhatAnAlgorithmDoesNotDoOnALevel) {
  const Operation operation{.ranks = 4, .elements = 1, .collective = Collective::reduce_scatter};
  try {
    static_cast<void>(hierarchical(operation, {{2}, {2, Algorithm::mesh_one_shot}}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(
        std::string(error.what()).rfind("mesh-one-shot does no reduce-scatter between servers; use one of ring", 0), 0U)
        << error.what();
  }
}

TEST(Hierarchical, DoesNotAdviseTheAlgorithmThatItRefuses) {
  // Halving-doubling scatters over an innermost level only where the buffer has blocks.
  const Operation operation{.ranks = 8, .elements = 64, .collective = Collective::allreduce};
  try {
    static_cast<void>(
        hierarchical(operation, {{2, Algorithm::mesh}, {2, Algorithm::halving_doubling}, {2, Algorithm::nb}}));
    FAIL();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.rfind("halving-doubling does no reduce-scatter between servers; use one of ring", 0), 0U)
        << message;
    EXPECT_EQ(message.find("halving-doubling", 1), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace hcclsim::hccl
