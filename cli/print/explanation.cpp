#include "cli/print/explanation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

std::string microseconds_or_dash(const std::optional<Seconds>& time) {
  return time.has_value() ? fmt::format("{:.1f}", *time / microsecond) : "–";
}

std::string text_of(const study::ExplainedCollective& collective) {
  Table table("<|<algorithm|formula us|simulated us|<formula");
  std::string chosen;
  for (const study::ExplainedAlgorithm& algorithm : collective.algorithms) {
    if (algorithm.chosen) chosen = algorithm.name;
    table.add_row({algorithm.chosen ? "*" : "", algorithm.name, microseconds_or_dash(algorithm.formula_time),
                   microseconds_or_dash(algorithm.simulated), algorithm.formula});
  }
  std::string text = fmt::format("{}, n = {} bytes, {}: {}\n", collective.title, with_thousands(collective.payload),
                                 chosen, collective.rule);
  text += table.to_string("  ");
  for (const std::string& level : collective.levels) text += fmt::format("  {}\n", level);
  if (!collective.refused.empty()) {
    std::vector<std::string> names;
    for (const study::RefusedAlgorithm& algorithm : collective.refused) names.push_back(algorithm.name);
    text += fmt::format("  Not possible here: {}\n", fmt::join(names, ", "));
  }
  return text;
}

}  // namespace

std::string explanation_text(const std::vector<study::ExplainedCollective>& collectives) {
  std::string text;
  for (const study::ExplainedCollective& collective : collectives) text += text_of(collective);
  if (!text.empty()) {
    text +=
        "(formula: HCCL's, on links that nothing else uses, without launch and copies over HBM; simulated: alone on "
        "this platform, from its first task on the device)\n";
  }
  return text;
}

Json explanation_json(const std::vector<study::ExplainedCollective>& collectives) {
  const auto seconds = [](const std::optional<Seconds>& time) {
    return time.has_value() ? Json(*time) : Json(nullptr);
  };
  Json list = Json::array();
  for (const study::ExplainedCollective& collective : collectives) {
    Json algorithms = Json::array();
    for (const study::ExplainedAlgorithm& algorithm : collective.algorithms) {
      algorithms.push_back({{"algorithm", algorithm.name},
                            {"chosen", algorithm.chosen},
                            {"formula", algorithm.formula},
                            {"formula_s", seconds(algorithm.formula_time)},
                            {"simulated_s", seconds(algorithm.simulated)}});
    }
    Json refused = Json::array();
    for (const study::RefusedAlgorithm& algorithm : collective.refused) {
      refused.push_back({{"algorithm", algorithm.name}, {"reason", algorithm.reason}});
    }
    list.push_back({{"title", collective.title},
                    {"bytes", collective.payload},
                    {"rule", collective.rule},
                    {"algorithms", std::move(algorithms)},
                    {"refused", std::move(refused)}});
  }
  return list;
}

}  // namespace hcclsim::cli
