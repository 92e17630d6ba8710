#pragma once

#include <span>
#include <string>
#include <vector>

#include "device/hbm.hpp"
#include "device/program.hpp"
#include "hccl/parallel/pipeline/schedule.hpp"
#include "hccl/parallel/sharding/sharded_stages.hpp"
#include "hccl/parallel/stage_program.hpp"
#include "hccl/parallel/step_spec.hpp"
#include "models/graph.hpp"
#include "study/platform/link_times.hpp"
#include "study/spec/parallel_spec.hpp"

/// From a network to what the ranks of each stage do. Data parallelism has one stage.
namespace hcclsim::study {

/// Stages of which it is not decided yet which gradients and weights travel together.
struct LoweredStages {
  std::vector<hccl::ShardedGraph> graphs;  ///< that a device of each stage computes; empty: the network is not known
  std::vector<models::Program> programs;
  std::vector<models::ShardingOptions> sharing{};  ///< of the parameters of each stage
  std::vector<std::uint32_t> layers_of_parts{};    ///< of a pipeline
  Rank shard_ranks = 1;                            ///< ranks of a stage that share parameters, where so many have them
  Flops recomputed = 0;  ///< of products of a micro-batch that the backward passes of a device of each compute again
};

struct FusedStages {
  std::vector<hccl::StageProgram> programs;
  hccl::FusionRules fusion{};  ///< by which their collectives are fused
};

/// Adds to `notes` which options of recomputed layers' communication have no effect. Throws Error(bad_input, "option")
/// if no layers are recomputed, or no weights gathered that could be gathered again.
void check_recomputed_communication(const ParallelSpec& spec, const hccl::PipelineShape& shape,
                                    std::vector<std::string>& notes);

/// How collectives are to be fused: as the spec says. Where parameters are dealt it is as in MindSpore's data_parallel
/// mode: one allreduce unless it is told otherwise, and a size cuts behind the gradient that goes beyond it.
[[nodiscard]] hccl::FusionRules asked_rules(const ParallelSpec& spec);

/// The stages, with what is recomputed marked; of one stage the network itself.
[[nodiscard]] std::vector<hccl::ShardedGraph> cut_into_stages(const hccl::ShardedGraph& network,
                                                              const ParallelSpec& spec,
                                                              const hccl::PipelineShape& shape,
                                                              std::span<const std::uint32_t> layers_of_parts);

/// Operations of the products of a graph that its program computes again; product_flops() has them.
[[nodiscard]] Flops recomputed_flops(const models::Graph& graph, const models::Program& program, bool causal);

/// Of set_comm_fusion where no rule asks for ids.
void note_idle_ids(std::span<const hccl::ShardedGraph> stages, const ParallelSpec& spec,
                   std::vector<std::string>& notes);

/// Whether gradients of shared parameters travel as their weights do: a ReduceScatter is the gradient of MindSpore's
/// AllGather, unless sums of gradients come between them.
[[nodiscard]] bool reduces_as_gathered(const ParallelSpec& spec, const hccl::PipelineShape& shape);

/// `network` is what a device of each stage would compute of one micro-batch if it were not cut into stages. `links`
/// are asked if stages are to be balanced. What the user should know is added to `notes`. Throws Error(bad_input) of
/// the kinds "pipeline", "option", "unsupported".
[[nodiscard]] LoweredStages lower_stages(const hccl::ShardedGraph& network, const ParallelSpec& spec,
                                         const hccl::PipelineShape& shape, const device::Soc& soc,
                                         const device::ProgramOptions& how, LinkTimes& links,
                                         std::vector<std::string>& notes);

/// Fuses what travels together by the rules of the spec, and likewise. `lowered` is used up but for its graphs.
[[nodiscard]] FusedStages fuse_stages(LoweredStages& lowered, const ParallelSpec& spec,
                                      const hccl::PipelineShape& shape, const device::Soc& soc,
                                      const device::ProgramOptions& how, std::vector<std::string>& notes);

/// What an NPU of each stage keeps. `communicator`: bytes of the buffers of one.
[[nodiscard]] std::vector<device::HbmAccount> hbm_of(std::span<const hccl::StageProgram> stages,
                                                     const hccl::StepSpec& step, Bytes communicator);

}  // namespace hcclsim::study
