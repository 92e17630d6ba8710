#include "hccl/verify/value_check.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "device/numerics/loops/reduce.hpp"
#include "device/numerics/loops/rounding.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/collective/staging.hpp"
#include "hccl/verify/expected_result.hpp"
#include "hccl/verify/test_data.hpp"
#include "tests/support/collectives/collective_algorithms.hpp"
#include "tests/support/collectives/collective_result.hpp"
#include "tests/support/collectives/interpreter.hpp"

/// Level L6: right schedules pass on real data, of all types, and what a wrong one leaves is found.
namespace hcclsim::hccl {
namespace {

constexpr DataType types[] = {DataType::int8,  DataType::int16,  DataType::int32,  DataType::int64,
                              DataType::uint8, DataType::uint16, DataType::uint32, DataType::uint64,
                              DataType::fp16,  DataType::bf16,   DataType::fp32,   DataType::fp64};
constexpr ReduceOp ops[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min};

/// Element `i` of floating-point numbers.
double number_at(DataType type, const std::vector<std::byte>& bytes, std::size_t i) {
  if (type == DataType::fp64) {
    double value = 0;
    std::memcpy(&value, &bytes[i * sizeof(value)], sizeof(value));
    return value;
  }
  float value = 0;
  if (type == DataType::fp32) {
    std::memcpy(&value, &bytes[i * sizeof(value)], sizeof(value));
  } else {
    device::widen(type, &bytes[i * size_of(type)], {&value, 1});
  }
  return value;
}

ValueCheck run(const Schedule& schedule, std::uint64_t seed = 1) {
  device::WorkerPool workers(1);
  return check_values(schedule, seed, workers);
}

TEST(ValueCheck, RightOnAllTypesAndOperators) {
  for (const DataType type : types) {
    for (const ReduceOp op : ops) {
      SCOPED_TRACE(fmt::format("{} {}", name_of(type), name_of(op)));
      const Operation operation{.ranks = 9, .elements = 1003, .type = type, .op = op};
      const ValueCheck check = run(ring_allreduce(operation, true));
      EXPECT_TRUE(check.ok()) << check.wrong;
      EXPECT_EQ(check.elements, 9U * 1003);
      EXPECT_EQ(check.additions, 8U);
      const bool rounds = is_float(type) && (op == ReduceOp::sum || op == ReduceOp::prod);
      EXPECT_EQ(check.largest_difference > 0, rounds);
      EXPECT_LE(check.largest_difference, check.bound);
    }
  }
}

TEST(ValueCheck, EveryFormOfEveryAlgorithmIsRight) {
  std::uint64_t seed = 1;
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    for (const Rank ranks : {1U, 2U, 5U, 8U}) {
      if (!algorithm.fits(ranks)) continue;
      for (const LaunchMode launch : {LaunchMode::graph, LaunchMode::op}) {
        for (const bool in_place : {true, false}) {
          if (in_place && algorithm.collective == Collective::send_recv) continue;
          Operation operation = test::operation_of(algorithm, ranks, 131);
          operation.type = types[++seed % std::size(types)];
          operation.in_place = in_place;
          if (is_rooted(operation.collective)) operation.root = ranks / 2;
          const Schedule schedule = staged(operation, {launch, Bytes{2048} * ranks}, algorithm.build);
          const ValueCheck check = run(schedule, seed);
          ASSERT_TRUE(check.ok()) << name_of(operation.collective) << ' ' << algorithm.name << ", " << ranks
                                  << " ranks, " << name_of(launch) << ", in place " << in_place << ", "
                                  << name_of(operation.type) << ": rank " << check.first_wrong->rank << " element "
                                  << check.first_wrong->element << ' ' << check.first_wrong->found << " not "
                                  << check.first_wrong->expected;
        }
      }
    }
  }
}

// The sum of 33 numbers in bf16 may be wrong by more than one of them; whole numbers show that one is missing.
TEST(ValueCheck, AMissingContributionIsFoundBelowTheErrorBound) {
  Schedule schedule = ring_allreduce({.ranks = 33, .elements = 3300, .type = DataType::bf16}, true);
  EXPECT_TRUE(run(schedule).ok());
  // Without the last round position p has slice p+1 instead of slice p, complete but for one contribution.
  std::vector<Loop>& loops = schedule.stages[0].strands[0].loops;
  --loops[0].rounds.base;
  for (Task& task : loops[1].tasks) {
    if (!is_transfer(task.kind)) continue;
    ++task.source.cuts.front().index.base;
    ++task.destination.cuts.front().index.base;
  }
  const ValueCheck check = run(schedule);
  EXPECT_GE(check.wrong, 33U * 3300 / 2);
  EXPECT_LT(check.wrong, 33U * 3300);
  ASSERT_TRUE(check.first_wrong.has_value());
  EXPECT_EQ(check.first_wrong->rank, 0U);
  EXPECT_EQ(check.first_wrong->element, 0U);
}

TEST(ValueCheck, WhatNobodyWroteIsFound) {
  for (const DataType type : types) {
    for (const ReduceOp op : ops) {
      Schedule schedule = ring_allreduce({.ranks = 4, .elements = 512, .type = type, .op = op}, true);
      // Nobody passes on the last of the four slices.
      schedule.stages[0].strands[0].loops[1].rounds.base = 2;
      EXPECT_FALSE(run(schedule).ok()) << name_of(type) << ' ' << name_of(op);
    }
  }
}

TEST(ValueCheck, ADoubledContributionIsFound) {
  for (const DataType type : types) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod}) {
      Schedule schedule = ring_allreduce({.ranks = 4, .elements = 512, .type = type, .op = op}, true);
      std::vector<Task>& tasks = schedule.stages[0].strands[0].loops[0].tasks;
      const auto transfer =
          std::find_if(tasks.begin(), tasks.end(), [](const Task& task) { return is_transfer(task.kind); });
      tasks.insert(transfer, *transfer);
      EXPECT_FALSE(run(schedule).ok()) << name_of(type) << ' ' << name_of(op);
    }
  }
}

// Each of two ranks keeps its own numbers. Of 48 elements of a sum 42 are ordinary and wrong on both ranks. Of the
// special ones the rank that has the infinity, or the NaN, is right; both are of −0 + −0, none of ∞ − ∞ and of
// subnormals; of +0 and −0 the rank with +0. A maximum is right where the rank has it.
TEST(ValueCheck, SpecialNumbersAreComparedAsIeeeSays) {
  for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64}) {
    Schedule schedule = ring_allreduce({.ranks = 2, .elements = 48, .type = type}, true);
    schedule.stages.clear();
    EXPECT_EQ(run(schedule).wrong, 42U * 2 + 1 + 2 + 1 + 0 + 1 + 2) << name_of(type);
    schedule.op = ReduceOp::max;
    EXPECT_EQ(run(schedule).wrong, 43U + 1 + 1 + 1 + 0 + 1) << name_of(type);
  }
}

TEST(ValueCheck, DoesNotDependOnTheNumberOfWorkers) {
  Schedule schedule = ring_allreduce({.ranks = 4, .elements = 50'000}, true);
  schedule.stages[0].strands[0].loops[0].tasks[2].kind = TaskKind::write;
  const auto numbers = [&](unsigned count) {
    device::WorkerPool workers(count);
    const ValueCheck check = check_values(schedule, 5, workers);
    return fmt::format("{} {} {} {} {} {} {}", check.elements, check.wrong, check.largest_difference, check.bound,
                       check.first_wrong->rank, check.first_wrong->element, check.first_wrong->found);
  };
  EXPECT_EQ(numbers(1), numbers(3));
}

// What is asked for agrees with the other description of it, by which the interpreter's results are judged.
TEST(ExpectedResult, IsWhatTheTestsAskFor) {
  std::vector<Operation> operations;
  for (const Collective collective :
       {Collective::allreduce, Collective::reduce_scatter, Collective::allgather, Collective::broadcast,
        Collective::reduce, Collective::scatter, Collective::gather, Collective::alltoall, Collective::send_recv}) {
    for (const bool in_place : {true, false}) {
      if (in_place && collective == Collective::send_recv) continue;
      operations.push_back({.ranks = 3, .elements = 5, .collective = collective, .in_place = in_place});
      if (is_rooted(collective)) operations.back().root = 2;
      Operation& last = operations.back();
      if (collective == Collective::reduce_scatter || collective == Collective::allgather) {
        operations.push_back(last);
        operations.back().counts = BlockCounts::of_blocks({4, 0, 7});
      } else if (counts_pairs(collective) && !in_place) {
        operations.push_back(last);
        operations.back().counts = BlockCounts::of_pairs(3, {1, 2, 3, 4, 0, 6, 7, 8, 9});
      }
    }
  }
  for (const Operation& operation : operations) {
    const std::vector<test::Values> input = test::make_input(operation, 7);
    std::vector<test::Values> output(operation.ranks);
    for (Rank rank = 0; rank < operation.ranks; ++rank) {
      output[rank].assign(operation.size(Buffer::output, rank) / size_of(operation.type), -1);
      if (operation.in_place) output[rank] = input[rank];
    }
    for (const ResultPiece& piece : expected_result(operation)) {
      for (std::uint64_t i = 0; i < piece.elements; ++i) {
        std::int64_t sum = 0;
        for (const RankElements& source : piece.sources) sum += input.at(source.rank).at(source.offset + i);
        for (const RankElements& holder : piece.holders) output.at(holder.rank).at(holder.offset + i) = sum;
      }
    }
    EXPECT_EQ(test::problem_of_result(operation, input, output), "")
        << name_of(operation.collective) << " in place " << operation.in_place << " counts "
        << !operation.counts.empty();
  }
}

// Exact elements come out the same whatever the order of the reduction.
TEST(TestData, ExactElementsAreExact) {
  for (const DataType type : types) {
    for (const ReduceOp op : ops) {
      for (const Rank ranks : {2U, 13U, 100U, 300U}) {
        const TestData data({.ranks = ranks, .elements = 64, .type = type, .op = op}, 3);
        const Bytes bytes = 64 * size_of(type);
        std::vector<std::byte> up(bytes);
        std::vector<std::byte> down(bytes);
        std::vector<std::byte> one(bytes);
        data.fill(0, 0, up);
        data.fill(ranks - 1, 0, down);
        bool overflowed = false;
        for (Rank rank = 1; rank < ranks; ++rank) {
          data.fill(rank, 0, one);
          overflowed = device::reduce(type, op, device::Overflow::infinity, up.data(), one.data(), 64) || overflowed;
          data.fill(ranks - 1 - rank, 0, one);
          device::reduce(type, op, device::Overflow::infinity, down.data(), one.data(), 64);
        }
        EXPECT_EQ(overflowed, is_float(type)) << name_of(type) << ' ' << name_of(op) << ' ' << ranks;
        for (std::uint64_t i = 0; i < 64; ++i) {
          if (!data.exact(i) ||
              (is_float(type) && std::isnan(number_at(type, up, i)) && std::isnan(number_at(type, down, i)))) {
            continue;
          }
          ASSERT_EQ(std::memcmp(&up[i * size_of(type)], &down[i * size_of(type)], size_of(type)), 0)
              << name_of(type) << ' ' << name_of(op) << ' ' << ranks << ' ' << i;
        }
      }
    }
  }
}

// What the ranks hold and what their reduction gives, by the table in test_data.hpp.
TEST(TestData, SpecialNumbersAndTheirReductions) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr Rank ranks = 3;
  for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64}) {
    const double subnormals_end = device::smallest_subnormal(type) * (0.5 / device::unit_roundoff(type));
    for (const ReduceOp op : ops) {
      const TestData data({.ranks = ranks, .elements = 96, .type = type, .op = op}, 3);
      std::vector<std::byte> reduced(96 * size_of(type));
      std::vector<std::byte> one(reduced.size());
      std::vector<std::vector<double>> held(96);
      for (Rank rank = 0; rank < ranks; ++rank) {
        data.fill(rank, 0, rank == 0 ? reduced : one);
        for (std::size_t i = 0; i < 96; ++i) held[i].push_back(number_at(type, rank == 0 ? reduced : one, i));
        if (rank > 0) device::reduce(type, op, device::Overflow::infinity, reduced.data(), one.data(), 96);
      }
      std::map<Special, int> found;
      for (std::size_t i = 0; i < 96; ++i) {
        const Special special = data.special(i);
        ++found[special];
        const double result = number_at(type, reduced, i);
        const auto count = [&](const auto& holds) { return std::count_if(held[i].begin(), held[i].end(), holds); };
        const auto equal = [&](double value) {
          return count([&](double x) { return x == value && std::signbit(x) == std::signbit(value); });
        };
        const std::string place = fmt::format("{} {} element {}: {}", name_of(type), name_of(op), i, result);
        switch (special) {
          case Special::none:
            EXPECT_EQ(count([](double x) { return !std::isfinite(x) || x == 0; }), 0) << place;
            break;
          case Special::infinity:
            EXPECT_EQ(equal(infinity), 1) << place;
            EXPECT_EQ(op == ReduceOp::prod ? std::abs(result) : result,
                      op == ReduceOp::min ? *std::min_element(held[i].begin(), held[i].end()) : infinity)
                << place;
            break;
          case Special::infinities:
            EXPECT_EQ(equal(infinity), 1) << place;
            EXPECT_EQ(equal(-infinity), 1) << place;
            if (op == ReduceOp::sum) {
              EXPECT_TRUE(std::isnan(result)) << place;
            } else {
              EXPECT_EQ(op == ReduceOp::prod ? std::abs(result) : result, op == ReduceOp::min ? -infinity : infinity)
                  << place;
            }
            break;
          case Special::not_a_number:
            EXPECT_EQ(count([](double x) { return std::isnan(x); }), 1) << place;
            EXPECT_TRUE(std::isnan(result)) << place;
            break;
          case Special::minus_zero:
            EXPECT_EQ(equal(-0.0), 3) << place;
            EXPECT_TRUE(result == 0 && std::signbit(result)) << place;  // of a product: three signs
            break;
          case Special::zeros:
            EXPECT_EQ(equal(-0.0), 2) << place;
            EXPECT_EQ(equal(0.0), 1) << place;
            EXPECT_TRUE(result == 0 && !std::signbit(result)) << place;
            break;
          case Special::subnormal:
            EXPECT_EQ(count([&](double x) { return x != 0 && std::abs(x) < subnormals_end; }),
                      op == ReduceOp::prod ? 1 : 3)
                << place;
            EXPECT_EQ(result, op == ReduceOp::sum    ? held[i][0] + held[i][1] + held[i][2]
                              : op == ReduceOp::prod ? held[i][0] * held[i][1] * held[i][2]
                              : op == ReduceOp::max  ? *std::max_element(held[i].begin(), held[i].end())
                                                     : *std::min_element(held[i].begin(), held[i].end()))
                << place;
            break;
        }
      }
      const bool with_zeros = op == ReduceOp::sum || op == ReduceOp::prod;
      SCOPED_TRACE(fmt::format("{} {}", name_of(type), name_of(op)));
      EXPECT_EQ(found[Special::none], with_zeros ? 84 : 86);
      for (const Special special :
           {Special::infinity, Special::infinities, Special::not_a_number, Special::minus_zero, Special::subnormal}) {
        EXPECT_EQ(found[special], 2) << static_cast<int>(special);
      }
    }
  }
}

// What is only moved may be anything, and must arrive bit for bit.
TEST(TestData, IsBitsWhereNothingIsReduced) {
  const Operation operation{.ranks = 4, .elements = 4096, .type = DataType::fp16, .collective = Collective::broadcast};
  std::vector<std::byte> bytes(operation.payload());
  TestData(operation, 1).fill(0, 0, bytes);
  std::uint32_t not_a_number = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, &bytes[i], 2);
    if ((bits & 0x7FFFU) > 0x7C00U) ++not_a_number;
  }
  EXPECT_NEAR(not_a_number, 4096 / 32.0, 40);
}

TEST(TestData, DiffersByRankElementAndSeed) {
  const auto bytes_of = [](std::uint64_t seed, Rank rank, std::uint64_t first) {
    std::vector<std::byte> bytes(400);
    TestData({.ranks = 4, .elements = 200}, seed).fill(rank, first, bytes);
    return bytes;
  };
  EXPECT_EQ(bytes_of(1, 2, 0), bytes_of(1, 2, 0));
  EXPECT_NE(bytes_of(1, 2, 0), bytes_of(1, 3, 0));
  EXPECT_NE(bytes_of(1, 2, 0), bytes_of(1, 2, 2));
  EXPECT_NE(bytes_of(1, 2, 0), bytes_of(2, 2, 0));
  // In parts or at once.
  const std::vector<std::byte> all = bytes_of(1, 2, 0);
  const std::vector<std::byte> later = bytes_of(1, 2, 30);
  EXPECT_TRUE(std::equal(all.begin() + 120, all.end(), later.begin()));
}

}  // namespace
}  // namespace hcclsim::hccl
