#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "device/numerics/loops/blocks.hpp"
#include "device/numerics/loops/channels.hpp"
#include "device/numerics/loops/cross_entropy.hpp"
#include "device/numerics/loops/dropout.hpp"
#include "device/numerics/loops/embedding.hpp"
#include "device/numerics/loops/ring_attention.hpp"

/// Loops of ranks that have parts of a whole, against the whole.
namespace hcclsim::device {
namespace {

using testing::ElementsAre;

std::vector<float> random_numbers(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(count);
  for (float& number : numbers) number = normal(engine);
  return numbers;
}

TEST(Blocks, TakesAndPutsPartsOfAnAxis) {
  // 2 × 3 × 2, of which part 1 … 2 of the middle axis.
  const std::vector<float> whole{0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15};
  const AxisForm form{2, 3, 2};
  const AxisForm part{2, 2, 2};
  std::vector<float> taken(8);
  take_part(form, part, 1, whole.data(), taken.data());
  EXPECT_THAT(taken, ElementsAre(2, 3, 4, 5, 12, 13, 14, 15));
  std::vector<float> put(12, 0);
  put_part(form, part, 0, taken.data(), put.data());
  EXPECT_THAT(put, ElementsAre(2, 3, 4, 5, 0, 0, 12, 13, 14, 15, 0, 0));
}

TEST(Blocks, TakesPutsAndAddsBlocksOfAGrid) {
  // 2 × 2 × 3 × 1, of which row 1 and columns 1 … 2.
  const std::vector<float> whole{0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15};
  const GridForm grid{2, 2, 3, 1};
  const GridBlock block{1, 1, 1, 2};
  EXPECT_EQ(block.elements(grid), 4U);
  std::vector<float> taken(4);
  take_block(grid, block, whole.data(), taken.data());
  EXPECT_THAT(taken, ElementsAre(4, 5, 14, 15));
  std::vector<float> put(12, 1);
  put_block(grid, {0, 1, 1, 2}, taken.data(), put.data());
  EXPECT_THAT(put, ElementsAre(1, 4, 5, 1, 1, 1, 1, 14, 15, 1, 1, 1));
  add_block(grid, block, taken.data(), put.data());
  EXPECT_THAT(put, ElementsAre(1, 4, 5, 1, 5, 6, 1, 14, 15, 1, 15, 16));
}

TEST(Channels, AddsABiasAndSumsItsGradient) {
  const AxisForm form{2, 2, 2};
  const std::vector<float> in{0, 0, 1, 1, 2, 2, 3, 3};
  std::vector<float> out(8);
  add_bias(form, in, std::array{10.0F, 20.0F}, out);
  EXPECT_THAT(out, ElementsAre(10, 10, 21, 21, 12, 12, 23, 23));
  std::vector<float> sums(2);
  sum_channels(form, in, sums);
  EXPECT_THAT(sums, ElementsAre(4, 8));
}

/// Mean 2 and variance 5 of the elements 0, 1, 3, 4 … of two ranks; ε is far below.
TEST(Channels, NormsOverAllRanks) {
  const GroupNorm norm{{1, 1, 2}, 2};
  const std::vector<float> first{-1, 1};
  const std::vector<float> second{3, 5};
  std::vector<float> one(2);
  std::vector<float> other(2);
  sum_moments(norm, first, one);
  sum_moments(norm, second, other);
  const std::array<float, 2> sums{one[0] + other[0], one[1] + other[1]};
  EXPECT_THAT(sums, ElementsAre(8, 36));
  std::vector<float> mean(1);
  std::vector<float> scale(1);
  moments_of(norm, sums, mean, scale);
  EXPECT_EQ(mean[0], 2);
  EXPECT_NEAR(scale[0], 1 / std::sqrt(5.0), 1e-5);
  std::vector<float> out(2);
  normalise(norm, second, mean, scale, std::array{2.0F}, std::array{7.0F}, out);
  EXPECT_NEAR(out[0], 7 + 2 / std::sqrt(5.0), 1e-5);
}

/// Classes in 2 or 4 parts give the loss and the gradients of whole rows.
TEST(CrossEntropyOfParts, IsThatOfWholeRows) {
  constexpr std::size_t rows = 5;
  constexpr std::size_t classes = 8;
  const std::vector<float> logits = random_numbers(rows * classes, 1);
  const std::array<std::int32_t, rows> labels{0, 3, 4, 7, 2};
  for (const float smoothing : {0.0F, 0.1F}) {
    std::vector<float> slopes(logits.size());
    const LossOfRows whole = cross_entropy(logits, labels, smoothing, 2, slopes);
    for (const std::size_t parts : {2U, 4U}) {
      const std::size_t own = classes / parts;
      const AxisForm form{rows, classes, 1};
      const AxisForm cut{rows, own, 1};
      std::vector<std::vector<float>> pieces(parts, std::vector<float>(rows * own));
      std::vector<float> maxima(rows, -1e30F);
      std::vector<float> sums(2 * rows, 0);
      for (std::size_t part = 0; part < parts; ++part) {
        take_part(form, cut, part * own, logits.data(), pieces[part].data());
        std::vector<float> found(rows);
        row_maxima(pieces[part], rows, found);
        for (std::size_t r = 0; r < rows; ++r) maxima[r] = std::max(maxima[r], found[r]);
      }
      for (std::size_t part = 0; part < parts; ++part) {
        std::vector<float> found(2 * rows);
        row_sums(pieces[part], {part, parts}, labels, smoothing, maxima, found);
        for (std::size_t i = 0; i < found.size(); ++i) sums[i] += found[i];
      }
      std::uint32_t correct = 0;
      std::vector<float> joined(logits.size());
      for (std::size_t part = 0; part < parts; ++part) {
        std::vector<float> gradient(rows * own);
        const LossOfRows loss =
            cross_entropy_of_part(pieces[part], {part, parts}, labels, smoothing, 2, maxima, sums, gradient);
        EXPECT_NEAR(loss.loss, whole.loss, 1e-6);
        correct += loss.correct;
        put_part(form, cut, part * own, gradient.data(), joined.data());
      }
      EXPECT_EQ(correct, whole.correct * parts);
      for (std::size_t i = 0; i < slopes.size(); ++i) EXPECT_NEAR(joined[i], slopes[i], 1e-6);
    }
  }
}

TEST(CrossEntropyOfParts, RefusesALabelBeyondAllClasses) {
  std::vector<float> sums(2);
  EXPECT_THROW(row_sums(std::array{0.0F, 0.0F}, {0, 2}, std::array{4}, 0, std::array{0.0F}, sums), Error);
}

/// Rows that a part of a table does not have are zeros, so that the parts add up to the whole.
TEST(EmbeddingParts, AddUpToTheTable) {
  const std::vector<float> table{1, 2, 3, 4, 5, 6, 7, 8};  // 4 rows
  const std::array<std::int32_t, 3> tokens{3, 0, 2};
  std::vector<float> first(6);
  std::vector<float> second(6);
  look_up(std::span(table).first(4), {0, 2, 4}, tokens, 2, first);
  look_up(std::span(table).subspan(4), {2, 2, 4}, tokens, 2, second);
  EXPECT_THAT(first, ElementsAre(0, 0, 1, 2, 0, 0));
  EXPECT_THAT(second, ElementsAre(7, 8, 0, 0, 5, 6));
  std::vector<float> gradient(4);
  look_up_gradient(std::array<float, 6>{1, 2, 3, 4, 5, 6}, {2, 2, 4}, tokens, 2, gradient, false);
  EXPECT_THAT(gradient, ElementsAre(5, 6, 1, 2));
  EXPECT_THROW(look_up(std::span(table).first(4), {0, 2, 4}, std::array{4}, 2, std::span(first).first(2)), Error);
}

/// Rows 10 … 29 of 64, which are alone: row 35 is another device's.
TEST(EmbeddingParts, OfATableThatIsSplitByHand) {
  std::vector<float> table(20);
  std::iota(table.begin(), table.end(), 10.0F);
  std::vector<float> out(2);
  look_up(table, {10, 20, 64, true}, std::array{10, 29}, 1, out);
  EXPECT_THAT(out, ElementsAre(10, 29));
  try {
    look_up(table, {10, 20, 64, true}, std::array{29, 35}, 1, out);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "tokens");
    EXPECT_THAT(error.what(), testing::HasSubstr("token 35 at 1: tokens must be 10 to 29, the rows of the part"));
  }
}

TEST(DropoutParts, HaveTheMaskOfTheWhole) {
  const Dropout dropout(7, 3, 0.5F);
  const std::vector<float> ones(2 * 4 * 6, 1);
  std::vector<float> whole(ones.size());
  dropout.apply(10, 4 * 6, ones, whole);  // 2 samples of 4 × 6
  const TensorPart part{{2, 4, 6}, {1, 2, 3}, {1, 2, 3}, 4 * 6};
  std::vector<float> own(6);
  dropout.apply(10, part, std::span(ones).first(6), own);
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(own[row * 3 + i], whole[(4 + 2 + row) * 6 + 3 + i]);
  }
}

/// A ring of 1, 2 and 4 ranks gives the same attention and gradients, which a ring of one computes as usual.
TEST(RingAttentionLoops, DoNotDependOnTheRanks) {
  constexpr std::size_t length = 8;
  constexpr std::size_t heads = 4;
  constexpr std::size_t kv_heads = 2;
  constexpr std::size_t width = 3;
  const std::vector<float> queries = random_numbers(length * heads * width, 1);
  const std::vector<float> keys = random_numbers(length * kv_heads * width, 2);
  const std::vector<float> values = random_numbers(length * kv_heads * width, 3);
  const std::vector<float> slopes = random_numbers(queries.size(), 4);
  const ProbabilityFactor drop = [](std::size_t, std::size_t head, std::size_t query, std::size_t key) {
    return (head + query + key) % 3 == 0 ? 0.0F : 1.5F;
  };
  struct Result {
    std::vector<float> out, of_queries, of_keys, of_values;
  };
  const auto run = [&](std::size_t ranks, bool causal) {
    const RingForm form{1, length / ranks, ranks, heads, kv_heads, width, causal};
    const std::size_t own = form.rows() * heads * width;
    const std::size_t half = form.half();
    const auto block_of = [&](std::size_t rank) {
      std::vector<float> block(keys.begin() + rank * half, keys.begin() + (rank + 1) * half);
      block.insert(block.end(), values.begin() + rank * half, values.begin() + (rank + 1) * half);
      return block;
    };
    Result result{std::vector<float>(queries.size()), std::vector<float>(queries.size()),
                  std::vector<float>(keys.size()), std::vector<float>(keys.size())};
    for (std::size_t place = 0; place < ranks; ++place) {
      std::vector<float> blocks;
      for (std::size_t step = 0; step < ranks; ++step) {
        const std::vector<float> block = block_of((place + ranks - step) % ranks);
        blocks.insert(blocks.end(), block.begin(), block.end());
      }
      const RowsOfHeads<const float> asked{queries.data() + place * own, heads * width};
      const std::span<float> out = std::span(result.out).subspan(place * own, own);
      std::vector<float> statistics(form.statistics());
      ring_attention(form, place, asked, blocks, drop, out, statistics);
      for (std::size_t step = 0; step < ranks; ++step) {
        const std::size_t rank = (place + ranks - step) % ranks;
        std::vector<float> of_block(form.block(), 0);
        ring_attention_gradient(form, place, step, asked, std::span(blocks).subspan(step * form.block(), form.block()),
                                drop, out, statistics, std::span(slopes).subspan(place * own, own),
                                {result.of_queries.data() + place * own, heads * width}, of_block);
        for (std::size_t i = 0; i < half; ++i) {
          result.of_keys[rank * half + i] += of_block[i];
          result.of_values[rank * half + i] += of_block[half + i];
        }
      }
    }
    return result;
  };
  const auto expect_near = [](const std::vector<float>& one, const std::vector<float>& other) {
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], other[i], 1e-5);
  };
  for (const bool causal : {false, true}) {
    const Result whole = run(1, causal);
    for (const std::size_t ranks : {2U, 4U}) {
      const Result parts = run(ranks, causal);
      expect_near(parts.out, whole.out);
      expect_near(parts.of_queries, whole.of_queries);
      expect_near(parts.of_keys, whole.of_keys);
      expect_near(parts.of_values, whole.of_values);
    }
  }
}

}  // namespace
}  // namespace hcclsim::device
