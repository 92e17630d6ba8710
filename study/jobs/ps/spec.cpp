#include "study/jobs/ps/spec.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/json.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "study/files/literal.hpp"

namespace hcclsim::study {
namespace {

constexpr std::int64_t least_port = 1024;
constexpr std::int64_t most_port = 65535;
constexpr std::int64_t most_nodes = 4096;

using Kind = Literal::Kind;

struct Key {
  std::string_view name;
  Kind kind;
};

constexpr std::array<Key, 12> context_keys{{{"enable_ps", Kind::boolean},
                                            {"config_file_path", Kind::text},
                                            {"scheduler_manage_port", Kind::integer},
                                            {"enable_ssl", Kind::boolean},
                                            {"client_password", Kind::text},
                                            {"server_password", Kind::text},
                                            {"server_mode", Kind::text},
                                            {"ms_role", Kind::text},
                                            {"worker_num", Kind::integer},
                                            {"server_num", Kind::integer},
                                            {"scheduler_ip", Kind::text},
                                            {"scheduler_port", Kind::integer}}};

constexpr std::array<Key, 12> variables{{{"MS_SERVER_NUM", Kind::integer},
                                         {"MS_WORKER_NUM", Kind::integer},
                                         {"MS_SCHED_HOST", Kind::text},
                                         {"MS_SCHED_PORT", Kind::integer},
                                         {"MS_ROLE", Kind::text},
                                         {"MS_NODE_ID", Kind::text},
                                         {"MS_WORKER_IP", Kind::text},
                                         {"MS_ENABLE_RECOVERY", Kind::integer},
                                         {"MS_RECOVERY_PATH", Kind::text},
                                         {"MS_TOPO_TIMEOUT", Kind::integer},
                                         {"MS_NODE_TIMEOUT", Kind::integer},
                                         {"MS_HCCL_CM_INIT", Kind::integer}}};

const Key& key_of(std::span<const Key> keys, std::string_view name) {
  const auto found = std::ranges::find(keys, name, &Key::name);
  if (found != keys.end()) return *found;
  std::vector<std::string> names;
  for (const Key& key : keys) names.emplace_back(key.name);
  const std::string meant = did_you_mean(std::string(name), names);
  bad_input("value-error", "'{}' is no key of the parameter server{}", name,
            meant.empty() ? fmt::format("; accepted: {}", fmt::join(names, ", ")) : meant);
}

std::int64_t in_range(std::string_view name, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value < least || value > most) bad_input("value-error", "{} {}: accepted: {} to {}", name, value, least, most);
  return value;
}

void require_role(std::string_view name, std::string_view role) {
  constexpr std::array<std::string_view, 4> roles{"MS_SCHED", "MS_PSERVER", "MS_SERVER", "MS_WORKER"};
  if (std::ranges::find(roles, role) != roles.end()) return;
  bad_input("value-error", "{} '{}': accepted: {}", name, role, fmt::join(roles, ", "));
}

/// recovery.storage_type 1 and recovery.storage_file_path of the file that config_file_path names.
void read_config(const std::string& path, PsSpec& spec) {
  const Json json = parse_json_text(read_text_file(path, "context"), path, "context");
  if (!json.is_object()) bad_input("context", "{}: it is no JSON object", path);
  if (!json.contains("recovery")) return;
  const Json& recovery = json["recovery"];
  if (!recovery.is_object() || !recovery.contains("storage_type") || !recovery["storage_type"].is_number_integer() ||
      recovery["storage_type"].get<std::int64_t>() != 1) {
    bad_input("context", "{}: recovery.storage_type is 1, a file", path);
  }
  if (!recovery.contains("storage_file_path") || !recovery["storage_file_path"].is_string()) {
    bad_input("context", "{}: recovery.storage_file_path names the file that nodes keep their data in", path);
  }
  spec.recovery.enabled = true;
}

void set_integer(std::string_view name, std::int64_t value, PsSpec& spec, std::optional<Rank>& workers) {
  if (name == "server_num" || name == "MS_SERVER_NUM") {
    spec.servers = static_cast<std::uint32_t>(in_range(name, value, 1, most_nodes));
  } else if (name == "worker_num" || name == "MS_WORKER_NUM") {
    workers = static_cast<Rank>(in_range(name, value, 1, most_nodes));
  } else if (name == "MS_ENABLE_RECOVERY") {
    spec.recovery.enabled = in_range(name, value, 0, 1) == 1;
    spec.generation = hccl::PsGeneration::dynamic;
    spec.recovery.from = hccl::PsRecovery::From::checkpoint;
  } else if (name == "MS_TOPO_TIMEOUT") {
    spec.cluster_timeout = static_cast<Seconds>(in_range(name, value, 1, INT32_MAX));
  } else if (name == "MS_NODE_TIMEOUT") {
    spec.node_timeout = static_cast<Seconds>(in_range(name, value, 1, INT32_MAX));
  } else if (name == "MS_HCCL_CM_INIT") {
    in_range(name, value, 0, 1);
  } else {
    in_range(name, value, least_port, most_port);
  }
}

void apply(std::span<const Key> keys, std::string_view text, PsSpec& spec, std::optional<Rank>& workers) {
  for (const std::string_view item : split_trimmed(text, ',')) {
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) bad_input("value-error", "'{}' is not KEY=VALUE", item);
    const Key& key = key_of(keys, trimmed(item.substr(0, equals)));
    const std::string given(trimmed(item.substr(equals + 1)));
    if (key.kind == Kind::text) {
      std::string value = given;
      if (const auto literal = parse_literal(given); literal.has_value() && literal->kind == Kind::text) {
        value = literal->text;
      }
      if (key.name == "ms_role" || key.name == "MS_ROLE") require_role(key.name, value);
      if (key.name == "config_file_path" && !value.empty()) read_config(value, spec);
      if (key.name == "server_mode" && !value.empty() && value != "PARAMETER_SERVER") {
        bad_input("value-error", "server_mode '{}': accepted: PARAMETER_SERVER", value);
      }
      continue;
    }
    const auto literal = parse_literal(given);
    if (!literal.has_value() || literal->kind != key.kind) {
      bad_input("type-error", "{} {}: it must be of type {}", key.name, given, name_of(key.kind));
    }
    if (key.kind == Kind::integer) set_integer(key.name, literal->integer, spec, workers);
    if (key.name == "enable_ps" && !literal->boolean) {
      bad_input("value-error", "enable_ps False goes without --mode ps");
    }
  }
}

}  // namespace

PsHosts parse_ps_hosts(std::string_view text) {
  PsHosts hosts;
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  if (kind != "npu" && kind != "cpu") {
    bad_input("option", "'{}': servers run on npu, cpu, npu:LIST or cpu:LIST, such as npu:8,9", text);
  }
  hosts.cpu = kind == "cpu";
  if (colon == std::string_view::npos) return hosts;
  for (const std::string_view part : split_trimmed(text.substr(colon + 1), ',')) {
    const auto number = parse_number<std::uint32_t>(part);
    if (!number.has_value()) bad_input("option", "'{}': '{}' is no number of a host", text, part);
    if (!hosts.cpu && std::ranges::find(hosts.numbers, *number) != hosts.numbers.end()) {
      bad_input("option", "'{}': NPU {} is given twice", text, *number);
    }
    hosts.numbers.push_back(*number);
  }
  return hosts;
}

void apply_ps_context(std::string_view text, PsSpec& spec, std::optional<Rank>& workers) {
  apply(context_keys, text, spec, workers);
}

void apply_ps_environment(std::string_view text, PsSpec& spec, std::optional<Rank>& workers) {
  apply(variables, text, spec, workers);
}

}  // namespace hcclsim::study
