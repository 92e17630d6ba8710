#include "study/files/context/compile_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/names.hpp"

namespace hcclsim::study {
namespace {

/// Dimensions of the network's inputs: its samples, and the labels of a network that is trained.
std::vector<std::size_t> dimensions_of_inputs(const RunSpec& spec, const models::Graph& network) {
  std::vector<std::size_t> dimensions{network.input_kind == models::InputKind::images ? 4U : 2U};
  if (!spec.step.shape.forward_only) dimensions.push_back(network.label_rows() == network.batch() ? 1 : 2);
  return dimensions;
}

/// The dimension in which an input is cut, if it is in one.
std::optional<std::size_t> cut_dimension(const std::vector<std::uint32_t>& cuts, std::size_t input) {
  std::optional<std::size_t> cut;
  for (std::size_t dimension = 0; dimension < cuts.size(); ++dimension) {
    if (cuts[dimension] == 1) continue;
    if (cut.has_value()) bad_input("runtime-error", "dataset_strategy: input {} is cut in several dimensions", input);
    cut = dimension;
  }
  return cut;
}

}  // namespace

void check_compilation(const RunSpec& spec, Rank npus, std::uint32_t micro_batches) {
  if (spec.parallel.optimizer.kind == hccl::OptimizerParallelKind::on &&
      spec.parallel.optimizer.shard.value_or(1) > npus) {
    bad_input("runtime-error", "optimizer_weight_shard_size {} is more than the {} devices",
              *spec.parallel.optimizer.shard, npus);
  }
  if (!spec.is_graph_parallel()) return;
  if (npus != 1 && npus != 2 && npus != 4 && npus % 8 != 0) {
    bad_input("runtime-error", "device_num {}: {} wants 1, 2, 4 or a multiple of 8 devices (--npus)", npus,
              spec.parallel_mode);
  }
  const std::uint32_t stages = spec.step.shape.stages;
  if (npus % stages != 0) {
    bad_input("runtime-error", "pipeline_stages {} does not divide device_num {}", stages, npus);
  }
  if (micro_batches < stages && !spec.step.shape.forward_only) {
    bad_input("runtime-error",
              "pipeline_stages {}: a training step needs as many micro-batches, got {} (--micro-batches)", stages,
              micro_batches);
  }
}

void require_dealt_optimizer(std::string_view option, models::Optimizer optimizer) {
  if (optimizer == models::Optimizer::lamb || optimizer == models::Optimizer::adamw) return;
  bad_input("runtime-error", "{} in data_parallel takes Lamb or AdamWeightDecay, not {}", option, name_of(optimizer));
}

void note_communication_types(const RunSpec& spec, std::span<const models::Program* const> programs,
                              std::vector<std::string>& notes) {
  const auto any_gradient = [&](const auto& holds) {
    return std::ranges::any_of(programs,
                               [&](const models::Program* one) { return std::ranges::any_of(one->gradients, holds); });
  };
  if (spec.gradient_sync.has_value() && spec.gradient_sync->as_used) {
    const bool acts = any_gradient([&](const models::Gradient& gradient) {
      return size_of(gradient.reduced_type()) < size_of(spec.precision.weight);
    });
    const std::string_view effect =
        !acts                         ? " has no effect: no gradient is reduced in a type that its parameter is cast to"
        : spec.gradient_sync->in_fp32 ? ": gradients of parameters that are cast before they are used have the type "
                                        "that they are cast to; they are cast to fp32 to be reduced, and back"
                                      : ": gradients of parameters that are cast before they are used are reduced in "
                                        "the type that they are cast to";
    notes.push_back(fmt::format("gradient_fp32_sync False{}", effect));
  }
  const bool results = spec.step.shape.forward_only && spec.parallel.result_broadcast && spec.step.shape.stages > 1;
  if (!spec.fp32_sums || (results && spec.precision.compute != DataType::fp32)) return;
  const auto widens = [](const models::Kernel& kernel) {
    return kernel.communication != nullptr && kernel.communication->widened;
  };
  const bool acts = any_gradient([](const models::Gradient& gradient) { return gradient.cast_back.has_value(); }) ||
                    std::ranges::any_of(programs, [&](const models::Program* one) {
                      return std::ranges::any_of(one->kernels, widens);
                    });
  if (!acts) {
    notes.emplace_back(
        "force_fp32_communication has no effect: no collective of the step adds up numbers that are narrower than "
        "fp32");
  }
}

void require_no_operators(const RunSpec& spec, const std::string& gradients) {
  const char* const option = spec.parallel.recompute.kind != hccl::RecomputeKind::none ? "--recompute"
                             : spec.dataset_cuts.has_value()                           ? "dataset_strategy"
                                                                                       : nullptr;
  if (option == nullptr) return;
  bad_input("option", "{}: a list of gradients has neither operators nor inputs: it does not go with {}", gradients,
            option);
}

void check_dataset_cuts(const RunSpec& spec, const models::Graph& network, Rank devices) {
  if (!spec.dataset_cuts.has_value()) return;
  const std::vector<std::size_t> dimensions = dimensions_of_inputs(spec, network);
  const auto& inputs = *spec.dataset_cuts;
  if (inputs.size() != dimensions.size()) {
    bad_input("runtime-error", "dataset_strategy has {}; the network has {}: {}", counted(inputs.size(), "tuple"),
              counted(dimensions.size(), "input"), dimensions.size() == 1 ? "samples" : "samples and labels");
  }
  std::uint32_t slices = 1;
  for (std::size_t input = 0; input < inputs.size(); ++input) {
    const std::vector<std::uint32_t>& cuts = inputs[input];
    if (cuts.size() != dimensions[input]) {
      bad_input("runtime-error", "dataset_strategy: input {} has {}, its tuple {}", input,
                counted(dimensions[input], "dimension"), cuts.size());
    }
    const std::optional<std::size_t> cut = cut_dimension(cuts, input);
    if (!cut.has_value()) continue;
    if (slices != 1 && cuts[*cut] != slices) {
      bad_input("runtime-error", "dataset_strategy: inputs are cut into {} and into {} slices", slices, cuts[*cut]);
    }
    slices = cuts[*cut];
    const bool labels_of_positions = input == 1 && *cut == 1;
    if (labels_of_positions && network.label_rows() / network.batch() % slices != 0) {
      bad_input("runtime-error", "dataset_strategy: the {} labels of a sample cannot be cut into {} equal slices",
                network.label_rows() / network.batch(), slices);
    }
  }
  const auto most = static_cast<std::size_t>(std::ranges::max_element(dimensions) - dimensions.begin());
  if (slices > 1 && !cut_dimension(inputs[most], most).has_value()) {
    bad_input("runtime-error", "dataset_strategy: input {} has most dimensions and must be cut, too", most);
  }
  if (devices % slices != 0) {
    bad_input("runtime-error", "dataset_strategy: {} slices do not divide the {} devices of a stage", slices, devices);
  }
  // Without cut operators the first input has the samples, each device's its own; labels are read as the loss needs
  // them, however they are cut.
  const bool of_samples = cut_dimension(inputs.front(), 0) == std::size_t{0};
  if (spec.parallel.operators.cuts() || slices == 1 || (of_samples && slices == devices)) return;
  bad_input("runtime-error", "dataset_strategy: {} slices on {} devices; say with --npus how many there are", slices,
            devices);
}

}  // namespace hcclsim::study
