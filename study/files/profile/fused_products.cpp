#include "study/files/profile/fused_products.hpp"

#include <cstdint>

namespace hcclsim::study {
namespace {

/// A linear operator's forward product: columns of the result and inner dimension.
struct LinearProduct {
  std::string_view op;
  std::uint64_t columns = 0;
  std::uint64_t inner = 0;
};

std::vector<LinearProduct> linear_products(const models::Graph& graph, const models::Program& program) {
  std::vector<LinearProduct> products;
  for (const models::Kernel& kernel : program.micro_batch()) {
    const bool computes = kernel.phase == models::Phase::forward && kernel.cube.m > 0 && !kernel.recomputed;
    if (!computes || kernel.op == models::no_operator) continue;
    const models::Operator& op = graph.operators[kernel.op];
    if (op.kind == models::OperatorKind::linear) products.push_back({op.name, kernel.cube.n, kernel.cube.k});
  }
  return products;
}

}  // namespace

std::optional<std::vector<ProductGroup>> product_groups(const std::vector<const MeasuredKernel*>& forward,
                                                        const models::Graph& graph, const models::Program& program) {
  const std::vector<LinearProduct> products = linear_products(graph, program);
  std::vector<ProductGroup> groups;
  std::size_t model = 0;
  std::size_t measured = 0;
  while (model < products.size() && measured < forward.size()) {
    const std::uint64_t inner = products[model].inner;
    ProductGroup group{{products[model].op}, 1};
    std::uint64_t of_model = products[model++].columns;
    if (forward[measured]->inner != inner) return std::nullopt;
    std::uint64_t of_file = forward[measured++]->columns;
    while (of_model != of_file) {
      if (of_model < of_file) {
        if (model == products.size() || products[model].inner != inner) return std::nullopt;
        group.operators.push_back(products[model].op);
        of_model += products[model++].columns;
      } else {
        if (measured == forward.size() || forward[measured]->inner != inner) return std::nullopt;
        ++group.measured;
        of_file += forward[measured++]->columns;
      }
    }
    groups.push_back(std::move(group));
  }
  if (model < products.size() || measured < forward.size()) return std::nullopt;
  return groups;
}

}  // namespace hcclsim::study
