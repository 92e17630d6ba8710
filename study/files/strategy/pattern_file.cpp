#include "study/files/strategy/pattern_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/config_file.hpp"
#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "study/files/strategy/layout_text.hpp"
#include "study/files/strategy/named_layouts.hpp"
#include "study/files/strategy/shard_regions.hpp"

namespace hcclsim::study {
namespace {

constexpr std::array<std::string_view, 10> strategy_keys{"strategy",  "out_strategy", "device_matrix",    "alias_name",
                                                         "layout",    "manual_split", "primitive_target", "group_size",
                                                         "recompute", "stage"};

/// [[shard]], and no operator of that name.
bool is_regions(const Json::Member& member) {
  return member.key == "shard" && member.value.is_array() && !member.value.empty() && member.value.front().is_object();
}

class PatternFile {
 public:
  PatternFile(const std::string& path, const models::Graph& network)
      : path_(path), network_(network), file_(read_toml(path)) {
    const Json* layout = file_.json.find("layout");
    where_ = path_ + ": 'layout'";
    if (layout != nullptr && layout->is_string()) layout_ = parse_layout(where_, layout->text());
  }

  OperatorStrategies read(Rank devices, std::vector<std::string>& notes) {
    std::vector<std::pair<std::string, hccl::OperatorStrategy>> patterns;
    OperatorStrategies result;
    for (const Json::Member& member : file_.json.items()) {
      where_ = fmt::format("{}:{}: '{}'", path_, line_of(member.key), member.key);
      if (member.key == "layout" && member.value.is_string()) continue;
      if (is_regions(member)) {
        std::size_t number = 0;
        for (const Json& region : member.value) {
          const std::string where = fmt::format("{}: [[shard]] {}", path_, ++number);
          hccl::StrategyMap of_region = strategies_of_region(where, region, network_, devices, notes);
          result.strategies.merge(of_region);
          for (const auto& [name, strategy] : of_region) {
            notes.push_back(
                fmt::format("{}: {} keeps the strategy of a region before; that of this one is ignored", where, name));
          }
        }
        result.has_regions = true;
        continue;
      }
      const std::vector<std::string> operators = operators_of(member.key);
      for (const std::string& name : operators) result.places.insert_or_assign(name, where_);
      if (member.value.is_object()) read_keys(member.value, operators, result);
      std::optional<hccl::OperatorStrategy> strategy = strategy_of(member.value);
      if (strategy.has_value()) patterns.emplace_back(member.key, std::move(*strategy));
    }
    for (auto& [name, strategy] : hccl::match_strategies(network_, patterns)) {
      result.strategies.insert_or_assign(name, std::move(strategy));
    }
    for (const auto& [name, again] : recomputed_) {
      if (again) result.recomputed.push_back(name);
    }
    return result;
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    bad_input("strategy", "{}: {}", where_, fmt::format(text, std::forward<Args>(args)...));
  }
  template <typename... Args>
  [[noreturn]] void type_error(fmt::format_string<Args...> text, Args&&... args) const {
    bad_input("type-error", "{}: {}", where_, fmt::format(text, std::forward<Args>(args)...));
  }

  [[nodiscard]] std::size_t line_of(const std::string& key) const {
    const auto line = file_.lines.find(key);
    return line == file_.lines.end() ? 0 : line->second;
  }

  /// Names of the operators that fit a pattern.
  [[nodiscard]] std::vector<std::string> operators_of(const std::string& pattern) const {
    std::vector<std::string> names;
    std::vector<std::string> all;
    for (const models::Operator& op : network_.operators) {
      all.push_back(op.name);
      if (matches(pattern, op.name)) names.push_back(op.name);
    }
    if (names.empty()) fail("no operator of {} has such a name{}", network_.title, did_you_mean(pattern, all));
    return names;
  }

  /// Keys that say nothing about cuts.
  void read_keys(const Json& table, const std::vector<std::string>& operators, OperatorStrategies& result) {
    for (const Json::Member& member : table.items()) {
      if (std::ranges::find(strategy_keys, member.key) != strategy_keys.end()) continue;
      const std::vector<std::string> known(strategy_keys.begin(), strategy_keys.end());
      fail("unknown key '{}'{}; accepted: {}", member.key, did_you_mean(member.key, known),
           fmt::join(strategy_keys, ", "));
    }
    if (const Json* again = table.find("recompute")) {
      if (!again->is_boolean()) fail("recompute is true or false");
      for (const std::string& name : operators) recomputed_[name] = again->get<bool>();
    }
    if (const Json* stage = table.find("stage")) {
      for (const std::string& name : operators) result.stages[name] = whole_number(*stage, "stage", 0);
    }
  }

  [[nodiscard]] std::uint32_t whole_number(const Json& number, std::string_view what, std::int64_t least) const {
    if (!number.is_number_integer()) type_error("{}: {} is no whole number", what, number.dump());
    const auto value = number.get<std::int64_t>();
    if (value < least || value > std::int64_t{UINT32_MAX}) fail("{}: {} is not {} or more", what, value, least);
    return static_cast<std::uint32_t>(value);
  }

  /// None: the table has no strategy.
  [[nodiscard]] std::optional<hccl::OperatorStrategy> strategy_of(const Json& value) const {
    if (!value.is_object()) return cuts_or_layout(value, nullptr, layout_);
    const Json* strategy = value.find("strategy");
    const Json* output = value.find("out_strategy");
    if (has_named_layouts(value)) return with_others(named(value), value);
    std::optional<LayoutDefinition> defined = layout_;
    if (const Json* layout = value.find("layout")) {
      if (!layout->is_string()) type_error("layout is a text such as \"Layout((2, 4), ('dp', 'mp'))\"");
      defined = parse_layout(where_, layout->text());
    }
    if (strategy == nullptr) {
      if (output != nullptr) bad_input("value-error", "{}: out_strategy needs a strategy", where_);
      for (const char* const key : {"manual_split", "group_size"}) {
        if (value.contains(key)) fail("{} needs a strategy", key);
      }
      if (with_others({}, value).on_host) fail("primitive_target CPU needs a strategy");
      return std::nullopt;
    }
    return with_others(cuts_or_layout(*strategy, output, defined), value);
  }

  [[nodiscard]] hccl::OperatorStrategy named(const Json& table) const {
    hccl::OperatorStrategy one;
    one.layout = read_named_layouts(where_, table);
    return one;
  }

  /// By numbers of parts or by names of axes, as lists or as a text.
  [[nodiscard]] hccl::OperatorStrategy cuts_or_layout(const Json& strategy, const Json* output,
                                                      const std::optional<LayoutDefinition>& defined) const {
    const StrategyText inputs = read_side(strategy, defined);
    std::optional<StrategyText> out;
    if (output != nullptr) out = read_side(*output, defined);
    if (out.has_value() && out->layout.has_value() != inputs.layout.has_value()) {
      bad_input("value-error", "{}: strategy and out_strategy are both of numbers or both of Layouts", where_);
    }
    if (inputs.layout.has_value()) {
      Json table = Json::object({{"device_matrix", inputs.layout->device_matrix},
                                 {"alias_name", inputs.layout->alias_name},
                                 {"strategy", inputs.tensors}});
      if (out.has_value()) table.append("out_strategy", only_output(out->tensors));
      return named(table);
    }
    hccl::OperatorStrategy one;
    one.inputs = list_of_cuts(inputs.tensors);
    if (out.has_value()) one.output = output_cuts(out->tensors);
    return one;
  }

  [[nodiscard]] StrategyText read_side(const Json& side, const std::optional<LayoutDefinition>& defined) const {
    if (side.is_string()) return parse_strategy_text(where_, side.text(), defined);
    return {side, std::nullopt};
  }

  [[nodiscard]] Json only_output(const Json& outputs) const {
    if (outputs.size() != 1) fail("out_strategy is of one output");
    return outputs.front();
  }

  /// What a table says beside the cuts.
  [[nodiscard]] hccl::OperatorStrategy with_others(hccl::OperatorStrategy strategy, const Json& table) const {
    if (const Json* rows = table.find("manual_split")) strategy.manual_split = split_of(*rows);
    if (const Json* size = table.find("group_size")) strategy.group_size = whole_number(*size, "group_size", 1);
    if (const Json* target = table.find("primitive_target")) {
      if (!target->is_string()) type_error("primitive_target is a text");
      if (target->text() != "CPU" && target->text() != "Ascend") {
        fail("primitive_target '{}'; accepted: CPU, Ascend", target->text());
      }
      strategy.on_host = target->text() == "CPU";
    }
    return strategy;
  }

  /// Rows of each part, or pairs of rows and offsets (MindSpore's manual_split_with_offset).
  [[nodiscard]] std::vector<std::uint32_t> split_of(const Json& json) const {
    if (!json.is_array() || json.empty()) type_error("manual_split is a list of whole numbers, such as [10, 20]");
    std::vector<std::uint32_t> rows;
    std::uint64_t offset = 0;
    for (const Json& part : json) {
      const bool pair = part.is_array() && part.size() == 2;
      rows.push_back(whole_number(pair ? part.front() : part, "manual_split", 1));
      if (pair && whole_number(part.back(), "manual_split", 0) != offset) {
        bad_input("unsupported",
                  "{}: manual_split: part {} begins at row {}, not at {}: parts of a table follow each other", where_,
                  rows.size() - 1, part.back().dump(), offset);
      }
      offset += rows.back();
    }
    return rows;
  }

  [[nodiscard]] hccl::Cuts cuts_of(const Json& json) const {
    if (!json.is_array()) type_error("a strategy has a list of whole numbers for each input, such as [[2, 1], [1, 4]]");
    hccl::Cuts cuts;
    for (const Json& number : json) {
      if (!number.is_number_integer()) type_error("{} is no number of parts of an axis", number.dump());
      const auto parts = number.get<std::int64_t>();
      if (parts < 1 || parts > std::int64_t{UINT32_MAX}) {
        fail("{} is no number of parts of an axis; accepted: whole numbers from 1", number.dump());
      }
      cuts.push_back(static_cast<std::uint32_t>(parts));
    }
    return cuts;
  }

  [[nodiscard]] std::vector<hccl::Cuts> list_of_cuts(const Json& json) const {
    if (!json.is_array() || json.empty()) {
      type_error("a strategy is a list of lists of whole numbers, such as [[2, 1], [1, 4]]");
    }
    std::vector<hccl::Cuts> list;
    for (const Json& one : json) list.push_back(cuts_of(one));
    return list;
  }

  /// As the primitive takes it, a list of one output, or that output alone.
  [[nodiscard]] hccl::Cuts output_cuts(const Json& json) const {
    if (!json.is_array() || json.empty()) type_error("out_strategy is a list of whole numbers, such as [8, 1]");
    return cuts_of(json.front().is_array() ? only_output(json) : json);
  }

  std::string path_;
  const models::Graph& network_;
  TomlFile file_;
  std::optional<LayoutDefinition> layout_;
  std::string where_;
  std::map<std::string, bool> recomputed_;  // by operator
};

}  // namespace

OperatorStrategies read_pattern_file(const std::string& path, const models::Graph& network, Rank devices,
                                     std::vector<std::string>& notes) {
  return PatternFile(path, network).read(devices, notes);
}

bool has_regions(const std::string& path) {
  return path.ends_with(".toml") && std::ranges::any_of(read_toml(path).json.items(), is_regions);
}

}  // namespace hcclsim::study
