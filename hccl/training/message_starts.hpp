#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "sim/trace.hpp"

/// A span of communication begins when its stream comes to it. A message is under way from when both ends are there, a
/// collective of several stages from when the last of them is; the spans of the other ranks tell.
namespace hcclsim::hccl {

class MessageStarts {
 public:
  MessageStarts(const Plan& plan, const sim::Trace& trace);

  /// From when on a span of communication is under way. Others that are waited for are those in the trace: the rank at
  /// the other end of a message, and of a collective the ranks that have this one's place in other stages. All else is
  /// under way from its start.
  [[nodiscard]] Seconds under_way(const sim::Span& span) const;

 private:
  /// When a rank comes to communication.
  struct Arrival {
    Rank rank = 0;
    std::uint32_t task = 0;
    Seconds start = 0;
  };
  /// Of several ranks, those of each in any order: the n-th of one rank meets the n-th of all others.
  void meet(std::int32_t iteration, std::vector<std::vector<Arrival>> ranks);

  std::map<std::tuple<Rank, std::int32_t, std::uint32_t>, Seconds> dates_;  // of rank, iteration, task
};

}  // namespace hcclsim::hccl
