#include "study/jobs/job/training_hosts.hpp"

#include <algorithm>

namespace hcclsim::study {

Seconds StepTimes::of(std::uint64_t step, std::uint64_t steps) const {
  const std::uint64_t before = std::min(steps, change_at - std::min(change_at, step));
  return static_cast<double>(before) * first + static_cast<double>(steps - before) * then;
}

double StepTimes::done_in(std::uint64_t step, Seconds time) const {
  const auto before = static_cast<double>(change_at - std::min(change_at, step));
  const double done = first > 0 ? std::min(before, time / first) : before;
  const Seconds left = time - done * first;
  return done < before || !(then > 0) ? done : done + left / then;
}

}  // namespace hcclsim::study
