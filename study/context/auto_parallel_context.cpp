#include "study/context/auto_parallel_context.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "study/context/context_checks.hpp"

namespace hcclsim::study {
namespace {

using Kind = Literal::Kind;

constexpr std::array<ContextOption, 26> all_context_options{{
    {"device_num", Kind::integer, "", "Devices of the run, 1 to 4096"},
    {"global_rank", Kind::integer, "", "Rank whose figures are wanted, 0 to 4095"},
    {"gradients_mean", Kind::boolean, "False", "Reduced gradients are divided by the devices"},
    {"gradient_fp32_sync", Kind::boolean, "True", "Gradients of cast parameters are reduced before their cast"},
    {"loss_repeated_mean", Kind::boolean, "True", "A loss that several devices compute is divided by their number"},
    {"parallel_mode", Kind::text, "'stand_alone'",
     "stand_alone, data_parallel, hybrid_parallel, semi_auto_parallel or auto_parallel"},
    {"search_mode", Kind::text, "'recursive_programming'",
     "recursive_programming, sharding_propagation or dynamic_programming"},
    {"auto_parallel_search_mode", Kind::text, "", "Deprecated name of search_mode"},
    {"parameter_broadcast", Kind::boolean, "False", "Rank 0's initial weights are sent to all"},
    {"strategy_ckpt_load_file", Kind::text, "''", "File of strategies to load"},
    {"strategy_ckpt_save_file", Kind::text, "''", "File for the strategies"},
    {"strategy_ckpt_config", Kind::dict, "{'load_file': '', 'save_file': '', 'only_trainable_params': True}",
     "Both files and what they hold"},
    {"group_ckpt_save_file", Kind::text, "''", "File for the groups"},
    {"full_batch", Kind::boolean, "False", "Deprecated: dataset_strategy 'full_batch'"},
    {"dataset_strategy", Kind::none, "'data_parallel'", "data_parallel, full_batch or a tuple of cuts per input"},
    {"enable_parallel_optimizer", Kind::boolean, "False", "Replicas share parameters and optimizer states"},
    {"parallel_optimizer_config", Kind::dict,
     "{'gradient_accumulation_shard': False, 'parallel_optimizer_threshold': 64}",
     "gradient_accumulation_shard, parallel_optimizer_threshold (KB), optimizer_weight_shard_size"},
    {"enable_alltoall", Kind::boolean, "False", "Redistribution may use AllToAll"},
    {"force_fp32_communication", Kind::boolean, "False", "Reductions are done in fp32"},
    {"all_reduce_fusion_config", Kind::list, "", "Last parameter of each allreduce"},
    {"comm_fusion", Kind::dict, "", "allreduce, allgather, reducescatter: {'mode', 'config'}; openstate"},
    {"pipeline_stages", Kind::none, "1", "Stages of a pipeline"},
    {"pipeline_result_broadcast", Kind::boolean, "False", "All stages get the result of inference"},
    {"pipeline_config", Kind::dict, "{'pipeline_interleave': False, 'pipeline_scheduler': '1f1b'}",
     "pipeline_interleave, pipeline_scheduler"},
    {"grad_accumulation_step", Kind::integer, "1", "1; several steps are a wrapper's business"},
    {"communi_parallel_mode", Kind::text, "'all_group_parallel'",
     "all_group_parallel, same_server_group_parallel or no_group_parallel"},
}};

const ContextOption& option_of(std::string_view key) {
  const auto* const found = std::ranges::find(all_context_options, key, &ContextOption::key);
  if (found != all_context_options.end()) return *found;
  std::vector<std::string> keys;
  for (const ContextOption& option : all_context_options) keys.emplace_back(option.key);
  bad_input("value-error", "set_auto_parallel_context has no option '{}'; accepted: {}", key, fmt::join(keys, ", "));
}

}  // namespace

std::span<const ContextOption> context_options() { return all_context_options; }

void AutoParallelContext::set(std::string_view key, const Literal& value) {
  const ContextOption& option = option_of(key);
  // What a type filter lets pass: None, and an int may be a bool only where none is asked for.
  if (value.kind == Kind::none) return;
  if (option.kind != Kind::none && value.kind != option.kind) {
    bad_input("type-error", "{} must be of type {}, got {} of type {}", key, name_of(option.kind), to_string(value),
              name_of(value.kind));
  }
  check_context_value({key, value, compat_, graph_mode});
  if (key == "auto_parallel_search_mode") {
    warnings_.emplace_back("auto_parallel_search_mode is deprecated: use search_mode");
    store("search_mode", value);
    return;
  }
  if (key == "strategy_ckpt_load_file" || key == "strategy_ckpt_save_file") {
    // The setter that ran last counts: all of them write to one record.
    Literal both = get("strategy_ckpt_config");
    const std::string_view member = key == "strategy_ckpt_load_file" ? "load_file" : "save_file";
    for (auto& [name, file] : both.members) {
      if (name == member) file = value;
    }
    store("strategy_ckpt_config", both);
  }
  if (key == "full_batch") {
    warnings_.emplace_back("full_batch is deprecated: use dataset_strategy");
    store("dataset_strategy", {.kind = Kind::text, .text = value.boolean ? "full_batch" : "data_parallel"});
  }
  if (key == "search_mode" && value.text == "dynamic_programming") {
    warnings_.emplace_back("search_mode dynamic_programming is no longer recommended: it takes long on large networks");
  }
  store(key, value);
}

void AutoParallelContext::store(std::string_view key, const Literal& value) {
  const auto found = std::ranges::find_if(values_, [&](const auto& one) { return one.first == key; });
  if (found == values_.end()) {
    values_.emplace_back(std::string(key), value);
  } else {
    found->second = value;
  }
}

const Literal* AutoParallelContext::find(std::string_view key) const {
  const auto found = std::ranges::find_if(values_, [&](const auto& one) { return one.first == key; });
  return found == values_.end() ? nullptr : &found->second;
}

Literal AutoParallelContext::get(std::string_view key) const {
  const ContextOption& option = option_of(key == "auto_parallel_search_mode" ? "search_mode" : key);
  const Literal* value = find(option.key);
  if (value == nullptr) return option.default_value.empty() ? Literal{} : *parse_literal(option.default_value);
  if (value->kind != Kind::dict) return *value;
  // What a dict leaves out has its default.
  Literal whole = *value;
  const Literal defaults =
      option.default_value.empty() ? Literal{.kind = Kind::dict} : *parse_literal(option.default_value);
  for (const auto& [name, standard] : defaults.members) {
    if (whole.find(name) == nullptr) whole.members.emplace_back(name, standard);
  }
  return whole;
}

std::optional<std::int64_t> AutoParallelContext::integer(std::string_view key) const {
  const Literal value = get(key);
  if (value.kind != Kind::integer) return std::nullopt;
  return value.integer;
}

}  // namespace hcclsim::study
