#pragma once

#include "models/data/dataset.hpp"

/// Made data: every number follows from the seed and the sample's number (base/counter_random.hpp), so that the same
/// samples come out on every computer. u(stream, i) below is uniform in [−1, 1).
///
/// Rule::random_labels ("synthetic"), for checking gradients against other programs. Sample n of a network of
///  - features or images smaller than 32 x 32: element i is u(1000000 + n, i);
///  - images from 32 x 32 on: u(3000000 + n, 16·channel + 4·row + column of a 4 x 4 grid) + u(1000000 + n, i) / 4, a
///    coarse pattern with noise, with which the gradients of deep networks are well conditioned;
///  - tokens: token t is bits(4000000 + n, t) / 2^33 modulo the classes, its label token t + 1.
/// Labels are bits(2000000, n) / 2^33 modulo the classes: they can be learned by heart only.
///
/// Rule::learnable ("synthetic-classes"), for training to an accuracy that holds for unseen samples too: the label is
/// drawn as above, and the sample is the pattern of its class (one per class, on a grid of 4 x 4 or what the image has)
/// plus u(1000000 + n, i) / 2. Of tokens, each is followed by its successor in one fixed random cyclic order of all
/// tokens, but in one of eight cases by any token.
namespace hcclsim::models {

class Synthetic final : public Dataset {
 public:
  enum class Rule : std::uint8_t { random_labels, learnable };

  /// `samples`: how many there are, or unbounded.
  Synthetic(const SampleForm& form, Rule rule, std::uint64_t samples, std::uint64_t seed);

  [[nodiscard]] std::uint64_t size() const override { return samples_; }
  [[nodiscard]] bool shuffles() const override { return rule_ == Rule::learnable; }
  void read(std::uint64_t sample, Batch& batch, std::uint32_t slot) const override;
  [[nodiscard]] std::string describe() const override;

 private:
  [[nodiscard]] std::int32_t label(std::uint64_t sample) const;
  void make_tokens(std::uint64_t sample, std::span<std::int32_t> tokens, std::span<std::int32_t> labels) const;
  /// Adds noise to a pattern of at most 4 x 4 fields per channel, drawn from `stream`.
  void make_pattern(std::uint64_t stream, std::uint64_t sample, double noise, std::span<float> out) const;

  Rule rule_;
  std::uint64_t samples_;
  std::uint64_t seed_;
  std::vector<std::int32_t> successor_;  ///< per token; learnable tokens only
};

}  // namespace hcclsim::models
