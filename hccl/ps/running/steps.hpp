#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "hccl/ps/hybrid.hpp"
#include "hccl/ps/running/exchange.hpp"
#include "hccl/ps/running/members.hpp"
#include "hccl/ps/running/progress.hpp"
#include "hccl/ps/running/rows.hpp"
#include "hccl/ps/running/servers.hpp"
#include "hccl/ps/running/timeline.hpp"
#include "hccl/ps/simulation.hpp"
#include "models/program.hpp"

/// What workers do: a step begins with the rows of tables, goes on with the passes, exchanges every gradient for
/// weights when it is ready, and ends when all of that has. A worker begins the first one when its initial weights are
/// on the servers, and the next one unless it waits for slower workers or stands at the barrier before scaling.
namespace hcclsim::hccl {

class PsSteps {
 public:
  /// What a worker does or waits for; from `rows` on it is in a step.
  enum class Stage : std::uint8_t { idle, initial_weights, gated, barrier, rows, computing, computed };

  /// `hybrid` reduces gradients that are not on servers; null: there are none. Steps that have ended are added to
  /// `done`. `stood` is called when another worker stands at the barrier.
  PsSteps(const models::Program& program, const PsOptions& options, HybridReduction* hybrid, PsTimeline& timeline,
          PsMembers& members, PsProgress& progress, const PsServers& servers, PsExchange& exchange, PsRows& rows,
          std::vector<PsStep>& done, std::function<void()> stood);

  /// As PsExchange::take_places(); no worker is in a step.
  void take_places(std::span<const PsPiece> before, std::uint32_t step);
  /// All go back to the checkpoint. Returns its step.
  std::uint32_t go_back();
  /// Every worker sends all weights; a server keeps those that come first. A worker begins when its own are there.
  void send_initial_weights();
  /// … or the server has them from another worker's copy.
  void initial_weights_restored(std::uint32_t server);
  /// All rows of the step that the worker has begun are there.
  void compute(std::uint32_t worker);
  /// A part of the worker's step has ended, perhaps the last one.
  void end_if_done(std::uint32_t worker);

  /// Everybody ends the iteration that is running. In synchronous training a worker ends its iteration only if all
  /// others take part in it, so that the one that is farthest ahead counts.
  void stop();
  [[nodiscard]] bool stopping() const { return stop_step_.has_value(); }
  /// Whether all stand at the barrier, or have done their steps.
  [[nodiscard]] bool all_stand() const;
  /// The barrier is open.
  void go_on();

  [[nodiscard]] Stage stage(std::uint32_t worker) const;
  [[nodiscard]] bool awaits_initial_weights(std::uint32_t worker, std::uint32_t piece) const {
    return !workers_[worker].initial.empty() && workers_[worker].initial[piece];
  }
  /// For slower workers, in all.
  [[nodiscard]] Seconds waited(std::uint32_t worker) const { return workers_[worker].waited; }

 private:
  struct Worker {
    bool running = false;  // in a step
    bool at_barrier = false;
    bool gated = false;     // waits for slower workers
    bool computed = false;  // the backward pass has ended
    bool reduced = true;    // gradients that are not on servers
    Seconds gated_since = 0;
    Seconds backward_end = 0;
    Seconds waited = 0;
    PsStep figures;
    std::vector<bool> initial;  // by piece: its initial weights are under way; empty: all are there
  };

  void stand_by();
  void initial_weights_arrived(std::uint32_t worker, std::uint32_t piece);
  void begin(std::uint32_t worker);
  [[nodiscard]] bool too_far_ahead(std::uint32_t worker) const;
  void reduce(std::uint32_t worker, Seconds ready);
  void backward_ended(std::uint32_t worker);
  void end(std::uint32_t worker);
  void finish(std::uint32_t worker);
  void open_gates();

  const PsOptions& options_;
  HybridReduction* hybrid_;
  PsTimeline& timeline_;
  PsMembers& members_;
  PsProgress& progress_;
  const PsServers& servers_;
  PsExchange& exchange_;
  PsRows& rows_;
  std::vector<PsStep>& done_;
  std::function<void()> stood_;
  std::vector<Seconds> durations_;            // of the kernels of a step
  std::vector<std::uint32_t> kernel_of_key_;  // with which a gradient is complete
  std::uint32_t hybrid_kernel_ = 0;           // … the last one that is not on servers
  std::vector<Worker> workers_;
  std::optional<std::uint32_t> stop_step_{};  // steps that all have done at the barrier, of synchronous training
};

}  // namespace hcclsim::hccl
