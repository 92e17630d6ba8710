#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "hccl/ps/embedding.hpp"
#include "hccl/ps/rounds.hpp"
#include "hccl/ps/running/members.hpp"
#include "hccl/ps/running/progress.hpp"
#include "hccl/ps/running/servers.hpp"
#include "hccl/ps/running/timeline.hpp"
#include "hccl/ps/simulation.hpp"

/// Gradients for weights, piece by piece: a worker asks whether it may push, pushes, is acknowledged, asks whether it
/// may pull, and gets the weights; the server answers, adds up and runs the optimizer in rounds. A worker that is told
/// "not ready" asks again in fixed intervals, of which only the ones that count are events.
namespace hcclsim::hccl {

class PsExchange {
 public:
  /// What a worker does with a piece in its step.
  enum class Doing : std::uint8_t { nothing, pushing, pulling, done };

  /// `staleness` is counted there; `pulled` is called when a worker has pulled a piece.
  PsExchange(const PsOptions& options, PsTimeline& timeline, const PsMembers& members, PsProgress& progress,
             PsServers& servers, BatchRows& batches, std::vector<std::uint64_t>& staleness,
             std::function<void(std::uint32_t worker)> pulled)
      : options_(options),
        timeline_(timeline),
        members_(members),
        progress_(progress),
        servers_(servers),
        batches_(batches),
        staleness_(staleness),
        pulled_(std::move(pulled)),
        saved_step_(options.first_step) {}

  /// The worker begins a step, in which it exchanges all pieces.
  void begin(std::uint32_t worker);
  /// The worker has the gradient of a parameter.
  void gradient_ready(std::uint32_t worker, std::uint32_t key);
  /// Pieces that the worker has still to pull in its step.
  [[nodiscard]] std::size_t left(std::uint32_t worker) const { return workers_[worker].left; }
  /// Pushes and pulls of the step that a server was not ready for, added up.
  [[nodiscard]] Seconds held(std::uint32_t worker) const { return workers_[worker].held; }
  /// By piece.
  [[nodiscard]] const std::vector<Doing>& doing(std::uint32_t worker) const { return workers_[worker].doing; }

  /// The weights of worker 0 and its step become the checkpoint.
  void save();
  [[nodiscard]] std::uint32_t saved_step() const { return saved_step_; }
  /// All copies and servers have the weights of the checkpoint.
  void go_back();
  /// The worker with the newest copy of a piece.
  [[nodiscard]] std::uint32_t newest_copy(std::uint32_t piece) const;
  /// A server that was lost has its pieces from the newest copies.
  void restore(std::uint32_t server);
  /// … and workers push again what is not in these weights, and pull what they have not got.
  void go_on_with(std::uint32_t server);
  /// Pieces are placed as the servers have them now, and were as `before`. Workers that are new begin with a step and
  /// with what the servers have.
  void take_places(std::span<const PsPiece> before, std::uint32_t step);

 private:
  struct Asking {
    std::uint32_t worker = 0;
    Seconds first = 0;  // date of the first question at the server
    Seconds period = 0;
    bool pull = false;
  };
  struct Piece {
    std::uint32_t place = 0;  // among those of its server that are pushed and pulled
    std::uint64_t version = 0;
    std::vector<std::uint32_t> applied{};     // by worker: steps whose gradient is in it
    std::vector<std::uint64_t> applied_in{};  // the version in which the last of them came
    std::vector<Asking> asking{};
  };
  struct Worker {
    std::size_t left = 0;
    Seconds held = 0;
    std::vector<Doing> doing;            // by piece
    std::vector<std::uint64_t> version;  // by piece, of the copy or of what has been pulled in this step
  };

  void want(std::uint32_t worker, std::uint32_t piece);
  void ask(std::uint32_t worker, std::uint32_t piece, bool pull);
  void answer_ready(std::uint32_t piece);
  void push(std::uint32_t worker, std::uint32_t piece);
  void push_arrived(std::uint32_t worker, std::uint32_t piece);
  void accumulated(std::uint32_t worker, std::uint32_t piece);
  void apply(std::uint32_t piece, std::vector<PsContribution> contributions);
  void acknowledged(std::uint32_t worker, std::uint32_t piece);
  void serve_pull(std::uint32_t worker, std::uint32_t piece);
  void pulled(std::uint32_t worker, std::uint32_t piece, std::uint64_t version);
  void restart_rounds();
  void restart_rounds(std::uint32_t server);
  void log(std::uint32_t piece, PsLogEntry entry);
  void count_staleness(std::uint64_t updates);
  [[nodiscard]] std::uint64_t pushed_rows(std::uint32_t piece, const PsContribution& one) const;
  [[nodiscard]] std::uint64_t pushed_elements(std::uint32_t piece, const PsContribution& one) const;
  [[nodiscard]] std::uint64_t update_bytes(std::uint32_t piece, std::span<const PsContribution> contributions) const;
  [[nodiscard]] SynchronousRounds& rounds_of(std::uint32_t piece) { return rounds_[servers_.piece(piece).server]; }
  [[nodiscard]] PsContribution gradient_of(std::uint32_t worker) const { return {worker, progress_.step(worker)}; }

  const PsOptions& options_;
  PsTimeline& timeline_;
  const PsMembers& members_;
  PsProgress& progress_;
  PsServers& servers_;
  BatchRows& batches_;
  std::vector<std::uint64_t>& staleness_;
  std::function<void(std::uint32_t worker)> pulled_;
  std::vector<Worker> workers_;
  std::vector<Piece> pieces_;
  std::vector<SynchronousRounds> rounds_;  // by server
  std::uint32_t saved_step_;
  std::map<std::uint32_t, std::uint64_t> saved_versions_;  // by key
};

}  // namespace hcclsim::hccl
