#include "cli/html/memory_data.hpp"

#include <cstdint>

#include "hccl/parallel/plan.hpp"
#include "sim/trace.hpp"

namespace hcclsim::cli {

Json memory_data(const RunReport& report) {
  const device::HbmAccount& hbm = report.workload.hbm;
  Json dates = Json::array();
  Json activations = Json::array();
  const auto add = [&](Seconds date, Bytes bytes) {
    if (!activations.empty() && activations.back() == bytes) return;
    dates.push_back(date);
    activations.push_back(bytes);
  };
  const auto last = static_cast<std::int32_t>(report.iterations.size()) - 1;
  std::size_t kernel = 0;
  for (const sim::Span& span : report.result.trace.spans()) {
    if (kernel == report.workload.activations.size()) break;
    if (span.rank != report.rank || span.iteration != last || span.kind != sim::SpanKind::kernel ||
        span.stream != hccl::compute_stream) {
      continue;
    }
    add(span.start - report.result.last_fp_start, report.workload.activations[kernel++]);
  }
  if (kernel > 0) add(report.result.bp_end, 0);
  return {{"capacity", report.hbm_capacity},
          {"peak", hbm.peak()},
          {"fixed",
           {{"weights", hbm.weights},
            {"gradients", hbm.gradients},
            {"optimizer state", hbm.optimizer_state},
            {"communication buffers", hbm.communication}}},
          {"date", std::move(dates)},
          {"activations", std::move(activations)}};
}

}  // namespace hcclsim::cli
