#include "study/files/profile/launch_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "study/files/profile/fused_products.hpp"
#include "study/files/profile/kernel_names.hpp"

namespace hcclsim::study {
namespace {

using models::OperatorKind;

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// Kernels of one type and pass, which come in the order of the model's operators.
struct KindOfKernel {
  std::string_view what;  ///< for messages; also part of the name that is given
  bool backward = false;
  bool (*is)(const MeasuredKernel& kernel);
};

bool is_product(const MeasuredKernel& kernel) {
  return kernel.type.starts_with("MatMul") || kernel.type.starts_with("Gemm");
}

bool is_convolution(const MeasuredKernel& kernel) {
  return !holds(kernel.type, "Backprop") &&
         (kernel.type.starts_with("Conv2D") || kernel.type.starts_with("DepthwiseConv2D"));
}

constexpr std::array<KindOfKernel, 15> kinds{
    {{"Conv2D", false, is_convolution},
     {"BNTrainingReduce", false,
      [](const MeasuredKernel& kernel) {
        return kernel.type.starts_with("BNTrainingReduce") && !holds(kernel.type, "Grad");
      }},
     {"BNTrainingUpdate", false,
      [](const MeasuredKernel& kernel) {
        return kernel.type.starts_with("BNTrainingUpdate") && !holds(kernel.type, "Grad");
      }},
     {"BatchNorm", false,
      [](const MeasuredKernel& kernel) { return kernel.type.starts_with("BatchNorm") && !holds(kernel.type, "Grad"); }},
     {"MaxPool", false,
      [](const MeasuredKernel& kernel) { return holds(kernel.type, "MaxPool") && !holds(kernel.type, "Grad"); }},
     {"AvgPool", false,
      [](const MeasuredKernel& kernel) {
        const bool other_mean = kernel.name.starts_with("aclnn") && !holds(kernel.name, "Pool");
        return holds(kernel.type, "AvgPool") || (kernel.type.starts_with("ReduceMean") && !other_mean);
      }},
     {"MatMul", false, is_product},
     {"Conv2DBackpropFilter", true, [](const MeasuredKernel& kernel) { return holds(kernel.type, "BackpropFilter"); }},
     {"Conv2DBackpropInput", true, [](const MeasuredKernel& kernel) { return holds(kernel.type, "BackpropInput"); }},
     {"BNTrainingUpdateGrad", true,
      [](const MeasuredKernel& kernel) { return holds(kernel.type, "BNTrainingUpdateGrad"); }},
     {"BNTrainingReduceGrad", true,
      [](const MeasuredKernel& kernel) { return holds(kernel.type, "BNTrainingReduceGrad"); }},
     {"BatchNormGrad", true, [](const MeasuredKernel& kernel) { return kernel.type.starts_with("BatchNormGrad"); }},
     {"MaxPoolGrad", true, [](const MeasuredKernel& kernel) { return holds(kernel.type, "MaxPool"); }},
     {"MatMulGrad", true, is_product},
     {"BiasAddGrad", true, [](const MeasuredKernel& kernel) {
        return kernel.type == "BiasAddGrad" || kernel.type.starts_with("ReduceSum");
      }}}};

OperatorKind operator_of(std::string_view what) {
  if (what.starts_with("Conv2D")) return OperatorKind::convolution;
  if (what.starts_with("BN") || what.starts_with("BatchNorm")) return OperatorKind::batch_norm;
  if (what.starts_with("MaxPool")) return OperatorKind::max_pool;
  return what == "AvgPool" ? OperatorKind::average_pool : OperatorKind::linear;
}

/// Names of the kernels of a micro-batch, without what is fused to them.
std::set<std::string_view> kernels_of(const models::Program& program) {
  std::set<std::string_view> kernels;
  for (const models::Kernel& kernel : program.micro_batch()) {
    const std::string_view name = kernel.name;
    kernels.insert(name.substr(0, name.find_first_of('+', name.rfind(':'))));
  }
  return kernels;
}

/// The operators of the kernels of a kind, in the order in which an iteration launches them.
std::vector<std::string_view> launched(const KindOfKernel& kind, const models::Graph& graph,
                                       const models::Program& program) {
  const std::set<std::string_view> kernels = kernels_of(program);
  const auto has = [&](const models::Operator& op, const char* kernel) {
    return kernels.contains(fmt::format("{}:{}", op.name, kernel)) ? 1 : 0;
  };
  std::vector<std::string_view> order;
  for (const models::Operator& op : graph.operators) {
    if (op.kind != operator_of(kind.what)) continue;
    int count = 1;
    if (kind.what == "Conv2DBackpropInput") count = has(op, "data_gradient");
    if (kind.what == "BiasAddGrad") count = has(op, "bias_gradient");
    if (kind.what == "MatMulGrad") count = has(op, "data_gradient") + has(op, "weight_gradient");
    order.insert(order.end(), static_cast<std::size_t>(count), op.name);
  }
  if (kind.backward) std::reverse(order.begin(), order.end());
  return order;
}

/// The kernels of an iteration: forward pass, backward pass, optimizer.
struct Passes {
  std::size_t backward = 0;   ///< the first kernel that is
  std::size_t optimizer = 0;  ///< likewise
};

bool is_of_backward(const MeasuredKernel& kernel) {
  return phase_by_name(kernel.name, kernel.type) == models::Phase::backward;
}

Passes passes_of(const std::vector<const MeasuredKernel*>& kernels) {
  Passes passes{kernels.size(), kernels.size()};
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (is_of_backward(*kernels[i])) passes.backward = std::min(passes.backward, i);
    // A backward pass ends with the gradients of a layer's weight and bias.
    const bool of_layer = is_product(*kernels[i]) || kernels[i]->type.starts_with("ReduceSum");
    const bool ends = is_of_backward(*kernels[i]) || (i > passes.backward && of_layer);
    if (ends) passes.optimizer = i + 1;
  }
  return passes;
}

/// Of several operators together, each under the name of the kind.
std::string name_of(const std::vector<std::string_view>& operators, const KindOfKernel& kind) {
  std::string name;
  for (const std::string_view op : operators) {
    if (!name.empty()) name += names_together;
    name += fmt::format("{}{}/{}", kind.backward ? "gradients/" : "", op, kind.what);
  }
  return name;
}

/// Names of what stands for the operators of each kernel of a kind, in the order of the kernels.
using Order = std::vector<std::vector<std::string_view>>;

class LaunchOrder {
 public:
  LaunchOrder(const models::Graph& graph, const models::Program& program) : graph_(graph), program_(program) {
    for (const KindOfKernel& kind : kinds) {
      Order& order = orders_.emplace_back();
      for (const std::string_view op : launched(kind, graph, program)) order.push_back({op});
    }
    kernels_ = kernels_of(program);
  }

  /// Names the kernels of an iteration; says what it has of kinds whose number is not the model's.
  std::vector<std::string> name(const std::vector<const MeasuredKernel*>& kernels,
                                const std::vector<std::string*>& names) const {
    const Passes passes = passes_of(kernels);
    std::vector<std::vector<std::size_t>> of_kind(kinds.size());
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      if (i >= passes.optimizer && passes.backward < kernels.size()) {
        *names[i] = "update_" + kernels[i]->name;  // of all parameters together
        continue;
      }
      const bool backward = i >= passes.backward;
      if (holds(kernels[i]->type, "LogSoftmax") || holds(kernels[i]->type, "NLLLoss")) {
        if (!is_of_backward(*kernels[i])) *names[i] = "loss";
        continue;
      }
      const auto* const kind = std::find_if(kinds.begin(), kinds.end(), [&](const KindOfKernel& candidate) {
        return candidate.backward == backward && candidate.is(*kernels[i]);
      });
      if (kind != kinds.end()) of_kind[static_cast<std::size_t>(kind - kinds.begin())].push_back(i);
    }
    std::vector<Order> orders = orders_;
    join_products(kernels, of_kind, orders);
    std::vector<std::string> findings;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      if (of_kind[k].size() != orders[k].size()) {
        if (!of_kind[k].empty()) {
          findings.push_back(
              fmt::format("{} {} (the model has {})", of_kind[k].size(), kinds[k].what, orders[k].size()));
        }
        continue;
      }
      for (std::size_t i = 0; i < of_kind[k].size(); ++i) *names[of_kind[k][i]] = name_of(orders[k][i], kinds[k]);
    }
    return findings;
  }

 private:
  static std::size_t kind_called(std::string_view what) {
    return static_cast<std::size_t>(std::ranges::find(kinds, what, &KindOfKernel::what) - kinds.begin());
  }

  /// Where the products of the forward pass are fused otherwise than in the model, in the backward pass they are, too.
  void join_products(const std::vector<const MeasuredKernel*>& kernels,
                     const std::vector<std::vector<std::size_t>>& of_kind, std::vector<Order>& orders) const {
    const std::size_t forward = kind_called("MatMul");
    const std::size_t backward = kind_called("MatMulGrad");
    if (of_kind[forward].size() == orders[forward].size()) return;
    std::vector<const MeasuredKernel*> products;
    for (const std::size_t kernel : of_kind[forward]) products.push_back(kernels[kernel]);
    const std::optional<std::vector<ProductGroup>> groups = product_groups(products, graph_, program_);
    if (!groups.has_value()) return;
    orders[forward].clear();
    orders[backward].clear();
    for (const ProductGroup& group : *groups) {
      const auto has = [&](const char* gradient) {
        return std::ranges::any_of(group.operators, [&](std::string_view op) {
          return kernels_.contains(fmt::format("{}:{}", op, gradient));
        });
      };
      const std::size_t gradients = (has("data_gradient") ? 1U : 0U) + (has("weight_gradient") ? 1U : 0U);
      orders[forward].insert(orders[forward].end(), group.measured, group.operators);
      orders[backward].insert(orders[backward].begin(), group.measured * gradients, group.operators);
    }
  }

  const models::Graph& graph_;
  const models::Program& program_;
  std::vector<Order> orders_;  // by kind
  std::set<std::string_view> kernels_;
};

}  // namespace

bool has_function_name(const MeasuredKernel& kernel) {
  if (kernel.communication) return false;
  const std::string_view name = kernel.name;
  if (name.starts_with("aclnn")) return true;
  const bool is_type = !kernel.type.empty() && name.starts_with(kernel.type);
  return is_type && name.find_first_not_of("_0123456789", kernel.type.size()) == std::string_view::npos;
}

std::vector<std::string> names_by_launch_order(const KernelProfile& profile, const models::Graph& graph,
                                               const models::Program& program, std::vector<std::string>& notes) {
  std::vector<std::string> names(profile.kernels.size());
  struct OfIteration {
    std::vector<const MeasuredKernel*> kernels;
    std::vector<std::string*> names;
  };
  std::map<std::uint32_t, OfIteration> iterations;
  for (std::size_t i = 0; i < profile.kernels.size(); ++i) {
    if (!has_function_name(profile.kernels[i])) continue;
    OfIteration& iteration = iterations[profile.kernels[i].iteration];
    iteration.kernels.push_back(&profile.kernels[i]);
    iteration.names.push_back(&names[i]);
  }
  if (iterations.empty()) return names;
  const LaunchOrder order(graph, program);
  std::map<std::string, std::size_t> findings;
  for (const auto& [number, iteration] : iterations) {
    for (const std::string& finding : order.name(iteration.kernels, iteration.names)) ++findings[finding];
  }
  for (const auto& [finding, count] : findings) {
    notes.push_back(fmt::format("{}: {} of {} iterations launch{} {}: not matched by their order", profile.file, count,
                                iterations.size(), count == 1 ? "es" : "", finding));
  }
  return names;
}

}  // namespace hcclsim::study
