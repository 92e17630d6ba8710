#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "hccl/parallel/sharding/sharded_graph.hpp"
#include "models/graph.hpp"
#include "study/spec/run_spec.hpp"

/// What ranks read of the data set in a step.
namespace hcclsim::study {

struct InputReading {
  std::uint64_t samples = 0;  ///< by each rank
  Bytes sample_bytes = 0;     ///< of them
  Bytes label_bytes = 0;      ///< that belong to them
  Bytes bytes = 0;            ///< both
  Bytes all_ranks = 0;        ///< what storage delivers
  bool by_strategy = false;   ///< a dataset strategy was given; else every replica reads its own samples
  bool whole = false;         ///< every rank reads the samples of all replicas
};

/// A rank reads its slice of every input: of samples and, in training, of labels. Numbers have 4 bytes: fp32 of images
/// and features, int32 of tokens and labels. The stages of a pipeline read the same samples, each all of its slice.
/// `network` has the samples of a micro-batch.
[[nodiscard]] InputReading input_reading(const RunSpec& spec, const models::Graph& network, const BatchSizes& batch,
                                         Rank npus);

/// The samples of a reading as each rank of the first stage has them in a network that is cut: of so many
/// micro-batches.
void read_as_cut(InputReading& reading, const hccl::ShardedGraph& network, std::uint32_t micro_batches, Rank npus);

}  // namespace hcclsim::study
