#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/program.hpp"
#include "hccl/training/training.hpp"
#include "sim/cluster.hpp"
#include "study/experiment/input_reading.hpp"
#include "study/experiment/sharded_networks.hpp"
#include "study/experiment/stages.hpp"
#include "study/platform/platform.hpp"
#include "study/profile/import.hpp"
#include "study/run/spec.hpp"

namespace hcclsim::study {

/// How the program of a run is made of its network, but for what its micro-batches and shared parameters say.
[[nodiscard]] device::ProgramOptions options_of_program(const RunSpec& spec, Rank npus);

/// What a spec names on a loaded platform, checked: NPUs and costs, the program, and the options of the
/// simulation. Everything that simulates a training step begins with it. The platform comes apart, since SimGrid loads
/// one per process (in a child), while many runs can start from it, each in a child of that process.
struct Experiment : LoadedPlatform {
  /// Throws what is wrong with the spec, the rank table or the program, and places the ranks of a rank table on the
  /// cluster, which must outlive the object. `known`: what experiments before it have cut; null: nothing.
  Experiment(const RunSpec& spec, sim::Cluster& cluster, ShardedNetworks* known = nullptr);

  /// Simulates a step. To be called once per process, as SimGrid holds one simulation.
  [[nodiscard]] hccl::TimedStep simulate(const hccl::TrainingStep& of) {
    return simulate_training(cluster, soc, costs, of);
  }

  /// The Plan of a step, which is not simulated.
  [[nodiscard]] hccl::Plan plan() { return plan_training(cluster, soc, training); }

  /// Samples of the network that is cut into stages: of a micro-batch, of all replicas if its operators are cut.
  [[nodiscard]] std::uint32_t samples_of_micro_batch(const RunSpec& spec) const;

  /// Whether times of kernels were measured, so that the cost model has no part in them.
  [[nodiscard]] bool measured_kernels() const { return profile.has_value() || has_measured_gradients; }

  /// That of the printed rank.
  [[nodiscard]] device::HbmAccount& hbm() {
    return hbm_of_stages[training.simulation.rank / training.step.stage_ranks()];
  }
  [[nodiscard]] const device::HbmAccount& hbm() const {
    return hbm_of_stages[training.simulation.rank / training.step.stage_ranks()];
  }

  std::string model;  ///< as given to --model, or the file that replaces it
  Rank npus = 0;
  std::optional<ImportedProfile> profile;          ///< of --profile
  hccl::TrainingStep training;                     ///< without traced ranks
  std::shared_ptr<const models::Program> program;  ///< of the printed rank
  /// Every rank computes the whole network on samples of its own and keeps all parameters.
  bool data_parallel = true;
  std::vector<hccl::ShardedGraph> graphs;         ///< that a device of each stage computes; empty: it is not known
  std::vector<std::uint32_t> layers_of_parts;     ///< of a pipeline
  std::vector<device::HbmAccount> hbm_of_stages;  ///< of an NPU of each stage
  bool mirrors_divide = false;          ///< kernels behind the mirrors of parameters divide gradients by the replicas
  bool has_measured_gradients = false;  ///< RunSpec::gradients_file
  bool by_parameter = false;            ///< gradients are numbered by parameters (RunSpec::fusion_index)
  bool runs_of_parameters = true;       ///< … in the reverse of their order: what travels together is a run of them
  std::vector<Bytes> gradient_sizes;    ///< production order, as they are sent
  BatchSizes batch{};                   ///< of a replica
  Rank replicas = 1;                    ///< ranks, or groups of ranks that share operators, with samples of their own
  std::uint32_t layers = 0;             ///< of the network
  bool transformer = false;             ///< the network attends
  std::uint32_t tokens_per_sample = 0;  ///< of a transformer whose samples are tokens
  std::optional<InputReading> input;    ///< what is read of the data set; none: the network is not known
  Flops flops_per_sample = 0;           ///< of the products, forward and backward, nothing computed twice
  Flops recomputed_flops = 0;           ///< of the products that are, of a micro-batch on all stages
  DataType compute_type = DataType::fp16;  ///< of the products
  OperatorParallel operators{};            ///< how operators are cut
  std::string sharing = "off";             ///< kind of optimizer parallelism
  std::string fusion;              ///< which tensors travel together, in words; empty: gradients are split as HCCL does
  std::string gradient_rule;       ///< MindSpore's rule for gradients, in words; empty: they are split as HCCL does
  bool launch_is_assumed = false;  ///< that of kernels in eager execution
  double images_per_second = 0;    ///< that the data workers of a server prepare; 0: any number
  std::optional<FailureSpec> failures;              ///< of a job of such steps
  std::vector<hccl::StartUp> start_up;              ///< of each stage: what is sent once before the first step
  std::optional<hccl::CommReuseReport> comm_reuse;  ///< what reuse of communication subgraphs changes; none: no reuse

 private:
  /// What is known of the run before its network is: sizes, settings of the step and its simulation.
  void load(const RunSpec& spec);
  void share_hbm(const RunSpec& spec);
  /// From the network, or what was measured of it, to the programs of its stages.
  [[nodiscard]] LoweredStages lower(const RunSpec& spec, ShardedNetworks& known);
  [[nodiscard]] LoweredStages lower_network(const RunSpec& spec, ShardedNetworks& known);
  [[nodiscard]] models::Program load_gradients(const RunSpec& spec);
  [[nodiscard]] models::Program load_profile(const RunSpec& spec, const models::Graph& graph);
  /// Decides which gradients and weights travel together.
  void segment(const RunSpec& spec, LoweredStages lowered);
  /// In data parallelism: as HCCL splits gradients, or as MindSpore fuses them in data_parallel mode.
  void segment_data_parallel(const RunSpec& spec, models::Program loaded);
  /// By MindSpore's fusion of communication operators.
  void segment_stages(const RunSpec& spec, LoweredStages& lowered);
  /// What the plan needs besides: memory, start-up, hosts.
  void complete(const RunSpec& spec);

  [[nodiscard]] device::ProgramOptions program_options(const RunSpec& spec) const;
  /// `rule`: MindSpore's, of data parallelism; none: HCCL's split.
  void name_fusion(const RunSpec& spec, const std::optional<hccl::FusionRule>& rule);
  [[nodiscard]] models::ModelOptions sizes_of_micro_batch(const RunSpec& spec) const;
  [[nodiscard]] models::Graph network_of_micro_batch(const RunSpec& spec);
  void import_profile_of_stages(const RunSpec& spec);
  void deal_parameters(const RunSpec& spec);
  void share_results(const RunSpec& spec);
  /// Of an NPU of each stage.
  void check_memory(const RunSpec& spec);
  void add_start_up(const RunSpec& spec);
  /// Reports on the reuse of communication subgraphs, if there is any, and counts the buffers of its communicators.
  /// Throws Error(simulated_failure, "streams") if a device has too few streams.
  void share_communication();
  void add_host(const RunSpec& spec);
  /// Numbers the gradients so that those of a collective follow each other; the segments are these collectives.
  [[nodiscard]] std::vector<hccl::Segment> fuse(const hccl::FusionRule& rule, models::Program& loaded);
  /// The same for gradients of several types, which do not travel together.
  [[nodiscard]] std::vector<hccl::Segment> fuse_types_apart(const std::optional<hccl::FusionRule>& rule,
                                                            models::Program& loaded);
  void add_compression();
  /// Who reduces gradients with whom, and in which segments: `fused` if gradients are numbered by parameters.
  void split_gradients(const RunSpec& spec, const std::vector<hccl::Segment>& fused);
  void add_split_notes(const RunSpec& spec, std::size_t segments);
};

}  // namespace hcclsim::study
