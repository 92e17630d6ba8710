#include "models/lowering/optimizer.hpp"

#include <fmt/format.h>

#include <array>

#include "base/error.hpp"
#include "base/names.hpp"

namespace hcclsim::models {
namespace {

/// Passes of one kernel over tensors of the parameter's size, and element operations per element.
struct Passes {
  std::string_view name;
  std::uint32_t read;
  std::uint32_t written;
  std::uint32_t operations;
  std::uint32_t weights_read = 1;     ///< of those read: the weight
  std::uint32_t weights_written = 1;  ///< of those written
};

struct Rule {
  Optimizer optimizer;
  std::string_view name;
  std::uint32_t states;
  std::array<Passes, 3> kernels;  ///< unused ones have no name
};

// w weight, g gradient, v velocity, m and s the two moments, u the update of LAMB before its trust ratio.
constexpr std::array<Rule, 7> rules{{
    {Optimizer::sgd, "sgd", 0, {{{"sgd", 2, 1, 2}}}},                 // w, g -> w
    {Optimizer::momentum, "momentum", 1, {{{"momentum", 3, 2, 4}}}},  // w, g, v -> w, v
    {Optimizer::nesterov, "nesterov", 1, {{{"momentum", 3, 2, 4}}}},  // the same kernel with a flag
    {Optimizer::adam, "adam", 2, {{{"adam", 4, 3, 12}}}},             // w, g, m, s -> w, m, s
    {Optimizer::adamw, "adamw", 2, {{{"adamw", 4, 3, 14}}}},
    {Optimizer::lars, "lars", 1, {{{"lars_norms", 2, 0, 4, 1, 0}, {"lars_momentum", 3, 2, 6}}}},
    {Optimizer::lamb,
     "lamb",
     2,
     {{{"lamb_moments", 4, 3, 14, 1, 0},
       {"lamb_norms", 2, 0, 4, 1, 0},
       {"lamb_apply", 2, 1, 2}}}},  // w, g, m, s -> m, s, u; w, u -> w
}};

const Rule& rule_of(Optimizer optimizer) { return rules[static_cast<std::size_t>(optimizer)]; }

}  // namespace

std::string_view name_of(Optimizer optimizer) { return rule_of(optimizer).name; }

Optimizer parse_optimizer(std::string_view name) {
  for (const Rule& rule : rules) {
    if (rule.name == name) return rule.optimizer;
  }
  bad_input("option", "unknown optimizer '{}'; use one of {}", name, names_in(rules, &Rule::name));
}

Bytes state_bytes_per_element(Optimizer optimizer, const Precision& precision) {
  return (rule_of(optimizer).states + (precision.master_weights ? 1 : 0)) * size_of(precision.optimizer);
}

std::vector<Kernel> update_kernels(std::uint64_t elements, Optimizer optimizer, const Precision& precision,
                                   DataType communication) {
  const DataType type = precision.optimizer;
  std::vector<Kernel> kernels;
  const auto launch = [&](std::string_view name, std::uint64_t operations, Bytes read, Bytes written) {
    kernels.push_back(vector_kernel(name, Phase::update, type, operations, read, written));
    kernels.back().owners = true;
  };
  const Bytes tensor = elements * size_of(type);
  const Bytes weight = elements * size_of(precision.weight);
  const Bytes updated = precision.master_weights ? tensor : weight;
  if (communication != type) launch("cast", elements, elements * size_of(communication), tensor);
  for (const Passes& passes : rule_of(optimizer).kernels) {
    if (passes.name.empty()) break;
    launch(passes.name, elements * passes.operations,
           (passes.read - passes.weights_read) * tensor + passes.weights_read * updated,
           (passes.written - passes.weights_written) * tensor + passes.weights_written * updated);
  }
  if (precision.master_weights) launch("cast_weight", elements, tensor, weight);
  return kernels;
}

}  // namespace hcclsim::models
