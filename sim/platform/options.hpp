#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/fabric/routing.hpp"

/// What a generated platform is to have, as the user says it, and which servers there can be: a 910A server is cut into
/// 1, 2, 4 or 8 NPUs, an A3 node into pairs of dies, and only A3 nodes are joined to super-pods, of limited size.
namespace hcclsim::sim {

/// Which NPUs share a leaf switch of a fat tree.
enum class LeafOrder : std::uint8_t {
  server,  ///< all NPUs of a server
  rail,    ///< the NPUs of one device number of several servers
};

/// The network between the servers: a switch that does not block (star), or a fat tree.
struct FabricOptions {
  bool fat_tree = false;               ///< false: star
  std::uint32_t levels = 2;            ///< of switches, 2 or 3
  std::uint32_t oversubscription = 1;  ///< down-links per up-link of a leaf; the levels above do not block
  LeafOrder leaf = LeafOrder::server;
  std::uint32_t leaf_size = 0;  ///< NPUs per leaf; 0: a server (leaf = server), or the largest divisor of the number of
                                ///< servers up to 32 (leaf = rail)
  /// Property fabric.routing. With it, switches and their links have names; without it, the tree is a FAT_TREE of
  /// SimGrid, whose routes are D-mod-k.
  std::optional<Routing> routing{};
};

/// Parses "star" or "fat-tree" with settings: "fat-tree:levels=3,oversubscription=2,leaf=rail,leaf-size=16,
/// routing=ecmp". Throws Error(bad_input, "fabric"), or "routing" for that value.
[[nodiscard]] FabricOptions parse_fabric(std::string_view text);

/// Chooses the leaf size of a fat tree if it was left open. Throws Error(bad_input, "fabric") unless the NPUs fill at
/// least two leaves exactly and the oversubscription divides a leaf.
void complete_fat_tree(FabricOptions& fabric, std::uint32_t servers, std::uint32_t npus_per_server);

/// The switches of a complete tree. Every leaf has a link to each spine of its pod, and spine number s of every pod one
/// to each of its cores, of which there are as many as leaves in a pod. With two levels all leaves are one pod, without
/// cores.
struct TreeShape {
  std::uint32_t leaves = 0;
  std::uint32_t leaves_per_pod = 0;
  std::uint32_t spines_per_pod = 0;
  [[nodiscard]] std::uint32_t pods() const { return leaves / leaves_per_pod; }
};
[[nodiscard]] TreeShape tree_shape(const FabricOptions& fabric, std::uint64_t npus);

/// The same tree in SimGrid's form: levels; children per level; parents per level; parallel links per level.
[[nodiscard]] std::string tree_parameters(const FabricOptions& fabric, std::uint64_t npus);

struct PlatformOptions {
  std::string soc;  ///< as find_soc_entry accepts it
  std::uint32_t servers = 1;
  std::uint32_t npus_per_server = 0;  ///< 0: a full server
  /// A3: servers of each super-pod, in this order; empty: all are one.
  std::vector<std::uint32_t> super_pods{};
  bool shared_pcie = false;  ///< 910A: one PCIe path between the two meshes instead of one link per pair
  FabricOptions fabric{};
};

inline constexpr std::uint32_t max_generated_npus = 16384;

/// Parses the super-pods as the user writes them: a number of equal ones ("2"), or the servers of each ("3,1"). Returns
/// the servers of each. Throws Error(bad_input, "super-pods") unless they add up to `servers`.
[[nodiscard]] std::vector<std::uint32_t> parse_super_pods(std::string_view text, std::uint32_t servers);

/// Fills in the NPUs per server if they are not given. Throws Error(bad_input) that names the option for servers that
/// do not exist with this NPU, for more than max_generated_npus, and for a fabric or PCIe that such servers cannot
/// have.
[[nodiscard]] PlatformOptions with_servers_complete(PlatformOptions options);

}  // namespace hcclsim::sim
