#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"

/// Which samples a rank takes in which iteration. An iteration uses one *global batch*: ranks x batch consecutive
/// entries of the epoch's order, of which rank r takes the r-th block of `batch`. What is left at the end of an epoch
/// and fills no global batch is dropped for that epoch. Shuffled, every epoch has an order of its own, drawn from the
/// seed and the epoch's number; otherwise all epochs are in the order of the dataset.
///
/// A Sampler has no state: the iteration's number is the position, so that a run which goes on later gets the samples
/// that it would have got. Nor does it store an order: an epoch's order is a permutation computed entry by entry.
namespace hcclsim::models {

class Sampler {
 public:
  /// `samples`: of the dataset; unbounded ones never repeat and are not shuffled. Throws Error(bad_input) of kind
  /// "data" if they are fewer than one global batch.
  Sampler(std::uint64_t samples, std::uint32_t batch, Rank rank, Rank ranks, std::uint64_t seed, bool shuffle);

  /// The rank's samples in an iteration (from 0).
  [[nodiscard]] std::vector<std::uint64_t> batch_of(std::uint64_t iteration) const;

 private:
  std::uint64_t samples_;
  std::uint32_t batch_;
  Rank rank_;
  Rank ranks_;
  std::uint64_t seed_;
  bool shuffle_;
  std::uint64_t iterations_per_epoch_;  ///< at least 1; of unbounded samples `unbounded`
};

/// Entry `position` of a random order of 0 … size − 1 (1 ≤ size ≤ 2^62), one order for every `key`.
[[nodiscard]] std::uint64_t permuted(std::uint64_t position, std::uint64_t size, std::uint64_t key);

}  // namespace hcclsim::models
