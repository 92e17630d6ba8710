#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/program.hpp"
#include "hccl/parallel/comm_reuse/comm_reuse.hpp"
#include "hccl/parallel/sharding/sharded_stages.hpp"
#include "hccl/training/training_step.hpp"
#include "models/program.hpp"
#include "sim/cluster.hpp"
#include "study/files/profile/import.hpp"
#include "study/platform/platform.hpp"
#include "study/run/experiment/input_reading.hpp"
#include "study/spec/run_spec.hpp"

namespace hcclsim::study {

/// How the program of a run is made of its network, but for what its micro-batches and shared parameters say.
[[nodiscard]] device::ProgramOptions options_of_program(const RunSpec& spec, Rank npus);

/// What is known of a run when its step is made; a result of the run refers to it.
struct RunFacts {
  BatchSizes batch{};                                ///< of a replica
  std::string model{};                               ///< as given to --model, or the file that replaces it
  std::optional<InputReading> input{};               ///< what is read of the data set; none: the network is not known
  std::shared_ptr<const models::Program> program{};  ///< of the printed rank
  std::string fusion{};         ///< which tensors travel together, in words; empty: gradients are split as HCCL does
  std::string gradient_rule{};  ///< MindSpore's rule for gradients, in words; empty: they are split as HCCL does
  std::optional<hccl::CommReuseReport> comm_reuse{};  ///< what reuse of communication subgraphs changes; none: no reuse
};

/// A run on its platform, and what is known of it before its network is: ranks are placed, sizes and settings checked.
/// lower() and segment() add what they find.
struct LoadedRun : LoadedPlatform, RunFacts {
  /// Throws Error(bad_input) for what is wrong with the spec or the rank table, by which it places the ranks on the
  /// cluster, which must outlive the object.
  LoadedRun(RunSpec of, sim::Cluster& on);

  [[nodiscard]] device::ProgramOptions program_options() const;
  /// The spec of other runs on the cluster, whose ranks are placed.
  [[nodiscard]] RunSpec spec_on_placed() const;
  /// Samples of the network that is cut into stages: of a micro-batch, of all replicas if its operators are cut.
  [[nodiscard]] std::uint32_t samples_of_micro_batch() const;
  [[nodiscard]] models::ModelOptions sizes_of_micro_batch() const;
  /// Whether measured gradients replace the network.
  [[nodiscard]] bool has_measured_gradients() const { return data_parallel && !spec.gradients_file.empty(); }
  /// Whether times of kernels were measured, so that the cost model has no part in them.
  [[nodiscard]] bool measured_kernels() const { return profile.has_value() || has_measured_gradients(); }
  /// Whether kernels after the mirrors of parameters divide gradients by the replicas.
  [[nodiscard]] bool mirrors_divide() const { return spec.gradients_mean_kernels && spec.is_graph_parallel(); }

  RunSpec spec;
  hccl::TrainingStep training;  ///< without traced ranks
  /// Every rank computes the whole network on samples of its own and keeps all parameters.
  bool data_parallel = true;
  Rank replicas = 1;  ///< ranks, or groups of ranks that share operators, with samples of their own

  // Of the network
  std::optional<ImportedProfile> profile;      ///< of --profile
  std::vector<hccl::ShardedGraph> graphs;      ///< that a device of each stage computes; empty: it is not known
  std::vector<std::uint32_t> layers_of_parts;  ///< of a pipeline
  std::uint32_t layers = 0;
  bool transformer = false;             ///< the network attends
  std::uint32_t tokens_per_sample = 0;  ///< of a transformer whose samples are tokens
  Flops flops_per_sample = 0;           ///< of the products, forward and backward, nothing computed twice
  Flops recomputed_flops = 0;           ///< of the products that are, of a micro-batch on all stages

  // Of what travels together
  bool by_parameter = false;          ///< gradients are numbered by parameters (RunSpec::fusion_index)
  bool runs_of_parameters = true;     ///< … in the reverse of their order: what travels together is a run of them
  std::vector<Bytes> gradient_sizes;  ///< production order, as they are sent
};

}  // namespace hcclsim::study
