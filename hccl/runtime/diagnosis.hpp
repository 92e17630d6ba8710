#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/units.hpp"
#include "hccl/runtime/collective/waiting.hpp"
#include "hccl/runtime/runtime.hpp"
#include "hccl/runtime/trail.hpp"

/// Why a simulation does not go on: from the NPU that has waited longest, from one obstacle to the one that it comes
/// from, to a lost NPU, a link that is cut or slow, or a rank that is late. A wait that is too long is looked at when
/// the clock stands at the date of its time-out, so that all of this is as it is then; only streams that wait for
/// nobody are ahead of it, with later dates.
namespace hcclsim::hccl {

class Diagnosis {
 public:
  /// The runtime must outlive it, and stand still meanwhile.
  explicit Diagnosis(const Runtime& runtime)
      : machine_(runtime.machine_),
        streams_(runtime.streams_),
        communicators_(runtime.communicators_),
        calls_(runtime.calls_),
        copies_(runtime.copies_) {}

  /// Of streams that have not finished: throws Error(simulated_failure, "timeout") or, of kind "deadlock", what a fault
  /// has kept from finishing; without a fault the streams that wait.
  [[noreturn]] void report() const;
  /// Whether a fault holds something that has begun for good. Only where faults are.
  [[nodiscard]] bool stands_still() const;
  /// When the first wait for a notify will have lasted for Machine::exec_timeout; none if nobody waits for one. Throws
  /// Error(simulated_failure, "timeout") if it has.
  [[nodiscard]] std::optional<Seconds> first_overdue() const;

 private:
  using Kind = Runtime::Kind;
  using Stream = Runtime::Stream;
  using Task = Runtime::Task;
  using Call = Runtime::Call;
  using Copy = Runtime::Copy;
  using CommunicatorState = Runtime::CommunicatorState;

  /// A stream, and where a queue of the collective stands that it is in.
  struct Obstacle {
    std::uint32_t stream = 0;
    std::optional<Waiting> waiting{};
  };
  /// What trail_from() asks, as it is at a date.
  struct Facts {
    const Diagnosis& of;
    Seconds date = 0;

    [[nodiscard]] Origin<Obstacle> origin(const Obstacle& obstacle) const;
    [[nodiscard]] std::string line(const Obstacle& obstacle) const;
    [[nodiscard]] static std::tuple<std::uint32_t, std::uint32_t, Rank> key(const Obstacle& obstacle);
  };

  [[nodiscard]] const CollectiveRun& run_under_way(const Task& task) const;
  /// Of the collective that the stream is in, as far as its NPU has come: what matters most first. At least one.
  [[nodiscard]] std::vector<Obstacle> obstacles(std::uint32_t stream) const;
  /// The route of a copy between a CPU and its NPU; null: it goes over no links.
  [[nodiscard]] const sim::Route* way_of_copy(const Stream& stream) const;
  /// The wait for a notify that began first.
  [[nodiscard]] std::optional<Obstacle> first_wait() const;
  /// The stream of an NPU that is to carry out a call like that of `task`; else one that has not finished.
  [[nodiscard]] std::optional<std::uint32_t> stream_to_call(Rank npu, const Task& task) const;
  [[nodiscard]] std::optional<std::uint32_t> stream_to_record(Rank npu, const Task& wait) const;
  /// What stops or slows down a transfer; empty if no fault does.
  [[nodiscard]] std::string cause_of_transfer(const Waiting& transfer, Seconds date) const;
  /// What stops or slows down an NPU, or has done so last; empty if no fault does.
  [[nodiscard]] std::string cause_of_lateness(Rank npu, Seconds date) const;
  /// "rank 3 is late: WHAT at 5 s only; WHY".
  [[nodiscard]] std::string late(Rank npu, const std::string& what, Seconds comes, Seconds date) const;
  [[nodiscard]] Origin<Obstacle> origin_of_notify(const Obstacle& obstacle, Seconds date) const;
  [[nodiscard]] Origin<Obstacle> next(std::optional<std::uint32_t> stream) const;
  [[nodiscard]] Trail trail(const Obstacle& from, Seconds date) const { return trail_from(from, Facts{*this, date}); }
  [[noreturn]] void report_timeout(const Obstacle& first) const;
  /// Throws the error of streams that a fault has kept from finishing; returns if no fault has.
  void report_faults() const;

  const Machine& machine_;
  const std::vector<Stream>& streams_;
  const std::deque<CommunicatorState>& communicators_;
  const std::vector<Call>& calls_;
  const std::vector<Copy>& copies_;
};

}  // namespace hcclsim::hccl
