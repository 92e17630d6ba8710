#include "study/run/experiment/input_reading.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

namespace hcclsim::study {
namespace {

constexpr Bytes bytes_of_number = 4;

/// Numbers of each input that belong to a sample of a network: the sample itself, and its labels.
std::vector<std::uint64_t> elements_of_inputs(const RunSpec& spec, const models::Graph& network) {
  std::vector<std::uint64_t> elements{network.operators.front().shape().elements() / network.batch()};
  if (!spec.step.shape.forward_only) elements.push_back(network.label_rows() / network.batch());
  return elements;
}

/// How many slices there are of an input.
std::uint64_t slices_of(const RunSpec& spec, std::size_t input, Rank replicas) {
  if (spec.full_batch) return 1;
  if (!spec.dataset_cuts.has_value()) return replicas;
  const std::vector<std::uint32_t>& cuts = (*spec.dataset_cuts)[input];
  return std::accumulate(cuts.begin(), cuts.end(), std::uint64_t{1}, std::multiplies());
}

}  // namespace

void read_as_cut(InputReading& reading, const hccl::ShardedGraph& network, std::uint32_t micro_batches, Rank npus) {
  const models::Shape& own = network.graph.operators.front().shape();
  reading.samples = std::uint64_t{own.batch()} * micro_batches;
  reading.sample_bytes = own.elements() * micro_batches * bytes_of_number;
  reading.bytes = reading.sample_bytes + reading.label_bytes;
  reading.all_ranks = reading.bytes * npus;
}

InputReading input_reading(const RunSpec& spec, const models::Graph& network, const BatchSizes& batch, Rank npus) {
  const Rank replicas = spec.replicas(npus);
  const std::uint64_t samples = std::uint64_t{batch.micro_batch} * batch.micro_batches;
  InputReading reading{.by_strategy = spec.dataset_strategy_given, .whole = replicas > 1};
  const std::vector<std::uint64_t> elements = elements_of_inputs(spec, network);
  for (std::size_t input = 0; input < elements.size(); ++input) {
    const std::uint64_t slices = slices_of(spec, input, replicas);
    reading.whole = reading.whole && slices == 1;
    const Bytes bytes = elements[input] * samples * replicas / slices * bytes_of_number;
    (input == 0 ? reading.sample_bytes : reading.label_bytes) += bytes;
  }
  reading.bytes = reading.sample_bytes + reading.label_bytes;
  // Cuts along other dimensions than the first one are of every sample.
  const bool cut = !spec.full_batch && spec.dataset_cuts.has_value();
  const std::uint64_t parts = cut ? spec.dataset_cuts->front().front() : slices_of(spec, 0, replicas);
  reading.samples = samples * replicas / parts;
  reading.all_ranks = reading.bytes * npus;
  return reading;
}

}  // namespace hcclsim::study
