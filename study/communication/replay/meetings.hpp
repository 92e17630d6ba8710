#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "study/communication/replay/execution_trace.hpp"

/// Which nodes of different ranks belong together, found before anything runs. The n-th collective of a rank on a
/// group, in program order, is one with the n-th of every other member. Of messages with the same ends, tag and size
/// the n-th send meets the n-th receive. Messages to a rank that receives from anyone, or under any tag, are open:
/// which receive they meet is found while the trace is carried out.
namespace hcclsim::study {

class Meetings {
 public:
  static constexpr std::uint32_t none = ~0U;

  /// A message with both its ends.
  struct Message {
    Rank source = 0;
    Rank destination = 0;
    std::uint32_t send = 0;     ///< node of the source
    std::uint32_t receive = 0;  ///< node of the destination; of an open message one that receives as many bytes
    bool open = false;
  };

  /// Throws Error(bad_input, "trace") that names the nodes: for a message with one end, or to a rank that is not there
  /// or to itself; for groups of one rank, with ranks that are not there or twice; for a collective of a rank that is
  /// no member, for members that do not call it, or not in the same order.
  explicit Meetings(const ExecutionTrace& trace);

  [[nodiscard]] const std::vector<Message>& messages() const { return messages_; }
  /// Number of the message of a node that sends or receives; `none` of a receive that meets an open one.
  [[nodiscard]] std::uint32_t message_of(Rank rank, std::uint32_t node) const { return message_of_[rank][node]; }
  /// Of each node of a trace that is a collective, the next one on its group and stream; `none` if there is none.
  [[nodiscard]] const std::vector<std::uint32_t>& next_calls(std::uint32_t trace) const { return next_calls_[trace]; }
  /// Of each node of a trace that is a collective, its number among those on its group, from 0 on.
  [[nodiscard]] std::uint32_t call_number(std::uint32_t trace, std::uint32_t node) const {
    return call_numbers_[trace][node];
  }

 private:
  void match_collectives(const ExecutionTrace& trace);
  void match_messages(const ExecutionTrace& trace);

  std::vector<std::vector<std::uint32_t>> order_;  // of each trace
  std::vector<std::vector<std::uint32_t>> next_calls_;
  std::vector<std::vector<std::uint32_t>> call_numbers_;
  std::vector<Message> messages_;
  std::vector<std::vector<std::uint32_t>> message_of_;  // of each rank, empty if it has none
};

}  // namespace hcclsim::study
