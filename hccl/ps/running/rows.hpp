#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hccl/ps/embedding.hpp"
#include "hccl/ps/running/members.hpp"
#include "hccl/ps/running/progress.hpp"
#include "hccl/ps/running/servers.hpp"
#include "hccl/ps/running/timeline.hpp"
#include "hccl/ps/simulation.hpp"

/// Rows of tables that workers look up. Without a cache the servers of the rows send them before the passes begin, and
/// gradients of the same rows are pushed. With one, rows come before they are needed, while the step before computes.
namespace hcclsim::hccl {

class PsRows {
 public:
  /// Figures are counted in `tables`. `there` is called when a worker has all rows of the step that it has begun,
  /// `exchanged` when a cache has changed its rows.
  PsRows(const PsOptions& options, PsTimeline& timeline, const PsMembers& members, const PsProgress& progress,
         PsServers& servers, BatchRows& batches, std::vector<EmbeddingFigures>& tables,
         std::function<void(std::uint32_t worker)> there, std::function<void()> exchanged)
      : options_(options),
        timeline_(timeline),
        members_(members),
        progress_(progress),
        servers_(servers),
        batches_(batches),
        tables_(tables),
        there_(std::move(there)),
        exchanged_(std::move(exchanged)) {}

  /// There is a place for each worker now; nothing is under way, and the caches of new ones are empty.
  void take_places();
  /// All begin with empty caches.
  void go_back();
  /// The worker begins a step and needs its rows.
  void fetch(std::uint32_t worker);
  /// The step has ended, for which a prefetch may have waited.
  void step_ended(std::uint32_t worker);
  /// The worker's step has begun, but not its passes.
  [[nodiscard]] bool awaits(std::uint32_t worker) const { return workers_[worker].awaits; }
  /// Rows come and go in the worker's caches.
  [[nodiscard]] bool exchanges(std::uint32_t worker) const { return workers_[worker].exchanges; }
  /// All caches are emptied: with more workers each has other ids. `then` when the servers have the rows.
  void empty_caches(std::function<void()> then);

 private:
  struct Worker {
    bool awaits = false;
    bool exchanges = false;
    bool waits = false;                    // a prefetch, for the end of the running step
    std::size_t left = 0;                  // messages to come before the step computes
    std::uint32_t cached = 0;              // steps whose rows are on the device
    std::vector<EmbeddingCache> caches{};  // by table
  };

  void look_up(std::uint32_t worker, std::uint32_t key);
  void count_look_ups(std::uint32_t worker, std::uint32_t key);
  void send_rows(std::uint32_t server, std::uint32_t worker, Bytes bytes, PsLogEntry entry,
                 const std::function<void()>& arrival);
  void may_be_there(std::uint32_t worker);
  void prefetch(std::uint32_t worker, std::uint32_t step);
  void exchange(std::uint32_t worker, std::uint32_t key, const EmbeddingCache::Exchange& rows, const Countdown& done);
  void write_back(std::uint32_t worker, std::uint32_t key, const std::vector<std::uint64_t>& rows,
                  const Countdown& done);
  [[nodiscard]] const std::vector<std::uint64_t>& rows_of(std::uint32_t key, std::uint32_t worker,
                                                          std::uint32_t step) const {
    return batches_.of(options_.parameters[key].rows, worker, step);
  }
  [[nodiscard]] Bytes row_bytes(std::uint32_t key) const { return options_.parameters[key].width() * sizeof(float); }
  [[nodiscard]] PsLogEntry entry_of(PsLogEntry::Kind kind, std::uint32_t worker, std::uint32_t key,
                                    std::uint32_t server, std::span<const std::uint64_t> rows) const;
  [[nodiscard]] EmbeddingFigures& table_of(std::uint32_t key);

  const PsOptions& options_;
  PsTimeline& timeline_;
  const PsMembers& members_;
  const PsProgress& progress_;
  PsServers& servers_;
  BatchRows& batches_;
  std::vector<EmbeddingFigures>& tables_;
  std::function<void(std::uint32_t worker)> there_;
  std::function<void()> exchanged_;
  std::vector<Worker> workers_;
};

}  // namespace hcclsim::hccl
