#include "sim/platform/options.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sim/platform/catalog.hpp"

namespace hcclsim::sim {

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
