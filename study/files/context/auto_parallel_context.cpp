#include "study/files/context/auto_parallel_context.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "study/files/context/context_checks.hpp"

namespace hcclsim::study {
namespace {

using Kind = Literal::Kind;

constexpr std::array<std::string_view, 5> modes{"stand_alone", "data_parallel", "hybrid_parallel", "semi_auto_parallel",
                                                "auto_parallel"};
constexpr ModeSet all_modes{0b11111};
constexpr ModeSet reducing{0b11110};  ///< all but stand_alone
constexpr ModeSet graph_parallel{0b11000};
constexpr ModeSet searching{0b10000};
constexpr ModeSet fused_by_size{0b11010};   ///< … and data_parallel
constexpr ModeSet sharing_states{0b11010};  ///< … and data_parallel

constexpr std::array<ContextOption, 30> all_context_options{{
    {"device_num", Kind::integer, "", all_modes, "Devices of the run, 1 to 4096"},
    {"global_rank", Kind::integer, "", all_modes, "Rank whose figures are wanted, 0 to 4095"},
    {"gradients_mean", Kind::boolean, "False", reducing, "Reduced gradients are divided by the devices"},
    {"gradient_fp32_sync", Kind::boolean, "True", graph_parallel,
     "Gradients of cast parameters are reduced before their cast"},
    {"loss_repeated_mean", Kind::boolean, "True", graph_parallel,
     "A loss that several devices compute is divided by their number"},
    {"parallel_mode", Kind::text, "'stand_alone'", all_modes,
     "stand_alone, data_parallel, hybrid_parallel, semi_auto_parallel or auto_parallel"},
    {"search_mode", Kind::text, "'recursive_programming'", searching,
     "recursive_programming, sharding_propagation or dynamic_programming"},
    {"auto_parallel_search_mode", Kind::text, "", searching, "Deprecated name of search_mode"},
    {"sharding_propagation", Kind::boolean, "False", searching, "Deprecated: search_mode sharding_propagation"},
    {"parameter_broadcast", Kind::boolean, "False", reducing, "Rank 0's initial weights are sent to all"},
    {"strategy_ckpt_load_file", Kind::text, "''", graph_parallel, "File of strategies to load"},
    {"strategy_ckpt_save_file", Kind::text, "''", graph_parallel, "File for the strategies"},
    {"strategy_ckpt_config", Kind::dict, "{'load_file': '', 'save_file': '', 'only_trainable_params': True}",
     graph_parallel, "Both files and what they hold"},
    {"group_ckpt_save_file", Kind::text, "''", graph_parallel, "File for the groups"},
    {"full_batch", Kind::boolean, "False", graph_parallel, "Deprecated: dataset_strategy 'full_batch'"},
    {"dataset_strategy", Kind::none, "'data_parallel'", graph_parallel,
     "data_parallel, full_batch or a tuple of cuts per input"},
    {"enable_parallel_optimizer", Kind::boolean, "False", sharing_states,
     "Replicas share parameters and optimizer states"},
    {"parallel_optimizer_config", Kind::none,
     "{'gradient_accumulation_shard': False, 'parallel_optimizer_threshold': 64, 'optimizer_weight_shard_size': -1}",
     sharing_states, "gradient_accumulation_shard, parallel_optimizer_threshold (KB), optimizer_weight_shard_size"},
    {"optimizer_weight_shard_size", Kind::integer, "-1", graph_parallel,
     "Ranks that share a parameter, 2 or more: that of parallel_optimizer_config"},
    {"optimizer_weight_shard_aggregated_save", Kind::boolean, "False", graph_parallel,
     "Checkpoints hold whole parameters"},
    {"enable_alltoall", Kind::boolean, "False", graph_parallel, "Redistribution may use AllToAll"},
    {"force_fp32_communication", Kind::boolean, "False", reducing, "Reductions are done in fp32"},
    {"all_reduce_fusion_config", Kind::list, "", reducing, "Last parameter of each allreduce"},
    {"comm_fusion", Kind::dict,
     "{'openstate': True, 'allreduce': {'mode': 'auto', 'config': None}, "
     "'allgather': {'mode': 'auto', 'config': None}, 'reducescatter': {'mode': 'auto', 'config': None}}",
     fused_by_size, "allreduce, allgather, reducescatter: {'mode', 'config'}; openstate"},
    {"pipeline_stages", Kind::none, "1", graph_parallel, "Stages of a pipeline"},
    {"pipeline_segments", Kind::none, "1", graph_parallel, "Parts of the network that each stage has"},
    {"pipeline_result_broadcast", Kind::none, "False", graph_parallel, "All stages get the result of inference"},
    {"pipeline_config", Kind::none, "{'pipeline_interleave': False, 'pipeline_scheduler': '1f1b'}", graph_parallel,
     "pipeline_interleave, pipeline_scheduler"},
    {"grad_accumulation_step", Kind::integer, "1", all_modes, "1; several steps are a wrapper's business"},
    {"communi_parallel_mode", Kind::text, "'all_group_parallel'", graph_parallel,
     "all_group_parallel, same_server_group_parallel or no_group_parallel"},
}};

/// The slot of options that mean the same as another, or a key of it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> aliases{
    {{"auto_parallel_search_mode", "search_mode"},
     {"strategy_ckpt_load_file", "strategy_ckpt_config.load_file"},
     {"strategy_ckpt_save_file", "strategy_ckpt_config.save_file"},
     {"optimizer_weight_shard_size", "parallel_optimizer_config.optimizer_weight_shard_size"}}};

std::string_view slot_of(std::string_view key) {
  const auto* const found = std::ranges::find(aliases, key, &std::pair<std::string_view, std::string_view>::first);
  return found == aliases.end() ? key : found->second;
}

const ContextOption& option_of(std::string_view key) {
  const auto* const found = std::ranges::find(all_context_options, key, &ContextOption::key);
  if (found != all_context_options.end()) return *found;
  std::vector<std::string> keys;
  for (const ContextOption& option : all_context_options) keys.emplace_back(option.key);
  bad_input("value-error", "set_auto_parallel_context has no option '{}'{}; accepted: {}", key, did_you_mean(key, keys),
            fmt::join(keys, ", "));
}

Literal default_of(std::string_view slot) {
  const std::size_t dot = slot.find('.');
  const std::string_view text = option_of(slot.substr(0, dot)).default_value;
  if (text.empty()) return {};
  Literal value = *parse_literal(text);
  if (dot == std::string_view::npos) return value;
  const Literal* const member = value.find(slot.substr(dot + 1));
  return member == nullptr ? Literal{} : *member;
}

Literal literal_text(std::string_view text) { return {.kind = Kind::text, .text = std::string(text)}; }
Literal literal_bool(bool value) { return {.kind = Kind::boolean, .boolean = value}; }

/// Slots behind comm_fusion that no user names.
constexpr std::string_view shared_mode_slot = "fusion.mode";
constexpr std::string_view size_slots = "fusion.size.";
std::string size_slot(std::string_view kind) { return fmt::format("{}{}", size_slots, kind); }

}  // namespace

bool ModeSet::has(std::string_view mode) const {
  const auto place = static_cast<std::uint32_t>(std::ranges::find(modes, mode) - modes.begin());
  return ((bits >> place) & 1U) != 0;
}

std::span<const ContextOption> context_options() { return all_context_options; }

void AutoParallelContext::set(std::string_view key, const Literal& value) {
  const ContextOption& option = option_of(key);
  Literal filtered = value;
  if (option.kind != Kind::none && value.kind == Kind::none) {
    // The type filter lets None pass. What a setter only stores as a bool takes it as False; the others refuse it.
    if (option.kind == Kind::boolean) filtered = literal_bool(false);
  } else if (option.kind != Kind::none && value.kind != option.kind) {
    bad_input("type-error", "{} must be of type {}, got {} of type {}", key, name_of(option.kind), to_string(value),
              name_of(value.kind));
  }
  const auto before = values_;
  const std::size_t warned = warnings_.size();
  try {
    set_checked(key, filtered);
  } catch (const Error&) {
    values_ = before;
    warnings_.resize(warned);
    throw;
  }
  if (std::ranges::find(keys_, key) == keys_.end()) keys_.emplace_back(key);
}

void AutoParallelContext::set_checked(std::string_view key, const Literal& value) {
  if (key == "comm_fusion") return set_comm_fusion(value);
  const bool joined = key == "pipeline_config" && !compat_ && value.kind == Kind::dict;
  check_context_value({key, joined ? merged(key, value) : value, compat_, graph_mode_, limited_});
  if (key == "full_batch") {
    warnings_.emplace_back("full_batch is deprecated: use dataset_strategy");
    store("dataset_strategy", literal_text(value.boolean ? "full_batch" : "data_parallel"));
  } else if (key == "sharding_propagation") {
    warnings_.emplace_back("sharding_propagation is deprecated: use search_mode");
    if (value.boolean) store("search_mode", literal_text(key));
  } else if (key == "all_reduce_fusion_config") {
    set_fusion_of("allreduce", {.kind = Kind::dict, .members = {{"mode", literal_text("index")}, {"config", value}}});
  } else if (key == "optimizer_weight_shard_size") {
    set_shard_size(value);
  } else if (key == "parallel_optimizer_config") {
    for (const auto& [name, member] : value.members) {
      if (name == "optimizer_weight_shard_size") {
        set_shard_size(member);
      } else {
        store(fmt::format("{}.{}", key, name), member);
      }
    }
  } else if (value.kind == Kind::dict) {
    store_members(key, value);
  } else {
    if (key == "auto_parallel_search_mode") {
      warnings_.emplace_back("auto_parallel_search_mode is deprecated: use search_mode");
    }
    if (slot_of(key) == "search_mode") warn_of_search(value);
    store(slot_of(key), value);
  }
}

void AutoParallelContext::warn_of_search(const Literal& mode) {
  if (mode.text != "dynamic_programming") return;
  warnings_.emplace_back("search_mode dynamic_programming is no longer recommended: it takes long on large networks");
}

void AutoParallelContext::set_shard_size(const Literal& value) {
  if (value.integer > 1) return store(slot_of("optimizer_weight_shard_size"), value);
  warnings_.push_back(
      fmt::format("optimizer_weight_shard_size {} is ignored: nothing would be shared", to_string(value)));
}

void AutoParallelContext::set_comm_fusion(const Literal& value) {
  const ContextValue given{"comm_fusion", value, compat_, graph_mode_};
  check_fusion_keys(given);
  const auto closed = [this] {
    return find("comm_fusion.openstate") != nullptr && !get("comm_fusion").find("openstate")->boolean;
  };
  for (const auto& [kind, entry] : value.members) {
    // MindSpore 2.3 does not look at entries of what is closed, and does not open it again.
    if (compat_ && closed() && kind != "openstate") continue;
    check_fusion_entry(given, kind, entry);
    if (kind != "openstate") {
      set_fusion_of(kind, entry);
    } else if (!compat_ || !closed()) {
      store("comm_fusion.openstate", entry);
    }
  }
  // Where it is not said, it is True, behind all others.
  if (!compat_ && closed() && value.find("openstate") == nullptr) store("comm_fusion.openstate", literal_bool(true));
}

void AutoParallelContext::set_fusion_of(const std::string& kind, const Literal& entry) {
  const std::string& mode = entry.find("mode")->text;
  const Literal& config = *entry.find("config");
  store(fmt::format("comm_fusion.{}", kind), entry);
  store(shared_mode_slot, literal_text(mode));
  if (mode == "index") {
    store("all_reduce_fusion_config", config);
  } else {
    store(size_slot(kind), mode == "auto" ? Literal{.kind = Kind::integer, .integer = 64} : config);
  }
}

std::optional<std::int64_t> AutoParallelContext::fusion_size(std::string_view kind) const {
  const Literal* const size = find(size_slot(kind));
  if (size == nullptr) return std::nullopt;
  return size->integer;
}

std::string AutoParallelContext::shared_fusion_mode() const {
  const Literal* const mode = find(shared_mode_slot);
  return mode == nullptr ? "" : mode->text;
}

void AutoParallelContext::reset() {
  const auto forgotten = [this](std::string_view key) {
    return !compat_ || (key != "group_ckpt_save_file" && key != "pipeline_result_broadcast");
  };
  std::erase_if(values_, [&](const auto& one) { return forgotten(one.first); });
  std::erase_if(keys_, forgotten);
}

void AutoParallelContext::set_graph_mode(bool graph_mode) {
  for (const char* const key : {"parallel_mode", "dataset_strategy"}) {
    if (const Literal* const value = find(key)) check_context_value({key, *value, compat_, graph_mode});
  }
  graph_mode_ = graph_mode;
  has_mode_ = true;
}

void AutoParallelContext::set_device_target(const std::string& target) {
  constexpr std::array<std::string_view, 3> targets{"Ascend", "GPU", "CPU"};
  if (std::ranges::find(targets, target) == targets.end()) {
    bad_input("value-error", "device_target of set_context: accepted: {}; got '{}'", fmt::join(targets, ", "), target);
  }
  if (target == "CPU") warnings_.emplace_back("device_target CPU: only data_parallel is supported on CPU");
  device_target_ = target;
}

bool AutoParallelContext::keeps(const AutoParallelContext& other) const {
  if (other.has_mode_ && graph_mode_ != other.graph_mode_) return false;
  return std::ranges::all_of(other.values_, [&](const auto& slot) {
    const Literal* const value = find(slot.first);
    return value != nullptr && *value == slot.second;
  });
}

std::string AutoParallelContext::contradiction(const AutoParallelContext& other) const {
  for (const auto& [slot, value] : other.values_) {
    // What a kind of collective was last given is kept apart as well: its size, and the list of indices.
    const bool of_kind = slot.starts_with("comm_fusion.") && value.kind == Kind::dict;
    if (of_kind || slot == shared_mode_slot) continue;
    const Literal* const mine = find(slot);
    if (mine == nullptr || *mine == value) continue;
    const bool size = slot.starts_with(size_slots);
    return size ? fmt::format("comm_fusion.{}", slot.substr(size_slots.size())) : slot;
  }
  return "";
}

void AutoParallelContext::store(std::string_view slot, const Literal& value) {
  const auto found = std::ranges::find_if(values_, [&](const auto& one) { return one.first == slot; });
  if (found == values_.end()) {
    values_.emplace_back(std::string(slot), value);
  } else {
    found->second = value;
  }
}

void AutoParallelContext::store_members(std::string_view key, const Literal& dict) {
  for (const auto& [name, member] : dict.members) store(fmt::format("{}.{}", key, name), member);
}

const Literal* AutoParallelContext::find(std::string_view slot) const {
  const auto found = std::ranges::find_if(values_, [&](const auto& one) { return one.first == slot; });
  return found == values_.end() ? nullptr : &found->second;
}

bool AutoParallelContext::is_set(std::string_view key) const {
  const std::string_view slot = key == "full_batch" ? "dataset_strategy" : slot_of(key);
  const std::string member = fmt::format("{}.", slot);
  return std::ranges::any_of(values_,
                             [&](const auto& one) { return one.first == slot || one.first.starts_with(member); });
}

Literal AutoParallelContext::merged(std::string_view key, const Literal& value) const {
  Literal whole = get(key);
  for (const auto& [name, member] : value.members) {
    const auto same = std::ranges::find(whole.members, name, &std::pair<std::string, Literal>::first);
    if (same == whole.members.end()) {
      whole.members.emplace_back(name, member);
    } else {
      same->second = member;
    }
  }
  return whole;
}

Literal AutoParallelContext::get(std::string_view key) const {
  static_cast<void>(option_of(key));
  if (key == "full_batch") return literal_bool(text("dataset_strategy") == "full_batch");
  if (key == "sharding_propagation") return literal_bool(text("search_mode") == key);
  const std::string_view slot = slot_of(key);
  if (const Literal* const value = find(slot)) return *value;
  Literal value = default_of(slot);
  if (value.kind != Kind::dict) return value;
  for (auto& [name, member] : value.members) {
    if (const Literal* const set = find(fmt::format("{}.{}", slot, name))) member = *set;
  }
  return value;
}

Literal AutoParallelContext::read(std::string_view key) const {
  Literal value = get(key);
  const std::string mode = text("parallel_mode");
  if (key == "full_batch" && value.boolean && !graph_parallel.has(mode)) {
    bad_input("runtime-error", "full_batch True: it is of semi_auto_parallel and auto_parallel, parallel_mode is {}",
              mode);
  }
  return value;
}

std::optional<std::int64_t> AutoParallelContext::integer(std::string_view key) const {
  const Literal value = get(key);
  if (value.kind != Kind::integer) return std::nullopt;
  return value.integer;
}

}  // namespace hcclsim::study
