#include "study/files/strategy/strategy_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <study/files/strategy/node_strategy.pb.h>

#include <filesystem>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/json.hpp"
#include "base/output_file.hpp"

namespace hcclsim::study {
namespace {

namespace format = strategy_format;

bool is_json(const std::string& path) { return path.ends_with(".json"); }

template <typename Repeated, typename Value>
void fill(Repeated& repeated, const std::vector<Value>& values) {
  for (const Value value : values) repeated.add_dim(value);
}

template <typename Value, typename Repeated>
std::vector<Value> values_of(const Repeated& repeated) {
  return {repeated.dim().begin(), repeated.dim().end()};
}

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  bad_input("strategy", "{}: {}", path, what);
}

format::AxisMap format_of(const hccl::TensorMap& map) {
  format::AxisMap out;
  for (const auto& axis : map) fill(*out.add_axis(), axis);
  return out;
}

hccl::TensorMap map_of(const format::AxisMap& map) {
  hccl::TensorMap read;
  for (const format::Cuts& axis : map.axis()) read.push_back(values_of<std::uint32_t>(axis));
  return read;
}

/// What MindSpore's files do not have beside the output.
void fill_extensions(const NodeStrategy& node, format::Strategy& out) {
  if (!node.device_matrix.empty()) fill(*out.mutable_device_matrix(), node.device_matrix);
  for (const hccl::TensorMap& map : node.maps) *out.add_maps() = format_of(map);
  if (node.output_map.has_value()) *out.mutable_output_map() = format_of(*node.output_map);
  if (!node.manual_split.empty()) fill(*out.mutable_manual_split(), node.manual_split);
  if (node.on_host) out.set_on_host(true);
  if (node.recompute) out.set_recompute(true);
  if (node.group_size > 0) out.set_group_size(node.group_size);
}

void read_extensions(const format::Strategy& in, NodeStrategy& node) {
  node.device_matrix = values_of<std::uint32_t>(in.device_matrix());
  for (const format::AxisMap& map : in.maps()) node.maps.push_back(map_of(map));
  if (in.has_output_map()) node.output_map = map_of(in.output_map());
  node.manual_split = values_of<std::uint32_t>(in.manual_split());
  node.on_host = in.on_host();
  node.recompute = in.recompute();
  node.group_size = in.group_size();
}

std::string protobuf_text(const StrategyMap& strategies) {
  format::StrategyMap map;
  map.set_current_stage(strategies.current_stage);
  for (const NodeStrategy& node : strategies.nodes) {
    format::Node& out = *map.add_nodes();
    out.set_name(node.name);
    out.mutable_strategy()->set_stage(node.stage);
    for (const auto& cuts : node.inputs) fill(*out.mutable_strategy()->add_inputs(), cuts);
    if (!node.output.empty()) fill(*out.mutable_strategy()->mutable_output(), node.output);
    if (node.gathers_again) out.mutable_strategy()->set_gathers_again(true);
    fill_extensions(node, *out.mutable_strategy());
  }
  for (const ParameterLayout& layout : strategies.parameters) {
    format::Parameter& out = *map.add_parameters();
    out.set_name(layout.name);
    format::Layouts& layouts = *out.mutable_layouts();
    fill(*layouts.add_dev_matrix(), layout.dev_matrix);
    fill(*layouts.add_tensor_map(), layout.tensor_map);
    if (!layout.split_shape.empty()) {
      fill(*layouts.add_param_split_shape(), layout.split_shape);
      fill(*layouts.add_indices_offset(), layout.indices_offset);
    }
    layouts.set_field(layout.field);
    layouts.set_opt_weight_shard_step(layout.shard_step);
    layouts.set_opt_weight_shard_size(layout.shard_size);
  }
  return map.SerializeAsString();
}

StrategyMap from_protobuf(const std::string& path, const std::string& text) {
  format::StrategyMap map;
  if (!map.ParseFromString(text)) refuse(path, "it is no file of strategies in ProtoBuf; name JSON files *.json");
  StrategyMap strategies{.current_stage = map.current_stage(), .nodes = {}, .parameters = {}};
  for (const format::Node& node : map.nodes()) {
    NodeStrategy& read = strategies.nodes.emplace_back();
    read.name = node.name();
    read.stage = node.strategy().stage();
    for (const format::Cuts& cuts : node.strategy().inputs()) read.inputs.push_back(values_of<std::uint32_t>(cuts));
    read.output = values_of<std::uint32_t>(node.strategy().output());
    read.gathers_again = node.strategy().gathers_again();
    read_extensions(node.strategy(), read);
  }
  for (const format::Parameter& parameter : map.parameters()) {
    const format::Layouts& layouts = parameter.layouts();
    if (layouts.dev_matrix_size() != 1 || layouts.tensor_map_size() != 1) {
      refuse(path, fmt::format("parameter {}: it has {} device matrices and {} tensor maps, not one of each",
                               parameter.name(), layouts.dev_matrix_size(), layouts.tensor_map_size()));
    }
    ParameterLayout read{.name = parameter.name(),
                         .dev_matrix = values_of<std::uint32_t>(layouts.dev_matrix(0)),
                         .tensor_map = values_of<std::int32_t>(layouts.tensor_map(0)),
                         .tensor_shape = {},
                         .field = layouts.field(),
                         .shard_step = layouts.opt_weight_shard_step(),
                         .shard_size = layouts.opt_weight_shard_size()};
    if (layouts.param_split_shape_size() > 0) read.split_shape = values_of<std::int64_t>(layouts.param_split_shape(0));
    if (layouts.indices_offset_size() > 0) read.indices_offset = values_of<std::int64_t>(layouts.indices_offset(0));
    strategies.parameters.push_back(std::move(read));
  }
  return strategies;
}

Json maps_of(const std::vector<hccl::TensorMap>& maps) {
  Json list = Json::array();
  for (const hccl::TensorMap& map : maps) list.push_back(Json(map));
  return list;
}

Json json_of(const StrategyMap& strategies) {
  Json nodes = Json::object();
  for (const NodeStrategy& node : strategies.nodes) {
    Json one = Json::object({{"stage", node.stage}, {"parallel_strategy", Json(node.inputs)}});
    if (!node.output.empty()) one.append("out_strategy", node.output);
    if (node.gathers_again) one.append("gathers_again", true);
    if (!node.device_matrix.empty()) {
      one.append("device_matrix", node.device_matrix);
      one.append("tensor_map", maps_of(node.maps));
    }
    if (node.output_map.has_value()) one.append("out_tensor_map", *node.output_map);
    if (!node.manual_split.empty()) one.append("manual_split", node.manual_split);
    if (node.on_host) one.append("primitive_target", "CPU");
    if (node.group_size > 0) one.append("group_size", node.group_size);
    if (node.recompute) one.append("recompute", true);
    nodes.append(node.name, std::move(one));
  }
  Json layouts = Json::object();
  for (const ParameterLayout& layout : strategies.parameters) {
    Json one = Json::object({{"dev_matrix", layout.dev_matrix},
                             {"tensor_map", layout.tensor_map},
                             {"tensor_shape", layout.tensor_shape},
                             {"field", layout.field},
                             {"opt_weight_shard_step", layout.shard_step},
                             {"opt_weight_shard_size", layout.shard_size}});
    if (!layout.split_shape.empty()) {
      one.append("param_split_shape", layout.split_shape);
      one.append("indices_offset", layout.indices_offset);
    }
    layouts.append(layout.name, std::move(one));
  }
  return Json::object({{"current_stage", strategies.current_stage},
                       {"parallel_strategy_item", std::move(nodes)},
                       {"parallel_layout_item", std::move(layouts)}});
}

/// Reads the JSON form; every error names the place.
class JsonReader {
 public:
  explicit JsonReader(const std::string& path) : path_(path) {}

  StrategyMap read(const Json& json) const {
    StrategyMap strategies{
        .current_stage = number<std::uint32_t>(json, "current_stage", "the file"), .nodes = {}, .parameters = {}};
    for (const auto& [name, node] : object(json, "parallel_strategy_item", "the file").items()) {
      NodeStrategy& read = strategies.nodes.emplace_back();
      read.name = name;
      read.stage = number<std::uint32_t>(node, "stage", name);
      const Json& inputs = member(node, "parallel_strategy", name);
      if (!inputs.is_array()) refuse(path_, fmt::format("{}: parallel_strategy is no list", name));
      for (const Json& cuts : inputs) read.inputs.push_back(numbers<std::uint32_t>(cuts, name));
      if (const Json* output = node.find("out_strategy")) read.output = numbers<std::uint32_t>(*output, name);
      read.gathers_again = flag(node, "gathers_again", name);
      read.recompute = flag(node, "recompute", name);
      read_extensions(node, read);
    }
    for (const auto& [name, layout] : object(json, "parallel_layout_item", "the file").items()) {
      ParameterLayout read{.name = name,
                           .dev_matrix = numbers<std::uint32_t>(member(layout, "dev_matrix", name), name),
                           .tensor_map = numbers<std::int32_t>(member(layout, "tensor_map", name), name),
                           .tensor_shape = numbers<std::int64_t>(member(layout, "tensor_shape", name), name),
                           .field = number<std::int32_t>(layout, "field", name),
                           .shard_step = number<std::int32_t>(layout, "opt_weight_shard_step", name),
                           .shard_size = number<std::int32_t>(layout, "opt_weight_shard_size", name)};
      if (layout.contains("param_split_shape")) {
        read.split_shape = numbers<std::int64_t>(layout.at("param_split_shape"), name);
        read.indices_offset = numbers<std::int64_t>(member(layout, "indices_offset", name), name);
      }
      strategies.parameters.push_back(std::move(read));
    }
    return strategies;
  }

 private:
  [[nodiscard]] const Json& member(const Json& of, std::string_view key, std::string_view where) const {
    const Json* found = of.find(key);
    if (found == nullptr) refuse(path_, fmt::format("{} has no '{}'", where, key));
    return *found;
  }
  [[nodiscard]] const Json& object(const Json& of, std::string_view key, std::string_view where) const {
    const Json& found = member(of, key, where);
    if (!found.is_object()) refuse(path_, fmt::format("{}: '{}' is no object", where, key));
    return found;
  }
  [[nodiscard]] bool flag(const Json& of, std::string_view key, std::string_view where) const {
    const Json* found = of.find(key);
    if (found == nullptr) return false;
    if (!found->is_boolean()) refuse(path_, fmt::format("{}: {} is neither true nor false", where, key));
    return found->get<bool>();
  }
  void read_extensions(const Json& node, NodeStrategy& read) const {
    if (const Json* matrix = node.find("device_matrix")) {
      read.device_matrix = numbers<std::uint32_t>(*matrix, read.name);
      const Json& maps = member(node, "tensor_map", read.name);
      if (!maps.is_array()) refuse(path_, fmt::format("{}: tensor_map is no list", read.name));
      for (const Json& map : maps) read.maps.push_back(map_of(map, read.name));
    }
    if (const Json* output = node.find("out_tensor_map")) read.output_map = map_of(*output, read.name);
    if (const Json* rows = node.find("manual_split")) read.manual_split = numbers<std::uint32_t>(*rows, read.name);
    if (node.contains("group_size")) read.group_size = number<std::uint32_t>(node, "group_size", read.name);
    if (const Json* target = node.find("primitive_target")) {
      if (!target->is_string() || target->text() != "CPU") {
        refuse(path_, fmt::format("{}: primitive_target is \"CPU\", got {}", read.name, target->dump()));
      }
      read.on_host = true;
    }
  }
  [[nodiscard]] hccl::TensorMap map_of(const Json& json, std::string_view where) const {
    if (!json.is_array()) refuse(path_, fmt::format("{}: {} is no list of axes", where, json.dump()));
    hccl::TensorMap map;
    for (const Json& axis : json) map.push_back(numbers<std::uint32_t>(axis, where));
    return map;
  }
  template <typename Value>
  [[nodiscard]] Value checked(const Json& json, std::string_view where) const {
    constexpr std::int64_t lowest = std::numeric_limits<Value>::min();
    const bool fits = json.is_number_integer() && json.get<double>() >= static_cast<double>(lowest) &&
                      json.get<double>() <= static_cast<double>(std::numeric_limits<Value>::max());
    if (!fits) refuse(path_, fmt::format("{}: {} is no whole number in range", where, json.dump()));
    return json.get<Value>();
  }
  template <typename Value>
  [[nodiscard]] Value number(const Json& of, std::string_view key, std::string_view where) const {
    return checked<Value>(member(of, key, where), fmt::format("{}: '{}'", where, key));
  }
  template <typename Value>
  [[nodiscard]] std::vector<Value> numbers(const Json& list, std::string_view where) const {
    if (!list.is_array()) refuse(path_, fmt::format("{}: {} is no list of numbers", where, list.dump()));
    std::vector<Value> values;
    for (const Json& one : list) values.push_back(checked<Value>(one, where));
    return values;
  }

  const std::string& path_;
};

std::string text_of(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    bad_input("runtime-error", "{}: there is no such file of strategies or groups", path);
  }
  return read_whole_file(path, "strategy");
}

void write_private(const std::string& path, const std::string& text) {
  OutputFile file(path, OutputFile::Folders::are_made);
  file.write(text);
  file.commit();
  std::error_code ignored;  // what is no regular file keeps its rights
  if (std::filesystem::is_regular_file(path, ignored)) {
    std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write,
                                 ignored);
  }
}

}  // namespace

StrategyMap read_strategies(const std::string& path) {
  const std::string text = text_of(path);
  if (!is_json(path)) return from_protobuf(path, text);
  return JsonReader(path).read(parse_json_text(text, path, "strategy"));
}

void write_strategies(const std::string& path, StrategyMap strategies) {
  std::optional<StrategyMap> before;
  if (std::filesystem::is_regular_file(path)) before = read_strategies(path);
  strategies.current_stage = before.has_value() ? before->current_stage + 1 : 1;
  write_private(path, is_json(path) ? json_of(strategies).dump(2) + '\n' : protobuf_text(strategies));
}

GroupMap read_groups(const std::string& path) {
  format::GroupMap map;
  if (!map.ParseFromString(text_of(path))) refuse(path, "it is no file of groups");
  GroupMap groups;
  for (const format::Group& group : map.groups()) {
    groups.groups.emplace_back(group.name(), values_of<Rank>(group.ranks()));
  }
  groups.restore_ranks = values_of<Rank>(map.restore_ranks());
  return groups;
}

void write_groups(const std::string& path, const GroupMap& groups) {
  format::GroupMap map;
  for (const auto& [name, ranks] : groups.groups) {
    format::Group& out = *map.add_groups();
    out.set_name(name);
    fill(*out.mutable_ranks(), ranks);
  }
  fill(*map.mutable_restore_ranks(), groups.restore_ranks);
  write_private(path, map.SerializeAsString());
}

std::string group_name(const std::vector<Rank>& ranks, Rank world) {
  if (ranks.size() == world) return "hccl_world_group";
  // FNV-1a: MindSpore's own hash differs from library to library.
  std::uint64_t hash = 14695981039346656037U;
  for (const char letter : fmt::format("{}", fmt::join(ranks, "-"))) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211U;
  }
  return fmt::format("{}-{}", ranks.size(), hash);
}

}  // namespace hcclsim::study
