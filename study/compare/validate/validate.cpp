#include "study/compare/validate/validate.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace hcclsim::study {
namespace {

using Command = std::vector<std::string>;

/// What each command prints.
std::map<Command, Json> outputs_of(const std::vector<PublishedFigure>& figures, const JsonOfCommand& json_of) {
  std::map<Command, Json> outputs;
  std::deque<std::pair<const PublishedFigure*, Child>> running;
  const std::size_t most = std::max(1U, std::thread::hardware_concurrency());
  const auto finish_first = [&] {
    auto& [figure, child] = running.front();
    std::optional<Json> output = Json::try_parse(child.result());
    if (!output.has_value()) {
      bad_input("validation", "{}: [{}] the command does not print JSON", figure->place, figure->id);
    }
    outputs[figure->command] = std::move(*output);
    running.pop_front();
  };
  for (const PublishedFigure& figure : figures) {
    const auto [place, is_new] = outputs.try_emplace(figure.command);
    if (!is_new) continue;
    if (running.size() == most) finish_first();
    running.emplace_back(&figure, Child([&figure, &json_of] { return json_of(figure); }));
  }
  while (!running.empty()) finish_first();
  return outputs;
}

/// Null where the pointer leads nowhere.
const Json* found_at(const Json& json, std::string_view pointer) {
  const Json* at = &json;
  for (const std::string_view step : split_trimmed(pointer.substr(1), '/')) {
    const auto index = parse_number<std::size_t>(step);
    if (at->is_array() && index.has_value() && *index < at->size()) {
      at = &at->at(*index);
      continue;
    }
    at = at->find(step);
    if (at == nullptr) return nullptr;
  }
  return at;
}

double figure_in(const Json& output, const PublishedFigure& figure) {
  const Json* const found = found_at(output, figure.figure);
  if (found == nullptr || !found->is_number()) {
    bad_input("validation", "{}: [{}] the command's JSON has no number {}", figure.place, figure.id, figure.figure);
  }
  return found->get<double>() * figure.factor;
}

}  // namespace

bool ValidatedFigure::is_off() const { return std::abs(error()) > published.uncertainty; }

ValidationErrors errors_of(const std::vector<const ValidatedFigure*>& figures) {
  ValidationErrors errors;
  for (const ValidatedFigure* const figure : figures) {
    if (figure->published.calibration) continue;
    const double error = std::abs(figure->error());
    ++errors.predictions;
    errors.mean += error;
    errors.worst = std::max(errors.worst, error);
  }
  if (errors.predictions > 0) errors.mean /= static_cast<double>(errors.predictions);
  return errors;
}

std::vector<ValidationGroup> groups_of(const std::vector<ValidatedFigure>& figures) {
  std::vector<ValidationGroup> groups;
  for (const ValidatedFigure& figure : figures) {
    const std::string& what = figure.published.what;
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const ValidationGroup& other) { return other.what == what; });
    if (group == groups.end()) group = groups.insert(groups.end(), {what, {}});
    group->figures.push_back(&figure);
  }
  return groups;
}

std::vector<ValidatedFigure> validate(std::vector<PublishedFigure> figures, const JsonOfCommand& json_of) {
  const std::map<Command, Json> outputs = outputs_of(figures, json_of);
  std::vector<ValidatedFigure> validated;
  for (PublishedFigure& figure : figures) {
    const double simulated = figure_in(outputs.at(figure.command), figure);
    validated.push_back({std::move(figure), simulated});
  }
  return validated;
}

}  // namespace hcclsim::study
