#include "study/files/context/context_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "study/files/context/auto_parallel_context.hpp"

namespace hcclsim::study {
namespace {

using Kind = Literal::Kind;

void require_kind(std::string_view what, const Literal& value, Kind kind) {
  if (value.kind == kind) return;
  bad_input("type-error", "{} must be of type {}, got {} of type {}", what, name_of(kind), to_string(value),
            name_of(value.kind));
}

void require_range(const ContextValue& given, std::int64_t lowest, std::int64_t highest) {
  require_kind(given.key, given.value, Kind::integer);
  if (given.value.integer >= lowest && given.value.integer <= highest) return;
  bad_input("value-error", "{} must be {} to {}, got {}", given.key, lowest, highest, to_string(given.value));
}

void require_word(std::string_view what, const Literal& value, const std::vector<std::string_view>& words,
                  std::string_view kind = "value-error") {
  if (value.kind == Kind::text && std::ranges::find(words, value.text) != words.end()) return;
  bad_input(kind, "{}: accepted: {}; got {}", what, fmt::join(words, ", "), to_string(value));
}

void require_known_keys(const ContextValue& given, const std::vector<std::string_view>& keys, std::string_view kind) {
  for (const auto& [key, value] : given.value.members) {
    if (std::ranges::find(keys, key) != keys.end()) continue;
    const std::vector<std::string> known(keys.begin(), keys.end());
    bad_input(kind, "{} has no key '{}'{}; accepted: {}", given.key, key, did_you_mean(key, known),
              fmt::join(keys, ", "));
  }
}

void check_index_list(std::string_view what, const Literal& value) {
  require_kind(what, value, Kind::list);
  if (value.items.empty()) bad_input("value-error", "{}: the list is empty", what);
  for (const Literal& item : value.items) require_kind(fmt::format("{}: an element", what), item, Kind::integer);
  const auto wrong =
      std::ranges::adjacent_find(value.items, [](const Literal& one, const Literal& next) { return !less(one, next); });
  if (wrong != value.items.end()) {
    bad_input("value-error", "{}: the indices must ascend, got {}", what, to_string(value));
  }
  if (value.items.front().integer < 0) bad_input("value-error", "{}: an index is negative", what);
}

void check_fusion_of(const ContextValue& given, const std::string& type, const Literal& entry) {
  const std::string what = fmt::format("comm_fusion['{}']", type);
  require_kind(what, entry, Kind::dict);
  const Literal* mode = entry.find("mode");
  const Literal* config = entry.find("config");
  if (mode == nullptr || config == nullptr) bad_input("key-error", "{} needs both 'mode' and 'config'", what);
  std::vector<std::string_view> modes{"auto", "size"};
  if (type == "allreduce") modes.emplace_back("index");
  require_word(fmt::format("{}['mode']", what), *mode, modes, "key-error");
  if (mode->text == "index") {
    check_index_list(fmt::format("{}['config']", what), *config);
  } else if (mode->text == "size") {
    require_kind(fmt::format("{}['config']", what), *config, Kind::integer);
    const std::int64_t lowest = given.compat ? 0 : 1;
    if (config->integer < lowest || config->integer > UINT32_MAX) {
      bad_input("value-error", "{}: a size is {} to {} MB, got {}", what, lowest, UINT32_MAX, to_string(*config));
    }
  }
}

void check_pipeline_config(const ContextValue& given) {
  require_kind(given.key, given.value, Kind::dict);
  require_known_keys(given, {"pipeline_interleave", "pipeline_scheduler"}, "value-error");
  const Literal* interleave = given.value.find("pipeline_interleave");
  const Literal* scheduler = given.value.find("pipeline_scheduler");
  if (given.compat && (interleave == nullptr || scheduler == nullptr)) {
    bad_input("key-error", "pipeline_config needs both pipeline_interleave and pipeline_scheduler");
  }
  if (interleave != nullptr) require_kind("pipeline_interleave", *interleave, Kind::boolean);
  if (scheduler != nullptr) require_word("pipeline_scheduler", *scheduler, {"1f1b", "gpipe"});
  const bool plain = interleave == nullptr || !interleave->boolean;
  if (plain && scheduler != nullptr && scheduler->text == "gpipe") {
    bad_input("value-error", "pipeline_scheduler 'gpipe' needs pipeline_interleave True");
  }
}

void check_optimizer_config(const ContextValue& given) {
  require_kind(given.key, given.value, Kind::dict);
  require_known_keys(given,
                     {"gradient_accumulation_shard", "parallel_optimizer_threshold", "optimizer_weight_shard_size"},
                     "value-error");
  if (const Literal* shard = given.value.find("gradient_accumulation_shard")) {
    require_kind("gradient_accumulation_shard", *shard, Kind::boolean);
  }
  if (const Literal* threshold = given.value.find("parallel_optimizer_threshold")) {
    require_kind("parallel_optimizer_threshold", *threshold, Kind::integer);
    if (threshold->integer < 0 || threshold->integer > UINT32_MAX) {
      bad_input("value-error", "parallel_optimizer_threshold is in KB, 0 to {}; got {}", UINT32_MAX,
                to_string(*threshold));
    }
  }
  if (const Literal* size = given.value.find("optimizer_weight_shard_size")) {
    require_kind("optimizer_weight_shard_size", *size, Kind::integer);
    if (size->integer <= 0 || size->integer > UINT32_MAX) {
      bad_input("value-error", "optimizer_weight_shard_size must be 1 to {}, got {}", UINT32_MAX, to_string(*size));
    }
  }
}

void check_dataset_strategy(const ContextValue& given) {
  if (given.value.kind == Kind::text) {
    require_word("dataset_strategy", given.value, {"data_parallel", "full_batch"});
    return;
  }
  require_kind("dataset_strategy", given.value, Kind::tuple);
  if (!given.graph_mode) bad_input("value-error", "dataset_strategy: a tuple needs graph mode");
  for (const Literal& input : given.value.items) {
    require_kind("dataset_strategy: an element", input, Kind::tuple);
    for (const Literal& cut : input.items) require_kind("dataset_strategy: a cut", cut, Kind::integer);
  }
}

void check_strategy_config(const ContextValue& given) {
  require_kind(given.key, given.value, Kind::dict);
  require_known_keys(given, {"load_file", "save_file", "only_trainable_params"}, "value-error");
  for (const auto& [key, value] : given.value.members) {
    require_kind(key, value, key == "only_trainable_params" ? Kind::boolean : Kind::text);
  }
}

void check_mode(const ContextValue& given) {
  require_word("parallel_mode", given.value,
               {"stand_alone", "data_parallel", "hybrid_parallel", "semi_auto_parallel", "auto_parallel"});
  const bool graph_only = given.value.text == "hybrid_parallel" || given.value.text == "semi_auto_parallel";
  if (!given.graph_mode && graph_only) {
    bad_input("value-error", "parallel_mode {} needs graph mode", given.value.text);
  }
}

void check_count(const ContextValue& given) {
  require_kind(given.key, given.value, Kind::integer);
  if (given.value.integer >= 1 && given.value.integer <= UINT32_MAX) return;
  bad_input("value-error", "{} must be 1 to {}, got {}", given.key, UINT32_MAX, to_string(given.value));
}

}  // namespace

void check_fusion_keys(const ContextValue& given) {
  require_kind(given.key, given.value, Kind::dict);
  require_known_keys(given, {"openstate", "allreduce", "allgather", "reducescatter"}, "key-error");
}

void check_fusion_entry(const ContextValue& given, const std::string& key, const Literal& entry) {
  if (key == "openstate") {
    require_kind("comm_fusion['openstate']", entry, Kind::boolean);
  } else {
    check_fusion_of(given, key, entry);
  }
}

void check_context_value(const ContextValue& given) {
  const std::string_view key = given.key;
  const std::int64_t most_devices = given.limited ? 4096 : UINT32_MAX;
  if (key == "device_num") return require_range(given, 1, most_devices);
  if (key == "global_rank") return require_range(given, 0, most_devices - 1);
  if (key == "parallel_mode") return check_mode(given);
  if (key == "search_mode" || key == "auto_parallel_search_mode") {
    return require_word(key, given.value, {"recursive_programming", "sharding_propagation", "dynamic_programming"});
  }
  if (key == "all_reduce_fusion_config") return check_index_list(key, given.value);
  if (key == "pipeline_config") return check_pipeline_config(given);
  if (key == "parallel_optimizer_config") return check_optimizer_config(given);
  if (key == "dataset_strategy") return check_dataset_strategy(given);
  if (key == "strategy_ckpt_config") return check_strategy_config(given);
  if (key == "pipeline_stages" || key == "pipeline_segments") return check_count(given);
  if (key == "pipeline_result_broadcast") return require_kind(key, given.value, Kind::boolean);
  if (key == "optimizer_weight_shard_size") return require_range(given, INT64_MIN, UINT32_MAX);
  if (key == "grad_accumulation_step") {
    require_kind(key, given.value, Kind::integer);
    if (given.value.integer == 1) return;
    bad_input("value-error",
              "grad_accumulation_step must be 1, got {}: micro-batches are a wrapper's business (--accumulate)",
              to_string(given.value));
  }
  if (key == "communi_parallel_mode") {
    return require_word(key, given.value, {"all_group_parallel", "same_server_group_parallel", "no_group_parallel"});
  }
  for (const ContextOption& option : context_options()) {
    if (option.key == key && option.kind == Kind::text) require_kind(key, given.value, Kind::text);
  }
}

}  // namespace hcclsim::study
