#include "study/run/result.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hcclsim::study {

double RunResult::images_per_second() const {
  // The program of a rank that shares operators may have fewer samples than its replica, or more.
  const bool cut = parallel.has_value() && parallel->operators.cuts();
  const auto samples =
      static_cast<double>(std::uint64_t{cut ? parallel->micro_batch : program->batch} * batch.micro_batches);
  return std::accumulate(replicas.begin(), replicas.end(), 0.0, [&](double sum, const Replicas& group) {
    return sum + samples * group.npus / step.step_times[group.rank];
  });
}

RunResult::Fullest RunResult::fullest() const {
  if (!parallel.has_value()) return {.hbm = hbm};
  const StageFigures& most = parallel->fullest();
  const auto needs_most = [&](const StageFigures& stage) { return stage.hbm.peak() == most.hbm.peak(); };
  return {most.first_rank, most.hbm, std::ranges::all_of(parallel->stages, needs_most)};
}

std::optional<StepSpread> RunResult::spread() const {
  std::vector<Seconds> steps;
  for (std::size_t i = 1; i < step.pipeline_ends.size(); ++i) {
    steps.push_back(step.pipeline_ends[i][rank] - step.pipeline_ends[i - 1][rank]);
  }
  constexpr double rounding = 1e-9;
  std::sort(steps.begin(), steps.end());
  if (steps.size() < 2 || steps.back() - steps.front() <= rounding * steps.back()) return std::nullopt;
  const auto percentile = [&](double fraction) {
    return steps[static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(steps.size()))) - 1];
  };
  return StepSpread{steps.size(), steps.front(), percentile(0.5), percentile(0.99), steps.back()};
}

std::vector<hccl::ParameterRange> RunResult::parameters_of(hccl::Segment segment) const {
  std::vector<std::uint32_t> parameter_of;
  parameter_of.reserve(segment.tensors());
  for (std::uint32_t index = segment.first; index <= segment.last; ++index) {
    parameter_of.push_back(program->gradients[index].parameter);
  }
  return hccl::parameter_ranges({0, segment.tensors() - 1}, parameter_of);
}

}  // namespace hcclsim::study
