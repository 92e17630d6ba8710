#include "hccl/strategies/recursive/recursive_programming.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::uint32_t most_halvings = 10;

void cut(RecursiveTensor& tensor, const std::optional<std::size_t>& axis) {
  if (axis.has_value() && tensor.shape.at(*axis) > 1) tensor.parts.at(*axis) *= 2;
}

/// One halving of all operators. Returns its cost.
double halve(RecursiveCuts& cuts, const HalvingRules& rules) {
  RecursiveGraph& graph = cuts.graph;
  std::vector<std::optional<Halving>> decided(graph.nodes.size());
  double sum = 0;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const auto number = static_cast<std::uint32_t>(i);
    RecursiveNode& node = graph.nodes[i];
    const bool exchanges = node.kind != MindSporeKind::batch_norm && node.kind != MindSporeKind::softmax &&
                           node.kind != MindSporeKind::loss;
    Halving best;
    std::optional<double> least;
    for (const PricedHalving& candidate : halvings_of(node, rules)) {
      const double exchange = exchanges ? exchange_cost(graph, number, candidate.halving, decided) : 0;
      ++cuts.candidates;
      if (least.has_value() && candidate.cost + exchange >= *least) continue;
      least = candidate.cost + exchange;
      best = candidate.halving;
    }
    sum += least.value_or(0);
    decided[i] = best;
    cut(node.first, best.first);
    cut(node.second, best.second);
    cut(node.output, best.output);
  }
  return sum;
}

double input_bytes(const RecursiveGraph& graph, Rank devices) {
  double bytes = 0;
  for (const RecursiveNode& node : graph.nodes) {
    bytes += (node.first.elements() + node.second.elements()) * static_cast<double>(size_of(DataType::fp32));
  }
  return bytes / devices;
}

/// Takes back cuts, the last dimensions first, until the parts are a divisor of the devices.
void correct(DimensionParts& parts, Rank devices) {
  for (std::size_t i = parts.size(); devices % devices_used(parts) != 0;) {
    if (parts[i - 1] == 1) {
      --i;
    } else {
      parts[i - 1] /= 2;
    }
  }
}

/// Parts of an operator that was searched.
DimensionParts parts_of(const SearchedOperator& op, const RecursiveNode& node, Rank devices) {
  DimensionParts parts(op.sizes.size(), 1);
  const auto set = [&](std::string_view dimension, std::uint32_t count) {
    const std::optional<std::size_t> number = op.find(dimension);
    if (number.has_value() && op.sizes[*number] % count == 0) parts[*number] = count;
  };
  const Nchw& cuts = node.first.parts;
  switch (node.kind) {
    case MindSporeKind::matmul:
      (void)op.cut_rows(parts, cuts[nchw_height]);
      set("inputs", cuts[nchw_width]);
      set("outputs", node.second.parts[nchw_width]);
      break;
    case MindSporeKind::loss:
      (void)op.cut_rows(parts, cuts[nchw_height]);
      break;
    case MindSporeKind::batch_norm:
    case MindSporeKind::pooling:
    case MindSporeKind::convolution:
      set("batch", cuts[nchw_samples]);
      if (node.kind != MindSporeKind::convolution) set("channels", cuts[nchw_channels]);
      break;
    default:
      break;
  }
  correct(parts, devices);
  return parts;
}

/// The sum over the devices that share the inner features of a product need not be whole on each of them: its rows are
/// cut further.
std::optional<Cuts> scattered_output(const SearchedOperator& op, const DimensionParts& parts) {
  if (op.kind != models::OperatorKind::linear || !op.sums(parts)) return std::nullopt;
  const std::uint32_t inner = parts[*op.find("inputs")];
  const TensorAxes& output = op.outputs.front().axes;
  Cuts cuts = cuts_of(output, parts);
  if (output.shape.size(0) % (cuts.front() * inner) != 0) return std::nullopt;
  cuts.front() *= inner;
  return cuts;
}

void check(const RecursiveOptions& options) {
  if (options.devices < 1 || options.devices > max_search_devices) {
    bad_input("search", "the recursive search takes 1 to {} devices, got {}", max_search_devices, options.devices);
  }
  if (!std::has_single_bit(options.stages) || options.stages > options.devices) {
    bad_input("search", "the recursive search takes a power of two of stages, at most the {} devices, got {}",
              options.devices, options.stages);
  }
}

}  // namespace

RecursiveCuts recursive_cuts(RecursiveGraph graph, std::uint32_t samples, const RecursiveOptions& options) {
  check(options);
  RecursiveCuts cuts;
  cuts.graph = std::move(graph);
  HalvingRules rules{.matmul_coefficient = options.matmul_coefficient};
  if (options.stages > 1) rules.micro_batch = samples;
  const auto all = static_cast<std::uint32_t>(std::bit_width(options.devices) - 1);
  if (all > most_halvings) internal_error("{} halvings", all);
  cuts.halvings = all - static_cast<std::uint32_t>(std::bit_width(options.stages) - 1);
  // Later halvings do not change earlier ones: those that a pipeline takes back need not be made.
  for (std::uint32_t halving = 0; halving < cuts.halvings; ++halving) cuts.cost += halve(cuts, rules);
  cuts.memory = input_bytes(cuts.graph, options.devices);
  if (cuts.memory > static_cast<double>(options.device_memory)) {
    cuts.warnings.push_back(fmt::format(
        "inputs of {:.0f} bytes on each device are more than the {} bytes of memory that the search counts with",
        cuts.memory, options.device_memory));
  }
  return cuts;
}

RecursiveProgrammingResult recursive_programming(const models::Graph& graph, const RecursiveOptions& options) {
  RecursiveProgrammingResult result;
  result.cuts = recursive_cuts(make_recursive_graph(graph), graph.batch(), options);
  const std::vector<SearchedOperator> operators = searched_operators(graph);
  const Rank devices = options.devices / options.stages;
  std::vector<std::optional<DimensionParts>> parts(operators.size());
  for (const RecursiveNode& node : result.cuts.graph.nodes) {
    if (node.kind != MindSporeKind::virtual_dataset) parts[node.op] = parts_of(operators[node.op], node, devices);
  }
  follow_neighbours(graph, operators, devices, parts);
  for (std::optional<DimensionParts>& decided : parts) result.strategies.parts.push_back(std::move(*decided));
  share_parameters(graph, operators, devices, std::vector<bool>(operators.size(), false), result.strategies.parts);
  for (const SearchedOperator& op : operators) {
    result.strategies.outputs.push_back(scattered_output(op, result.strategies.parts[op.id]));
  }
  return result;
}

}  // namespace hcclsim::hccl
