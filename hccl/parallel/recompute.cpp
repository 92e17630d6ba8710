#include "hccl/parallel/recompute.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim::hccl {
namespace {

using models::Operator;

constexpr std::string_view layers_prefix = "layers:";
constexpr std::string_view operators_prefix = "operators:";

/// Whether results that are not kept can be made again, and cost something to keep.
bool can_be_repeated(const Operator& op) {
  using enum models::OperatorKind;
  return op.kind != input && op.kind != loss && op.kind != binary_loss && !models::communicates(op.kind);
}

bool is_named(const Operator& op, std::string_view name) {
  return models::name_of(op.kind) == name || op.name == name || op.name.ends_with("." + std::string(name));
}

/// Whether ranks that an operator is cut over talk to each other in it.
bool is_collective(const Operator& op) {
  using enum models::OperatorKind;
  return models::communicates(op.kind) && op.kind != send && op.kind != receive;
}

/// Whether everybody who reads the operator's results is in its layer, and could be repeated with it.
std::vector<bool> stays_in_layer(const models::Graph& graph, bool collectives) {
  std::vector<bool> stays(graph.operators.size(), true);
  for (const Operator& op : graph.operators) {
    for (const models::Value input : op.inputs) {
      const bool repeats = can_be_repeated(op) || (collectives && is_collective(op));
      if (op.layer != graph.operators[input.op].layer || !repeats) stays[input.op] = false;
    }
  }
  return stays;
}

/// Layers up to this one are recomputed as a whole, if there are any.
std::optional<std::uint32_t> last_recomputed_layer(const models::Graph& graph, const Recompute& recompute,
                                                   std::uint32_t stage, std::uint32_t stages) {
  if (recompute.kind == RecomputeKind::none || recompute.kind == RecomputeKind::operators) return std::nullopt;
  if (recompute.kind == RecomputeKind::layers && recompute.layers.size() != 1 && recompute.layers.size() != stages) {
    bad_input("option", "--recompute layers: {} numbers for {} stages; give one, or one for each stage",
              recompute.layers.size(), stages);
  }
  std::set<std::uint32_t> layers;
  for (const Operator& op : graph.operators) {
    if (op.layer != models::no_layer) layers.insert(op.layer);
  }
  std::size_t count = layers.size();
  if (recompute.kind == RecomputeKind::layers) {
    const std::uint32_t wanted = recompute.layers[recompute.layers.size() == 1 ? 0 : stage];
    if (wanted > count) {
      bad_input("option", "--recompute layers: stage {} has {} layers, got {}", stage, count, wanted);
    }
    count = wanted;
  }
  if (count == 0) return std::nullopt;
  return *std::next(layers.begin(), static_cast<std::ptrdiff_t>(count) - 1);
}

}  // namespace

Recompute parse_recompute(std::string_view text) {
  if (text == "none") return {};
  if (text == "full") return {.kind = RecomputeKind::full};
  if (text.starts_with(layers_prefix)) {
    Recompute recompute{.kind = RecomputeKind::layers};
    for (const std::string_view item : split_trimmed(text.substr(layers_prefix.size()), ',')) {
      const auto count = parse_number<std::uint32_t>(item);
      if (!count.has_value()) bad_input("option", "'{}': '{}' is no number of layers", text, item);
      recompute.layers.push_back(*count);
    }
    return recompute;
  }
  if (text.starts_with(operators_prefix)) {
    Recompute recompute{.kind = RecomputeKind::operators};
    for (const std::string_view item : split_trimmed(text.substr(operators_prefix.size()), ',')) {
      if (item.empty()) bad_input("option", "'{}': a name is empty", text);
      recompute.operators.emplace_back(item);
    }
    return recompute;
  }
  bad_input("option",
            "'{}'{}; accepted: none, full, layers:<number>[,<number> for each stage], operators:<kind or name>,…", text,
            text == "selective" ? ": what others call selective is operators:attention here" : " is not known");
}

std::vector<std::string> recomputable(const models::Graph& graph) {
  std::set<std::string> kinds;
  for (const Operator& op : graph.operators) {
    if (can_be_repeated(op)) kinds.emplace(models::name_of(op.kind));
  }
  return {kinds.begin(), kinds.end()};
}

std::vector<bool> parameters_of_recomputed_layers(const models::Graph& graph, const Recompute& recompute,
                                                  std::uint32_t stage, std::uint32_t stages) {
  std::vector<bool> only(graph.parameters.size(), false);
  const std::optional<std::uint32_t> last = last_recomputed_layer(graph, recompute, stage, stages);
  const auto is_repeated = [&](const Operator& op) { return last.has_value() ? op.layer <= *last : op.recompute; };
  for (const bool repeated : {true, false}) {
    for (const Operator& op : graph.operators) {
      if (is_repeated(op) != repeated) continue;
      for (const std::uint32_t parameter : op.parameters) only[parameter] = repeated;
    }
  }
  return only;
}

void mark_recomputed(models::Graph& graph, const Recompute& recompute, std::uint32_t stage, std::uint32_t stages,
                     std::vector<bool>& matched, bool collectives) {
  matched.resize(recompute.operators.size(), false);
  for (Operator& op : graph.operators) op.recompute = op.recompute && (collectives || !is_collective(op));
  if (recompute.kind == RecomputeKind::none) return;
  if (recompute.kind == RecomputeKind::operators) {
    for (Operator& op : graph.operators) {
      for (std::size_t i = 0; i < recompute.operators.size(); ++i) {
        if (!can_be_repeated(op) || !is_named(op, recompute.operators[i])) continue;
        op.recompute = true;
        matched[i] = true;
      }
    }
    return;
  }
  const std::optional<std::uint32_t> last = last_recomputed_layer(graph, recompute, stage, stages);
  if (!last.has_value()) return;
  const std::vector<bool> stays = stays_in_layer(graph, collectives);
  for (std::size_t id = 0; id < graph.operators.size(); ++id) {
    Operator& op = graph.operators[id];
    if (op.layer > *last) continue;
    const bool repeats = can_be_repeated(op) || (collectives && is_collective(op));
    op.recompute = op.recompute || (repeats && stays[id]);
  }
}

}  // namespace hcclsim::hccl
