#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hccl/strategies/options.hpp"
#include "hccl/strategies/recursive/halving.hpp"
#include "hccl/strategies/recursive/recursive_graph.hpp"
#include "hccl/strategies/strategies.hpp"

/// MindSpore's recursive search, in two recursions. Over devices: N of them are halved log2(N) times, rounded down.
/// Over operators: in each halving they are visited from the last one to the first, and each is cut in two along one
/// axis, or not at all, by the least cost (halving.hpp). What was cut before it in the same halving is settled. The
/// time is that of halvings × operators × neighbours.
///
/// Of a pipeline of p stages the state before the last log2(p) halvings counts. From the cuts of the operators that
/// were searched follow the strategies of all: strategies.hpp. (MindSpore r2.3,
/// frontend/parallel/auto_parallel/rec_core.)
namespace hcclsim::hccl {

struct RecursiveOptions {
  Rank devices = 1;  ///< of all stages, 1 … 1024
  std::uint32_t stages = 1;
  double matmul_coefficient = 0.1;
  Bytes device_memory = Bytes{16} << 30U;
};

struct RecursiveCuts {
  RecursiveGraph graph;          ///< with the parts of every tensor
  std::uint32_t halvings = 0;    ///< that count
  double cost = 0;               ///< of the operators and of what neighbours exchange, over those halvings
  std::uint64_t candidates = 0;  ///< cuts that were compared
  /// Bytes of the inputs of all operators on a device, divided by the devices, as MindSpore counts them; it warns when
  /// they are more than the memory.
  double memory = 0;
  std::vector<std::string> warnings;
};

/// `samples`: of the network. Throws Error(bad_input, "search") for 0 or more than 1024 devices, and for stages
/// that are no power of two or more than the devices.
[[nodiscard]] RecursiveCuts recursive_cuts(RecursiveGraph graph, std::uint32_t samples,
                                           const RecursiveOptions& options);

struct RecursiveProgrammingResult {
  NetworkStrategies strategies;
  RecursiveCuts cuts;
};

/// Strategies for the devices of one stage. `graph` has the samples of a micro-batch.
[[nodiscard]] RecursiveProgrammingResult recursive_programming(const models::Graph& graph,
                                                               const RecursiveOptions& options);

}  // namespace hcclsim::hccl
