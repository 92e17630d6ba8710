#pragma once

#include <span>
#include <string>
#include <vector>

#include "device/hbm.hpp"
#include "device/program.hpp"
#include "hccl/parallel/parallel_plan.hpp"
#include "hccl/parallel/sharding/sharded_stages.hpp"
#include "models/graph.hpp"
#include "study/experiment/parallel_spec.hpp"
#include "study/platform/link_times.hpp"

/// From a network to the programs of the stages that train it.
namespace hcclsim::study {

struct Stages {
  std::vector<hccl::ShardedGraph> graphs;  ///< that a device of each stage computes
  std::vector<hccl::StageProgram> programs;
  std::vector<device::HbmAccount> hbm;         ///< of an NPU of each stage
  hccl::FusionRules fusion;                    ///< by which their collectives are fused
  std::vector<std::uint32_t> layers_of_parts;  ///< of a pipeline
  Rank devices = 1;                            ///< of each stage
  Rank shard_ranks = 1;                        ///< of them, those that share parameters, where so many have them
  Flops recomputed = 0;  ///< of products of a micro-batch that the backward passes of a device of each compute again
};

/// Adds to the memory of each stage the gradients that wait until they are reduced, beside the backward pass or,
/// without `overlap`, behind it.
void add_waiting_gradients(Stages& stages, bool overlap);

/// Adds to `notes` which options of recomputed layers' communication have no effect. Throws Error(bad_input, "option")
/// if no layers are recomputed, or no weights gathered that could be gathered again.
void check_recomputed_communication(const ParallelSpec& spec, std::vector<std::string>& notes);

/// How collectives are to be fused: as the spec says. Where parameters are dealt it is as in MindSpore's data_parallel
/// mode: one allreduce unless it is told otherwise, and a size cuts behind the gradient that goes beyond it.
[[nodiscard]] hccl::FusionRules asked_rules(const ParallelSpec& spec);

/// The stages, with what is recomputed marked; of one stage the network itself.
[[nodiscard]] std::vector<hccl::ShardedGraph> cut_into_stages(const hccl::ShardedGraph& network,
                                                              const ParallelSpec& spec,
                                                              std::span<const std::uint32_t> layers_of_parts);

/// Operations of the products of a graph that its program computes again; product_flops() has them.
[[nodiscard]] Flops recomputed_flops(const models::Graph& graph, const models::Program& program, bool causal);

/// Whether gradients of shared parameters travel as their weights do: a ReduceScatter is the gradient of MindSpore's
/// AllGather, unless sums of gradients come between them.
[[nodiscard]] bool reduces_as_gathered(const ParallelSpec& spec, std::uint32_t micro_batches);

/// `network` is what a device of each stage would compute of one micro-batch if it were not cut into stages,
/// `communicator` the bytes of one communicator's buffers. `by_parameter`: updates come in the order of parameters, not
/// of gradients. `links` are asked if stages are to be balanced. What the user should know is added to `notes`. Throws
/// Error(bad_input) of the kinds "pipeline", "option", "unsupported".
[[nodiscard]] Stages make_stages(const hccl::ShardedGraph& network, const ParallelSpec& spec, const device::Soc& soc,
                                 const device::ProgramOptions& how, Bytes communicator, bool by_parameter,
                                 LinkTimes& links, std::vector<std::string>& notes);

}  // namespace hcclsim::study
