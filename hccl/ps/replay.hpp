#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "device/numerics/computation.hpp"
#include "device/numerics/learning_rate.hpp"
#include "device/numerics/loops/optimizer.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/ps/replayed_tables.hpp"
#include "hccl/ps/simulation.hpp"
#include "models/data/dataset.hpp"
#include "models/data/sampler.hpp"
#include "models/graph.hpp"

/// Repeats a simulated job with real gradients: every worker computes on its shard of the data with the weights that it
/// had, servers add up what was pushed in the order in which it came, update with the optimizer and send what they have
/// at that moment. So time and numbers are of one training.
///
/// A worker computes with tables of the rows alone that its samples look up, whose tokens are places among these rows.
/// With caches all workers meet in every step, in which they put together what each has of the embeddings: the passes
/// are computed when the last of them begins, with rows from the devices that have them, which are then updated.
namespace hcclsim::hccl {

struct ReplayOptions {
  unsigned threads = 0;  ///< that compute; 0: as many as processors
  device::OptimizerSettings optimizer{};
  device::LearningRate learning_rate{};
  device::ComputationOptions computation{};
  std::string data = "synthetic";                    ///< as open_dataset takes it
  std::shared_ptr<const models::Dataset> dataset{};  ///< in its place; null: none
  bool cached = false;                               ///< devices have caches of rows
  bool shuffle = true;
  std::uint64_t seed = 1;
  std::uint32_t checkpoint_every = 0;  ///< as PsRecovery has it
};

/// A worker's step with real numbers.
struct ReplayedStep {
  std::uint32_t worker = 0;
  std::uint32_t step = 0;
  Seconds end = 0;  ///< simulated
  double loss = 0;
  double accuracy = 0;
};

class Replay {
 public:
  /// `parameters`: those on servers, by key. Others are reduced among the workers, in the order of the workers, and
  /// updated on each. `production_order`: all parameter indices of the graph in the order of their gradients. Throws
  /// Error(bad_input) of kind "data", "dtype", "numerics" or "option"; "unsupported" for tables of which others that
  /// tokens are looked up in are not.
  Replay(models::Graph graph, std::span<const std::uint32_t> production_order, std::vector<PsParameter> parameters,
         std::uint32_t workers, ReplayOptions options);
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;
  ~Replay();

  /// To be called with the entries in their order.
  void take(const PsLogEntry& entry);
  /// What worker 0 has now, and the tables, are what a rollback goes back to.
  void save_checkpoint();

  [[nodiscard]] const std::vector<ReplayedStep>& steps() const { return steps_; }
  /// The weights of a worker in parameter order, row-major; those of the servers.
  [[nodiscard]] std::vector<std::vector<float>> weights_of(std::uint32_t worker) const;
  [[nodiscard]] std::vector<std::vector<float>> server_weights() const;
  [[nodiscard]] const models::Dataset& data() const { return *data_; }

 private:
  struct Worker;

  [[nodiscard]] device::OptimizerState fresh_state(std::size_t slot) const;
  void add_worker();
  void make_samplers();
  void begin_step(const PsLogEntry& entry);
  void compute(const PsLogEntry& entry);
  void compute_passes(std::uint32_t worker, std::uint32_t step);
  void update_caches(std::uint32_t step);
  void update(const PsLogEntry& entry);
  void end_step(const PsLogEntry& entry);
  void update_others(std::uint32_t step);
  void go_back();
  void optimize(std::size_t slot, std::span<const float> sum, std::uint32_t contributions, std::uint32_t step);
  [[nodiscard]] const device::ParameterSlot& slot_of(std::uint32_t key) const;
  [[nodiscard]] ReplayedTables::RowGradients row_gradients(std::uint32_t worker, std::uint32_t key) const;
  [[nodiscard]] std::vector<std::vector<float>> plain(std::span<const float> stored) const;

  ReplayOptions options_;
  models::Graph graph_;
  std::vector<PsParameter> parameters_;
  device::WorkerPool pool_;
  device::Computation computation_;  // with as many rows of tables as a worker's samples look up
  std::shared_ptr<const models::Dataset> data_;
  ReplayedTables tables_;
  std::vector<std::size_t> others_;  // slots of parameters that are on no server
  std::unique_ptr<device::Workspace> workspace_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::uint32_t computing_ = 0;  // workers with caches that have begun the passes of the step
  std::vector<models::Sampler> samplers_;
  std::vector<float> server_;                   // all slots; of those of others_ the workers' value
  std::vector<device::OptimizerState> states_;  // of slots
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<float>> flying_;  // served, not arrived: worker, key
  std::vector<float> checkpoint_;
  std::uint32_t others_updated_ = 0;  // steps
  std::vector<ReplayedStep> steps_;
};

}  // namespace hcclsim::hccl
