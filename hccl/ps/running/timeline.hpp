#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "hccl/ps/simulation.hpp"
#include "hccl/ps/wire.hpp"
#include "sim/event_loop.hpp"

/// What the nodes of a running job do at dates, and the log of what happens to numbers then. Whatever was going to
/// happen on a node is forgotten when it dies, on all nodes when everybody goes back to a checkpoint, and everywhere
/// when the job ends.
namespace hcclsim::hccl {

/// Calls a function when all that has begun has ended. Copies count together: one is called once for every begin(), and
/// once more when nothing is left to begin.
class Countdown {
 public:
  explicit Countdown(std::function<void()> then) : state_(std::make_shared<State>(State{std::move(then)})) {}
  void begin() const { ++state_->left; }
  void operator()() const {
    if (--state_->left == 0) state_->then();
  }

 private:
  struct State {
    std::function<void()> then;
    std::size_t left = 1;
  };
  std::shared_ptr<State> state_;
};

class PsTimeline {
 public:
  /// `log` gets the entries if PsOptions::keep_log says so.
  PsTimeline(const PsOptions& options, sim::EventLoop& loop, PsWire& wire, std::vector<PsLogEntry>& log)
      : options_(options), loop_(loop), wire_(wire), log_(log) {}

  [[nodiscard]] Seconds now() const { return loop_.now(); }
  /// Calls `then` at a date unless one of the nodes dies before, everybody goes back, or the job ends.
  void at(Seconds date, std::uint32_t node, std::uint32_t other, std::function<void()> then);
  void at(Seconds date, std::uint32_t node, std::function<void()> then) { at(date, node, node, std::move(then)); }
  /// The same for what is of no node; nothing but the end of the job undoes it.
  void always_at(Seconds date, std::function<void()> then);
  /// Calls `then` when a control message that is sent now has arrived, unless one of the nodes dies before.
  void tell(std::uint32_t from, std::uint32_t to, std::function<void()> then) {
    at(wire_.control_arrival(from, to), to, from, std::move(then));
  }
  /// The same for a message with bytes.
  void send(std::uint32_t from, std::uint32_t to, Bytes bytes, PsTraffic traffic, PsWire::Arrival then) {
    wire_.send(from, to, bytes, traffic, std::move(then));
  }
  /// A question and its answer, if nothing holds them.
  [[nodiscard]] Seconds way_and_back(std::uint32_t node, std::uint32_t other) {
    return 2 * wire_.control_time(node, other);
  }
  /// When a node is done with work that begins at a date; `kernel`: of a nominal NPU.
  [[nodiscard]] Seconds end_of_work(std::uint32_t node, Seconds start, Seconds work, bool kernel) const;
  /// Adds an entry with the date of now.
  void log(PsLogEntry entry);

  /// Everybody goes back: nothing of what is under way happens any more.
  void go_back() { wire_.forget_all(); }
  /// … nor does anything else.
  void end();
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  const PsOptions& options_;
  sim::EventLoop& loop_;
  PsWire& wire_;
  std::vector<PsLogEntry>& log_;
  bool ended_ = false;
};

}  // namespace hcclsim::hccl
