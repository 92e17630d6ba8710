#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "hccl/parallel/step_plan.hpp"
#include "hccl/training/training_step.hpp"

/// Training steps of programs made by hand.
namespace hcclsim::test {

/// What ranks do whose gradients are reduced in these segments over all of them.
inline hccl::StageProgram replicas(std::shared_ptr<const models::Program> program,
                                   const std::vector<hccl::Segment>& segments,
                                   std::vector<hccl::DeviceGroups> families = {}) {
  const auto all = static_cast<std::uint32_t>(families.size());
  return {.program = std::move(program),
          .reductions = hccl::reductions_of(segments, all > 0 ? all - 1 : 0),
          .families = std::move(families)};
}

/// The Plan of data parallelism.
inline hccl::Plan data_parallel_plan(std::shared_ptr<const models::Program> program, const hccl::StepSpec& step,
                                     const std::vector<hccl::Segment>& segments,
                                     const hccl::ScheduleMaker& make_schedule) {
  const hccl::StageProgram stage = replicas(std::move(program), segments);
  return hccl::make_plan({&stage, 1}, step, make_schedule);
}

/// A step of data parallelism whose program is still to come.
inline hccl::TrainingStep data_parallel(hccl::StepSpec step, const std::vector<hccl::Segment>& segments,
                                        hccl::SimulationOptions simulation = {}) {
  return {.stages = {replicas(nullptr, segments)}, .step = std::move(step), .simulation = std::move(simulation)};
}

/// A step whose reductions run beside the backward pass, with updates after it in the compute stream.
inline hccl::StepSpec overlapped(const hccl::PipelineShape& shape, Rank npus) {
  return {.framework = hccl::Framework::mindspore, .npus = npus, .shape = shape, .hcom_parallel = true};
}

}  // namespace hcclsim::test
