#include "device/numerics/loops/ring_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace hcclsim::device {
namespace {

double product(const float* one, const float* other, std::size_t width) {
  return std::inner_product(one, one + width, other, 0.0);
}

/// Keys that a query sees in a block: the first ones.
std::size_t seen_keys(const RingForm& form, std::size_t query_rank, std::size_t key_rank, std::size_t query) {
  if (!form.causal || key_rank < query_rank) return form.length;
  return key_rank == query_rank ? query + 1 : 0;
}

std::size_t key_rank_of(const RingForm& form, std::size_t place, std::size_t step) {
  return (place + form.ranks - step) % form.ranks;
}

/// Place in a block of the key, or the value, of a row.
std::size_t in_half(const RingForm& form, std::size_t row, std::size_t kv_head) {
  return (row * form.kv_heads + kv_head) * form.width;
}

/// Calls `use` with every sequence, head and query.
template <typename Use>
void for_each_query(const RingForm& form, const Use& use) {
  for (std::size_t sequence = 0; sequence < form.sequences; ++sequence) {
    for (std::size_t head = 0; head < form.heads; ++head) {
      for (std::size_t query = 0; query < form.length; ++query) use(sequence, head, query);
    }
  }
}

}  // namespace

void ring_attention(const RingForm& form, std::size_t place, RowsOfHeads<const float> queries,
                    std::span<const float> blocks, const ProbabilityFactor& factor, std::span<float> out,
                    std::span<float> statistics) {
  const double scale = 1 / std::sqrt(static_cast<double>(form.width));
  std::vector<double> scores(form.ranks * form.length);
  std::vector<double> context(form.width);
  for_each_query(form, [&](std::size_t sequence, std::size_t head, std::size_t query) {
    const std::size_t row = sequence * form.length + query;
    const std::size_t kv_head = head / (form.heads / form.kv_heads);
    const float* const asked = queries.at(row, head, form.width);
    double greatest = -std::numeric_limits<double>::infinity();
    for (std::size_t step = 0; step < form.ranks; ++step) {
      const std::size_t keys = seen_keys(form, place, key_rank_of(form, place, step), query);
      for (std::size_t key = 0; key < keys; ++key) {
        const std::size_t at = step * form.block() + in_half(form, sequence * form.length + key, kv_head);
        double& score = scores[step * form.length + key];
        score = scale * product(asked, &blocks[at], form.width);
        greatest = std::max(greatest, score);
      }
    }
    double sum = 0;
    std::ranges::fill(context, 0.0);
    for (std::size_t step = 0; step < form.ranks; ++step) {
      const std::size_t rank = key_rank_of(form, place, step);
      const std::size_t keys = seen_keys(form, place, rank, query);
      for (std::size_t key = 0; key < keys; ++key) {
        const double weight = std::exp(scores[step * form.length + key] - greatest);
        sum += weight;
        const double kept =
            factor ? weight * factor(sequence, head, place * form.length + query, rank * form.length + key) : weight;
        const float* const value =
            &blocks[step * form.block() + form.half() + in_half(form, sequence * form.length + key, kv_head)];
        for (std::size_t i = 0; i < form.width; ++i) context[i] += kept * value[i];
      }
    }
    float* const result = &out[(row * form.heads + head) * form.width];
    for (std::size_t i = 0; i < form.width; ++i) result[i] = static_cast<float>(context[i] / sum);
    statistics[row * form.heads + head] = static_cast<float>(greatest + std::log(sum));
  });
}

void ring_attention_gradient(const RingForm& form, std::size_t place, std::size_t step,
                             RowsOfHeads<const float> queries, std::span<const float> block,
                             const ProbabilityFactor& factor, std::span<const float> out,
                             std::span<const float> statistics, std::span<const float> slopes,
                             RowsOfHeads<float> query_gradient, std::span<float> block_gradient) {
  const double scale = 1 / std::sqrt(static_cast<double>(form.width));
  const std::size_t rank = key_rank_of(form, place, step);
  for_each_query(form, [&](std::size_t sequence, std::size_t head, std::size_t query) {
    const std::size_t row = sequence * form.length + query;
    const std::size_t kv_head = head / (form.heads / form.kv_heads);
    const float* const asked = queries.at(row, head, form.width);
    const float* const slope = &slopes[(row * form.heads + head) * form.width];
    const double own = product(slope, &out[(row * form.heads + head) * form.width], form.width);
    float* const of_query = query_gradient.at(row, head, form.width);
    const std::size_t keys = seen_keys(form, place, rank, query);
    for (std::size_t key = 0; key < keys; ++key) {
      const std::size_t at = in_half(form, sequence * form.length + key, kv_head);
      const float* const asked_key = &block[at];
      const float* const value = &block[form.half() + at];
      const double probability =
          std::exp(scale * product(asked, asked_key, form.width) - statistics[row * form.heads + head]);
      const double kept = factor ? factor(sequence, head, place * form.length + query, rank * form.length + key) : 1;
      const double of_score = scale * probability * (kept * product(slope, value, form.width) - own);
      float* const of_key = &block_gradient[at];
      float* const of_value = &block_gradient[form.half() + at];
      for (std::size_t i = 0; i < form.width; ++i) {
        of_query[i] += static_cast<float>(of_score * asked_key[i]);
        of_key[i] += static_cast<float>(of_score * asked[i]);
        of_value[i] += static_cast<float>(probability * kept * slope[i]);
      }
    }
  });
}

}  // namespace hcclsim::device
