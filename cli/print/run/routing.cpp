#include "cli/print/run/routing.hpp"

#include <fmt/format.h>

namespace hcclsim::cli {

Json routing_json(const study::RoutingSpread& spread) {
  Json json{{"first_seed", spread.first_seed}, {"times_s", spread.times},           {"mean_s", spread.mean()},
            {"worst_s", spread.worst()},       {"worst_seed", spread.worst_seed()}, {"ideal_s", nullptr}};
  if (spread.ideal.has_value()) json["ideal_s"] = *spread.ideal;
  if (!spread.no_ideal.empty()) json["no_ideal"] = spread.no_ideal;
  return json;
}

std::string routing_text(const study::RoutingSpread& spread, const std::function<std::string(Seconds)>& text_of) {
  const std::string ideal =
      spread.ideal.has_value() ? fmt::format("ideal routing {}", text_of(*spread.ideal)) : spread.no_ideal;
  return fmt::format("mean {}, worst {} (seed {}) of {} seed{} from {} on; {}", text_of(spread.mean()),
                     text_of(spread.worst()), spread.worst_seed(), spread.times.size(),
                     spread.times.size() == 1 ? "" : "s", spread.first_seed, ideal);
}

}  // namespace hcclsim::cli
