#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hccl/compression/settings.hpp"
#include "hccl/parallel/optimizer_parallel.hpp"
#include "study/spec/run_spec.hpp"
#include "tests/study/run/small_gpt.hpp"

/// A small step of every kind of plan on eight NPUs, for tests that hold whatever is trained.
namespace hcclsim::study {

struct PlanOfAKind {
  std::string name;
  RunSpec spec{};  ///< without a platform
};

/// Four layers, of which gradients are larger than what is computed.
inline RunSpec step_of_eight(std::uint32_t iterations = 2) {
  RunSpec spec = small_gpt("", {.batch = 4, .sequence = 16, .layers = 4, .hidden = 128, .heads = 2, .vocabulary = 256});
  spec.npus = 8;
  spec.simulation.iterations = iterations;
  return spec;
}

inline std::vector<PlanOfAKind> plans_of_all_kinds() {
  std::vector<PlanOfAKind> plans;
  const auto add = [&plans](const std::string& name, const auto& change) {
    RunSpec& spec = plans.emplace_back(PlanOfAKind{name, step_of_eight()}).spec;
    change(spec);
  };
  add("data parallel", [](RunSpec&) {});
  add("ring", [](RunSpec& spec) { spec.step.allreduce = hccl::Algorithm::ring; });
  add("one stream", [](RunSpec& spec) { spec.step.hcom_parallel = false; });
  add("op mode", [](RunSpec& spec) { spec.step.launch = hccl::LaunchMode::op; });
  add("eager", [](RunSpec& spec) { spec.step.host_launch = 20 * microsecond; });
  add("accumulation", [](RunSpec& spec) { spec.parallel.micro_batches = 4; });
  add("two trainings", [](RunSpec& spec) { spec.step.groups = {{"a", {0, 1, 2, 3}}, {"b", {4, 5, 6, 7}}}; });
  add("compressed", [](RunSpec& spec) {
    spec.step.compression = hccl::CompressionPlan{hccl::parse_compression("powersgd:rank=2,start=2")};
  });
  add("compressed from the first step on",
      [](RunSpec& spec) { spec.step.compression = hccl::CompressionPlan{hccl::parse_compression("bf16")}; });
  add("shared operators of collectives", [](RunSpec& spec) { spec.comm_reuse = 50; });
  for (const auto& [schedule, chunks] : {std::pair{hccl::PipelineSchedule::one_f_one_b, 1U},
                                         {hccl::PipelineSchedule::gpipe, 1U},
                                         {hccl::PipelineSchedule::one_f_one_b_interleave, 2U},
                                         {hccl::PipelineSchedule::gpipe_interleave, 2U}}) {
    add("pipeline " + std::string(name_of(schedule)), [schedule = schedule, chunks = chunks](RunSpec& spec) {
      spec.step.shape.stages = 2;
      spec.step.shape.schedule = schedule;
      spec.step.shape.chunks = chunks;
      spec.parallel.micro_batches = 4;
    });
  }
  add("recomputed pipeline", [](RunSpec& spec) {
    spec.step.shape.stages = 2;
    spec.parallel.micro_batches = 4;
    spec.parallel.recompute = hccl::parse_recompute("full");
  });
  for (const std::string optimizer : {"on:threshold=0", "zero1", "zero2", "zero3"}) {
    add("optimizer " + optimizer, [&optimizer](RunSpec& spec) {
      spec.parallel.optimizer = hccl::parse_optimizer_parallel(optimizer);
      spec.optimizer = models::Optimizer::adam;
    });
  }
  add("shared pipeline", [](RunSpec& spec) {
    spec.step.shape.stages = 2;
    spec.parallel.micro_batches = 4;
    spec.parallel.optimizer = hccl::parse_optimizer_parallel("zero3");
    spec.optimizer = models::Optimizer::adam;
  });
  add("model parallel", [](RunSpec& spec) { spec.parallel.operators.model = 2; });
  add("sequence parallel", [](RunSpec& spec) {
    spec.parallel.operators.model = 2;
    spec.parallel.operators.sequence = true;
  });
  add("model parallel pipeline", [](RunSpec& spec) {
    spec.parallel.operators.model = 2;
    spec.parallel.operators.vocabulary = true;
    spec.step.shape.stages = 2;
    spec.parallel.micro_batches = 4;
  });
  for (const hccl::ContextKind kind : {hccl::ContextKind::ulysses, hccl::ContextKind::ring}) {
    add("context parallel " + std::string(name_of(kind)), [kind](RunSpec& spec) {
      spec.parallel.operators.context = 2;
      spec.parallel.operators.context_kind = kind;
    });
  }
  add("expert parallel", [](RunSpec& spec) {
    spec.model = {.name = "tinymoe", .batch = 1};
    spec.parallel.operators.experts = 4;
  });
  return plans;
}

}  // namespace hcclsim::study
