#include "study/files/profile/kernel_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>

#include "base/text.hpp"

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

/// The number behind `prefix` that `text` consists of.
std::optional<std::uint32_t> number_behind(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return parse_number<std::uint32_t>(text.substr(prefix.size()));
}

/// The parts of the model's name of a layer in block `block`, from 1, of stage `stage`, from 1: its convolution `layer`
/// or the batch norm behind that; 0 is the shortcut.
std::vector<std::string> block_layer(std::uint32_t stage, std::uint32_t block, std::uint32_t layer, bool norm) {
  std::vector<std::string> parts{fmt::format("layer{}", stage), fmt::to_string(block - 1)};
  if (layer == 0) {
    parts.emplace_back("downsample");
    parts.emplace_back(norm ? "1" : "0");
  } else {
    parts.push_back(fmt::format("{}{}", norm ? "bn" : "conv", layer));
  }
  return parts;
}

/// Keras calls layers of ResNets conv1_conv, conv1_bn, conv2_block1_0_conv (the shortcut), conv2_block1_3_bn.
std::vector<std::string> keras_layer(std::string_view part) {
  if (!part.starts_with("conv") || !(part.ends_with("_conv") || part.ends_with("_bn"))) return {std::string(part)};
  const bool norm = part.ends_with("_bn");
  if (part.starts_with("conv1_") && part.find('_') == part.rfind('_')) return {norm ? "bn1" : "conv1"};
  const std::vector<std::string_view> words = split(part, '_');
  if (words.size() != 4) return {std::string(part)};
  const auto stage = number_behind(words[0], "conv");
  const auto block = number_behind(words[1], "block");
  const auto layer = number_behind(words[2], "");
  if (stage.value_or(0) < 2 || block.value_or(0) < 1 || !layer.has_value()) return {std::string(part)};
  return block_layer(*stage - 1, *block, *layer, norm);
}

/// TF-Slim calls them …/block1/unit_1/bottleneck_v1/conv1, …/shortcut, each with …/BatchNorm for the norm behind it.
std::vector<std::string> without_slim_names(const std::vector<std::string>& parts) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto stage = number_behind(parts[i], "block");
    const auto unit = i + 1 < parts.size() ? number_behind(parts[i + 1], "unit_") : std::nullopt;
    const bool in_block = stage.has_value() && unit.value_or(0) > 0;
    const std::size_t layer = in_block ? i + 3 : i;
    if (layer >= parts.size()) {
      result.push_back(parts[i]);
      continue;
    }
    const auto number =
        in_block && parts[layer] == "shortcut" ? std::optional(0U) : number_behind(parts[layer], "conv");
    const bool norm = layer + 1 < parts.size() && parts[layer + 1].starts_with("BatchNorm");
    if (in_block && number.has_value()) {
      const std::vector<std::string> names = block_layer(*stage, *unit, *number, norm);
      result.insert(result.end(), names.begin(), names.end());
      i = layer;
    } else if (number == 1U && norm) {
      result.emplace_back("bn1");
    } else {
      result.push_back(parts[i]);
    }
  }
  return result;
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
    if (!part.empty()) {
      for (std::string& layer : keras_layer(part)) parts.push_back(std::move(layer));
    }
    if (end == name.size()) return without_slim_names(parts);
    name.remove_prefix(end + 1);
  }
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// Types such as ApplyMomentum, ApplyMomentumD, Momentum, FusedMulApplyMomentum, Adam, LambApplyOptimizerAssign, and
/// those that PyTorch's optimizers consist of.
bool is_update(std::string_view type, const std::vector<std::string>& parts) {
  constexpr std::array<std::string_view, 8> words{"Apply", "Momentum", "Adam",    "Lamb",
                                                  "Lars",  "Foreach",  "Addcmul", "Addcdiv"};
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return contains(type, word); }) ||
         std::find(parts.begin(), parts.end(), "update_") != parts.end();
}

bool is_backward(std::string_view type, const std::vector<std::string>& parts) {
  return contains(type, "Backprop") || contains(type, "Grad") ||
         std::any_of(parts.begin(), parts.end(), [](const std::string& part) {
           return part.starts_with("gradients") || part.starts_with("Gradients") ||
                  (part.starts_with("aclnn") && contains(part, "Backward"));
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
  add_tensorflow_names();
}

void KernelNames::add_tensorflow_names() {
  constexpr std::array<std::pair<OperatorKind, std::string_view>, 6> tensorflow_layers{
      {{OperatorKind::convolution, "conv2d"},
       {OperatorKind::batch_norm, "batch_normalization"},
       {OperatorKind::linear, "dense"},
       {OperatorKind::max_pool, "max_pooling2d"},
       {OperatorKind::max_pool, "max_pooling"},
       {OperatorKind::average_pool, "average_pooling2d"}}};
  for (const auto& [kind, layer] : tensorflow_layers) {
    std::size_t number = 0;
    for (const Operator* op : creation_order(graph_, kind)) {
      tensorflow_[number == 0 ? std::string(layer) : fmt::format("{}_{}", layer, number)] = op;
      ++number;
    }
  }
  const auto add_only = [this](OperatorKind kind, std::initializer_list<std::string_view> names) {
    const std::vector<const Operator*> all = creation_order(graph_, kind);
    if (all.size() != 1) return;
    for (const std::string_view name : names) tensorflow_.emplace(name, all.front());
  };
  add_only(OperatorKind::max_pool, {"pool1", "pool1_pool"});
  add_only(OperatorKind::average_pool,
           {"pool5", "avg_pool", "global_average_pooling2d", "final_reduce_mean", "Mean", "Mean_grad"});
  add_only(OperatorKind::linear, {"logits", "predictions"});
}

std::vector<Kernel*> KernelNames::find(const std::string& name, const std::string& type) const {
  if (const auto own = by_name_.find(name); own != by_name_.end()) return {own->second};
  if (name.find(names_together) != std::string::npos) {
    std::vector<Kernel*> all;
    for (const std::string_view one : split(name, names_together)) {
      const std::vector<Kernel*> kernels = find(std::string(one), type);
      all.insert(all.end(), kernels.begin(), kernels.end());
    }
    return all;
  }
  const std::vector<std::string> parts = parts_of(name);
  const bool update = is_update(type, parts);
  if (update) return update_of(parts);
  const bool loss = contains(type, "SoftmaxCrossEntropy") || contains(type, "LogSoftmax") || contains(type, "NLLLoss");
  const Operator* const op = loss ? &graph_.operators.back() : operator_in(parts, update);
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
  // Means and pools of the loss and of what is reported are none of the network's.
  constexpr std::array<std::string_view, 5> outside{"loss", "entropy", "accuracy", "metrics", "train_op"};
  const bool is_outside = std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
    return std::any_of(outside.begin(), outside.end(), [&](std::string_view word) { return contains(part, word); });
  });
  if (is_outside) return nullptr;
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
  if (contains(type, "BiasAddGrad") || contains(type, "ReduceSum")) return named("bias_gradient");
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
