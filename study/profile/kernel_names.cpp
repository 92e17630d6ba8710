#include "study/profile/kernel_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace hcclsim::study {
namespace {

using models::Kernel;
using models::Operator;
using models::OperatorKind;

/// MindSpore's names of parts that the model names otherwise.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> part_aliases{
    {{"down_sample_layer", "downsample"}, {"end_point", "fc"}}};

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = std::min(name.find_first_of("/."), name.size());
    std::string_view part = name.substr(0, end);
    part = part.substr(0, part.find('-'));
    if (part.starts_with("update_")) {
      parts.emplace_back("update_");
      part.remove_prefix(parts.back().size());
    }
    for (const auto& [theirs, ours] : part_aliases) {
      if (part == theirs) part = ours;
    }
    if (!part.empty()) parts.emplace_back(part);
    if (end == name.size()) return parts;
    name.remove_prefix(end + 1);
  }
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// Types such as ApplyMomentum, ApplyMomentumD, Momentum, FusedMulApplyMomentum, Adam, LambApplyOptimizerAssign.
bool is_update(std::string_view type, const std::vector<std::string>& parts) {
  constexpr std::array<std::string_view, 5> words{"Apply", "Momentum", "Adam", "Lamb", "Lars"};
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return contains(type, word); }) ||
         std::find(parts.begin(), parts.end(), "update_") != parts.end();
}

bool is_backward(std::string_view type, const std::vector<std::string>& parts) {
  return contains(type, "Backprop") || type.ends_with("Grad") || type.ends_with("GradD") ||
         std::any_of(parts.begin(), parts.end(), [](const std::string& part) {
           return part.starts_with("gradients") || part.starts_with("Gradients");
         });
}

std::string_view what_of(const Kernel& kernel) {
  return std::string_view(kernel.name).substr(kernel.name.rfind(':') + 1);
}

template <typename Wanted>
std::vector<Kernel*> those(const std::vector<Kernel*>& kernels, const Wanted& wanted) {
  std::vector<Kernel*> result;
  std::copy_if(kernels.begin(), kernels.end(), std::back_inserter(result),
               [&](const Kernel* kernel) { return wanted(what_of(*kernel)); });
  return result;
}

/// The block that an operator belongs to: all of its parts but the last, "downsample" not among them.
std::vector<std::string> block_of(const std::vector<std::string>& parts) {
  const auto shortcut = std::find(parts.begin(), parts.end(), "downsample");
  return {parts.begin(), shortcut != parts.end() ? shortcut : parts.end() - 1};
}

/// Operators of a kind in the order in which TensorFlow's official models make them.
std::vector<const Operator*> creation_order(const models::Graph& graph, OperatorKind kind) {
  std::vector<const Operator*> order;
  for (const Operator& op : graph.operators) {
    if (op.kind != kind) continue;
    const std::vector<std::string> parts = parts_of(op.name);
    auto place = order.end();
    if (std::find(parts.begin(), parts.end(), "downsample") != parts.end()) {
      place = std::find_if(order.begin(), order.end(), [block = block_of(parts)](const Operator* other) {
        return block_of(parts_of(other->name)) == block;
      });
    }
    order.insert(place, &op);
  }
  return order;
}

}  // namespace

models::Phase phase_by_name(const std::string& name, std::string_view type) {
  const std::vector<std::string> parts = parts_of(name);
  if (is_update(type, parts)) return models::Phase::update;
  return is_backward(type, parts) ? models::Phase::backward : models::Phase::forward;
}

KernelNames::KernelNames(const models::Graph& graph, models::Program& program) : graph_(graph) {
  const auto add = [this](auto& map, Kernel& kernel) {
    by_name_[kernel.name] = &kernel;
    map[kernel.name.substr(0, kernel.name.rfind(':'))].push_back(&kernel);
  };
  for (Kernel& kernel : program.micro_batch()) {
    add(kernel.phase == models::Phase::forward ? forward_ : backward_, kernel);
  }
  for (Kernel& kernel : std::span(program.kernels).subspan(program.micro_batch_kernels)) {
    if (kernel.phase == models::Phase::update) {
      add(updates_, kernel);
      all_updates_.push_back(&kernel);
    } else {
      by_name_[kernel.name] = &kernel;
    }
  }
  for (const Operator& op : graph.operators) operators_.push_back({parts_of(op.name), &op});
  constexpr std::array<std::pair<OperatorKind, std::string_view>, 3> tensorflow_layers{
      {{OperatorKind::convolution, "conv2d"},
       {OperatorKind::batch_norm, "batch_normalization"},
       {OperatorKind::linear, "dense"}}};
  for (const auto& [kind, layer] : tensorflow_layers) {
    std::size_t number = 0;
    for (const Operator* op : creation_order(graph, kind)) {
      tensorflow_[number == 0 ? std::string(layer) : fmt::format("{}_{}", layer, number)] = op;
      ++number;
    }
  }
}

std::vector<Kernel*> KernelNames::find(const std::string& name, const std::string& type) const {
  if (const auto own = by_name_.find(name); own != by_name_.end()) return {own->second};
  const std::vector<std::string> parts = parts_of(name);
  const bool update = is_update(type, parts);
  if (update) return update_of(parts);
  const Operator* const op =
      contains(type, "SoftmaxCrossEntropy") ? &graph_.operators.back() : operator_in(parts, update);
  if (op == nullptr) return {};
  return is_backward(type, parts) ? backward_of(*op, type) : forward_of(*op, type);
}

const Operator* KernelNames::operator_in(const std::vector<std::string>& parts, bool is_update) const {
  const Operator* best = nullptr;
  std::size_t length = 0;
  std::size_t position = parts.size();
  for (const NamedOperator& candidate : operators_) {
    const std::vector<std::string>& wanted = candidate.parts;
    const auto found = std::search(parts.begin(), parts.end(), wanted.begin(), wanted.end());
    if (found == parts.end()) continue;
    // "layer9/0/conv1" of a deeper network is not the operator conv1.
    if (found != parts.begin() && is_number(*(found - 1)) && !is_update) continue;
    const auto at = static_cast<std::size_t>(found - parts.begin());
    if (wanted.size() < length || (wanted.size() == length && at >= position)) continue;
    best = candidate.op;
    length = wanted.size();
    position = at;
  }
  if (best != nullptr) return best;
  for (const std::string& part : parts) {
    // Of an operator's gradient TensorFlow makes "conv2d_3/Conv2D_grad"; of a fused kernel's, names run together.
    if (const auto layer = tensorflow_.find(part); layer != tensorflow_.end()) return layer->second;
  }
  return nullptr;
}

std::vector<Kernel*> KernelNames::update_of(const std::vector<std::string>& parts) const {
  const Operator* const op = operator_in(parts, true);
  if (op == nullptr) return all_updates_;
  constexpr std::array<std::string_view, 3> weights{"weight", "kernel", "gamma"};
  constexpr std::array<std::string_view, 2> biases{"bias", "beta"};
  const auto names = [&](const auto& words) {
    return std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
      return std::find(words.begin(), words.end(), part) != words.end();
    });
  };
  for (const std::uint32_t parameter : op->parameters) {
    const std::string& name = graph_.parameters[parameter].name;
    if (!(name.ends_with("weight") ? names(weights) : names(biases))) continue;
    const auto found = updates_.find(name);
    return found == updates_.end() ? all_updates_ : found->second;
  }
  return all_updates_;
}

std::vector<Kernel*> KernelNames::forward_of(const Operator& op, std::string_view type) const {
  const auto kernels_of = [this](const Operator& owner) -> std::vector<Kernel*> {
    const auto found = forward_.find(owner.name);
    return found == forward_.end() ? std::vector<Kernel*>() : found->second;
  };
  const auto is_cast = [](std::string_view what) { return what == "cast"; };
  const auto is_no_cast = [](std::string_view what) { return what != "cast"; };
  if (contains(type, "Cast")) return those(kernels_of(op), is_cast);
  // The sums of a batch norm are made by the kernel before it, if the model has them there.
  if (op.kind == OperatorKind::batch_norm && contains(type, "Reduce") && !contains(type, "Update")) {
    const auto sums = [](std::string_view what) { return contains(what, "reduce"); };
    std::vector<Kernel*> before = those(kernels_of(graph_.operators[op.inputs.front().op]), sums);
    return before.empty() ? those(kernels_of(op), sums) : before;
  }
  return those(kernels_of(op), is_no_cast);
}

std::vector<Kernel*> KernelNames::backward_of(const Operator& op, std::string_view type) const {
  const auto found = backward_.find(op.name);
  if (found == backward_.end()) return {};
  const std::vector<Kernel*>& kernels = found->second;
  const auto named = [&](std::string_view what) {
    return those(kernels, [what](std::string_view other) { return other.starts_with(what); });
  };
  if (contains(type, "BackpropFilter")) return named("weight_gradient");
  if (contains(type, "BackpropInput")) return named("data_gradient");
  if (contains(type, "BiasAddGrad")) return named("bias_gradient");
  if (contains(type, "BNTrainingUpdateGrad")) return named("reduce_gradient");
  if (contains(type, "BNTrainingReduceGrad")) return named("apply_gradient");
  if (contains(type, "MatMul")) {
    return those(kernels, [](std::string_view what) {
      return what.starts_with("weight_gradient") || what.starts_with("data_gradient");
    });
  }
  if (contains(type, "Cast")) return named("cast");
  return kernels;
}

}  // namespace hcclsim::study
