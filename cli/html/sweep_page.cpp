#include "cli/html/pages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "cli/html/page.hpp"
#include "study/compare/sweep/curves.hpp"
#include "study/compare/sweep/generations.hpp"
#include "study/compare/sweep/ranking.hpp"

namespace hcclsim::cli {
namespace {

using study::PointStatus;
using study::StoredPoint;

/// A figure of points: its column, how it is called, its unit, whether more of it is better.
struct Metric {
  std::string_view key;
  std::string_view title;
  std::string_view unit;
  bool more = false;
};
constexpr std::array<Metric, study::figure_columns.size()> metrics{
    {{"step_time_s", "step time", "s"},
     {"images_per_s", "samples/s", "", true},
     {"exposed_communication_s", "exposed communication", "s"},
     {"hbm_peak_bytes", "HBM peak", "bytes"},
     {"time_s", "time", "s"},
     {"algbw_Bps", "algbw", "Bps", true},
     {"busbw_Bps", "busbw", "Bps", true},
     {"goodput", "goodput", "", true},
     {"restarts", "restarts", ""}}};

/// Those that some point has.
std::vector<Metric> metrics_of(const std::vector<StoredPoint>& points) {
  std::vector<Metric> found;
  for (const Metric& metric : metrics) {
    const bool known = std::any_of(points.begin(), points.end(),
                                   [&](const StoredPoint& point) { return point.figure(metric.key).has_value(); });
    if (known) found.push_back(metric);
  }
  return found;
}

/// What was varied, with its values in the order in which they come up.
class Axis {
 public:
  explicit Axis(std::string name) : name_(std::move(name)) {}

  std::size_t number_of(const std::string& value) {
    const auto [found, added] = numbers_.try_emplace(value, values_.size());
    if (added) values_.push_back(value);
    return found->second;
  }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Json json() const {
    const std::optional<std::vector<double>> numbers = study::axis_numbers(values_);
    return {{"name", name_},
            {"values", values_},
            {"numbers", numbers.has_value() ? Json(*numbers) : Json(nullptr)},
            {"geometric", numbers.has_value() && study::is_geometric(*numbers)}};
  }

 private:
  std::string name_;
  std::vector<std::string> values_;
  std::map<std::string, std::size_t> numbers_;
};

/// Inputs of the points, the command among them.
std::vector<Json> inputs_of(const std::vector<StoredPoint>& points) {
  std::vector<Json> all;
  all.reserve(points.size());
  for (const StoredPoint& point : points) {
    all.push_back(point.inputs);
    all.back()["command"] = point.command;
  }
  return all;
}

std::vector<std::string> varied(const std::vector<Json>& inputs) {
  std::vector<const Json*> pointers;
  pointers.reserve(inputs.size());
  for (const Json& one : inputs) pointers.push_back(&one);
  return study::varying_axes(pointers);
}

/// Inputs that are the same of all points.
Json set_up(const std::vector<StoredPoint>& points, const std::string& database) {
  std::set<std::string> versions;
  for (const StoredPoint& point : points) versions.insert(point.version);
  Json rows = Json::array({{"Database", std::filesystem::path(database).filename().string()},
                           {"Computed by", fmt::format("hcclsim {}", fmt::join(versions, ", "))}});
  const std::string stale = study::stale_text(points);
  if (!stale.empty()) rows.push_back({"Stale", stale + "; never the best"});
  const std::vector<Json> inputs = inputs_of(points);
  const std::vector<std::string> axes = varied(inputs);
  for (const auto& [name, value] : inputs.front().items()) {
    if (std::find(axes.begin(), axes.end(), name) == axes.end()) rows.push_back({name, value});
  }
  return rows;
}

/// The best point of each kind of work: its place among the points, how many it was compared with, its command.
Json best_points(const std::vector<StoredPoint>& points) {
  Json best = Json::array();
  for (const study::RankedGroup& group : study::ranked(points, std::nullopt)) {
    best.push_back({{"point", group.best - points.data()},
                    {"of", group.points},
                    {"command", study::command_line(group.best->command, group.best->inputs)}});
  }
  return best;
}

/// The number of each point's work: figures of one work may be compared.
Json works_of(const std::vector<StoredPoint>& points, std::string_view column) {
  std::map<std::string, std::size_t> numbers;
  Json works = Json::array();
  for (const StoredPoint& point : points) {
    works.push_back(numbers.try_emplace(study::work_of(point, column), numbers.size()).first->second);
  }
  return works;
}

}  // namespace

Json sweep_data(const std::vector<StoredPoint>& points) {
  const std::vector<Metric> known = metrics_of(points);
  const std::vector<Json> inputs = inputs_of(points);
  std::vector<Axis> axes;
  for (const std::string& name : varied(inputs)) axes.emplace_back(name);
  Json rows = Json::array();
  for (std::size_t i = 0; i < points.size(); ++i) {
    Json places = Json::array();
    for (Axis& axis : axes) places.push_back(axis.number_of(inputs[i].value(axis.name(), "").text()));
    Json figures = Json::array();
    for (const Metric& metric : known) {
      const std::optional<double> figure = points[i].figure(metric.key);
      figures.push_back(figure.has_value() ? Json(*figure) : Json(nullptr));
    }
    Json row = Json::array({name_of(points[i].status), std::move(places), std::move(figures)});
    const bool failed = points[i].status == PointStatus::failed;
    if (failed || !points[i].stale.empty()) row.push_back(failed ? Json(points[i].error) : Json(nullptr));
    if (!points[i].stale.empty()) row.push_back(points[i].stale);
    rows.push_back(std::move(row));
  }
  Json axes_json = Json::array();
  for (const Axis& axis : axes) axes_json.push_back(axis.json());
  Json metrics_json = Json::array();
  for (const Metric& metric : known) {
    metrics_json.push_back({{"key", metric.key},
                            {"title", metric.title},
                            {"unit", metric.unit},
                            {"more", metric.more},
                            {"works", works_of(points, metric.key)}});
  }
  return {{"axes", std::move(axes_json)}, {"metrics", std::move(metrics_json)}, {"points", std::move(rows)}};
}

std::string sweep_page(const std::vector<StoredPoint>& points, const std::string& database, const HtmlReport& html) {
  if (points.empty()) bad_input("database", "{} holds no points yet", database);
  Json data = page_head("sweep", fmt::format("Sweep of {} points", points.size()), html);
  data.update(sweep_data(points));
  data["set_up"] = set_up(points, database);
  data["best"] = best_points(points);
  return html_page(data);
}

}  // namespace hcclsim::cli
