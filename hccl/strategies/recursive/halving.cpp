#include "hccl/strategies/recursive/halving.hpp"

#include <algorithm>
#include <array>

namespace hcclsim::hccl {
namespace {

constexpr double exchange_factor = 16;
constexpr double whole_divisor = 25;
constexpr double batch_matmul_factor = 0.15;
constexpr double few_products = 32;

constexpr std::array<std::string_view, 4> axis_names{"samples", "channels", "height", "width"};

bool is_even(std::uint32_t size) { return size >= 2 && size % 2 == 0; }

/// Cuts of an operator that cuts its input and its output alike.
Halving along(std::size_t axis) { return {.name = axis_names.at(axis), .first = axis, .second = {}, .output = axis}; }

Halving rows_halving() { return {.name = "i", .first = nchw_height, .second = {}, .output = nchw_height}; }
Halving columns_halving() { return {.name = "j", .first = {}, .second = nchw_width, .output = nchw_width}; }
Halving inner_halving() { return {.name = "k", .first = nchw_width, .second = nchw_height, .output = {}}; }

void append_product(std::vector<PricedHalving>& cuts, const RecursiveNode& node, const std::array<double, 3>& costs,
                    bool rows_allowed) {
  const RecursiveTensor& a = node.first;
  const RecursiveTensor& b = node.second;
  const bool inner_whole = a.parts[nchw_width] == 1;
  const bool columns_whole = b.parts[nchw_width] == 1;
  if (rows_allowed && is_even(a.size(nchw_height))) cuts.push_back({rows_halving(), costs[0]});
  if (inner_whole && is_even(b.size(nchw_width))) cuts.push_back({columns_halving(), costs[1]});
  if (columns_whole && is_even(a.size(nchw_width))) cuts.push_back({inner_halving(), costs[2]});
}

std::vector<PricedHalving> matmul_halvings(const RecursiveNode& node, const HalvingRules& rules) {
  const double i = node.first.size(nchw_height);
  const double k = node.first.size(nchw_width);
  const double j = node.second.size(nchw_width);
  const std::array<double, 3> costs{rules.matmul_coefficient * j * k / 2, i * k / 2, i * j / 2};
  const bool samples_left = !rules.micro_batch.has_value() || *rules.micro_batch / node.first.parts[nchw_height] > 1;
  std::vector<PricedHalving> cuts;
  append_product(cuts, node, costs, samples_left);
  const double least = *std::min_element(costs.begin(), costs.end());
  cuts.push_back({{}, least * least / whole_divisor});
  return cuts;
}

std::vector<PricedHalving> batch_matmul_halvings(const RecursiveNode& node) {
  const double a = node.first.elements();
  const double b = node.second.elements();
  const double c = node.output.elements();
  const double least = batch_matmul_factor * std::min({a, b, c}) / 2;
  const double products = double{1} * node.first.size(nchw_samples) * node.first.size(nchw_channels);
  const double factor = products == 1 ? few_products : std::max(few_products / products - 1, 0.0);
  std::vector<PricedHalving> cuts;
  const auto along_all = [](std::size_t axis) {
    return Halving{.name = axis_names.at(axis), .first = axis, .second = axis, .output = axis};
  };
  if (is_even(node.first.size(nchw_samples))) cuts.push_back({along_all(nchw_samples), factor * least});
  if (is_even(node.first.size(nchw_channels))) cuts.push_back({along_all(nchw_channels), factor * least - 1});
  append_product(cuts, node, {b / 2, a / 2, c / 2}, true);
  cuts.push_back({{}, least * least / whole_divisor});
  return cuts;
}

/// Free cuts along the axes up to `axes`.
std::vector<PricedHalving> free_halvings(const RecursiveNode& node, std::size_t axes) {
  std::vector<PricedHalving> cuts;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    if (is_even(node.first.size(axis))) cuts.push_back({along(axis), 0});
  }
  return cuts;
}

std::vector<PricedHalving> first_halving(const RecursiveNode& node) {
  std::vector<PricedHalving> cuts = free_halvings(node, 4);
  if (cuts.size() > 1) cuts.resize(1);
  return cuts;
}

}  // namespace

std::vector<PricedHalving> halvings_of(const RecursiveNode& node, const HalvingRules& rules) {
  using enum MindSporeKind;
  switch (node.kind) {
    case matmul:
      return matmul_halvings(node, rules);
    case batch_matmul:
      return batch_matmul_halvings(node);
    case convolution:
      if (!is_even(node.first.size(nchw_samples))) return {};
      return {{along(nchw_samples), node.second.elements() / 2}};
    case pooling:
      return free_halvings(node, 2);
    case batch_norm:
    case softmax:
    case loss:
      return first_halving(node);
    case elementwise:
      return free_halvings(node, 4);
    default:
      return {};
  }
}

double exchange_cost(const RecursiveGraph& graph, std::uint32_t node, const Halving& halving,
                     const std::vector<std::optional<Halving>>& decided) {
  const RecursiveNode& here = graph.nodes[node];
  double cost = 0;
  for (const std::uint32_t before : here.into) {
    if (!decided[before].has_value() || graph.nodes[before].output.shape != here.first.shape) continue;
    if (decided[before]->output != halving.first) cost += exchange_factor * here.first.elements();
  }
  for (const std::uint32_t behind : here.out) {
    if (!decided[behind].has_value() || graph.nodes[behind].first.shape != here.output.shape) continue;
    if (decided[behind]->first != halving.output) cost += exchange_factor * here.output.elements();
  }
  return cost;
}

}  // namespace hcclsim::hccl
