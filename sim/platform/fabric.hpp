#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// The network between the servers of a generated platform: a switch that does not block (star), or a fat tree.
namespace hcclsim::sim {

/// Which NPUs share a leaf switch of a fat tree.
enum class LeafOrder : std::uint8_t {
  server,  ///< all NPUs of a server
  rail,    ///< the NPUs of one device number of several servers
};

struct FabricOptions {
  bool fat_tree = false;               ///< false: star
  std::uint32_t levels = 2;            ///< of switches, 2 or 3
  std::uint32_t oversubscription = 1;  ///< down-links per up-link of a leaf; the levels above do not block
  LeafOrder leaf = LeafOrder::server;
  std::uint32_t leaf_size = 0;  ///< NPUs per leaf; 0: a server (leaf = server), or the largest divisor of the number of
                                ///< servers up to 32 (leaf = rail)
};

/// Parses "star" or "fat-tree" with settings: "fat-tree:levels=3,oversubscription=2,leaf=rail,leaf-size=16". Throws
/// Error(bad_input, "fabric").
[[nodiscard]] FabricOptions parse_fabric(std::string_view text);

/// Chooses the leaf size of a fat tree if it was left open. Throws Error(bad_input, "fabric") unless the NPUs fill at
/// least two leaves exactly and the oversubscription divides a leaf.
void complete_fat_tree(FabricOptions& fabric, std::uint32_t servers, std::uint32_t npus_per_server);

/// The complete tree in SimGrid's form: levels; children per level; parents per level; parallel links per level.
[[nodiscard]] std::string tree_parameters(const FabricOptions& fabric, std::uint64_t npus);

}  // namespace hcclsim::sim
