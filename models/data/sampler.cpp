#include "models/data/sampler.hpp"

#include <bit>

#include "base/counter_random.hpp"
#include "base/error.hpp"
#include "models/data/dataset.hpp"

namespace hcclsim::models {

namespace {

constexpr std::uint64_t rounds = 8;

}  // namespace

/// A Feistel network over the two halves of the bits of `position` is a permutation of the next power of two, whatever
/// its round function. An entry beyond the size is sent through again until it is within, which keeps it one.
std::uint64_t permuted(std::uint64_t position, std::uint64_t size, std::uint64_t key) {
  const auto bits = static_cast<std::uint32_t>(std::bit_width(size - 1));
  const std::uint32_t low_bits = bits - bits / 2;
  const std::uint64_t low_mask = (std::uint64_t{1} << low_bits) - 1;
  const std::uint64_t high_mask = (std::uint64_t{1} << (bits / 2)) - 1;
  do {
    std::uint64_t low = position & low_mask;
    std::uint64_t high = position >> low_bits;
    for (std::uint64_t round = 0; round < rounds; round += 2) {
      low ^= counter_bits(key, round, high) & low_mask;
      high ^= counter_bits(key, round + 1, low) & high_mask;
    }
    position = high << low_bits | low;
  } while (position >= size);
  return position;
}

Sampler::Sampler(std::uint64_t samples, std::uint32_t batch, Rank rank, Rank ranks, std::uint64_t seed, bool shuffle)
    : samples_(samples),
      batch_(batch),
      rank_(rank),
      ranks_(ranks),
      seed_(seed),
      shuffle_(shuffle && samples != unbounded),
      iterations_per_epoch_(samples == unbounded ? unbounded : samples / (std::uint64_t{batch} * ranks)) {
  if (iterations_per_epoch_ == 0) {
    bad_input("data", "the data has {} samples, but one iteration needs {}: {} NPUs with a batch of {}", samples,
              std::uint64_t{batch} * ranks, ranks, batch);
  }
}

std::vector<std::uint64_t> Sampler::batch_of(std::uint64_t iteration) const {
  const std::uint64_t epoch = iteration / iterations_per_epoch_;
  const std::uint64_t first = (iteration % iterations_per_epoch_ * ranks_ + rank_) * batch_;
  const std::uint64_t key = counter_bits(seed_, random_stream::epochs, epoch);
  std::vector<std::uint64_t> samples(batch_);
  for (std::uint32_t i = 0; i < batch_; ++i) {
    samples[i] = shuffle_ ? permuted(first + i, samples_, key) : first + i;
  }
  return samples;
}

}  // namespace hcclsim::models
