#include "study/files/strategy/shard_regions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "hccl/parallel/sharding/region.hpp"

namespace hcclsim::study {
namespace {

constexpr std::array<std::string_view, 6> region_keys{"operators",      "in_strategy", "out_strategy",
                                                      "parameter_plan", "device",      "level"};

bool is_none(const Json& json) { return json.is_null() || (json.is_string() && json.text() == "None"); }

class RegionReader {
 public:
  RegionReader(const std::string& where, const Json& table, const models::Graph& network,
               std::vector<std::string>& notes)
      : where_(where), table_(table), network_(network), notes_(notes) {}

  [[nodiscard]] hccl::ShardRegion read() {
    for (const Json::Member& member : table_.items()) {
      if (std::ranges::find(region_keys, member.key) != region_keys.end()) continue;
      const std::vector<std::string> known(region_keys.begin(), region_keys.end());
      bad_input("strategy", "{}: unknown key '{}'{}; accepted: {}", where_, member.key, did_you_mean(member.key, known),
                fmt::join(region_keys, ", "));
    }
    hccl::ShardRegion region;
    read_operators(region);
    read_inputs(region);
    read_parameters(region);
    check_idle();
    return region;
  }

 private:
  template <typename... Args>
  [[noreturn]] void type_error(fmt::format_string<Args...> text, Args&&... args) const {
    bad_input("type-error", "{}: {}", where_, fmt::format(text, std::forward<Args>(args)...));
  }

  void read_operators(hccl::ShardRegion& region) const {
    const Json* patterns = table_.find("operators");
    if (patterns == nullptr) bad_input("strategy", "{}: operators is missing: patterns of names", where_);
    for (const Json& pattern : patterns->is_array() ? *patterns : Json::array({*patterns})) {
      if (!pattern.is_string()) type_error("operators: {} is no pattern of names", pattern.dump());
      bool found = false;
      for (models::OperatorId id = 0; id < network_.operators.size(); ++id) {
        const models::Operator& op = network_.operators[id];
        if (op.kind == models::OperatorKind::input || !matches(pattern.text(), op.name)) continue;
        region.operators.insert(id);
        found = true;
      }
      if (found) continue;
      bad_input("strategy", "{}: '{}': {} has no operator with such a name", where_, pattern.text(), network_.title);
    }
  }

  void read_inputs(hccl::ShardRegion& region) const {
    const Json* inputs = table_.find("in_strategy");
    if (inputs == nullptr || !inputs->is_array()) {
      type_error("in_strategy is a list, of what cuts each tensor that comes from outside");
    }
    for (const Json& input : *inputs) {
      region.inputs.emplace_back();
      if (!is_none(input)) region.inputs.back() = cuts_of("in_strategy", input);
    }
  }

  [[nodiscard]] hccl::Cuts cuts_of(std::string_view key, const Json& json) const {
    if (!json.is_array()) type_error("{}: {} is neither a list of whole numbers nor \"None\"", key, json.dump());
    hccl::Cuts cuts;
    for (const Json& number : json) {
      if (!number.is_number_integer()) type_error("{}: {} is no whole number", key, number.dump());
      const auto parts = number.get<std::int64_t>();
      if (parts < 1 || parts > std::int64_t{UINT32_MAX}) {
        bad_input("value-error", "{}: {}: {} is no number of parts, 1 or more", where_, key, parts);
      }
      cuts.push_back(static_cast<std::uint32_t>(parts));
    }
    return cuts;
  }

  void read_parameters(hccl::ShardRegion& region) const {
    const Json* plan = table_.find("parameter_plan");
    if (plan == nullptr || is_none(*plan)) return;
    if (!plan->is_object()) type_error("parameter_plan is a table: the name of a parameter, and what cuts its axes");
    for (const Json::Member& member : plan->items()) {
      if (!member.value.is_array()) type_error("parameter_plan: {} is no list", member.value.dump());
      const hccl::Cuts cuts = cuts_of("parameter_plan", member.value);
      if (has_parameter(region, member.key)) {
        region.parameters.emplace(member.key, cuts);
      } else {
        notes_.push_back(
            fmt::format("{}: parameter_plan: the region has no parameter '{}'; it is ignored", where_, member.key));
      }
    }
  }

  [[nodiscard]] bool has_parameter(const hccl::ShardRegion& region, std::string_view name) const {
    return std::ranges::any_of(region.operators, [&](models::OperatorId id) {
      return std::ranges::any_of(network_.operators[id].parameters,
                                 [&](std::uint32_t parameter) { return network_.parameters[parameter].name == name; });
    });
  }

  /// What MindSpore takes, and does nothing with.
  void check_idle() const {
    const Json* output = table_.find("out_strategy");
    if (output != nullptr && !output->is_array() && !is_none(*output)) {
      type_error("out_strategy is a list or \"None\", got {}", output->dump());
    }
    const Json* device = table_.find("device");
    if (device != nullptr && !device->is_string()) type_error("device is a text, got {}", device->dump());
    if (device != nullptr && device->text() != "Ascend" && device->text() != "GPU") {
      bad_input("value-error", "{}: device is Ascend or GPU, got '{}'", where_, device->text());
    }
    const Json* level = table_.find("level");
    if (level != nullptr && !level->is_number_integer()) type_error("level is a whole number, got {}", level->dump());
    for (const char* const key : {"out_strategy", "device", "level"}) {
      if (table_.contains(key)) notes_.push_back(fmt::format("{}: {} has no effect, as in MindSpore", where_, key));
    }
  }

  const std::string& where_;
  const Json& table_;
  const models::Graph& network_;
  std::vector<std::string>& notes_;
};

}  // namespace

hccl::StrategyMap strategies_of_region(const std::string& where, const Json& table, const models::Graph& network,
                                       Rank devices, std::vector<std::string>& notes) {
  const hccl::ShardRegion region = RegionReader(where, table, network, notes).read();
  try {
    return hccl::region_strategies(network, region, devices);
  } catch (const Error& error) {
    throw Error(error.code(), error.kind(), where + ": " + error.what());
  }
}

}  // namespace hcclsim::study
