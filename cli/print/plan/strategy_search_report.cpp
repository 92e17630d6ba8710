#include "cli/print/plan/strategy_search_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/json.hpp"
#include "base/names.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

constexpr double strategy_gib = 0x1p30;

/// "h.3.mlp.c_fc" → "h.*.mlp.c_fc": operators of different layers.
std::string without_numbers(const std::string& name) {
  std::string pattern;
  std::string word;
  const auto end_word = [&] {
    const bool digits =
        !word.empty() && std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
    pattern += digits ? "*" : word;
    word.clear();
  };
  for (const char c : name) {
    if (c == '.') {
      end_word();
      pattern += c;
    } else {
      word += c;
    }
  }
  end_word();
  return pattern;
}

struct AlikeOperators {
  std::string pattern;
  std::string cuts;
  std::string first;
  std::size_t count = 0;
};

std::vector<AlikeOperators> alike(const std::vector<std::pair<std::string, std::string>>& strategies) {
  std::vector<AlikeOperators> rows;
  for (const auto& strategy : strategies) {
    const std::string& cuts = strategy.second;
    const std::string pattern = without_numbers(strategy.first);
    const auto row = std::ranges::find_if(
        rows, [&](const AlikeOperators& known) { return known.pattern == pattern && known.cuts == cuts; });
    if (row == rows.end()) {
      rows.push_back({pattern, cuts, strategy.first, 1});
    } else {
      ++row->count;
    }
  }
  return rows;
}

std::string strategy_table(const study::FoundStrategies& found) {
  Table table("<operators|number|<parts of their inputs and parameters");
  for (const AlikeOperators& row : alike(found.strategies)) {
    table.add_row({row.count == 1 ? row.first : row.pattern, fmt::format("{}", row.count), row.cuts});
  }
  return table.to_string();
}

std::string cost_text(const study::StrategySearchResult& result) {
  const study::FoundStrategies& found = result.found;
  std::string text;
  if (result.mode == study::StrategySearchMode::exact) {
    const bool proved = *found.bound >= found.cost;
    text = fmt::format("The step takes {} ms, {}; {} simulated", milliseconds(found.cost),
                       proved ? "proved to be the least of all choices without out_strategy"
                              : fmt::format("and of all choices, too many to prove more, none takes less than {} ms",
                                            milliseconds(*found.bound)),
                       counted(found.candidates, "choice"));
  } else {
    text = fmt::format("Cost by the search's own model {:.6g}, by that of dynamic programming {:.6g}", found.cost,
                       found.dynamic_cost);
  }
  text += ".\n";
  if (found.kept.has_value()) {
    text +=
        fmt::format("Of MindSpore's operators {} were searched and {} eliminated.\n", *found.kept, *found.eliminated);
  }
  return text;
}

std::string trial_table(const study::StrategySearchResult& result) {
  Table table("<strategies|step ms|HBM peak GiB|<");
  for (const study::StrategyTrial& trial : result.compared) {
    if (!trial.refused.empty()) {
      table.add_row({trial.name, "-", "-", trial.refused});
      continue;
    }
    table.add_row({trial.name, milliseconds(trial.step),
                   fmt::format("{:.2f}", static_cast<double>(trial.hbm_peak) / strategy_gib),
                   trial.fits ? "" : "does not fit"});
  }
  return table.to_string();
}

Json trial_json(const study::StrategyTrial& trial) {
  if (!trial.refused.empty()) {
    return {{"name", trial.name}, {"step_time_s", nullptr}, {"hbm_peak_bytes", nullptr}, {"refused", trial.refused}};
  }
  return {{"name", trial.name}, {"step_time_s", trial.step}, {"hbm_peak_bytes", trial.hbm_peak}, {"fits", trial.fits}};
}

}  // namespace

std::string strategy_search_text(const study::StrategySearchResult& result, const std::string& run) {
  std::string text =
      fmt::format("{}: {} x {}, {}; {} stage{} of {} device{}, {} samples together\n{}\n", result.network, result.npus,
                  result.npu, result.platform, result.stages, result.stages == 1 ? "" : "s", result.devices,
                  result.devices == 1 ? "" : "s", result.samples, study::name_of(result.mode));
  text += "\n" + strategy_table(result.found) + "\n" + cost_text(result);
  if (!result.compared.empty()) text += "\n" + trial_table(result);
  for (const std::string& note : result.found.notes) text += fmt::format("Note: {}\n", note);
  if (!run.empty()) text += fmt::format("\nTheir step: {}\n", run);
  return text;
}

std::string strategy_search_json(const study::StrategySearchResult& result, const std::string& run) {
  const study::FoundStrategies& found = result.found;
  const bool exact = result.mode == study::StrategySearchMode::exact;
  Json json{{"format_version", 1},
            {"mode", study::name_of(result.mode)},
            {"model", result.network},
            {"platform", result.platform},
            {"npu", result.npu},
            {"npus", result.npus},
            {"stages", result.stages},
            {"devices", result.devices},
            {"samples", result.samples},
            {"cost", found.cost},
            {"dynamic_programming_cost", exact ? Json(nullptr) : Json(found.dynamic_cost)},
            {"bound", found.bound.has_value() ? Json(*found.bound) : Json(nullptr)},
            {"kept_operators", found.kept.has_value() ? Json(*found.kept) : Json(nullptr)},
            {"eliminated_operators", found.eliminated.has_value() ? Json(*found.eliminated) : Json(nullptr)},
            {"candidates", found.candidates}};
  const bool simulated = !result.compared.empty() && result.compared.front().refused.empty();
  json["step_time_s"] = simulated ? Json(result.compared.front().step) : Json(nullptr);
  json["strategies"] = Json::array();
  for (const auto& [name, cuts] : found.strategies) {
    json["strategies"].push_back(Json{{"operator", name}, {"strategy", cuts}});
  }
  json["compared"] = Json::array();
  for (const study::StrategyTrial& trial : result.compared) json["compared"].push_back(trial_json(trial));
  json["notes"] = found.notes;
  if (!run.empty()) json["command"] = run;
  return json.dump(2) + "\n";
}

}  // namespace hcclsim::cli
