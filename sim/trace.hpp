#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/units.hpp"
#include "sim/cluster.hpp"

/// What happened, as spans on streams. All outputs (tables, timelines, step traces) are written from it.
namespace hcclsim::sim {

enum class SpanKind : std::uint8_t {
  kernel,        ///< computation on an AI core
  collective,    ///< a whole collective as its rank sees it: from its call's start to its end
  notify_post,   ///< Notify Record of msprof
  notify_wait,   ///< Notify Wait: start is when the queue began to wait
  copy,          ///< Memcpy (SDMA) or RDMASend, without reduction
  reduce,        ///< Reduce_Inline: a transfer that reduces on the way
  local_reduce,  ///< Reduce_TBE: a reduction on the AI core
  host,          ///< work of the host
};

/// Whose doing a span is, as the client of the simulation knows it.
struct TaskId {
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t task = none;    ///< number of the task, such as that of a Plan's role
  std::uint32_t part = 0;       ///< number of the kernel, where a task is several of them
  std::int32_t iteration = -1;  ///< of training, −1 if none
};

struct Span {
  Rank rank = 0;
  std::uint32_t stream = 0;  ///< stream of the rank
  std::uint32_t plane = 0;   ///< queue of a collective (msprof's "Plane k"); 0 otherwise
  std::uint32_t name = 0;    ///< index into Trace::names
  SpanKind kind = SpanKind::kernel;
  Seconds start = 0;
  Seconds end = 0;
  Bytes bytes = 0;  ///< moved or reduced; of a collective: its payload
  TaskId id{};
  DataType type = DataType::fp32;  ///< of the elements moved or reduced
  // Tasks inside a collective
  std::int64_t peer = -1;  ///< world rank of the peer, −1 if none
  bool reads = false;      ///< a transfer from the peer to the rank
  Transport transport = Transport::sdma;
  LinkKind link = LinkKind::other;  ///< kind of the slowest link on the way
  std::uint32_t notify = 0;         ///< slot that is posted to or waited for
  std::uint64_t flow = 0;           ///< a post and the wait that consumes it have the same number; 0: none
  // Collectives
  std::uint32_t algorithm = 0;  ///< index into Trace::names
};

/// Collects the spans of the ranks that are traced.
class Trace {
 public:
  Trace() = default;
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  Trace(Trace&&) = default;
  Trace& operator=(Trace&&) = default;
  ~Trace() = default;

  /// Traces these ranks, from before the simulation starts; `tasks` also records the single tasks inside collectives.
  void select(const std::vector<Rank>& ranks, Rank world_size, bool tasks) {
    selected_.assign(world_size, false);
    for (const Rank rank : ranks) selected_.at(rank) = true;
    tasks_ = tasks;
  }

  /// Spans of these ranks, those of tasks inside collectives too, go to `take` as they end. Kept of them are those that
  /// select() asks for, and what the host does.
  void stream(const std::vector<Rank>& ranks, Rank world_size, std::function<void(const Span&)> take) {
    streamed_.assign(world_size, false);
    for (const Rank rank : ranks) streamed_.at(rank) = true;
    take_ = std::move(take);
  }
  /// No more spans go anywhere but into the trace.
  void end_stream() {
    streamed_.clear();
    take_ = nullptr;
  }

  /// Spans of this training iteration and later ones are not kept, but for those of the host (end_host_at()).
  void end_before(std::int32_t iteration) { end_ = iteration; }

  /// Kernels of this training iteration and later ones have a span each. Those of earlier ones share one with the other
  /// kernels of their task that follow each other: it has the name of the first.
  void merge_kernels_before(std::int32_t iteration) { apart_from_ = iteration; }

  [[nodiscard]] bool selected(Rank rank) const { return is_in(selected_, rank) || is_in(streamed_, rank); }
  [[nodiscard]] bool selected_tasks(Rank rank) const {
    return (tasks_ && is_in(selected_, rank)) || is_in(streamed_, rank);
  }

  /// Number of a new name, which other equal ones do not share: for millions that differ.
  std::uint32_t add_name(const std::string& name) {
    names_.push_back(name);
    return static_cast<std::uint32_t>(names_.size() - 1);
  }
  /// Number of a name; equal names that are interned share one.
  std::uint32_t intern(const std::string& name) {
    const auto known = numbers_.find(name);
    if (known != numbers_.end()) return known->second;
    const auto number = static_cast<std::uint32_t>(names_.size());
    numbers_.emplace(names_.emplace_back(name), number);
    return number;
  }
  void add(const Span& span) {
    const bool is_host = span.kind == SpanKind::host;
    if (is_host ? span.start >= end_of_host_ : span.id.iteration >= end_) return;
    if (!is_host && is_in(streamed_, span.rank)) {
      take_(span);
      const bool is_task = span.kind != SpanKind::kernel && span.kind != SpanKind::collective;
      if (!is_in(selected_, span.rank) || (is_task && !tasks_)) return;
    }
    if (continues_last(span)) {
      spans_.back().end = span.end;
    } else {
      spans_.push_back(span);
    }
  }
  /// Drops what the host does from a date on, which may be for iterations to come.
  void end_host_at(Seconds date) {
    end_of_host_ = date;
    std::erase_if(spans_, [date](const Span& span) { return span.kind == SpanKind::host && span.start >= date; });
  }

  [[nodiscard]] const std::deque<Span>& spans() const { return spans_; }
  [[nodiscard]] const std::string& name(std::uint32_t index) const { return names_[index]; }

 private:
  static bool is_in(const std::vector<bool>& ranks, Rank rank) { return rank < ranks.size() && ranks[rank]; }

  /// Returns whether the span is of the task whose kernel came last, so that both kernels share a span.
  [[nodiscard]] bool continues_last(const Span& span) const {
    if (span.kind != SpanKind::kernel || span.id.iteration >= apart_from_ || spans_.empty()) return false;
    const Span& last = spans_.back();
    return last.kind == SpanKind::kernel && last.rank == span.rank && last.stream == span.stream &&
           last.id.task == span.id.task && last.id.iteration == span.id.iteration;
  }

  std::vector<bool> selected_;
  std::vector<bool> streamed_;
  std::function<void(const Span&)> take_;
  bool tasks_ = false;
  std::int32_t end_ = std::numeric_limits<std::int32_t>::max();  // iterations from this one on are not kept
  std::int32_t apart_from_ = std::numeric_limits<std::int32_t>::min();
  Seconds end_of_host_ = std::numeric_limits<Seconds>::infinity();
  std::deque<Span> spans_;  // millions of them do not move when there are more
  std::deque<std::string> names_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;  // of names_, which do not move either
};

}  // namespace hcclsim::sim
