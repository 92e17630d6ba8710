#include "hccl/compression/hook.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/counter_random.hpp"
#include "hccl/compression/linear_algebra.hpp"
#include "tests/hccl/compression/sums.hpp"

namespace hcclsim::hccl {
namespace {

using Values = std::vector<std::vector<float>>;

Values random_gradients(Rank ranks, std::size_t elements, std::uint64_t seed) {
  Values values(ranks, std::vector<float>(elements));
  for (Rank rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < elements; ++i) {
      values[rank][i] = static_cast<float>(counter_uniform(seed, rank, i));
    }
  }
  return values;
}

std::vector<double> mean_of(const Values& values) {
  std::vector<double> mean(values.front().size());
  for (const auto& of_rank : values) {
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += of_rank[i] / static_cast<double>(values.size());
  }
  return mean;
}

double relative_error(const std::vector<float>& found, const std::vector<double>& mean) {
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    error += (found[i] - mean[i]) * (found[i] - mean[i]);
    size += mean[i] * mean[i];
  }
  return std::sqrt(error / size);
}

/// A hook with one bucket.
struct OneBucket {
  OneBucket(const std::string& settings, Rank ranks, std::vector<BucketTensor> of, DataType type = DataType::fp32)
      : hook(parse_compression(settings), ranks, type, device::Overflow::infinity),
        tensors(std::move(of)),
        exchange(type) {}

  void run(Values& values) { hook.run(0, true, tensors, test::spans_of(values), exchange, pool); }

  CompressionHook<float> hook;
  std::vector<BucketTensor> tensors;
  test::PlainExchange<float> exchange;
  device::WorkerPool pool{2};
};

class AnyHook : public testing::TestWithParam<std::tuple<std::string, Rank, DataType>> {};

const std::vector<BucketTensor> network{{600, 20}, {20, 20}, {180, 6}, {6, 6}, {600, 20}, {1, 1}};

/// P11.4: all ranks end with the same bits, whatever the hook, the number of ranks and the type; the mean of a plain
/// step is exact but for rounding.
TEST_P(AnyHook, AllRanksEndWithTheSameBits) {
  const auto& [settings, ranks, type] = GetParam();
  OneBucket one(settings, ranks, network, type);
  for (std::uint64_t step = 0; step < 6; ++step) {
    Values values = random_gradients(ranks, 1407, 10 + step);
    const std::vector<double> mean = mean_of(values);
    const bool plain = !one.hook.compresses();
    one.run(values);
    for (const auto& of_rank : values) EXPECT_EQ(of_rank, values.front());
    for (const float value : values.front()) EXPECT_TRUE(std::isfinite(value));
    if (plain) {
      EXPECT_LT(relative_error(values.front(), mean), 4 * device::unit_roundoff(type) * ranks);
    }
  }
  EXPECT_EQ(one.hook.state().steps, 6U);
}

/// P11.3: a hook that takes over the state of another goes on with its bits.
TEST_P(AnyHook, GoesOnFromAState) {
  const auto& [settings, ranks, type] = GetParam();
  OneBucket whole(settings, ranks, network, type);
  OneBucket resumed(settings, ranks, network, type);
  for (std::uint64_t step = 0; step < 6; ++step) {
    if (step == 4) resumed.hook.restore(whole.hook.state());
    Values values = random_gradients(ranks, 1407, 10 + step);
    Values again = values;
    whole.run(values);
    if (step < 4) continue;
    resumed.run(again);
    EXPECT_EQ(again, values);
  }
  EXPECT_EQ(resumed.hook.statistics().after, whole.hook.statistics().after);
}

INSTANTIATE_TEST_SUITE_P(
    Hooks, AnyHook,
    testing::Combine(testing::Values("batched-powersgd:start=2", "batched-powersgd:start=2,rank=4",
                                     "powersgd:start=2,rank=2,seed=9", "powersgd:start=3,rank=5,warm-start=off",
                                     "powersgd:start=2,batch-tensors-with-same-shape=on",
                                     "batched-powersgd:start=0,error-feedback=off,warm-start=off", "fp16", "bf16",
                                     "topk:ratio=0.05", "topk:ratio=0.05,error-feedback=off,start=2"),
                     testing::Values(1, 5), testing::Values(DataType::fp32, DataType::fp16)));

/// A gradient of rank 1 on all ranks is found exactly.
TEST(PowerSgd, AMatrixOfLowRankIsExact) {
  OneBucket one("powersgd:start=2", 2, {{600, 20}});
  for (int step = 0; step < 4; ++step) {
    Values values(2, std::vector<float>(600));
    for (std::size_t i = 0; i < 600; ++i) {
      values[0][i] = static_cast<float>(counter_uniform(1, 0, i / 30) * counter_uniform(1, 1, i % 30));
      values[1][i] = 3 * values[0][i];
    }
    const std::vector<double> mean = mean_of(values);
    one.run(values);
    EXPECT_LT(relative_error(values.front(), mean), 1e-6);
  }
}

/// What a step does not send is not lost: sent so far and error of each rank make up all gradients so far.
TEST(PowerSgd, ErrorFeedbackKeepsWhatIsNotSent) {
  for (const char* settings : {"batched-powersgd:start=2", "powersgd:start=2", "topk:ratio=0.02"}) {
    OneBucket one(settings, 3, network);
    std::vector<double> given(1407);
    std::vector<double> sent(1407);
    for (std::uint64_t step = 0; step < 8; ++step) {
      Values values = random_gradients(3, 1407, 40 + step);
      const std::vector<double> mean = mean_of(values);
      one.run(values);
      for (std::size_t i = 0; i < 1407; ++i) {
        given[i] += mean[i];
        sent[i] += values.front()[i];
      }
    }
    const auto& kept = one.hook.state().buckets.at(0);
    for (std::size_t i = 0; i < 1407; ++i) {
      double error = 0;
      for (const auto& of_rank : kept) error += of_rank.error[i] / 3.0;
      EXPECT_NEAR(sent[i] + error, given[i], 2e-6 * 8) << settings << " " << i;
    }
  }
}

/// P11.11: the padding of a bucket is zero in every step, but its error is fed back.
TEST(PowerSgd, PaddingFeedsBack) {
  OneBucket one("batched-powersgd:start=2", 2, {{30, 30}});  // 6×6; the last row is padding
  one.tensors = {{32, 32}};                                  // 6×6; the last four of the last row are padding
  for (std::uint64_t step = 0; step < 5; ++step) {
    Values values = random_gradients(2, 32, 70 + step);
    one.run(values);
  }
  const std::vector<float>& error = one.hook.state().buckets.at(0).front().error;
  ASSERT_EQ(error.size(), 36U);
  EXPECT_NE(std::abs(error[32]) + std::abs(error[33]) + std::abs(error[34]) + std::abs(error[35]), 0.0F);
}

/// Three allreduces of a bucket in this order, two of a batched one; an early return in plain steps.
TEST(PowerSgd, CollectivesInSequence) {
  using enum HookAction;
  OneBucket layers("powersgd:start=2", 2, network);
  OneBucket square("batched-powersgd:start=2", 2, network);
  for (std::uint64_t step = 0; step < 3; ++step) {
    Values values = random_gradients(2, 1407, step);
    layers.run(values);
    square.run(values);
    EXPECT_EQ(layers.exchange.actions.empty(), step < 2);
  }
  EXPECT_EQ(layers.exchange.actions, (std::vector<HookAction>{sum_direct, sum_p, sum_q}));
  EXPECT_EQ(square.exchange.actions, (std::vector<HookAction>{sum_p, sum_q}));
  EXPECT_EQ(square.exchange.sent, 2U * 1407 + 2 * 38);
  EXPECT_EQ(square.hook.statistics().before, 1407U);
  EXPECT_EQ(square.hook.statistics().after, 2U * 38);
}

/// P11.1 and P11.2: several buckets are one step; what PyTorch logs.
TEST(PowerSgd, StepsAndReportsEndWithTheLastBucket) {
  CompressionHook<float> hook(parse_compression("batched-powersgd:start=2,compression-stats-logging-frequency=2"), 1,
                              DataType::fp32, device::Overflow::infinity);
  test::PlainExchange<float> exchange(DataType::fp32);
  device::WorkerPool pool(1);
  const BucketTensor tensor{9, 9};
  std::vector<std::string> log;
  for (std::uint64_t step = 0; step < 6; ++step) {
    for (std::uint32_t bucket = 0; bucket < 2; ++bucket) {
      EXPECT_EQ(hook.state().steps, step);
      Values values = random_gradients(1, 9, step);
      hook.run(bucket, bucket == 1, {&tensor, 1}, test::spans_of(values), exchange, pool);
    }
    for (std::string& line : hook.take_log()) log.push_back(std::move(line));
  }
  EXPECT_EQ(log, (std::vector<std::string>{
                     "Start to apply PowerSGD after 2 iterations.",
                     "Compression stats: iter 2, total before compression 18, total after compression 12, rate 1.5",
                     "Compression stats: iter 4, total before compression 54, total after compression 36, rate 1.5"}));
}

/// P11.8: without epsilon a column of zeros is divided by zero; the matrix hook has an epsilon, QR needs none.
TEST(PowerSgd, GradientsOfZeros) {
  const auto first_value = [](const std::string& settings) {
    OneBucket one(settings, 2, {{600, 20}});
    Values values(2, std::vector<float>(600));
    for (int step = 0; step < 3; ++step) one.run(values);
    return values.front().front();
  };
  EXPECT_TRUE(std::isnan(first_value("batched-powersgd:start=2")));
  EXPECT_TRUE(std::isnan(first_value("batched-powersgd:start=2,epsilon=1e-8")));
  EXPECT_TRUE(std::isnan(first_value("powersgd:start=2")));
  EXPECT_EQ(first_value("powersgd:start=2,epsilon=1e-8"), 0);
  EXPECT_EQ(first_value("batched-powersgd:start=2,rank=4"), 0);
}

TEST(PowerSgd, QrHasLapacksSigns) {
  std::vector<float> column{3, 4};
  orthogonalise_by_qr<float>({2, 1}, column);
  EXPECT_FLOAT_EQ(column[0], -0.6F);
  EXPECT_FLOAT_EQ(column[1], -0.8F);
}

TEST(PowerSgd, BothMethodsMakeColumnsOrthonormal) {
  for (const bool qr : {false, true}) {
    std::vector<double> matrix(40 * 6);
    for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = counter_uniform(3, 0, i);
    if (qr) {
      orthogonalise_by_qr<double>({40, 6}, matrix);
    } else {
      gram_schmidt<double>({40, 6}, matrix, 0);
    }
    for (std::size_t a = 0; a < 6; ++a) {
      for (std::size_t b = 0; b < 6; ++b) {
        double product = 0;
        for (std::size_t row = 0; row < 40; ++row) product += matrix[row * 6 + a] * matrix[row * 6 + b];
        EXPECT_NEAR(product, a == b ? 1 : 0, 1e-14);
      }
    }
  }
}

TEST(PowerSgd, SeedsOfQDiffer) {
  std::vector<float> q(20000);
  normal_numbers<float>(123, q);
  const double mean = std::accumulate(q.begin(), q.end(), 0.0) / 20000;
  const double square = std::inner_product(q.begin(), q.end(), q.begin(), 0.0) / 20000;
  EXPECT_NEAR(mean, 0, 0.03);
  EXPECT_NEAR(square, 1, 0.03);
  std::vector<float> other(20000);
  normal_numbers<float>(124, other);
  EXPECT_NE(q, other);
  // Every draw is another one: a cold start of the same gradient gives another result.
  OneBucket cold("batched-powersgd:start=0,error-feedback=off,warm-start=off", 1, {{900, 900}});
  Values first = random_gradients(1, 900, 5);
  Values second = first;
  cold.run(first);
  cold.run(second);
  EXPECT_NE(first, second);
  EXPECT_EQ(cold.hook.state().draws, 2U);
}

/// The two largest of five elements of each rank; of equal ones the first.
TEST(TopK, LargestElements) {
  OneBucket one("topk:ratio=0.4", 2, {{5, 5}});
  Values values{{1, -5, 2, 4, 0}, {3, 3, 3, -1, 0}};
  one.run(values);
  EXPECT_EQ(values.front(), (std::vector<float>{1.5, -1, 0, 2, 0}));
  const auto& kept = one.hook.state().buckets.at(0);
  EXPECT_EQ(kept[0].error, (std::vector<float>{1, 0, 2, 0, 0}));
  EXPECT_EQ(kept[1].error, (std::vector<float>{0, 0, 3, -1, 0}));
  values = {{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}};
  one.run(values);
  EXPECT_EQ(values.front(), (std::vector<float>{0.5, 0, 2.5, -0.5, 0}));
}

/// A cast to fp16, then a division, both rounded.
TEST(CastHook, RoundsBeforeAndAfterTheDivision) {
  OneBucket one("fp16", 3, {{1, 1}});
  Values values(3, std::vector<float>{1 + 0x1p-12F});  // to 1
  one.run(values);
  std::vector<float> third{1.0F / 3};
  device::round_in_place(DataType::fp16, device::Overflow::infinity, third);
  EXPECT_FLOAT_EQ(values.front().front(), 3 * third.front());
}

}  // namespace
}  // namespace hcclsim::hccl
