#include "cli/print/run/uncertainty.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "cli/terminal/output.hpp"

namespace hcclsim::cli {

Json uncertainty_json(const study::Uncertainty& uncertainty) {
  Json effects = Json::array();
  for (const study::AssumptionEffect& effect : uncertainty.effects) {
    effects.push_back({{"assumption", effect.assumption}, {"fast_s", effect.fast}, {"slow_s", effect.slow}});
  }
  return {{"fastest_s", uncertainty.fastest}, {"slowest_s", uncertainty.slowest}, {"effects", effects}};
}

std::string largest_effects(const study::Uncertainty& uncertainty) {
  constexpr std::size_t most = 2;
  std::vector<std::string> parts;
  for (const study::AssumptionEffect& effect : uncertainty.effects) {
    if (parts.size() == most) break;
    const std::string fast = milliseconds(effect.fast);
    const std::string slow = milliseconds(effect.slow);
    if (fast != slow) parts.push_back(fmt::format("{} ({}..{} ms)", effect.assumption, fast, slow));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string effects_table(const study::Uncertainty& uncertainty) {
  Table table("<assumed|at the fast end us|at the slow end us|span us");
  for (const study::AssumptionEffect& effect : uncertainty.effects) {
    table.add_row({effect.assumption, microseconds(effect.fast, 3), microseconds(effect.slow, 3),
                   microseconds(effect.span(), 3)});
  }
  table.add_row({"all together", microseconds(uncertainty.fastest, 3), microseconds(uncertainty.slowest, 3),
                 microseconds(uncertainty.slowest - uncertainty.fastest, 3)});
  return table.to_string("  ");
}

}  // namespace hcclsim::cli
