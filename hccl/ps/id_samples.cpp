#include "hccl/ps/id_samples.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/counter_random.hpp"
#include "base/error.hpp"

namespace hcclsim::hccl {
IdSamples::IdSamples(const models::Graph& graph, std::uint32_t timed_batch, IdStream ids, std::uint64_t seed)
    : Dataset(models::sample_form(graph)),
      batch_(graph.batch()),
      timed_batch_(timed_batch),
      ids_(std::move(ids)),
      seed_(seed) {
  if (batch_ > timed_batch_) {
    bad_input("unsupported", "{} samples are to be computed, but ids are looked up for {}; give --numeric-batch less",
              batch_, timed_batch_);
  }
  const bool one_label = form().predicts_tokens() ? form().labels == form().elements() : form().labels == 1;
  if (!one_label || !form().others.empty()) {
    bad_input("unsupported", "{}: its labels do not follow from the ids of a sample", graph.title);
  }
}

std::int32_t IdSamples::id_at(std::uint64_t place) const {
  return static_cast<std::int32_t>(ids_.at(place, form().token_values));
}

void IdSamples::read(std::uint64_t sample, models::Batch& batch, std::uint32_t slot) const {
  const std::span<std::int32_t> tokens = tokens_at(batch, slot);
  const std::uint64_t timed = sample / batch_ * timed_batch_ + sample % batch_;
  const std::uint64_t first = timed * tokens.size();
  for (std::size_t t = 0; t < tokens.size(); ++t) tokens[t] = id_at(first + t);
  const std::span<std::int32_t> labels = labels_at(batch, slot);
  if (!form().predicts_tokens()) {
    labels.front() = class_of(tokens);
    return;
  }
  for (std::size_t t = 0; t < labels.size(); ++t) {
    labels[t] = t + 1 < tokens.size() ? tokens[t + 1] : id_at(first + tokens.size());
  }
}

std::int32_t IdSamples::class_of(std::span<const std::int32_t> tokens) const {
  std::uint32_t best = 0;
  double most = 0;
  for (std::uint32_t label = 0; label < form().classes; ++label) {
    double sum = 0;  // of multiples of 2^−23, so exact
    double sign = 1;
    for (const std::int32_t id : tokens) {
      sum += sign * counter_uniform(seed_, random_stream::classes_of_ids + label, static_cast<std::uint64_t>(id));
      sign = -sign;
    }
    if (label > 0 && sum <= most) continue;
    best = label;
    most = sum;
  }
  return static_cast<std::int32_t>(best);
}

std::string IdSamples::describe() const {
  return fmt::format("ids {}, labels that follow from them, never the same sample twice", ids_.name);
}

}  // namespace hcclsim::hccl
