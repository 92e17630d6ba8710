#include "hccl/settings/launch_mode.hpp"

#include "base/error.hpp"

namespace hcclsim::hccl {

std::string_view name_of(LaunchMode mode) { return mode == LaunchMode::graph ? "graph" : "op"; }

LaunchMode parse_launch_mode(std::string_view name) {
  if (name == "graph") return LaunchMode::graph;
  if (name == "op") return LaunchMode::op;
  bad_input("option", "unknown launch mode '{}'; accepted: graph, op", name);
}

}  // namespace hcclsim::hccl
