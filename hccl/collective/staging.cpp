#include "hccl/collective/staging.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "hccl/collective/algorithm/builder.hpp"

namespace hcclsim::hccl {
namespace {

/// Who copies, and what.
enum class Copying : std::uint8_t { none, all, own_block };
struct Copies {
  Copying in = Copying::none;
  Copying out = Copying::none;
  bool in_at_root = false;   ///< the root alone copies in
  bool out_at_root = false;  ///< the root alone copies out
};

Copies copies_of(Collective collective) {
  using enum Copying;
  constexpr std::array<Copies, 10> copies{{{.in = all, .out = all},
                                           {.in = all, .out = own_block},
                                           {.in = own_block, .out = all},
                                           {.in = all, .out = all, .in_at_root = true},
                                           {.in = all, .out = all, .out_at_root = true},
                                           {.in = all, .out = own_block, .in_at_root = true},
                                           {.in = own_block, .out = all, .out_at_root = true},
                                           {.in = all},
                                           {.in = all},
                                           {}}};  // by Collective, as in the table of staging.hpp
  return copies[static_cast<std::size_t>(collective)];
}

/// Adds the stages that copy to a schedule under construction.
class Stager {
 public:
  explicit Stager(Schedule& schedule) : schedule_(schedule) {}

  /// Lets the algorithm use `to` where it says `from`.
  void replace(Buffer from, Buffer to) {
    for (Stage& stage : schedule_.stages) {
      for (Strand& strand : stage.strands) {
        for (Loop& loop : strand.loops) {
          for (Task& task : loop.tasks) {
            if (is_notify(task.kind)) continue;
            if (task.source.buffer == from) task.source.buffer = to;
            if (task.destination.buffer == from) task.destination.buffer = to;
          }
        }
      }
    }
  }

  Stage copy(const std::string& name, std::uint16_t members, Copying what, Buffer from, Buffer to) {
    return {name, {{.group = members, .loops = {{.tasks = {hccl::copy(range(from, what), range(to, what))}}}}}};
  }

  std::uint16_t everybody() { return index_of(Group::block(schedule_.ranks)); }
  std::uint16_t root() { return index_of(Group::ordered(schedule_.ranks, {schedule_.root})); }
  std::uint16_t all_but_root() {
    std::vector<Rank> order;
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
      if (rank != schedule_.root) order.push_back(rank);
    }
    return index_of(Group::ordered(schedule_.ranks, std::move(order)));
  }

 private:
  Range range(Buffer buffer, Copying what) {
    Range range{.buffer = buffer, .cuts = {}, .slot = {}};
    if (what == Copying::own_block && schedule_.holds_all(buffer)) {
      range.cuts.push_back(
          {.kind = Cut::Kind::block, .group = everybody(), .parts = schedule_.ranks, .index = {0, 1, 0, 0}});
    }
    return range;
  }

  std::uint16_t index_of(Group group) {
    std::vector<Group>& groups = schedule_.groups;
    const auto found = std::find(groups.begin(), groups.end(), group);
    const auto index = static_cast<std::uint16_t>(found - groups.begin());
    if (found == groups.end()) groups.push_back(std::move(group));
    return index;
  }

  Schedule& schedule_;
};

bool is_exchange(Collective collective) {
  return collective == Collective::alltoall || collective == Collective::send_recv;
}

/// The operation in the form that algorithms take, with at most `window` elements of every block.
Operation algorithm_operation(Operation operation, std::uint64_t window) {
  operation.in_place = !is_exchange(operation.collective);
  operation.elements = std::min(operation.elements, window);
  if (operation.counts.empty()) return operation;
  std::vector<std::uint64_t> counts = operation.counts.counts();
  for (std::uint64_t& count : counts) count = std::min(count, window);
  operation.counts = counts_pairs(operation.collective) ? BlockCounts::of_pairs(operation.ranks, std::move(counts))
                                                        : BlockCounts::of_blocks(std::move(counts));
  return operation;
}

/// The algorithm for the user's operation, with the largest window for which work and scratch memory fit into `buffer`
/// each; no window if all blocks fit at once.
Schedule build_for_buffer(const Operation& operation, Bytes buffer, const BuildAlgorithm& build) {
  const std::uint64_t whole = operation.largest_block();
  const Bytes element = size_of(operation.type);
  const std::uint64_t unit = operation.alignment / element;  // windows begin where slices may
  const Bytes per_element = operation.blocks() * element;
  bool fits = operation.payload() <= buffer;
  std::uint64_t window = fits ? whole : std::min(whole, buffer / per_element / unit * unit);
  while (fits || window > 0) {
    Schedule schedule = build(algorithm_operation(operation, window));
    if (schedule.scratch <= buffer) {
      static_cast<Operation&>(schedule) = operation;
      schedule.window = fits ? 0 : window;
      schedule.ccl = fits ? operation.payload() : per_element * window;
      return schedule;
    }
    // Scratch memory grows with the window, but for rounding.
    fits = false;
    const double share = static_cast<double>(buffer) / static_cast<double>(schedule.scratch);
    const auto smaller = static_cast<std::uint64_t>(share * static_cast<double>(window)) / unit * unit;
    window = std::min(smaller, (window - 1) / unit * unit);
  }
  bad_input("operation", "{}: {} ranks need more than a buffer of {} bytes for {} bytes of every block; {}",
            name_of(operation.collective), operation.ranks, buffer, operation.alignment,
            "take a larger HCCL_BUFFSIZE or another algorithm");
}

/// Whether the algorithm's work memory can be the user's output.
bool works_in_output(const Operation& operation) {
  const Collective collective = operation.collective;
  return operation.in_place || collective == Collective::allreduce || collective == Collective::allgather ||
         collective == Collective::broadcast;
}

/// For a single rank.
void copy_to_output(Schedule& schedule) {
  schedule.stages.clear();
  schedule.scratch = 0;
  if (schedule.in_place || schedule.collective == Collective::barrier) return;
  Stager stager(schedule);
  schedule.stages.push_back(stager.copy("copy", stager.everybody(), Copying::all, Buffer::input, Buffer::output));
}

/// The algorithm works in the output; the input is copied there first.
void stage_in_output(Schedule& schedule) {
  const Copies copies = copies_of(schedule.collective);
  Stager stager(schedule);
  const std::uint16_t members = copies.in_at_root ? stager.root() : stager.everybody();
  Stage copy_in = stager.copy("copy in", members, copies.in, Buffer::input, Buffer::output);
  schedule.stages.insert(schedule.stages.begin(), std::move(copy_in));
}

/// The algorithm works in `ccl`.
void stage_in_ccl(Schedule& schedule) {
  const Copies copies = copies_of(schedule.collective);
  const bool in_place = schedule.in_place;
  Stager stager(schedule);
  stager.replace(is_exchange(schedule.collective) ? Buffer::input : Buffer::output, Buffer::ccl);
  if (copies.in != Copying::none) {
    const std::uint16_t members = copies.in_at_root ? stager.root() : stager.everybody();
    Stage copy_in = stager.copy("copy in", members, copies.in, in_place ? Buffer::output : Buffer::input, Buffer::ccl);
    schedule.stages.insert(schedule.stages.begin(), std::move(copy_in));
  }
  if (copies.out != Copying::none) {
    const bool root_has_it = in_place && copies.in_at_root;
    const std::uint16_t members = copies.out_at_root ? stager.root()
                                  : root_has_it      ? stager.all_but_root()
                                                     : stager.everybody();
    schedule.stages.push_back(stager.copy("copy out", members, copies.out, Buffer::ccl, Buffer::output));
  }
}

}  // namespace

Schedule staged(const Operation& operation, const Staging& staging, const BuildAlgorithm& build) {
  require_possible(operation);
  const bool through_ccl = staging.launch == LaunchMode::op;
  if (through_ccl && operation.ranks > 1) {
    Schedule schedule = build_for_buffer(operation, staging.buffer_bytes, build);
    stage_in_ccl(schedule);
    return schedule;
  }
  Schedule schedule = build(algorithm_operation(operation, operation.largest_block()));
  static_cast<Operation&>(schedule) = operation;
  if (operation.ranks == 1) {
    copy_to_output(schedule);
  } else if (is_exchange(operation.collective) ? operation.in_place : !works_in_output(operation)) {
    schedule.ccl = operation.payload();
    stage_in_ccl(schedule);
  } else if (!operation.in_place && !is_exchange(operation.collective)) {
    stage_in_output(schedule);
  }
  return schedule;
}

}  // namespace hcclsim::hccl
