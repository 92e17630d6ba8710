#pragma once

#include <cstdint>
#include <string>

#include "hccl/ps/embedding.hpp"
#include "models/data/dataset.hpp"
#include "models/graph.hpp"

namespace hcclsim::hccl {

/// Samples whose tokens are the ids that a job with parameter servers looks up (IdStream), and whose labels follow from
/// them, so that they can be learned. Where labels are tokens, that of a token is the id behind it in the stream.
/// Otherwise every id has a hidden weight for each class, counter_uniform(seed, 13 · 2^48 + class, id), and the label
/// is the class with the largest sum over the sample, the first of equal ones, of weights that are added and subtracted
/// in turn: so labels are of all classes also where few ids are most of the stream.
///
/// The samples never end and are not shuffled: those of a worker's step are then the ids that it looks up in the step.
class IdSamples final : public models::Dataset {
 public:
  /// `graph`: the network with the samples that a worker computes in a step, the first of `timed_batch` that it looks
  /// up ids for. Throws Error(bad_input) of kind "unsupported" for labels that do not follow from ids, and for more
  /// samples than are timed.
  IdSamples(const models::Graph& graph, std::uint32_t timed_batch, IdStream ids, std::uint64_t seed);

  [[nodiscard]] std::uint64_t size() const override { return models::unbounded; }
  [[nodiscard]] bool shuffles() const override { return false; }
  void read(std::uint64_t sample, models::Batch& batch, std::uint32_t slot) const override;
  [[nodiscard]] std::string describe() const override;

 private:
  [[nodiscard]] std::int32_t id_at(std::uint64_t place) const;
  [[nodiscard]] std::int32_t class_of(std::span<const std::int32_t> tokens) const;

  std::uint32_t batch_;
  std::uint32_t timed_batch_;
  IdStream ids_;
  std::uint64_t seed_;
};

}  // namespace hcclsim::hccl
