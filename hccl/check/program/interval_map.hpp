#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "hccl/check/program/task_program.hpp"

namespace hcclsim::hccl {

/// A state for every byte of a buffer, stored by intervals. Borders that are known beforehand are given to the
/// constructor, because adding one later takes time in proportion to their number.
template <typename State>
class IntervalMap {
 public:
  struct Interval {
    Bytes begin = 0;
    State state;
  };

  /// `borders`: ascending, without repetition, from 0 to the size of the buffer. No borders: no bytes.
  IntervalMap(const std::vector<Bytes>& borders, const State& initial) {
    if (borders.size() < 2) return;
    size_ = borders.back();
    intervals_.reserve(borders.size() - 1);
    for (std::size_t i = 0; i + 1 < borders.size(); ++i) intervals_.push_back({borders[i], initial});
  }

  [[nodiscard]] std::size_t count() const { return intervals_.size(); }
  [[nodiscard]] Bytes begin(std::size_t i) const { return intervals_[i].begin; }
  [[nodiscard]] Bytes end(std::size_t i) const { return i + 1 < intervals_.size() ? intervals_[i + 1].begin : size_; }
  [[nodiscard]] State& state(std::size_t i) { return intervals_[i].state; }
  [[nodiscard]] const State& state(std::size_t i) const { return intervals_[i].state; }

  /// Number of the interval that begins at `at`; cuts the one that `at` lies in. The size of the buffer gives count().
  std::size_t cut(Bytes at) {
    const auto next = std::lower_bound(intervals_.begin(), intervals_.end(), at,
                                       [](const Interval& interval, Bytes byte) { return interval.begin < byte; });
    const auto number = static_cast<std::size_t>(next - intervals_.begin());
    if ((next != intervals_.end() && next->begin == at) || at >= size_) return number;
    Interval upper = intervals_[number - 1];
    upper.begin = at;
    intervals_.insert(next, std::move(upper));
    return number;
  }

  /// Cuts at many places, which must be ascending, the first within the buffer. Takes as long as a single cut;
  /// otherwise a result in thousands of pieces would take quadratic time.
  void cut_at(const std::vector<Bytes>& places) {
    std::vector<Bytes> missing;
    const std::size_t first = cut(places.front());
    std::size_t i = first;
    for (const Bytes place : places) {
      while (i < count() && intervals_[i].begin < place) ++i;
      if ((i == count() || intervals_[i].begin > place) && place < size_) missing.push_back(place);
    }
    if (missing.empty()) return;
    // From the end, so that every interval is moved once; the part of it above a place is a copy.
    std::size_t from = count();
    std::size_t to = from + missing.size();
    intervals_.resize(to);
    for (std::size_t left = missing.size(); left > 0;) {
      if (intervals_[from - 1].begin < missing[left - 1]) {
        intervals_[--to] = {missing[--left], intervals_[from - 1].state};
      } else {
        intervals_[--to] = std::move(intervals_[--from]);
      }
    }
  }

 private:
  std::vector<Interval> intervals_;
  Bytes size_ = 0;
};

[[nodiscard]] inline std::size_t memory_of(Rank rank, Buffer buffer) {
  return std::size_t{rank} * buffer_kinds + static_cast<std::size_t>(buffer);
}

/// The borders of all accesses to every memory (memory_of), with those of the buffer itself; none for a buffer without
/// bytes.
[[nodiscard]] std::vector<std::vector<Bytes>> access_borders(const TaskProgram& program);

/// Adds the borders of the buffers themselves, and sorts.
void finish_borders(const TaskProgram& program, std::vector<std::vector<Bytes>>& borders);

/// Calls visit(chain, task, movement) for every movement of the program.
template <typename Visit>
void visit_movements(const TaskProgram& program, const Visit& visit) {
  visit_tasks(program, [&](const TaskId& id, const ProgramPart& /*part*/, const ProgramTask& task) {
    if (is_notify(task.kind)) return;
    for (const Movement& movement : program.movements_of(task)) visit(program.chain(id.rank, id.queue), task, movement);
  });
}

}  // namespace hcclsim::hccl
