#include "study/run/experiment/sharding/sharding.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "device/kernel_cost.hpp"
#include "hccl/parallel/experts/expert_parallel.hpp"
#include "hccl/parallel/sharding/presets.hpp"
#include "hccl/parallel/sharding/shard_graph.hpp"
#include "hccl/parallel/sharding/sharded_stages.hpp"
#include "models/dropless.hpp"
#include "models/repeated_heads.hpp"
#include "study/files/strategy/operator_strategies.hpp"
#include "study/run/experiment/sharding/find_strategies.hpp"

namespace hcclsim::study {
namespace {

/// Does some work with the operators of a file. An error about one of them, whose name it begins with, says where the
/// file has its strategy.
hccl::ShardedGraph with_places(const OperatorStrategies& of_file, const std::function<hccl::ShardedGraph()>& work) {
  try {
    return work();
  } catch (const Error& error) {
    const std::string message = error.what();
    const auto place = of_file.places.find(message.substr(0, message.find(':')));
    if (place == of_file.places.end()) throw;
    throw Error(error.code(), error.kind(), fmt::format("{}: {}", place->second, message));
  }
}

hccl::ShardedGraph share_experts(hccl::ShardedGraph network, const OperatorParallel& operators) {
  if (operators.experts <= 1) return network;
  return hccl::share_experts(
      std::move(network),
      {.ranks = operators.experts, .load = {.skew = operators.expert_skew, .seed = operators.expert_seed}});
}

/// Whole experts take rows that differ between devices of a model-parallel group.
void check_whole_experts(const models::Graph& network, const OperatorParallel& operators) {
  if (!operators.expert_model.has_value()) return;
  if (*operators.expert_model != 1 && *operators.expert_model != operators.model) {
    bad_input("option",
              "--expert-tensor-parallel {}: the features of experts are shared by 1 rank, or by the {} of "
              "--model-parallel",
              *operators.expert_model, operators.model);
  }
  const auto dispatch = std::ranges::find(network.operators, models::OperatorKind::dispatch, &models::Operator::kind);
  if (dispatch == network.operators.end()) {
    bad_input("option", "--expert-tensor-parallel does not go with {}, which has no experts", network.title);
  }
  if (operators.whole_experts() && !(operators.sequence && dispatch->of_parts)) {
    bad_input("option",
              "--expert-tensor-parallel 1 needs rows that ranks do not share: --sequence-parallel on, and "
              "--moe-capacity dropless or --moe-capacity-of-parts on");
  }
}

/// Parts of the axes of the samples; none: as operators need them.
std::optional<hccl::Cuts> cuts_of_samples(const std::optional<DatasetParts>& parts, const models::Shape& samples,
                                          Rank devices) {
  if (!parts.has_value()) return std::nullopt;
  if (parts->kind == DatasetParts::Kind::axes) return parts->axes;
  hccl::Cuts cuts(samples.rank(), 1);
  if (parts->kind == DatasetParts::Kind::samples) cuts.front() = static_cast<std::uint32_t>(devices);
  return cuts;
}

/// What MindSpore's search finds, beginning at the strategies of the file or leaving them as they are.
hccl::StrategyMap searched(const models::Graph& network, const ParallelSpec& spec, const hccl::PipelineShape& shape,
                           const OperatorStrategies& of_file, Rank devices, std::vector<std::string>& notes) {
  StrategySearch search{.mode = *spec.operators.search, .given = of_file.strategies};
  search.given.insert(of_file.others.begin(), of_file.others.end());
  search.options.enable_alltoall = spec.operators.all_to_all;
  search.options.training = !shape.forward_only;
  FoundMap found = find_strategies(network, search, devices, shape.stages);
  notes.insert(notes.end(), found.found.notes.begin(), found.found.notes.end());
  if (search.mode == StrategySearchMode::recursive_programming && !search.given.empty()) {
    notes.push_back(
        fmt::format("recursive_programming decides about every operator: strategies of {} count before it here, "
                    "MindSpore may overwrite them",
                    spec.operators.strategy.empty() ? spec.operators.loaded : spec.operators.strategy));
  }
  return std::move(found.strategies);
}

/// What the figures of a device stand for where devices, or their hosts, differ.
void note_tables(const hccl::ShardedGraph& network, std::vector<std::string>& notes) {
  for (const models::Operator& op : network.graph.operators) {
    if (!op.row_parts.empty()) {
      notes.push_back(fmt::format("{}: devices have {} rows of its table; time and HBM are those of the most", op.name,
                                  fmt::join(op.row_parts, ", ")));
    }
    if (op.on_host) {
      notes.push_back(
          fmt::format("{}: its table is in the memory of the host, which is assumed to move {:.1f} GB/s for each NPU",
                      op.name, device::host_memory_bandwidth / giga));
    }
  }
}

}  // namespace

OperatorStrategies strategies_of_file(const models::Graph& network, const OperatorParallel& operators, Rank devices,
                                      std::vector<std::string>& notes) {
  OperatorStrategies read;
  if (!operators.strategy.empty()) read = read_operator_strategies(operators.strategy, network, devices, notes);
  if (!operators.loaded.empty()) {
    add_checkpoint(read, read_operator_strategies(operators.loaded, network, devices, notes));
  }
  return read;
}

hccl::StrategyMap strategies_of(models::Graph& network, const ParallelSpec& spec, const hccl::PipelineShape& shape,
                                const OperatorStrategies& of_file, Rank devices, std::vector<std::string>& notes) {
  const OperatorParallel& operators = spec.operators;
  hccl::StrategyMap strategies;
  check_whole_experts(network, operators);
  if (operators.sharing() > 1) {
    strategies =
        hccl::transformer_strategies(network, {.data = static_cast<std::uint32_t>(devices / operators.sharing()),
                                               .context = operators.context,
                                               .model = operators.model,
                                               .sequence_parallel = operators.sequence,
                                               .vocabulary_parallel = operators.vocabulary,
                                               .whole_experts = operators.whole_experts(),
                                               .context_kind = operators.context_kind});
  }
  const std::set<std::string> again(of_file.recomputed.begin(), of_file.recomputed.end());
  for (models::Operator& op : network.operators) op.recompute = op.recompute || again.contains(op.name);
  for (const auto& [name, strategy] : of_file.strategies) strategies.insert_or_assign(name, strategy);
  for (const auto& [name, strategy] : operators.found) strategies.insert_or_assign(name, strategy);
  strategies.insert(of_file.others.begin(), of_file.others.end());
  if (operators.search.has_value()) strategies.merge(searched(network, spec, shape, of_file, devices, notes));
  return strategies;
}

void place_layers(const OperatorStrategies& of_file, const models::Graph& network, const hccl::PipelineShape& shape,
                  ParallelSpec& spec) {
  const bool otherwise = !spec.stage_layers.empty() || spec.balanced || shape.chunks > 1;
  if (of_file.stages.empty() || (of_file.is_checkpoint && otherwise)) return;
  if (otherwise) {
    bad_input("option", "{}: it gives operators to stages: leave out --stage-layers and --chunks, or that",
              spec.operators.strategy);
  }
  spec.stage_layers = layers_of_stages(of_file, network, shape.stages);
}

hccl::ShardedGraph shard_network(models::Graph network, const ParallelSpec& spec, const hccl::PipelineShape& shape,
                                 Rank devices, std::vector<std::string>& notes) {
  const OperatorParallel& operators = spec.operators;
  if (!operators.cuts()) {
    hccl::ShardedGraph whole = hccl::replicated(std::move(network), devices);
    if (!operators.common_statistics || shape.forward_only) return whole;
    whole = hccl::with_common_statistics(std::move(whole));
    if (!whole.families.empty()) {
      notes.push_back(
          fmt::format("batch norms take the statistics of the samples of all {} devices: SyncBatchNorm, as "
                      "MindSpore's compiler has it",
                      devices));
    }
    return whole;
  }
  // Positions are exchanged for heads as the kind of context parallelism says, whatever else is done.
  const bool exchanges = operators.context > 1 && operators.context_kind == hccl::ContextKind::ulysses;
  if (exchanges && !operators.has_files()) network = models::repeat_shared_heads(network, operators.sharing());
  network =
      models::with_even_places(std::move(network), operators.context * (operators.sequence ? operators.model : 1));
  const OperatorStrategies of_file = strategies_of_file(network, operators, devices, notes);
  const hccl::StrategyMap strategies = strategies_of(network, spec, shape, of_file, devices, notes);
  std::optional<DatasetParts> dataset = operators.dataset;
  if (of_file.has_regions && !dataset.has_value()) {
    dataset = DatasetParts{};
    notes.emplace_back("shard: without a dataset_strategy every device reads the whole batch, as MindSpore sets it");
  }
  hccl::ShardedGraph sharded = with_places(of_file, [&] {
    return hccl::shard_graph(network, strategies, devices,
                             {.enable_alltoall = operators.all_to_all || exchanges,
                              .loss_repeated_mean = operators.loss_repeated_mean,
                              .dataset = cuts_of_samples(dataset, network.operators.front().shape(), devices)});
  });
  bool cut = false;
  for (std::uint32_t parameter = 0; parameter < sharded.parameters.size(); ++parameter) {
    cut = cut || sharded.is_cut(parameter);
  }
  if (operators.model > 1 && !operators.has_files() && !cut) {
    bad_input("option",
              "--model-parallel {}: {} has no layers of a transformer that ranks could share; --strategy FILE cuts "
              "single operators",
              operators.model, network.title);
  }
  note_tables(sharded, notes);
  return share_experts(std::move(sharded), operators);
}

}  // namespace hcclsim::study
