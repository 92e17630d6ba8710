#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "device/numerics/loops/rounding.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/execute/atoms.hpp"
#include "hccl/schedule/schedule.hpp"
#include "hccl/schedule/walk.hpp"

/// Executes a Schedule on real buffers, as fast as the memory allows.
///
/// Done step by step, a ring of p ranks would read and write its payload 2(p−1)/p times. But element i of a slice only
/// ever meets element i of the same slice on other ranks. So the schedule is rearranged once: its moves are listed in
/// an order that its synchronisation allows (moves.hpp), memory is cut into atoms that moves cover whole (atoms.hpp),
/// and atoms that are connected by moves form a *component*. Within a component all atoms have the same length, and any
/// sub-range of that length can go through all moves of the component by itself, in the cache: every payload is read
/// once and written once. Scratch memory exists in the cache only.
///
/// The order of reduction of every byte is the schedule's, whatever the order of the parts and the number of workers.
///
/// Buffers are those of the schedule's operation; Operation::size gives their lengths. A schedule in place works on
/// `output`; if inputs are given as well, which must have the same length, each is copied to its output first. A
/// schedule out of place reads the inputs and leaves them unchanged.
namespace hcclsim::hccl {

class DataFlow {
 public:
  /// What one worker needs to run parts; grows to the largest.
  class Scratch {
    friend class DataFlow;
    std::vector<std::byte> bytes_;
    std::vector<std::byte*> places_;
  };

  /// Needs time and memory in proportion to the schedule's tasks. Throws what moves_of throws.
  explicit DataFlow(const Schedule& schedule);

  /// Most reductions that a contribution passes on its way into a result: p−1 in a ring, log2 p in halving-doubling.
  [[nodiscard]] std::uint32_t additions() const { return additions_; }
  /// Independent pieces of about equal work.
  [[nodiscard]] std::size_t parts() const { return parts_; }
  /// The ranges of `output` that a part computes, the same on all ranks; all parts together compute all of it. Throws
  /// Error(bad_input, "schedule") if the part computes different ranges on different ranks.
  [[nodiscard]] std::span<const ByteRange> outputs(std::size_t part) const;

  /// Runs one part on the buffers at input[rank] and output[rank]; in place `input` may be empty. Parts may run at the
  /// same time, each with a Scratch of its own. True if a reduction gave an infinity or was cut to the largest finite
  /// number (device::reduce).
  bool run(std::size_t part, std::span<const std::byte* const> input, std::span<std::byte* const> output,
           device::Overflow overflow, Scratch& scratch) const;

 private:
  /// An atom as its component sees it: in the buffer of a rank, or in a slot of the worker's scratch memory.
  struct Place {
    Buffer buffer = Buffer::output;
    std::uint32_t number = 0;  // rank or slot
    Bytes offset = 0;
  };
  /// Numbers of places within the component.
  struct Step {
    std::uint32_t destination = 0;
    std::uint32_t source = 0;
    bool reduces = false;
  };
  struct Component {
    Bytes length = 0;  // of each of its atoms
    Bytes piece = 0;   // that a part takes of it; the last part may have less
    std::size_t first_part = 0;
    std::size_t first_range = 0;  // in ranges_, `ranges` for every part
    std::uint32_t ranges = 0;
    std::uint32_t slots = 0;
    std::uint32_t first_place = 0;  // the places and steps of the next component follow
    std::uint32_t first_step = 0;
    bool same_on_all_ranks = true;
  };

  void group(const AtomMoves& moves, const MoveList& list);
  void assign_slots(std::size_t component);
  void divide(std::size_t component);
  [[nodiscard]] std::span<const Place> places_of(std::size_t component) const;
  [[nodiscard]] std::span<const Step> steps_of(std::size_t component) const;
  [[nodiscard]] std::size_t component_of(std::size_t part) const;

  DataType type_;
  ReduceOp op_;
  Rank ranks_;
  bool in_place_;
  std::uint32_t additions_ = 0;
  std::size_t parts_ = 0;
  std::vector<Component> components_;  // one more at the end, for its first_…
  std::vector<Place> places_;
  std::vector<Step> steps_;
  std::vector<ByteRange> ranges_;
};

/// Runs all parts, shared out among the workers; arguments and result as DataFlow::run's.
bool execute(const DataFlow& flow, std::span<const std::byte* const> input, std::span<std::byte* const> output,
             device::Overflow overflow, device::WorkerPool& workers);
/// In place.
bool execute(const DataFlow& flow, std::span<std::byte* const> output, device::Overflow overflow,
             device::WorkerPool& workers);

/// Bound of |computed − exact| for one element of a sum of `contributions` numbers: γ_k·M + (1 +
/// γ_k)·contributions·η/2. Here k is the number of roundings that a contribution passes, M the sum of the magnitudes of
/// the exact contributions, γ_k = k·u / (1 − k·u) (N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
/// lemma 3.1 and section 4.2), u and η the unit roundoff and the smallest subnormal of `type`. k is
/// DataFlow::additions(), plus one if contributions are rounded to `type` before they are sent, plus one if the result
/// is multiplied by 1/N in `type` (M is then multiplied by 1/N as well). The second term is what is lost below the
/// normal range when contributions are rounded; sums themselves lose nothing there. The bound is infinite if k·u ≥ 1,
/// and holds as long as nothing overflows.
class ReductionBound {
 public:
  ReductionBound(DataType type, std::uint32_t roundings, std::uint32_t contributions);

  /// Of an element with that sum of magnitudes.
  [[nodiscard]] double operator()(double sum_of_magnitudes) const {
    return infinite_ ? std::numeric_limits<double>::infinity() : relative_ * sum_of_magnitudes + below_normal_;
  }

 private:
  bool infinite_ = false;
  double relative_ = 0;
  double below_normal_ = 0;
};

}  // namespace hcclsim::hccl
