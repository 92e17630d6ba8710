#include "study/compare/sweep/ranking.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

/// An input, and what it is where it is not given.
struct WorkAxis {
  std::string_view name;
  std::string_view otherwise{};
};

/// Inputs that say what a command computes or moves, where and by whom the figures are, beside the number of NPUs,
/// which a result has; of them the first few still matter to figures per second.
struct Work {
  std::span<const WorkAxis> axes;
  std::size_t kinds = 0;
};

// What is trained, beside how much of it.
constexpr std::array<WorkAxis, 10> what_is_trained{{{"model", "resnet50"},
                                                    {"gradients"},
                                                    {"profile"},
                                                    {"input"},
                                                    {"classes"},
                                                    {"sequence"},
                                                    {"layers"},
                                                    {"hidden"},
                                                    {"heads"},
                                                    {"vocabulary"}}};
template <std::size_t count>
constexpr auto training_and(const std::array<WorkAxis, count>& more) {
  std::array<WorkAxis, what_is_trained.size() + count> all{};
  std::copy(more.begin(), more.end(), std::copy(what_is_trained.begin(), what_is_trained.end(), all.begin()));
  return all;
}
constexpr auto work_of_run = training_and<4>({{{"group"}, {"rank", "0"}, {"batch", "32"}, {"global-batch"}}});
constexpr auto work_of_job = training_and<2>({{{"steps", "1000"}, {"batch", "32"}}});
constexpr std::array<WorkAxis, 10> work_of_collective{{{"collective"},
                                                       {"group"},
                                                       {"minbytes", "64M"},
                                                       {"maxbytes", "64M"},
                                                       {"stepbytes"},
                                                       {"stepfactor"},
                                                       {"size"},
                                                       {"datatype", "fp32"},
                                                       {"op", "sum"},
                                                       {"root", "0"}}};

bool is_rate(std::string_view column) { return column.ends_with("_Bps") || column == "images_per_s"; }

std::span<const WorkAxis> work_axes(std::string_view command, std::string_view column) {
  const Work work = command == "run"   ? Work{work_of_run, 12}
                    : command == "job" ? Work{work_of_job, what_is_trained.size()}
                                       : Work{work_of_collective, 2};
  return is_rate(column) ? work.axes.first(work.kinds) : work.axes;
}

}  // namespace

Criterion parse_criterion(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view given = text.substr(0, colon);
  // As results with parameter servers have it.
  const std::string_view name = given == "samples_per_s" ? "images_per_s" : given;
  const auto* const column = std::find(figure_columns.begin(), figure_columns.end(), name);
  if (column == figure_columns.end()) {
    bad_input("option", "'{}' is no figure; accepted: {}, and samples_per_s for images_per_s", given,
              fmt::join(figure_columns, ", "));
  }
  if (colon == std::string_view::npos) return {*column, is_rate(*column) || *column == "goodput"};
  const std::string_view direction = text.substr(colon + 1);
  if (direction != "max" && direction != "min") {
    bad_input("option", "'{}' of '{}' is neither max nor min", direction, text);
  }
  return {*column, direction == "max"};
}

Criterion default_criterion(std::string_view command) { return {command == "run" ? "step_time_s" : "time_s", false}; }

std::string work_of(const StoredPoint& point, std::string_view column) {
  Json key = Json::array({point.command});
  for (const WorkAxis& axis : work_axes(point.command, column)) {
    key.push_back(point.inputs.value(std::string(axis.name), std::string(axis.otherwise)));
  }
  if (!is_rate(column)) key.push_back(point.npus);
  return key.dump();
}

std::vector<RankedGroup> ranked(const std::vector<StoredPoint>& points, const std::optional<Criterion>& criterion) {
  std::vector<RankedGroup> groups;
  std::map<std::string, std::size_t> places;
  for (const StoredPoint& point : points) {
    const Criterion by = criterion.value_or(default_criterion(point.command));
    const std::optional<double> figure = point.figure(by.column);
    if (point.status != PointStatus::done || !point.stale.empty() || !figure.has_value()) continue;
    const auto [place, added] = places.try_emplace(work_of(point, by.column), groups.size());
    if (added) groups.push_back({&point, 0});
    RankedGroup& group = groups[place->second];
    ++group.points;
    const double best = *group.best->figure(by.column);
    if (by.more ? *figure > best : *figure < best) group.best = &point;
  }
  return groups;
}

std::vector<std::string> axes_of(const std::vector<StoredPoint>& points) {
  std::vector<const Json*> inputs;
  for (const StoredPoint& point : points) inputs.push_back(&point.inputs);
  return varying_axes(inputs);
}

std::vector<std::string_view> columns_in_use(const std::vector<StoredPoint>& points) {
  std::vector<std::string_view> columns(figure_columns.begin(), figure_columns.end());
  std::erase_if(columns, [&](std::string_view column) {
    return std::none_of(points.begin(), points.end(),
                        [&](const StoredPoint& point) { return point.figure(column).has_value(); });
  });
  return columns;
}

}  // namespace hcclsim::study
