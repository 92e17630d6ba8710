#include "cli/print/tune/fusion_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

constexpr std::size_t most_rows = 12;
/// Steps that differ by less than this fraction are equal.
constexpr double rounding = 1e-9;

std::string fusion_head(const study::FusionSearch& search) {
  return fmt::format(
      "{}: {} x {}, {}; {} stage{} x {} replicas, {} micro-batch{}, optimizer parallel {}, contention {}\n",
      search.model, search.npus, search.npu, search.platform, search.shape.stages, search.shape.stages == 1 ? "" : "s",
      search.replicas, search.shape.micro_batches, search.shape.micro_batches == 1 ? "" : "es", search.sharing,
      on_off(search.hbm_contention));
}

bool is_proved(const study::FusionSearch& search) { return search.gap().value_or(1) <= rounding; }

std::string bound_text(const study::FusionSearch& search) {
  if (!search.bound.has_value()) {
    return "There is no bound for steps whose NPUs differ in time; the rule is the best of those that were "
           "simulated.\n";
  }
  std::string text =
      fmt::format("No rule has a step below {} ms, that with links that take no time", milliseconds(*search.bound));
  if (is_proved(search)) return text + ": the rule is the best.\n";
  return text +
         fmt::format(
             ": the best found is {:.2f} % behind it. It is not proved to be the best, for gradients, weights and "
             "messages share the links.\n",
             100 * *search.gap());
}

Json trial_json(const study::FusionTrial& trial) {
  return {{"fusion", option_text(trial.rules)}, {"collectives", trial.collectives}, {"step_time_s", trial.step}};
}

}  // namespace

std::string fusion_text(const study::FusionSearch& search) {
  const study::FusionTrial& best = search.best();
  std::string text = fusion_head(search);
  text += fmt::format("\n  --fusion '{}'\n\nThe step takes {} ms with {} collectives; as given ({}) {} ms with {}.\n",
                      option_text(best.rules), milliseconds(best.step), best.collectives,
                      option_text(search.given.rules), milliseconds(search.given.step), search.given.collectives);
  text += bound_text(search);
  text +=
      fmt::format("Steps within {:g} % of the shortest count as equal; of these the fewest collectives are the best.\n",
                  study::FusionSearch::equal_steps * 100);
  const Seconds shortest = std::ranges::min(search.trials, {}, &study::FusionTrial::step).step;
  Table table("<rule|collectives|step ms|behind the shortest %");
  for (std::size_t i = 0; i < search.trials.size() && i < most_rows; ++i) {
    const study::FusionTrial& trial = search.trials[i];
    table.add_row({option_text(trial.rules), fmt::format("{}", trial.collectives), milliseconds(trial.step),
                   fmt::format("{:.2f}", 100 * (trial.step - shortest) / shortest)});
  }
  text += "\n" + table.to_string();
  if (search.trials.size() > most_rows) {
    text += fmt::format("({} rules were simulated, the others take longer: --format json)\n", search.trials.size());
  }
  for (const std::string& note : search.notes) text += fmt::format("Note: {}\n", note);
  return text;
}

std::string fusion_json(const study::FusionSearch& search) {
  Json json{{"format_version", 1},
            {"model", search.model},
            {"platform", search.platform},
            {"npu", search.npu},
            {"npus", search.npus},
            {"hbm_contention", on_off(search.hbm_contention)},
            {"stages", search.shape.stages},
            {"micro_batches", search.shape.micro_batches},
            {"optimizer_parallel", search.sharing},
            {"best", trial_json(search.best())},
            {"given", trial_json(search.given)},
            {"bound_s", search.bound.has_value() ? Json(*search.bound) : Json(nullptr)},
            {"gap", search.gap().has_value() ? Json(*search.gap()) : Json(nullptr)},
            {"proved", is_proved(search)}};
  json["trials"] = Json::array();
  for (const study::FusionTrial& trial : search.trials) json["trials"].push_back(trial_json(trial));
  json["notes"] = search.notes;
  return json.dump(2) + "\n";
}

}  // namespace hcclsim::cli
