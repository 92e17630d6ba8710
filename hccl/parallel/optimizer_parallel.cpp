#include "hccl/parallel/optimizer_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::array<std::string_view, 6> kind_names{"off", "dealt", "on", "zero1", "zero2", "zero3"};
constexpr Bytes default_threshold = Bytes{64} << 10U;

models::Sharding sharding_of(OptimizerParallelKind kind) {
  switch (kind) {
    case OptimizerParallelKind::off:
    case OptimizerParallelKind::dealt:
      return models::Sharding::none;
    case OptimizerParallelKind::on:
      return models::Sharding::weights;
    case OptimizerParallelKind::zero1:
      return models::Sharding::states;
    case OptimizerParallelKind::zero2:
      return models::Sharding::gradients;
    case OptimizerParallelKind::zero3:
      return models::Sharding::weights_each_use;
  }
  internal_error("unknown kind of optimizer parallelism");
}

}  // namespace

std::string_view name_of(OptimizerParallelKind kind) { return kind_names.at(static_cast<std::size_t>(kind)); }

OptimizerParallel parse_optimizer_parallel(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto* const kind = std::ranges::find(kind_names, name);
  const auto refuse = [&](std::string_view what) {
    bad_input("option", "'{}': {}; accepted: off|dealt|on|zero1|zero2|zero3[:shard=<ranks>,threshold=<KB>]", text,
              what);
  };
  if (kind == kind_names.end()) refuse(fmt::format("'{}' is no kind of it", name));
  OptimizerParallel options{.kind = static_cast<OptimizerParallelKind>(kind - kind_names.begin())};
  if (colon == std::string_view::npos) return options;
  for (const std::string_view item : split_trimmed(text.substr(colon + 1), ',')) {
    const std::size_t equal = item.find('=');
    const std::string_view key = item.substr(0, equal);
    const std::string_view number = equal == std::string_view::npos ? "" : item.substr(equal + 1);
    const std::int64_t value = parse_number<std::int64_t>(number).value_or(-1);
    if (value > UINT32_MAX) refuse(fmt::format("'{}' is too large", item));
    const bool again = key == "shard" ? options.shard.has_value() : key == "threshold" && options.threshold.has_value();
    if (again) refuse(fmt::format("'{}' is given twice", key));
    if (options.kind < OptimizerParallelKind::on) refuse(fmt::format("'{}' shares nothing", name));
    if (key == "shard" && value == 1 && options.kind > OptimizerParallelKind::on) refuse("'shard=1' shares nothing");
    if (key == "shard" && value > 0) {
      options.shard = static_cast<std::uint32_t>(value);
    } else if (key == "threshold" && value >= 0) {
      options.threshold = static_cast<Bytes>(value) << 10U;
    } else {
      refuse(fmt::format("'{}' is not understood", item));
    }
  }
  return options;
}

Rank shard_ranks(const OptimizerParallel& options, Rank replicas) {
  const Rank ranks = options.wanted_ranks(replicas);
  if (options.kind < OptimizerParallelKind::on || ranks == 0) return replicas;
  if (ranks > replicas) {
    if (options.kind == OptimizerParallelKind::on) return replicas;
    bad_input("option", "optimizer parallel: a shard size of {} is more than the {} replicas of a stage", ranks,
              replicas);
  }
  if (replicas % ranks == 0) return ranks;
  if (options.kind == OptimizerParallelKind::on) return replicas;  // no parameter is shared
  bad_input("option", "optimizer parallel: a shard size of {} does not divide the {} replicas of a stage", ranks,
            replicas);
}

models::ShardingOptions share_parameters(const models::Graph& graph, const OptimizerParallel& options, Rank replicas,
                                         Bytes element, std::vector<std::string>& notes,
                                         std::span<const ParameterCopies> copies) {
  models::ShardingOptions sharding{.kind = sharding_of(options.kind), .accumulation = options.accumulation_shard};
  const Rank parts = shard_ranks(options, replicas);
  if (options.kind < OptimizerParallelKind::on || replicas == 1 || parts == 1) return {};
  std::vector<bool> borrowed(graph.parameters.size(), false);
  for (const models::Operator& op : graph.operators) {
    if (op.kind != models::OperatorKind::receive) continue;
    for (const std::uint32_t parameter : op.parameters) borrowed[parameter] = true;
  }
  const bool by_axis = options.kind == OptimizerParallelKind::on;
  const Bytes threshold = options.threshold.value_or(by_axis ? default_threshold : 0);
  const Rank wanted = options.wanted_ranks(replicas);
  std::uint32_t uneven = 0;
  std::set<Rank> unfit;  // numbers of copies that the shard size does not divide
  for (std::uint32_t index = 0; index < graph.parameters.size(); ++index) {
    const models::Parameter& parameter = graph.parameters[index];
    const ParameterCopies held =
        copies.empty() ? ParameterCopies{.ranks = replicas, .elements = parameter.elements} : copies[index];
    const Rank own = std::min(wanted, held.ranks);
    const bool fits = held.ranks % own == 0;
    if (!fits) unfit.insert(held.ranks);
    const bool large = held.elements * element >= threshold;
    // Of what is not trained there are no states; only whoever keeps parts of all weights has parts of these.
    const bool has_parts = !parameter.frozen || options.kind == OptimizerParallelKind::zero3;
    bool shared = !borrowed[index] && fits && large && has_parts;
    if (shared && by_axis && parameter.shape.front() % own != 0) {
      shared = false;
      ++uneven;
    }
    sharding.shards.push_back(shared ? own : 1);
    const bool parts_there = own > 1 && held.elements * element >= options.threshold.value_or(0);
    sharding.parts_at_owner.push_back(borrowed[index] && parts_there);
  }
  for (const Rank ranks : unfit) {
    const std::string where = copies.empty() ? "the {} replicas of a stage: no parameter is shared"
                                             : "{} ranks: parameters that so many have are not shared";
    notes.push_back(fmt::format("optimizer parallel: a shard size of {} does not divide {}", *options.shard,
                                fmt::format(fmt::runtime(where), ranks)));
  }
  if (unfit.empty() && uneven > 0) {
    notes.push_back(fmt::format(
        "{}: optimizer parallel leaves {} of {} parameters whole, as {} parts do not divide their first axis",
        graph.title, uneven, graph.parameters.size(), parts));
  }
  return sharding;
}

}  // namespace hcclsim::hccl
