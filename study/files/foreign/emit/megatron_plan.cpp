#include "study/files/foreign/emit/megatron_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

/// Arguments of Megatron and MindSpeed that say how a step is spread.
constexpr std::array plan_arguments{"tensor-model-parallel-size",
                                    "pipeline-model-parallel-size",
                                    "context-parallel-size",
                                    "context-parallel-algo",
                                    "cp-comm-type",
                                    "sequence-parallel",
                                    "expert-model-parallel-size",
                                    "expert-tensor-parallel-size",
                                    "moe-tp-extend-ep",
                                    "moe-extended-tp",
                                    "num-layers-per-virtual-pipeline-stage",
                                    "num-virtual-stages-per-pipeline-rank",
                                    "noop-layers",
                                    "num-layer-list",
                                    "pipeline-model-parallel-layout",
                                    "decoder-first-pipeline-num-layers",
                                    "decoder-last-pipeline-num-layers",
                                    "schedules-method",
                                    "micro-batch-size",
                                    "global-batch-size",
                                    "rampup-batch-size",
                                    "checkpoint-activations",
                                    "recompute-activations",
                                    "recompute-granularity",
                                    "recompute-method",
                                    "recompute-num-layers",
                                    "enable-recompute-layers-per-pp-rank",
                                    "recompute-activation-function",
                                    "recompute-norm",
                                    "use-distributed-optimizer"};

class Plan {
 public:
  Plan(Arguments& arguments, const EmittedRun& run, const ScriptLayers& script)
      : arguments_(arguments),
        spec_(run.spec),
        run_(run),
        script_(script),
        parts_(std::uint64_t{run.spec.step.shape.stages} * run.spec.step.shape.chunks) {}

  void set() {
    refuse_plans_of_others();
    const Arguments before = arguments_;
    for (const char* const name : plan_arguments) arguments_.erase(name);
    set_ranks(before);
    set_layers();
    set_samples();
    set_recompute();
    if (spec_.parallel.optimizer.kind == hccl::OptimizerParallelKind::zero1) flag("use-distributed-optimizer");
  }

 private:
  void value(const char* name, std::uint64_t number) { arguments_[name] = {fmt::to_string(number)}; }
  void word(const char* name, std::string text) { arguments_[name] = {std::move(text)}; }
  void flag(const char* name) { arguments_[name] = {}; }

  /// Plans that Megatron itself stops at.
  void refuse_plans_of_others() const {
    const hccl::PipelineShape& shape = spec_.step.shape;
    if (arguments_.contains("num-experts") && spec_.parallel.operators.model > 1 && !spec_.parallel.operators.sequence)
      bad_input("foreign",
                "Megatron's experts with --tensor-model-parallel-size need --sequence-parallel: give "
                "--sequence-parallel on");
    if (shape.chunks > 1 && run_.sizes.micro_batches % shape.stages != 0)
      bad_input("foreign",
                "Megatron interleaves micro-batches in groups of as many as stages: {} are no multiple of {}; "
                "give another --micro-batch-size or no --chunks",
                run_.sizes.micro_batches, shape.stages);
    if (script_.pairs && run_.sizes.micro_batch % 2 != 0)
      bad_input("foreign",
                "samples of DPO are pairs: a micro-batch of {} has no whole number of them; give another "
                "--micro-batch-size",
                run_.sizes.micro_batch);
  }

  /// `before`: one rank is said where it was.
  void set_ranks(const Arguments& before) {
    const OperatorParallel& operators = spec_.parallel.operators;
    const auto ranks = [&](const char* name, std::uint32_t number) {
      if (number > 1 || before.contains(name)) value(name, number);
    };
    ranks("tensor-model-parallel-size", operators.model);
    ranks("pipeline-model-parallel-size", spec_.step.shape.stages);
    if (operators.sequence) flag("sequence-parallel");
    if (operators.context > 1) {
      value("context-parallel-size", operators.context);
      const bool ring = operators.context_kind == hccl::ContextKind::ring;
      word("context-parallel-algo", ring ? "megatron_cp_algo" : "ulysses_cp_algo");
    }
    if (operators.experts > 1) value("expert-model-parallel-size", operators.experts);
    if (operators.whole_experts()) value("expert-tensor-parallel-size", 1);
  }

  /// Stages that are not equal have a list where each is one part; else layers that do nothing fill up the parts.
  void set_layers() {
    std::vector<std::uint64_t> parts;
    for (const std::uint32_t each : spec_.parallel.stage_layers) parts.push_back(each / script_.of_script);
    const std::uint64_t layers = script_.layers / script_.of_script;
    std::uint64_t of_part = layers / parts_;
    value("num-layers", layers);
    if (!parts.empty() && spec_.step.shape.chunks == 1) {
      word("num-layer-list", fmt::format("{}", fmt::join(parts, ",")));
    } else if (!parts.empty()) {
      of_part = std::ranges::max(parts);
      std::vector<std::uint64_t> idle;
      for (std::uint64_t part = 0; part < parts.size(); ++part) {
        for (std::uint64_t place = parts[part]; place < of_part; ++place) idle.push_back(part * of_part + place);
      }
      value("num-layers", parts.size() * of_part);
      if (!idle.empty()) word("noop-layers", fmt::format("{}", fmt::join(idle, ",")));
    }
    if (spec_.step.shape.chunks > 1) value("num-layers-per-virtual-pipeline-stage", of_part);
  }

  void set_samples() {
    const std::uint32_t answers = script_.pairs ? 2 : 1;
    const std::uint64_t replicas = spec_.replicas(run_.npus);
    value("micro-batch-size", run_.sizes.micro_batch / answers);
    value("global-batch-size", replicas * run_.sizes.micro_batch * run_.sizes.micro_batches / answers);
  }

  void set_recompute() {
    using enum hccl::RecomputeKind;
    const hccl::Recompute& recompute = spec_.parallel.recompute;
    if (recompute.kind == full || recompute.kind == layers) {
      word("recompute-granularity", "full");
      word("recompute-method", recompute.kind == full ? "uniform" : "block");
      value("recompute-num-layers", recompute.kind == full ? 1 : recompute.layers.front() / script_.of_script);
    }
    if (recompute.kind == layers) flag("enable-recompute-layers-per-pp-rank");
    if (recompute.kind != operators) return;
    for (const std::string& each : recompute.operators) {
      if (each == "attention") word("recompute-granularity", "selective");
      if (each == "swiglu" || each == "gelu") flag("recompute-activation-function");
      if (each == "rms_norm" || each == "layer_norm") flag("recompute-norm");
    }
  }

  Arguments& arguments_;
  const RunSpec& spec_;
  const EmittedRun& run_;
  const ScriptLayers& script_;
  std::uint64_t parts_;
};

}  // namespace

void set_megatron_plan(Arguments& arguments, const EmittedRun& run, const ScriptLayers& script) {
  Plan(arguments, run, script).set();
}

}  // namespace hcclsim::study
