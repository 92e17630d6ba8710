#include "study/communication/replay/node_times.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace hcclsim::study {

Seconds node_time(const ExecutionTrace& trace, const RankTrace& of, const TraceNode& node, NodeTimes times,
                  const device::Soc& soc) {
  if (node.kind != NodeKind::compute && node.kind != NodeKind::memory) return 0;
  const bool is_known = node.duration != TraceNode::unknown;
  const bool has_work = node.flops > 0 || node.bytes > 0;
  if (is_known && (times == NodeTimes::recorded || !has_work || node.host)) return node.duration;
  if (!has_work) return 0;
  if (node.host) {
    bad_input("trace", "{}: a task of the CPU with num_ops and no duration; there is no cost model of CPUs",
              trace.place(of, node));
  }
  const double speed = peak_flops(soc, DataType::fp16) * soc.efficiency_matmul;
  return soc.t0 + std::max(node.flops / speed, static_cast<double>(node.bytes) / soc.hbm_bandwidth);
}

}  // namespace hcclsim::study
