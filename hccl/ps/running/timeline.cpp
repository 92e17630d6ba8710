#include "hccl/ps/running/timeline.hpp"

#include <cmath>

namespace hcclsim::hccl {

void PsTimeline::at(Seconds date, std::uint32_t node, std::uint32_t other, std::function<void()> then) {
  if (std::isinf(date)) return;  // a fault holds it for good
  const auto valid = [this, node, other, life = wire_.life(node), other_life = wire_.life(other)] {
    return !ended_ && life == wire_.life(node) && other_life == wire_.life(other);
  };
  loop_.at(date, {node, 0}, [valid, then = std::move(then)] {
    if (valid()) then();
  });
}

void PsTimeline::always_at(Seconds date, std::function<void()> then) {
  loop_.at(date, {0, 0}, [this, then = std::move(then)] {
    if (!ended_) then();
  });
}

Seconds PsTimeline::end_of_work(std::uint32_t node, Seconds start, Seconds work, bool kernel) const {
  const PsHost host = wire_.host(node);
  if (options_.faults == nullptr || host.cpu) return start + work;
  return kernel ? options_.faults->end_of_kernel(host.number, start, work)
                : options_.faults->end_of_task(host.number, start, work);
}

void PsTimeline::log(PsLogEntry entry) {
  if (!options_.keep_log) return;
  entry.date = loop_.now();
  log_.push_back(std::move(entry));
}

void PsTimeline::end() {
  ended_ = true;
  wire_.forget_all();
}

}  // namespace hcclsim::hccl
