#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "hccl/schedule/walk.hpp"

/// What the checker reports about a schedule: for each level a list of findings, with messages for people, and ranks,
/// tasks and bytes for programs.
namespace hcclsim::hccl {

/// A task by its place: number within its queue, over all stages, from 0.
struct TaskId {
  Rank rank = 0;
  std::uint32_t queue = 0;
  std::uint32_t number = 0;
  friend bool operator==(const TaskId&, const TaskId&) = default;
};

/// Bytes of a buffer of a rank.
struct RankBytes {
  Rank rank = 0;
  ByteRange range;
};

struct Finding {
  std::string kind;     ///< short stable word, listed in docs/checker.md
  std::string message;  ///< names ranks, queues, tasks and bytes
  std::vector<Rank> ranks{};
  std::vector<TaskId> tasks{};
  std::vector<RankBytes> bytes{};
};

/// Findings of one level: all are counted, but only the first few are kept.
class Findings {
 public:
  explicit Findings(std::size_t most) : most_(most) {}

  /// Counts one more finding; true if it is to be kept. Messages are made only for findings that are kept.
  [[nodiscard]] bool wanted() { return ++count_ <= most_; }
  void keep(Finding finding) {
    finding.message = shortened(std::move(finding.message));
    kept_.push_back(std::move(finding));
  }

  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] const std::vector<Finding>& kept() const { return kept_; }

 private:
  std::size_t most_;
  std::size_t count_ = 0;
  std::vector<Finding> kept_;
};

/// How the ranks are grouped at one level of the topology, and how fast bytes can leave and enter each group.
struct CutLevel {
  std::string name;                  ///< "server"
  std::vector<std::uint32_t> group;  ///< of each rank
  std::vector<BytesPerSecond> out;   ///< of each group, at most; infinite if nothing is known
  std::vector<BytesPerSecond> in;
};

struct CheckOptions {
  /// Notify slots that a rank has; 0: as many as the schedule asks for. With HCCL the chip sets it.
  std::uint32_t notifies = 0;
  /// Streams that a rank has, one for every queue; 0: as many as the schedule asks for.
  std::uint32_t streams = 0;
  /// Bytes of a rank's two communicator buffers: `ccl`, and scratch memory.
  std::optional<Bytes> ccl{};
  std::optional<Bytes> scratch{};
  /// Why a transfer between two ranks cannot reduce the payload on its way; empty: it can. None: nothing is known.
  std::function<std::string(Rank from, Rank to)> no_reduction{};
  /// What the addresses of reductions on the way must be multiples of.
  Bytes reduction_alignment = 1;
  /// Memory of an NPU, for all buffers of a rank; 0: any.
  Bytes hbm = 0;
  /// Number of tasks that a queue accepts before the first of them is done; 0: any number. The host issues the tasks of
  /// a rank stage by stage and queue by queue, and stops while the next queue is full.
  std::uint32_t queue_depth = 0;
  /// Every rank must get the same bits.
  bool same_bits = true;
  /// Signature of a recorded order of reduction (CheckReport::order) that the schedule must still have.
  std::optional<std::uint64_t> recorded_order{};
  /// L7: the levels of the topology, and the least time that a step takes on it.
  std::vector<CutLevel> cuts{};
  Seconds least_step = 0;
  /// Number of the last level to be checked, 0 … 7.
  std::uint32_t last_level = 7;
  /// From this number of ranks on, one rank or server is checked in place of all if they are equal up to rotation
  /// (symmetry/symmetry.hpp).
  Rank rotation_from = 2048;
  /// Number of findings of a level that are described; further ones are only counted.
  std::size_t most_findings = 16;
};

struct LevelReport {
  std::string level;  ///< "L0" …
  bool ok = true;
  std::size_t count = 0;  ///< of findings
  std::vector<Finding> findings{};
};

/// L5: in which order the contributions of a byte are reduced.
struct ReductionOrder {
  bool free = false;  ///< reductions of integers happen in no fixed order; the rest is that of one run
  bool same_on_all_ranks = false;
  std::uint32_t additions = 0;  ///< most reductions that a contribution passes
  /// Bound of the relative error of a sum of numbers of one sign: γ_k = k·u/(1 − k·u), k = additions. 0 for integers
  /// and for max and min.
  double error_bound = 0;
  std::uint64_t signature = 0;  ///< equal for equal trees of reductions on all bytes of all ranks
};

/// L7: bytes that go from one group of ranks to another.
struct CutDistance {
  std::string name;  ///< of the level
  std::uint32_t groups = 0;
  Bytes crossing = 0;  ///< in the schedule
  Bytes least = 0;     ///< in any schedule of the collective
  Seconds least_time = 0;
};

/// L7: what the schedule needs, and the least that any schedule of the collective needs.
struct Distances {
  std::uint32_t steps = 0;  ///< longest chain of transfers that wait for each other
  std::uint32_t least_steps = 0;
  Bytes sent = 0;  ///< most bytes that leave one rank
  Bytes least_sent = 0;
  Bytes reduced = 0;  ///< most bytes that are reduced at one rank
  Bytes least_reduced = 0;
  std::vector<CutDistance> cuts{};  ///< at every level of CheckOptions::cuts
  Seconds least_time = 0;           ///< of the collective: the largest of the cuts' and of least_steps
  std::string least_time_of{};      ///< what takes it: "steps", or the name of a level
};

struct CheckReport {
  bool ok = false;
  std::string verdict;  ///< one sentence
  /// The levels that were checked. Levels above one with findings are left out if their result would have no meaning.
  std::vector<LevelReport> levels{};
  std::optional<ReductionOrder> order{};
  std::optional<Distances> distances{};
};

}  // namespace hcclsim::hccl
