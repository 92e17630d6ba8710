#include "sim/fabric/routing.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim::sim {
namespace {

constexpr std::array<std::string_view, 4> routing_names{"file", "dmodk", "ecmp", "ideal"};
constexpr std::string_view seed_setting = "seed=";

}  // namespace

Routing parse_routing(std::string_view text) {
  constexpr std::string_view accepted = "file, dmodk, ecmp, ecmp:seed=N or ideal";
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  for (std::size_t kind = 0; kind < routing_names.size(); ++kind) {
    if (name != routing_names[kind]) continue;
    Routing routing{.kind = static_cast<RoutingKind>(kind)};
    if (colon == std::string_view::npos) return routing;
    const std::string_view setting = text.substr(colon + 1);
    if (routing.kind != RoutingKind::ecmp || !setting.starts_with(seed_setting)) break;
    const auto seed = parse_number<std::uint64_t>(setting.substr(seed_setting.size()));
    if (!seed.has_value()) break;
    routing.seed = *seed;
    return routing;
  }
  bad_input("routing", "routing '{}' is not {}", text, accepted);
}

std::string text_of(const Routing& routing) {
  const std::string_view name = routing_names.at(static_cast<std::size_t>(routing.kind));
  return routing.kind == RoutingKind::ecmp ? fmt::format("{}:seed={}", name, routing.seed) : std::string(name);
}

}  // namespace hcclsim::sim
