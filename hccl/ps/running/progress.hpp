#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "hccl/ps/simulation.hpp"
#include "sim/event_loop.hpp"

/// How far each worker of a running job has come, by its rank.
namespace hcclsim::hccl {

class PsProgress {
 public:
  PsProgress(const PsOptions& options, sim::EventLoop& loop) : options_(options), loop_(loop) {}

  /// From now on there are so many workers, of which new ones begin with a step.
  void resize(std::uint32_t workers, std::uint32_t step) { workers_.resize(workers, {.step = step}); }
  [[nodiscard]] std::uint32_t workers() const { return static_cast<std::uint32_t>(workers_.size()); }
  /// The step that the worker does, or does next.
  [[nodiscard]] std::uint32_t step(std::uint32_t worker) const { return workers_[worker].step; }
  [[nodiscard]] bool finished(std::uint32_t worker) const { return workers_[worker].finished; }
  [[nodiscard]] bool all_finished() const { return std::ranges::all_of(workers_, &Worker::finished); }
  /// Of the workers that have not finished.
  [[nodiscard]] std::uint32_t slowest_step() const {
    std::uint32_t least = options_.steps;
    for (const Worker& worker : workers_) {
      if (!worker.finished) least = std::min(least, worker.step);
    }
    return least;
  }
  void end_step(std::uint32_t worker) { ++workers_[worker].step; }
  void finish(std::uint32_t worker) { workers_[worker].finished = true; }
  /// All go back to a step.
  void go_back(std::uint32_t step) {
    for (Worker& worker : workers_) {
      worker.step = step;
      worker.finished = false;
    }
  }

  /// Something has come that the worker had waited for; what it waits for now may be overdue later.
  void went_on(std::uint32_t worker) {
    workers_[worker].since = loop_.now();
    watch_until(loop_.now() + options_.exec_timeout);
  }
  /// The last date at which it went on.
  [[nodiscard]] Seconds since(std::uint32_t worker) const { return workers_[worker].since; }
  /// `watch` is called PsOptions::exec_timeout after a worker has gone on, unless that is never.
  void set_watch(sim::EventHandler& watch) { watch_ = std::isinf(options_.exec_timeout) ? nullptr : &watch; }
  /// … and at a date, as EventLoop::watch() does.
  void watch_until(Seconds date) {
    if (watch_ != nullptr) loop_.watch(*watch_, 0, date);
  }

 private:
  struct Worker {
    std::uint32_t step = 0;
    bool finished = false;
    Seconds since = 0;
  };

  const PsOptions& options_;
  sim::EventLoop& loop_;
  sim::EventHandler* watch_ = nullptr;
  std::vector<Worker> workers_;
};

}  // namespace hcclsim::hccl
