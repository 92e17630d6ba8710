#include "study/jobs/job/msjob/pod_template.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "study/jobs/job/msjob/pod_shape.hpp"

namespace hcclsim::study {
namespace {

/// Keys of a pod that would change when and where it runs, but do not here.
const std::vector<std::string> scheduling_keys_without_effect{
    "activeDeadlineSeconds",    "affinity",         "overhead",        "priority",
    "priorityClassName",        "runtimeClassName", "schedulingGates", "tolerations",
    "topologySpreadConstraints"};

/// A resource that a device plugin offers: "huawei.com/Ascend910".
bool is_extended(std::string_view name) { return name.find('/') != std::string_view::npos; }

void require_seconds(const YamlValue& value, const std::string& variable, const std::string& text) {
  const std::optional<std::uint32_t> seconds = parse_count<std::uint32_t>(text);
  if (!seconds.has_value()) value.fail("'{}' of {} is no whole number of seconds from 1 on", printable(text), variable);
}

/// What the processes that form a cluster read; other variables can have any value.
void check_variable(const YamlValue& value, const std::string& variable, const std::string& text) {
  if (variable == "MS_TOPO_TIMEOUT" || variable == "MS_NODE_TIMEOUT") require_seconds(value, variable, text);
  if (variable != "MS_ENABLE_RECOVERY" || text == "0" || text == "1") return;
  value.fail("'{}' of {} is not accepted; accepted: '0' and '1'", printable(text), variable);
}

void require_variable_name(const YamlValue& value, const std::string& name) {
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  };
  const bool digit = !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) != 0;
  if (!name.empty() && !digit && std::all_of(name.begin(), name.end(), fits)) return;
  value.fail("'{}' is no name of a variable; accepted: letters, digits, '-', '_' and '.', with no digit in front",
             printable(name));
}

void read_environment(const YamlValue& list, JobContainer& container) {
  for (const YamlValue& entry : list.items()) {
    const YamlValue named = entry.require("name");
    const std::string name = named.text();
    require_variable_name(named, name);
    const std::optional<YamlValue> value = entry.find("value");
    if (entry.find("valueFrom").has_value()) {
      if (value.has_value()) entry.fail("value and valueFrom exclude each other");
      continue;
    }
    const std::string text = value.has_value() ? value->text() : "";
    check_variable(value.value_or(entry), name, text);
    container.environment.emplace_back(name, text);
  }
}

void read_ports(const YamlValue& list, JobContainer& container) {
  constexpr std::int64_t most = 65535;
  std::set<std::string> names;
  for (const YamlValue& entry : list.items()) {
    ContainerPort port;
    port.number = static_cast<std::uint16_t>(entry.require("containerPort").whole_number(1, most));
    if (const std::optional<YamlValue> name = entry.find("name")) {
      port.name = name->text();
      constexpr std::size_t longest = 15;
      if (port.name.size() > longest) name->fail("'{}' is longer than {} characters", printable(port.name), longest);
      require_label_name(*name, port.name);
      if (!names.insert(port.name).second) name->fail("'{}' is the name of two ports of the container", port.name);
    }
    if (const std::optional<YamlValue> protocol = entry.find("protocol")) {
      static_cast<void>(protocol->one_of({"TCP", "UDP", "SCTP"}));
    }
    container.ports.push_back(std::move(port));
  }
}

/// Requests of a container: what it asks for, else its limit.
Resources read_requests(const YamlValue& value) {
  const std::optional<YamlValue> limit_map = value.find("limits");
  const std::optional<YamlValue> request_map = value.find("requests");
  const Resources limits = limit_map.has_value() ? read_resources(*limit_map) : Resources();
  Resources requests = request_map.has_value() ? read_resources(*request_map) : Resources();
  for (const auto& [name, amount] : requests) {
    const YamlValue place = request_map->require(name);
    const auto limit = limits.find(name);
    if (is_extended(name) && (limit == limits.end() || limit->second != amount)) {
      place.fail("{} devices can be requested only with an equal limit", name);
    }
    if (limit != limits.end() && amount > limit->second) place.fail("is more than the limit of {}", name);
  }
  requests.insert(limits.begin(), limits.end());
  return requests;
}

void check_mounts(const YamlValue& list, const std::set<std::string>& volumes) {
  for (const YamlValue& mount : list.items()) {
    static_cast<void>(mount.require("mountPath").text());
    const YamlValue name = mount.require("name");
    if (!volumes.contains(name.text())) name.fail("the pod has no volume '{}'", printable(name.text()));
  }
}

ImagePull pull_of(const YamlValue& container, std::string_view image) {
  if (const std::optional<YamlValue> policy = container.find("imagePullPolicy")) {
    return static_cast<ImagePull>(policy->one_of({"Always", "IfNotPresent", "Never"}));
  }
  const std::string_view name = image.substr(image.rfind('/') + 1);
  const bool latest = name.find_first_of(":@") == std::string_view::npos || name.ends_with(":latest");
  return latest ? ImagePull::always : ImagePull::if_not_present;
}

JobContainer read_container(const YamlValue& value, const std::set<std::string>& volumes) {
  JobContainer container;
  const YamlValue name = value.require("name");
  container.name = name.text();
  require_label_name(name, container.name);
  const YamlValue image = value.require("image");
  container.image = image.text();
  if (trimmed(container.image).empty()) image.fail("is empty; a container needs an image");
  container.pull = pull_of(value, container.image);
  if (const std::optional<YamlValue> list = value.find("env")) read_environment(*list, container);
  if (const std::optional<YamlValue> list = value.find("ports")) read_ports(*list, container);
  if (const std::optional<YamlValue> list = value.find("volumeMounts")) check_mounts(*list, volumes);
  return container;
}

std::set<std::string> read_volumes(const YamlValue& pod) {
  std::set<std::string> names;
  const std::optional<YamlValue> list = pod.find("volumes");
  if (!list.has_value()) return names;
  for (const YamlValue& volume : list->items()) {
    const YamlValue name = volume.require("name");
    require_label_name(name, name.text());
    if (!names.insert(name.text()).second) name.fail("'{}' is the name of two volumes", name.text());
  }
  return names;
}

/// The operator gives the container that trains its port if it has none of that name.
void add_default_port(JobContainer& container) {
  if (container.name != mindspore_container) return;
  const bool there = std::any_of(container.ports.begin(), container.ports.end(),
                                 [](const ContainerPort& port) { return port.name == job_port_name; });
  if (!there) container.ports.push_back({std::string(job_port_name), job_port});
}

void read_containers(const YamlValue& pod, PodTemplate& read) {
  const std::set<std::string> volumes = read_volumes(pod);
  const YamlValue list = pod.require("containers");
  std::set<std::string> names;
  for (const YamlValue& entry : list.items()) {
    JobContainer container = read_container(entry, volumes);
    if (!names.insert(container.name).second) {
      entry.require("name").fail("'{}' is the name of two containers", container.name);
    }
    add_default_port(container);
    if (const std::optional<YamlValue> resources = entry.find("resources")) {
      for (const auto& [name, amount] : read_requests(*resources)) read.needed[name] += amount;
    }
    read.containers.push_back(std::move(container));
  }
  if (read.containers.empty()) list.fail("is empty; a role needs a container named {}", mindspore_container);
  if (!names.contains(std::string(mindspore_container))) {
    list.fail("no container is named {}, which is the one that trains", mindspore_container);
  }
  const std::optional<YamlValue> before = pod.find("initContainers");
  if (!before.has_value()) return;
  read.without_effect.emplace_back("initContainers");
  for (const YamlValue& entry : before->items()) {
    static_cast<void>(read_container(entry, volumes));
    const std::optional<YamlValue> resources = entry.find("resources");
    if (!resources.has_value()) continue;
    for (const auto& [name, amount] : read_requests(*resources)) {
      read.needed[name] = std::max(read.needed[name], amount);
    }
  }
}

}  // namespace

std::map<std::string, std::string> read_texts(const YamlValue& value) {
  std::map<std::string, std::string> texts;
  for (const auto& [key, text] : value.members()) texts[key] = text.text();
  return texts;
}

void require_label_name(const YamlValue& value, const std::string& name) {
  constexpr std::size_t longest = 63;
  const bool characters = std::all_of(
      name.begin(), name.end(), [](char c) { return c == '-' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
  if (!name.empty() && name.size() <= longest && characters && name.front() != '-' && name.back() != '-') return;
  value.fail("'{}' is no name; accepted: lower-case letters, digits and '-' between them, at most {} characters",
             printable(name), longest);
}

Resources read_resources(const YamlValue& value) {
  Resources resources;
  for (const auto& [name, amount] : value.members()) {
    constexpr std::array<std::string_view, 3> plain{"cpu", "memory", "ephemeral-storage"};
    const bool known = std::find(plain.begin(), plain.end(), name) != plain.end() || name.starts_with("hugepages-");
    if (!known && !is_extended(name)) {
      amount.fail(
          "there is no such resource; accepted: cpu, memory, ephemeral-storage, hugepages-SIZE and names "
          "such as huawei.com/Ascend910");
    }
    const std::uint64_t parsed = read_quantity(amount);
    constexpr std::uint64_t most_devices = 1'000'000;
    if (is_extended(name) && (parsed % resource_unit != 0 || parsed / resource_unit > most_devices)) {
      amount.fail("'{}' is no number of devices; accepted: 0 to {}", amount.written(), most_devices);
    }
    resources[name] = parsed;
  }
  return resources;
}

PodTemplate read_pod_template(const YamlValue& value) {
  require_shape(value, "PodTemplateSpec");
  PodTemplate read;
  if (const std::optional<YamlValue> metadata = value.find("metadata")) {
    if (const std::optional<YamlValue> labels = metadata->find("labels")) read.labels = read_texts(*labels);
  }
  const YamlValue pod = value.require("spec");
  read_containers(pod, read);
  if (const std::optional<YamlValue> selector = pod.find("nodeSelector")) read.node_selector = read_texts(*selector);
  if (const std::optional<YamlValue> name = pod.find("nodeName")) read.node_name = name->text();
  if (const std::optional<YamlValue> name = pod.find("schedulerName")) read.scheduler_name = name->text();
  if (const std::optional<YamlValue> policy = pod.find("restartPolicy")) {
    static_cast<void>(policy->one_of({"Always", "OnFailure", "Never"}));
    read.restart_policy = policy->text();
  }
  for (const std::string& key : scheduling_keys_without_effect) {
    if (pod.find(key).has_value()) read.without_effect.push_back(key);
  }
  return read;
}

}  // namespace hcclsim::study
