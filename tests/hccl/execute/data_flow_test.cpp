#include "hccl/execute/data_flow.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "base/error.hpp"
#include "device/numerics/loops/reduce.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "tests/support/collectives/allreduce_algorithms.hpp"
#include "tests/support/collectives/interpreter.hpp"

/// Schedules on real buffers: against the interpreter of the tests bit for bit where numbers are exact, against fp64
/// within the error bound where they are rounded.
namespace hcclsim::hccl {
namespace {

using device::Overflow;
using Buffers = std::vector<std::vector<std::byte>>;

std::vector<std::byte*> pointers(Buffers& buffers) {
  std::vector<std::byte*> result;
  for (auto& buffer : buffers) result.push_back(buffer.data());
  return result;
}

/// Buffers of `spec.ranks` ranks, in place, after the schedule.
Buffers executed(const Schedule& schedule, Buffers buffers, unsigned workers = 1, bool* flag = nullptr,
                 Overflow overflow = Overflow::infinity) {
  const DataFlow flow(schedule);
  device::WorkerPool pool(workers);
  const std::vector<std::byte*> output = pointers(buffers);
  const bool overflowed = execute(flow, output, overflow, pool);
  if (flag != nullptr) *flag = overflowed;
  return buffers;
}

template <typename T>
std::vector<T> as(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// All algorithms that fit, with every number of ranks given.
template <typename Test>
void for_all_algorithms(const std::vector<Rank>& all_ranks, const Test& test) {
  for (const auto& [name, algorithm] : test::allreduce_algorithms()) {
    for (const Rank ranks : all_ranks) {
      if (!algorithm.fits(ranks)) continue;
      SCOPED_TRACE(fmt::format("{}, {} ranks", name, ranks));
      test(algorithm, ranks);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

template <typename T>
void expect_exact(const Schedule& schedule, std::mt19937_64& random) {
  std::vector<test::Values> wide(schedule.ranks, test::Values(schedule.elements));
  Buffers buffers(schedule.ranks);
  for (Rank rank = 0; rank < schedule.ranks; ++rank) {
    std::vector<T> values(schedule.elements);
    for (std::uint64_t i = 0; i < schedule.elements; ++i) {
      wide[rank][i] = static_cast<std::int64_t>(random() % 7) - 3;  // products of 24 of them fit int64
      values[i] = static_cast<T>(wide[rank][i]);
    }
    buffers[rank] = bytes_of(values);
  }
  const test::Execution expected = test::execute(schedule, wide, random());
  const Buffers result = executed(schedule, buffers);
  for (Rank rank = 0; rank < schedule.ranks; ++rank) {
    std::vector<T> narrow(schedule.elements);
    for (std::uint64_t i = 0; i < narrow.size(); ++i) narrow[i] = static_cast<T>(expected.output[rank][i]);
    ASSERT_EQ(as<T>(result[rank]), narrow) << name_of(schedule.type) << " " << name_of(schedule.op) << ", "
                                           << schedule.elements << " elements, rank " << rank;
  }
}

TEST(DataFlow, IntegersEqualTheInterpretersBitForBit) {
  std::mt19937_64 random(11);
  for_all_algorithms({1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17}, [&](const test::AllReduce& algorithm, Rank ranks) {
    for (const std::uint64_t elements : {0U, 1U, 31U, 1000U}) {
      const auto op = static_cast<ReduceOp>(random() % 4);
      expect_exact<std::int8_t>(algorithm.build({ranks, elements, DataType::int8, op, 1}), random);
      expect_exact<std::int32_t>(algorithm.build({ranks, elements, DataType::int32, op, 4}), random);
      expect_exact<std::int64_t>(algorithm.build({ranks, elements, DataType::int64, op}), random);
    }
  });
}

TEST(DataFlow, LargePayloadsTakeSeveralParts) {
  std::mt19937_64 random(12);
  for_all_algorithms({8}, [&](const test::AllReduce& algorithm, Rank ranks) {
    const Schedule schedule = algorithm.build({ranks, 70'003, DataType::int64});
    EXPECT_GT(DataFlow(schedule).parts(), ranks);
    expect_exact<std::int64_t>(schedule, random);
  });
}

TEST(DataFlow, PartsPartitionThePayload) {
  for_all_algorithms({1, 5, 8, 12}, [&](const test::AllReduce& algorithm, Rank ranks) {
    const Schedule schedule = algorithm.build({ranks, 70'001, DataType::bf16});
    const DataFlow flow(schedule);
    std::map<Bytes, Bytes> ranges;
    for (std::size_t part = 0; part < flow.parts(); ++part) {
      for (const ByteRange& range : flow.outputs(part)) {
        SCOPED_TRACE(fmt::format("part {}", part));
        EXPECT_EQ(range.buffer, Buffer::output);
        EXPECT_TRUE(ranges.emplace(range.offset, range.length).second);
      }
    }
    Bytes end = 0;
    for (const auto& [offset, length] : ranges) {
      ASSERT_EQ(offset, end);
      end += length;
    }
    EXPECT_EQ(end, schedule.payload());
  });
}

TEST(DataFlow, AdditionsAreThoseOfTheAlgorithm) {
  const auto additions = [](const std::string& name, Rank ranks) {
    return DataFlow(test::allreduce_algorithms().at(name).build({ranks, 1000})).additions();
  };
  EXPECT_EQ(additions("ring", 1), 0U);
  EXPECT_EQ(additions("ring", 8), 7U);
  EXPECT_EQ(additions("ring, reduced by a core", 8), 7U);
  EXPECT_EQ(additions("four rings", 8), 7U);
  EXPECT_EQ(additions("one-shot", 8), 7U);
  EXPECT_EQ(additions("two-shot", 8), 7U);
  EXPECT_EQ(additions("halving", 16), 4U);
  EXPECT_EQ(additions("halving, reduced by a core", 16), 4U);
  EXPECT_EQ(additions("halving", 17), 5U);
  EXPECT_EQ(additions("2 servers, ring and ring", 8), 4U);  // 3 in the server, 1 between the two
  EXPECT_EQ(additions("4 servers, mesh and halving-doubling", 16), 5U);
}

/// Contributions of one rank: from tiny to large, below the type's normal range too.
std::vector<float> contributions(std::uint64_t elements, std::mt19937_64& random) {
  std::vector<float> values(elements);
  for (float& value : values) {
    const auto exponent = static_cast<int>(random() % 40) - 30;
    value = std::ldexp(static_cast<float>(random() % 20001) - 10000.0F, exponent - 13);
  }
  return values;
}

std::vector<std::byte> encoded(DataType type, const std::vector<float>& values) {
  if (type == DataType::fp32) return bytes_of(values);
  if (type == DataType::fp64) return bytes_of(std::vector<double>(values.begin(), values.end()));
  std::vector<std::byte> bytes(2 * values.size());
  device::narrow(type, Overflow::infinity, values, bytes.data());
  return bytes;
}

std::vector<double> decoded(DataType type, const std::vector<std::byte>& bytes) {
  if (type == DataType::fp64) return as<double>(bytes);
  std::vector<float> values(bytes.size() / size_of(type));
  if (type == DataType::fp32) {
    values = as<float>(bytes);
  } else {
    device::widen(type, bytes.data(), values);
  }
  return {values.begin(), values.end()};
}

TEST(DataFlow, SumsOfFloatsStayWithinTheBound) {
  std::mt19937_64 random(13);
  double worst = 0;
  for_all_algorithms({2, 3, 7, 8, 12, 16}, [&](const test::AllReduce& algorithm, Rank ranks) {
    for (const DataType type : {DataType::fp32, DataType::fp16, DataType::bf16, DataType::fp64}) {
      const Schedule schedule = algorithm.build({ranks, 2003, type});
      std::vector<double> exact(schedule.elements, 0);
      std::vector<double> magnitudes(schedule.elements, 0);
      Buffers buffers;
      for (Rank rank = 0; rank < ranks; ++rank) {
        const std::vector<float> values = contributions(schedule.elements, random);
        for (std::size_t i = 0; i < values.size(); ++i) {
          exact[i] += values[i];
          magnitudes[i] += std::abs(static_cast<double>(values[i]));
        }
        buffers.push_back(encoded(type, values));
      }
      const Buffers result = executed(schedule, buffers);
      for (const auto& of_rank : result) ASSERT_EQ(of_rank, result[0]) << name_of(type);
      const std::vector<double> sums = decoded(type, result[0]);
      const bool narrowed = type == DataType::fp16 || type == DataType::bf16;
      const std::uint32_t roundings = DataFlow(schedule).additions() + (narrowed ? 1 : 0);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        // The fp64 sum that it is compared with has an error of its own.
        const double bound = ReductionBound(type, roundings, ranks)(magnitudes[i]) +
                             ReductionBound(DataType::fp64, ranks - 1, ranks)(magnitudes[i]);
        ASSERT_LE(std::abs(sums[i] - exact[i]), bound) << name_of(type) << " element " << i;
        worst = std::max(worst, std::abs(sums[i] - exact[i]) / bound);
      }
    }
  });
  EXPECT_GT(worst, 0.2) << "the bound says nothing";
}

TEST(DataFlow, MaximumAndMinimumOfFloatsAreExact) {
  std::mt19937_64 random(14);
  for_all_algorithms({3, 8}, [&](const test::AllReduce& algorithm, Rank ranks) {
    for (const ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
      SCOPED_TRACE(name_of(op));
      const Schedule schedule = algorithm.build({ranks, 501, DataType::fp16, op});
      Buffers buffers;
      std::vector<double> expected;
      for (Rank rank = 0; rank < ranks; ++rank) {
        buffers.push_back(encoded(DataType::fp16, contributions(schedule.elements, random)));
        const std::vector<double> values = decoded(DataType::fp16, buffers.back());
        if (rank == 0) expected = values;
        for (std::size_t i = 0; i < values.size(); ++i) {
          expected[i] = op == ReduceOp::max ? std::max(expected[i], values[i]) : std::min(expected[i], values[i]);
        }
      }
      for (const auto& of_rank : executed(schedule, buffers)) ASSERT_EQ(decoded(DataType::fp16, of_rank), expected);
    }
  });
}

TEST(DataFlow, BitsDoNotDependOnWorkersOrderOrPlace) {
  std::mt19937_64 random(15);
  for_all_algorithms({8}, [&](const test::AllReduce& algorithm, Rank ranks) {
    const Schedule schedule = algorithm.build({ranks, 50'001, DataType::bf16});
    Buffers input;
    for (Rank rank = 0; rank < ranks; ++rank) {
      input.push_back(encoded(DataType::bf16, contributions(schedule.elements, random)));
    }
    const Buffers expected = executed(schedule, input);
    for (const unsigned workers : {2U, 3U, 4U}) {
      ASSERT_EQ(executed(schedule, input, workers), expected) << workers << " workers";
    }

    // Out of place, the parts in backward order; the input stays.
    const DataFlow flow(schedule);
    Buffers kept = input;
    Buffers output(ranks, std::vector<std::byte>(schedule.payload()));
    const std::vector<std::byte*> from = pointers(kept);
    const std::vector<std::byte*> to = pointers(output);
    DataFlow::Scratch scratch;
    for (std::size_t part = flow.parts(); part-- > 0;) {
      flow.run(part, {from.begin(), from.end()}, to, Overflow::infinity, scratch);
    }
    EXPECT_EQ(output, expected);
    EXPECT_EQ(kept, input);
  });
}

TEST(DataFlow, SaysWhetherAnythingOverflowed) {
  const Schedule schedule = ring_allreduce({4, 5000, DataType::fp16}, true);
  std::vector<float> values(schedule.elements, 1.0F);
  bool overflowed = true;
  Buffers buffers(4, encoded(DataType::fp16, values));
  (void)executed(schedule, buffers, 2, &overflowed);
  EXPECT_FALSE(overflowed);
  values[4711] = -40000;
  buffers = Buffers(4, encoded(DataType::fp16, values));
  EXPECT_EQ(decoded(DataType::fp16, executed(schedule, buffers, 2, &overflowed)[3])[4711], -INFINITY);
  EXPECT_TRUE(overflowed);
  overflowed = false;
  EXPECT_EQ(decoded(DataType::fp16, executed(schedule, buffers, 2, &overflowed, Overflow::saturate)[3])[4711], -65504);
  EXPECT_TRUE(overflowed);
}

// --- Schedules by hand ---------------------------------------------------------------------------------------------

struct ByHand {
  Schedule schedule;
  Peer right{Peer::Kind::offset, 0, {1, 0, 0, 0}};

  explicit ByHand(Rank ranks) {
    schedule.algorithm = "by-hand";
    schedule.ranks = ranks;
    schedule.elements = 8;
    schedule.type = DataType::int32;
    schedule.alignment = 4;
    schedule.scratch = 64;
    schedule.notifies = 2;
    schedule.groups = {Group::block(ranks)};
  }

  /// The tasks become a stage of all ranks on queue 0.
  ByHand& stage(std::vector<Task> tasks) {
    schedule.stages.push_back({"stage", {{.group = 0, .loops = {{.tasks = std::move(tasks)}}}}});
    return *this;
  }

  Buffers run(const std::vector<std::vector<std::int32_t>>& values) const {
    Buffers buffers;
    for (const auto& of_rank : values) buffers.push_back(bytes_of(of_rank));
    return executed(schedule, buffers);
  }

  std::string error() const {
    try {
      const DataFlow flow(schedule);
    } catch (const Error& error) {
      return fmt::format("{} {} {}", static_cast<int>(error.code()), error.kind(), error.what());
    }
    return "none";
  }
};

Range whole_input() {
  Range range = output({});
  range.buffer = Buffer::input;
  return range;
}
Range half(Buffer buffer, std::int32_t number) { return {buffer, {{.parts = 2, .index = {number, 0, 0, 0}}}, {}, 0}; }
Range slot(std::int32_t number, Bytes stride, std::vector<Cut> cuts) {
  return scratch(std::move(cuts), {number, 0, 0, 0}, stride);
}

TEST(DataFlow, ScratchIsReadAcrossItsWrites) {
  // The halves go crosswise into neighbouring halves of scratch memory and come back as a whole, reduced.
  ByHand hand(1);
  hand.schedule.scratch = 32;
  hand.stage({copy(half(Buffer::output, 0), slot(1, 16, half(Buffer::output, 0).cuts)),
              copy(half(Buffer::output, 1), slot(0, 16, half(Buffer::output, 1).cuts)),
              reduce(slot(0, 32, {}), output({}), true)});
  EXPECT_EQ(as<std::int32_t>(hand.run({{1, 2, 3, 4, 10, 20, 30, 40}})[0]),
            (std::vector<std::int32_t>{11, 22, 33, 44, 11, 22, 33, 44}));
  const DataFlow flow(hand.schedule);
  ASSERT_EQ(flow.outputs(0).size(), 2U);  // both halves in one component
  EXPECT_EQ(flow.outputs(0)[1].offset, 16U);
}

TEST(DataFlow, PartOfAScratchSlotIsWrittenAnew) {
  ByHand hand(1);
  const Cut quarter{.parts = 4, .index = {3, 0, 0, 0}};
  hand.stage({copy(output({}), slot(0, 32, {})), copy(output({quarter}), slot(1, 8, {quarter})),
              copy(slot(0, 32, {}), output({}))});
  EXPECT_EQ(as<std::int32_t>(hand.run({{1, 2, 3, 4, 5, 6, 7, 8}})[0]),
            (std::vector<std::int32_t>{1, 2, 7, 8, 5, 6, 7, 8}));
}

TEST(DataFlow, OutOfPlaceSchedulesNameTheInput) {
  ByHand hand(2);
  hand.schedule.in_place = false;
  hand.stage({transfer(TaskKind::read, hand.right, whole_input(), output({}))});
  const DataFlow flow(hand.schedule);
  Buffers input{bytes_of<std::int32_t>({1, 2, 3, 4, 5, 6, 7, 8}), bytes_of<std::int32_t>({8, 7, 6, 5, 4, 3, 2, 1})};
  Buffers result(2, std::vector<std::byte>(32));
  const std::vector<std::byte*> from = pointers(input);
  const std::vector<std::byte*> to = pointers(result);
  device::WorkerPool workers(1);
  EXPECT_THROW(execute(flow, to, Overflow::infinity, workers), Error);
  EXPECT_FALSE(execute(flow, {from.begin(), from.end()}, to, Overflow::infinity, workers));
  EXPECT_EQ(result[0], input[1]);
  EXPECT_EQ(result[1], input[0]);
}

TEST(DataFlow, PartsThatDifferBetweenRanksHaveNoCommonOutput) {
  ByHand hand(2);
  // Rank 0 alone is in the group: it reads the second half of rank 1.
  hand.schedule.groups.push_back(Group::ordered(2, {0}));
  hand.stage({transfer(TaskKind::read, hand.right, half(Buffer::output, 1), half(Buffer::output, 0))});
  hand.schedule.stages[0].strands[0].group = 1;
  const DataFlow flow(hand.schedule);
  EXPECT_THROW((void)flow.outputs(0), Error);
}

TEST(DataFlow, SaysWhatIsWrongWithASchedule) {
  using testing::AllOf;
  using testing::HasSubstr;
  using testing::StartsWith;
  EXPECT_THAT(ByHand(2).stage({wait({1})}).error(),
              AllOf(StartsWith("3 deadlock"), HasSubstr("stage 'stage', rank 0: queue 0 waits for notify 1")));
  const Peer right = ByHand(3).right;
  EXPECT_THAT(ByHand(3).stage({post(right, {0}), post(right, {0})}).error(),
              AllOf(StartsWith("3 notify"), HasSubstr("rank 0: notify 0 of rank 1 is set twice")));
  EXPECT_THAT(ByHand(2).stage({post(right, {2})}).error(),
              AllOf(StartsWith("2 schedule"), HasSubstr("notify 2; the schedule has 2")));
  EXPECT_THAT(ByHand(2).stage({copy(output({}), slot(2, 32, {}))}).error(),
              AllOf(StartsWith("2 schedule"), HasSubstr("bytes 64+32 leave the buffer scratch of 64 bytes")));
  EXPECT_THAT(ByHand(2).stage({copy(output({}), slot(-1, 32, {}))}).error(), HasSubstr("leave the buffer scratch"));
  EXPECT_THAT(ByHand(2).stage({copy(output({}), half(Buffer::output, 0))}).error(),
              AllOf(StartsWith("2 schedule"), HasSubstr("copy from 32 bytes to 16 bytes")));
  EXPECT_THAT(ByHand(2).stage({copy(output({}), output({}))}).error(), HasSubstr("overlap"));
  EXPECT_THAT(ByHand(2).stage({copy(output({}), whole_input())}).error(), HasSubstr("writes into an input"));
  EXPECT_THAT(ByHand(2).stage({copy(slot(0, 32, {}), output({}))}).error(),
              HasSubstr("byte 0 of the scratch memory of rank 0 is read before it is written"));
  EXPECT_THAT(ByHand(2).stage({reduce(output({}), slot(0, 32, {}), true)}).error(), HasSubstr("before it is written"));
  EXPECT_THAT(ByHand(2).stage({copy(output({}), slot(1, 2, {}))}).error(), HasSubstr("cut an element of 4 bytes"));
  ByHand lonely(3);
  lonely.schedule.groups[0] = Group::block(2);
  EXPECT_THAT(lonely.stage({post(right, {0}), wait({0})}).error(), HasSubstr("its peer 3 is none of the 3 ranks"));
}

TEST(DataFlow, BoundIsHighams) {
  EXPECT_DOUBLE_EQ(ReductionBound(DataType::fp32, 7, 8)(3.0), 3.0 * 7 * 0x1p-24 / (1 - 7 * 0x1p-24));
  EXPECT_DOUBLE_EQ(ReductionBound(DataType::fp16, 1, 4)(0.0), 4 * 0x1p-25 * (1 + 0x1p-11 / (1 - 0x1p-11)));
  EXPECT_EQ(ReductionBound(DataType::bf16, 256, 257)(1.0), INFINITY);
}

}  // namespace
}  // namespace hcclsim::hccl
