#include "hccl/check/contract.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hccl/check/check.hpp"
#include "tests/support/check_text.hpp"
#include "tests/support/collectives/collective_result.hpp"
#include "tests/support/collectives/direct_collective.hpp"
#include "tests/support/collectives/executed.hpp"
#include "tests/support/collectives/interpreter.hpp"

/// What each collective starts from and has to reach: by hand, and in agreement with the interpreter of the tests and
/// with the executor, of which each knows the collectives from the Operation alone.
namespace hcclsim::hccl {
namespace {

/// "input 0+8 = 16 of 2, …"; a reduction is "of all".
std::string text_of(const std::vector<Holding>& holdings) {
  std::string text;
  for (const Holding& held : holdings) {
    text += fmt::format("{}{} {}+{} = {} of {}", text.empty() ? "" : ", ", name_of(held.buffer), held.offset,
                        held.length, held.place, held.only ? fmt::format("{}", *held.only) : "all");
  }
  return text;
}

/// Three ranks, root 2, two elements of 4 bytes in a block.
Operation three(Collective collective, bool in_place) {
  return {.ranks = 3, .elements = 2, .collective = collective, .root = 2, .in_place = in_place};
}

TEST(Contract, InPlaceByHand) {
  struct Case {
    Collective collective;
    const char* starts;  // of rank 1
    const char* ends;    // of rank 1
    const char* root_ends;
  };
  const std::vector<Case> cases{
      {Collective::allreduce, "output 0+8 = 0 of 1", "output 0+8 = 0 of all", "output 0+8 = 0 of all"},
      {Collective::reduce, "output 0+8 = 0 of 1", "", "output 0+8 = 0 of all"},
      {Collective::broadcast, "", "output 0+8 = 0 of 2", "output 0+8 = 0 of 2"},
      {Collective::reduce_scatter, "output 0+24 = 0 of 1", "output 8+8 = 8 of all", "output 16+8 = 16 of all"},
      {Collective::scatter, "", "output 8+8 = 8 of 2", "output 16+8 = 16 of 2"},
      {Collective::allgather, "output 8+8 = 8 of 1", "output 0+8 = 0 of 0, output 8+8 = 8 of 1, output 16+8 = 16 of 2",
       "output 0+8 = 0 of 0, output 8+8 = 8 of 1, output 16+8 = 16 of 2"},
      {Collective::gather, "output 8+8 = 8 of 1", "",
       "output 0+8 = 0 of 0, output 8+8 = 8 of 1, output 16+8 = 16 of 2"},
      {Collective::alltoall, "output 0+24 = 0 of 1", "output 0+8 = 8 of 0, output 8+8 = 8 of 1, output 16+8 = 8 of 2",
       "output 0+8 = 16 of 0, output 8+8 = 16 of 1, output 16+8 = 16 of 2"},
      {Collective::barrier, "", "", ""},
  };
  for (const Case& one : cases) {
    const Operation operation = three(one.collective, true);
    const Contract contract(operation);
    EXPECT_EQ(text_of(contract.initial(1)), one.starts) << name_of(one.collective);
    EXPECT_EQ(text_of(contract.required(1)), one.ends) << name_of(one.collective);
    EXPECT_EQ(text_of(contract.required(2)), one.root_ends) << name_of(one.collective);
  }
}

TEST(Contract, OutOfPlaceByHand) {
  const auto starts = [](Collective collective, Rank rank) {
    const Operation operation = three(collective, false);
    return text_of(Contract(operation).initial(rank));
  };
  const auto ends = [](Collective collective, Rank rank) {
    const Operation operation = three(collective, false);
    return text_of(Contract(operation).required(rank));
  };
  EXPECT_EQ(starts(Collective::allreduce, 1), "input 0+8 = 0 of 1");
  EXPECT_EQ(starts(Collective::broadcast, 2), "input 0+8 = 0 of 2");
  EXPECT_EQ(starts(Collective::allgather, 1), "input 0+8 = 8 of 1");
  EXPECT_EQ(starts(Collective::scatter, 1), "");
  EXPECT_EQ(ends(Collective::reduce, 1), "");
  EXPECT_EQ(ends(Collective::reduce, 2), "output 0+8 = 0 of all");
  EXPECT_EQ(ends(Collective::reduce_scatter, 1), "output 0+8 = 8 of all");
  EXPECT_EQ(ends(Collective::scatter, 1), "output 0+8 = 8 of 2");
  EXPECT_EQ(ends(Collective::send_recv, 0), "output 0+8 = 0 of 2");
  EXPECT_EQ(ends(Collective::send_recv, 1), "output 0+8 = 0 of 0");
}

TEST(Contract, CountsByHand) {
  Operation scattered = three(Collective::reduce_scatter, false);
  scattered.counts = BlockCounts::of_blocks({3, 0, 1});
  EXPECT_EQ(text_of(Contract(scattered).initial(1)), "input 0+16 = 0 of 1");
  EXPECT_EQ(text_of(Contract(scattered).required(1)), "");
  EXPECT_EQ(text_of(Contract(scattered).required(2)), "output 0+4 = 12 of all");
  EXPECT_EQ(Contract(scattered).least_sent(), 16U);     // rank 1 keeps nothing
  EXPECT_EQ(Contract(scattered).least_reduced(), 11U);  // 16 bytes twice, by three ranks

  // Rank s sends s + d elements to rank d.
  Operation exchanged = three(Collective::alltoall, false);
  exchanged.counts = BlockCounts::of_pairs(3, {0, 1, 2, 1, 2, 3, 2, 3, 4});
  EXPECT_EQ(text_of(Contract(exchanged).initial(2)), "input 0+36 = 0 of 2");
  EXPECT_EQ(text_of(Contract(exchanged).required(1)),
            "output 0+4 = 0 of 0, output 4+8 = 4 of 1, output 12+12 = 8 of 2");
  EXPECT_EQ(Contract(exchanged).least_sent(), 20U);  // rank 2: 2 and 3 elements
}

TEST(Contract, LeastBytesAndSteps) {
  struct Case {
    Collective collective;
    Bytes sent;
    Bytes reduced;
    std::uint32_t steps;           // one transfer at a time
    std::uint32_t steps_of_three;  // up to three out and in
  };
  // Eight ranks, blocks of 16 elements of 4 bytes.
  const std::vector<Case> cases{
      {Collective::allreduce, 112, 56, 3, 2}, {Collective::reduce, 64, 56, 3, 2},
      {Collective::broadcast, 64, 0, 3, 2},   {Collective::reduce_scatter, 448, 448, 3, 2},
      {Collective::scatter, 448, 0, 3, 2},    {Collective::allgather, 448, 0, 3, 2},
      {Collective::gather, 64, 0, 3, 2},      {Collective::alltoall, 448, 0, 3, 2},
      {Collective::send_recv, 64, 0, 1, 1},   {Collective::barrier, 0, 0, 3, 2},
  };
  for (const Case& one : cases) {
    const Operation operation{
        .ranks = 8, .elements = 16, .collective = one.collective, .in_place = one.collective != Collective::send_recv};
    const Contract contract(operation);
    EXPECT_EQ(contract.least_sent(), one.sent) << name_of(one.collective);
    EXPECT_EQ(contract.least_reduced(), one.reduced) << name_of(one.collective);
    EXPECT_EQ(contract.least_steps(1, 1), one.steps) << name_of(one.collective);
    EXPECT_EQ(contract.least_steps(3, 3), one.steps_of_three) << name_of(one.collective);
  }
  const Operation broadcast{.ranks = 8, .elements = 16, .collective = Collective::broadcast};
  EXPECT_EQ(Contract(broadcast).least_steps(7, 1), 1U);  // all read from the root at once
  const Operation alone{.elements = 16};
  EXPECT_EQ(Contract(alone).least_sent(), 0U);
  EXPECT_EQ(Contract(alone).least_steps(0, 0), 0U);
}

void expect_right(const Operation& operation) {
  const Schedule schedule = test::DirectCollective(operation).schedule();
  SCOPED_TRACE(fmt::format("{}, {} ranks, root {}, {} elements, {} counts, in place {}", name_of(operation.collective),
                           operation.ranks, operation.root, operation.elements, operation.counts.counts().size(),
                           operation.in_place));
  // Allreduce: every rank begins with what it has itself.
  const CheckReport report = check(schedule, {.same_bits = false});
  ASSERT_TRUE(report.ok) << test::text_of(report);
  EXPECT_GE(report.distances->steps, report.distances->least_steps);
  EXPECT_GE(report.distances->sent, report.distances->least_sent);
  EXPECT_GE(report.distances->reduced, report.distances->least_reduced);
  const std::vector<test::Values> input = test::make_input(operation, operation.ranks + operation.elements);
  ASSERT_EQ(test::problem_of_result(operation, input, test::execute(schedule, input, 1).output), "");
  ASSERT_EQ(test::problem_of_result(operation, input, test::executed(schedule, input)), "");
}

TEST(Contract, DirectCollectivesAreProvedAndExecuted) {
  for (int number = 0; number < 10; ++number) {
    for (Rank ranks = 1; ranks <= 6; ++ranks) {
      for (const std::uint64_t elements : {0U, 1U, 31U, 640U}) {
        for (const bool in_place : {true, false}) {
          Operation operation{.ranks = ranks,
                              .elements = elements,
                              .type = DataType::int64,
                              .collective = static_cast<Collective>(number),
                              .in_place = in_place};
          if (is_rooted(operation.collective)) operation.root = (ranks + static_cast<Rank>(elements)) / 2 % ranks;
          if (test::DirectCollective::suits(operation)) expect_right(operation);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Contract, DirectCollectivesOfUnequalCountsAreProvedAndExecuted) {
  for (const Collective collective :
       {Collective::reduce_scatter, Collective::allgather, Collective::alltoall, Collective::send_recv}) {
    for (Rank ranks = 1; ranks <= 6; ++ranks) {
      for (const bool in_place : {true, false}) {
        Operation operation{.ranks = ranks, .type = DataType::int64, .collective = collective, .in_place = in_place};
        const Rank count = counts_pairs(collective) ? ranks * ranks : ranks;
        std::vector<std::uint64_t> counts;
        for (Rank i = 0; i < count; ++i) counts.push_back(i * 7 % 5);
        operation.counts =
            counts_pairs(collective) ? BlockCounts::of_pairs(ranks, counts) : BlockCounts::of_blocks(counts);
        if (test::DirectCollective::suits(operation)) expect_right(operation);
        if (HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace hcclsim::hccl
