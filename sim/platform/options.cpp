#include "sim/platform/options.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sim/platform/catalog.hpp"

namespace hcclsim::sim {
namespace {

constexpr std::uint32_t max_leaf_ports = 32;  // down-links of a default rail leaf: half of a 64-port switch

/// A positive whole number of a setting.
std::uint32_t count_of(std::string_view key, std::string_view text) {
  const std::optional<std::uint32_t> value = parse_count<std::uint32_t>(text);
  if (!value) bad_input("fabric", "--fabric: {} must be a positive whole number, got '{}'", key, text);
  return *value;
}

std::uint32_t largest_divisor(std::uint64_t number, std::uint64_t limit) {
  for (std::uint64_t divisor = std::min(number, limit); divisor > 1; --divisor) {
    if (number % divisor == 0) return static_cast<std::uint32_t>(divisor);
  }
  return 1;
}

/// Leaves of a pod of a three-level tree: the largest divisor of all leaves that is not above their square root.
std::uint32_t leaves_per_pod(std::uint64_t leaves) {
  std::uint64_t root = 1;
  while ((root + 1) * (root + 1) <= leaves) ++root;
  return largest_divisor(leaves, root);
}

}  // namespace

FabricOptions parse_fabric(std::string_view text) {
  FabricOptions fabric;
  if (text == "star") return fabric;
  constexpr std::string_view accepted =
      "star or fat-tree[:levels=2|3,oversubscription=R,leaf=server|rail,leaf-size=K,routing=dmodk|ecmp|ideal]";
  const std::size_t colon = text.find(':');
  if (text.substr(0, colon) != "fat-tree") bad_input("fabric", "--fabric: '{}' is not {}", text, accepted);
  fabric.fat_tree = true;
  if (colon == std::string_view::npos) return fabric;
  for (const std::string_view setting : split(text.substr(colon + 1), ',')) {
    const std::size_t equals = setting.find('=');
    const std::string_view key = setting.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? std::string_view() : setting.substr(equals + 1);
    if (key == "levels" && (value == "2" || value == "3")) {
      fabric.levels = value == "2" ? 2 : 3;
    } else if (key == "oversubscription") {
      fabric.oversubscription = count_of(key, value);
    } else if (key == "leaf-size") {
      fabric.leaf_size = count_of(key, value);
    } else if (key == "leaf" && (value == "server" || value == "rail")) {
      fabric.leaf = value == "server" ? LeafOrder::server : LeafOrder::rail;
    } else if (key == "routing") {
      fabric.routing = parse_routing(value);
    } else {
      bad_input("fabric", "--fabric: '{}' in '{}' is not a setting of {}", setting, text, accepted);
    }
  }
  return fabric;
}

void complete_fat_tree(FabricOptions& fabric, std::uint32_t servers, std::uint32_t npus_per_server) {
  const std::uint64_t npus = std::uint64_t{servers} * npus_per_server;
  const bool by_server = fabric.leaf == LeafOrder::server;
  if (fabric.leaf_size == 0) {
    fabric.leaf_size = by_server ? npus_per_server : largest_divisor(servers, max_leaf_ports);
  }
  const std::uint32_t unit = by_server ? npus_per_server : 1;
  const std::uint64_t whole = by_server ? npus : servers;
  if (fabric.leaf_size % unit != 0 || whole % fabric.leaf_size != 0) {
    bad_input("fabric", "--fabric: leaf-size {} must {}", fabric.leaf_size,
              by_server
                  ? fmt::format("be a multiple of the {} NPUs of a server and divide the {} NPUs", unit, npus)
                  : fmt::format("divide the {} servers, as a leaf holds one NPU of each of its servers", servers));
  }
  if (fabric.leaf_size % fabric.oversubscription != 0) {
    bad_input("fabric", "--fabric: oversubscription {} must divide the leaf size {}", fabric.oversubscription,
              fabric.leaf_size);
  }
  const std::uint64_t leaves = npus / fabric.leaf_size;
  if (leaves < 2) bad_input("fabric", "--fabric: {} NPUs fill only one leaf of {}: use star", npus, fabric.leaf_size);
  if (fabric.levels == 3 && leaves_per_pod(leaves) == 1) {
    bad_input("fabric", "--fabric: {} leaves cannot be arranged in pods of equal size: use levels=2", leaves);
  }
}

TreeShape tree_shape(const FabricOptions& fabric, std::uint64_t npus) {
  const auto leaves = static_cast<std::uint32_t>(npus / fabric.leaf_size);
  return {.leaves = leaves,
          .leaves_per_pod = fabric.levels == 2 ? leaves : leaves_per_pod(leaves),
          .spines_per_pod = fabric.leaf_size / fabric.oversubscription};
}

std::string tree_parameters(const FabricOptions& fabric, std::uint64_t npus) {
  const TreeShape shape = tree_shape(fabric, npus);
  const std::uint32_t up = shape.spines_per_pod;
  if (fabric.levels == 2) return fmt::format("2;{},{};1,{};1,1", fabric.leaf_size, shape.leaves, up);
  const std::uint32_t pod = shape.leaves_per_pod;
  return fmt::format("3;{},{},{};1,{},{};1,1,1", fabric.leaf_size, pod, shape.pods(), up, pod);
}

std::vector<std::uint32_t> parse_super_pods(std::string_view text, std::uint32_t servers) {
  std::vector<std::uint32_t> numbers;
  for (const std::string_view part : split(text, ',')) {
    const std::optional<std::uint32_t> number = parse_number<std::uint32_t>(part);
    if (!number || *number == 0 || *number > max_generated_npus) {
      bad_input("super-pods",
                "--super-pods: '{}' is neither a number of super-pods nor the servers of each, such as 3,1", text);
    }
    numbers.push_back(*number);
  }
  if (numbers.size() == 1) {
    const std::uint32_t pods = numbers.front();
    if (servers % pods != 0) {
      bad_input("super-pods",
                "--super-pods: {} servers do not make {} super-pods of one size; give the servers of each, such as 3,1",
                servers, pods);
    }
    return std::vector<std::uint32_t>(pods, servers / pods);
  }
  const std::uint64_t sum = std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0});
  if (sum != servers) {
    bad_input("super-pods", "--super-pods: {} are {} servers, --servers says {}", text, sum, servers);
  }
  return numbers;
}

PlatformOptions with_servers_complete(PlatformOptions options) {
  const SocEntry& soc = find_soc_entry(options.soc);
  const ServerModel& model = *soc.server;
  if (options.npus_per_server == 0) options.npus_per_server = model.npus;
  const std::uint64_t npus = std::uint64_t{options.servers} * options.npus_per_server;
  if (options.servers == 0) bad_input("servers", "--servers must be at least 1");
  const std::uint32_t n = options.npus_per_server;
  const bool groups = model.topology == ServerTopology::hccs_groups;
  const bool plane = model.topology == ServerTopology::ub_plane;
  const bool possible = n <= model.npus && (!groups || n == 1 || n == 2 || n == 4 || n == 8) && (!plane || n % 2 == 0);
  if (!possible) {
    bad_input("npus-per-server", "--npus-per-server: {} with {} has {}; got {}", model.title, soc.name,
              groups  ? "1, 2, 4 or 8 NPUs"
              : plane ? "an even number of dies up to 16"
                      : "1 to 8 NPUs",
              n);
  }
  if (npus > max_generated_npus) {
    bad_input("servers", "--servers: {} servers of {} are {} NPUs; at most {} NPUs are supported", options.servers, n,
              npus, max_generated_npus);
  }
  if (!options.super_pods.empty() && !plane) {
    bad_input("super-pods", "--super-pods is for A3, whose unified bus joins servers; {} has none", model.title);
  }
  const std::uint32_t largest = options.super_pods.empty()
                                    ? options.servers
                                    : *std::max_element(options.super_pods.begin(), options.super_pods.end());
  if (model.max_servers != 0 && largest > model.max_servers) {
    bad_input("servers", "--servers: a super-pod of {} has at most {} nodes, got {}; --super-pods makes several",
              model.title, model.max_servers, largest);
  }
  if (options.fabric.fat_tree && plane) {
    bad_input("fabric",
              "--fabric fat-tree is for servers on RoCE; the nodes of {} are joined by the unified bus: use star",
              model.title);
  }
  if (options.shared_pcie && (!groups || n != model.npus)) {
    bad_input("pcie", "--pcie shared is for full 910A servers: {} with {} NPUs has no PCIe between NPUs", model.title,
              n);
  }
  return options;
}

}  // namespace hcclsim::sim
