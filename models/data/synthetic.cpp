#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/counter_random.hpp"
#include "models/data/sources.hpp"

/// Made data: every number follows from the seed and the sample's number (base/counter_random.hpp), so that the same
/// samples come out on every computer. u(stream, i) below is uniform in [−1, 1).
///
/// SyntheticRule::random_labels ("synthetic"), for checking gradients against other programs. Sample n of a network of
///  - features or images smaller than 32 x 32: element i is u(1000000 + n, i);
///  - images from 32 x 32 on: u(3000000 + n, 16·channel + 4·row + column of a 4 x 4 grid) + u(1000000 + n, i) / 4, a
///    coarse pattern with noise, with which the gradients of deep networks are well conditioned;
///  - tokens: token t is bits(4000000 + n, t) / 2^33 modulo the rows of the table; where tokens are predicted, the
///  label
///    of row t is token t + 1.
/// Labels are bits(2000000, n) / 2^33 modulo the classes: they can be learned by heart only. Of a further loss f = 0,
/// 1, … label k is bits(2^51 + 2^20·f + k, n) / 2^33 modulo its classes.
///
/// SyntheticRule::learnable ("synthetic-classes"), for training to an accuracy that holds for unseen samples too: the
/// label is drawn as above, and the sample is the pattern of its class (one per class, on a grid of 4 x 4 or what the
/// image has) plus u(1000000 + n, i) / 2. Where tokens are predicted, each is followed by its successor in one fixed
/// random cyclic order of all tokens, but in one of eight cases by any token. Categories, tokens that tell a class, are
/// those of the class, one per place, but in one of eight cases any. Of a table that is split by hand, the part of a
/// place has its tokens: its rows are in the place of all rows.
namespace hcclsim::models {

namespace {

constexpr std::uint32_t coarse_from_pixels = 32;
constexpr std::uint32_t grid = 4;
constexpr double recipe_noise = 0.25;
constexpr double class_noise = 0.5;
constexpr std::uint64_t deviation_one_in = 8;

/// 0 … choices − 1.
std::int32_t draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t index, std::uint64_t choices) {
  return static_cast<std::int32_t>((counter_bits(seed, stream, index) >> 33U) % choices);
}

/// Successor of each token in a random cyclic order of all (Sattolo's shuffle, which gives a single cycle).
std::vector<std::int32_t> draw_cycle(std::uint64_t seed, std::uint32_t tokens) {
  std::vector<std::int32_t> successor(tokens);
  std::iota(successor.begin(), successor.end(), 0);
  for (std::uint32_t last = tokens - 1; last > 0; --last) {
    std::swap(successor[last], successor[static_cast<std::size_t>(draw(seed, random_stream::successors, last, last))]);
  }
  return successor;
}

class Synthetic final : public Dataset {
 public:
  Synthetic(const SampleForm& form, SyntheticRule rule, std::uint64_t samples, std::uint64_t seed)
      : Dataset(form), rule_(rule), samples_(samples), seed_(seed) {
    if (rule == SyntheticRule::learnable && form.predicts_tokens()) successor_ = draw_cycle(seed, form.classes);
  }

  [[nodiscard]] std::uint64_t size() const override { return samples_; }
  [[nodiscard]] bool shuffles() const override { return rule_ == SyntheticRule::learnable; }

  void read(std::uint64_t sample, Batch& batch, std::uint32_t slot) const override {
    const std::span<std::int32_t> labels = labels_at(batch, slot);
    for (std::size_t loss = 0; loss < form().others.size(); ++loss) {
      make_other_labels(sample, loss, other_labels_at(batch, slot, loss));
    }
    if (form().predicts_tokens()) {
      make_tokens(sample, tokens_at(batch, slot), labels);
      return;
    }
    std::ranges::fill(labels, label(sample));
    if (form().kind == InputKind::tokens) {
      make_categories(sample, labels.front(), tokens_at(batch, slot));
      return;
    }
    const std::span<float> inputs = inputs_at(batch, slot);
    const Shape& shape = form().shape;
    if (rule_ == SyntheticRule::learnable) {
      make_pattern(random_stream::classes + static_cast<std::uint64_t>(labels.front()), sample, class_noise, inputs);
    } else if (std::min(shape.height(), shape.width()) >= coarse_from_pixels) {
      make_pattern(random_stream::patterns + sample, sample, recipe_noise, inputs);
    } else {
      const std::uint64_t stream = random_stream::noise + sample;
      for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = static_cast<float>(counter_uniform(seed_, stream, i));
    }
  }

  [[nodiscard]] std::string describe() const override {
    const std::string_view name = rule_ == SyntheticRule::learnable ? "synthetic classes" : "synthetic data";
    if (samples_ == unbounded) return fmt::format("{}, never the same sample twice", name);
    return fmt::format("{}, {} samples", name, samples_);
  }

 private:
  [[nodiscard]] std::int32_t label(std::uint64_t sample) const {
    return draw(seed_, random_stream::labels, sample, form().classes);
  }

  void make_other_labels(std::uint64_t sample, std::size_t loss, std::span<std::int32_t> labels) const {
    const std::uint64_t stream = random_stream::further_labels + (std::uint64_t{loss} << 20U);
    for (std::size_t k = 0; k < labels.size(); ++k) {
      labels[k] = draw(seed_, stream + k, sample, form().others[loss].classes);
    }
  }

  void make_categories(std::uint64_t sample, std::int32_t label, std::span<std::int32_t> tokens) const {
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const bool of_class = rule_ == SyntheticRule::learnable &&
                            draw(seed_, random_stream::deviations + sample, t + 1, deviation_one_in) != 0;
      const std::uint64_t stream =
          of_class ? random_stream::classes + static_cast<std::uint64_t>(label) : random_stream::tokens + sample;
      const Choice choice = choice_at(t, tokens.size());
      tokens[t] = choice.first + draw(seed_, stream, t, choice.count);
    }
  }

  /// The tokens that a position may have.
  struct Choice {
    std::int32_t first = 0;
    std::uint64_t count = 0;
  };
  [[nodiscard]] Choice choice_at(std::size_t position, std::size_t positions) const {
    const std::vector<std::uint32_t>& parts = form().token_parts;
    if (parts.empty()) return {0, form().token_values};
    const auto own = parts.begin() + static_cast<std::ptrdiff_t>(position * parts.size() / positions);
    return {static_cast<std::int32_t>(std::accumulate(parts.begin(), own, 0U)), *own};
  }

  void make_tokens(std::uint64_t sample, std::span<std::int32_t> tokens, std::span<std::int32_t> labels) const {
    std::int32_t token = draw(seed_, random_stream::tokens + sample, 0, form().classes);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      tokens[t] = token;
      const bool follows = rule_ == SyntheticRule::learnable &&
                           draw(seed_, random_stream::deviations + sample, t + 1, deviation_one_in) != 0;
      token = follows ? successor_[static_cast<std::size_t>(token)]
                      : draw(seed_, random_stream::tokens + sample, t + 1, form().classes);
      if (t < labels.size()) labels[t] = token;
    }
  }

  /// Adds noise to a pattern of at most 4 x 4 fields per channel, drawn from `stream`.
  void make_pattern(std::uint64_t stream, std::uint64_t sample, double noise, std::span<float> out) const {
    const Shape& shape = form().shape;
    const std::uint64_t rows = std::min(grid, shape.height());
    const std::uint64_t columns = std::min(grid, shape.width());
    std::size_t i = 0;
    for (std::uint64_t channel = 0; channel < shape.channels(); ++channel) {
      for (std::uint64_t y = 0; y < shape.height(); ++y) {
        for (std::uint64_t x = 0; x < shape.width(); ++x, ++i) {
          const std::uint64_t field =
              (channel * rows + y * rows / shape.height()) * columns + x * columns / shape.width();
          out[i] = static_cast<float>(counter_uniform(seed_, stream, field) +
                                      noise * counter_uniform(seed_, random_stream::noise + sample, i));
        }
      }
    }
  }

  SyntheticRule rule_;
  std::uint64_t samples_;
  std::uint64_t seed_;
  std::vector<std::int32_t> successor_;  ///< per token; learnable tokens only
};

}  // namespace

std::unique_ptr<Dataset> make_synthetic(const SampleForm& form, SyntheticRule rule, std::uint64_t samples,
                                        std::uint64_t seed) {
  return std::make_unique<Synthetic>(form, rule, samples, seed);
}

}  // namespace hcclsim::models
