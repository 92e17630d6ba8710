#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "base/units.hpp"
#include "hccl/parallel/plan.hpp"
#include "sim/trace.hpp"

/// A span of a message begins when its stream comes to it. The message is under way from when both ends are there,
/// which the spans of both ranks tell.
namespace hcclsim::hccl {

class MessageStarts {
 public:
  MessageStarts(const Plan& plan, const sim::Trace& trace);

  /// From when on a span of communication is under way: a message whose other rank is in the trace from when both ends
  /// are there, all else from its start.
  [[nodiscard]] Seconds under_way(const sim::Span& span) const;

 private:
  std::map<std::tuple<Rank, std::int32_t, std::uint32_t>, Seconds> dates_;  // of rank, iteration, task: of messages
};

}  // namespace hcclsim::hccl
