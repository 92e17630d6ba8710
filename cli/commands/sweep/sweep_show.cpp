#include "cli/commands/commands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "cli/commands/sweep/sweep_grid.hpp"
#include "cli/draw/svg_chart.hpp"
#include "cli/draw/svg_heat_map.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/terminal/output.hpp"
#include "study/compare/plans/plan_search.hpp"
#include "study/compare/sweep/curves.hpp"
#include "study/compare/sweep/generations.hpp"
#include "study/compare/sweep/ranking.hpp"
#include "study/compare/sweep/sweep.hpp"

namespace hcclsim::cli {
namespace {

using study::figure_columns;
using study::PointStatus;
using study::StoredPoint;
using study::SweepStore;

struct SweepShowCommand {
  std::string database;
  std::string form;
  std::string format = "text";
  std::string output = "-";
  std::string column;
  std::string x;
  std::string heat;
  std::vector<std::string> where;
  bool old = false;
  std::string criterion;
  std::vector<std::string> others;
};

void print_stale(const std::vector<StoredPoint>& points, const std::string& database) {
  const std::string stale = study::stale_text(points);
  if (stale.empty()) return;
  print_apart(fmt::format(
      "{}: {}{}\n", database, stale,
      study::can_be_refreshed(points) ? "; the same `hcclsim sweep run` takes the files as they are now" : ""));
}

std::vector<StoredPoint> read_points(const std::string& database) {
  SweepStore store(database, SweepStore::Access::read);
  std::vector<StoredPoint> points = store.points();
  if (points.empty()) bad_input("sweep", "{}: there are no points; `hcclsim sweep run` adds them", database);
  study::mark_stale(points, [](const std::string& command) { return sweep_of(command); });
  return points;
}

/// The newest result of each point, or all that there are. Standard error tells how many are stale.
std::vector<StoredPoint> chosen_points(const SweepShowCommand& command) {
  std::vector<StoredPoint> points = read_points(command.database);
  if (!command.old) points = study::newest(std::move(points));
  print_stale(points, command.database);
  return points;
}

/// Leaves out the plans of a search that were not simulated.
std::vector<StoredPoint> runs_among(std::vector<StoredPoint> points, const std::string& database) {
  points = study::as_runs(std::move(points));
  if (points.empty()) {
    bad_input("sweep", "{}: the search has simulated no plan yet; the same `hcclsim search` goes on", database);
  }
  return points;
}

std::string input_text(const StoredPoint& point, const std::string& axis) {
  return point.inputs.contains(axis) ? point.inputs[axis].get<std::string>() : "";
}

/// The figure that is asked for, or the time of a step, of a collective or of a job.
std::string_view column_of(const SweepShowCommand& command, const std::vector<StoredPoint>& points) {
  if (!command.column.empty()) {
    return *std::find(figure_columns.begin(), figure_columns.end(), std::string_view(command.column));
  }
  return study::default_criterion(points.front().command).column;
}

std::string show(const std::vector<StoredPoint>& points) {
  const std::vector<std::string> axes = study::axes_of(points);
  const std::vector<std::string_view> columns = columns_in_use(points);
  std::vector<Table::Column> titles{{"point", Table::Align::right}};
  for (const std::string& axis : axes) titles.push_back({axis, Table::Align::left});
  for (const std::string_view column : columns) titles.push_back({std::string(column), Table::Align::right});
  titles.push_back({"status", Table::Align::left});
  Table table(std::move(titles));
  for (const StoredPoint& point : points) {
    std::vector<std::string> cells{fmt::format("{}", point.number)};
    for (const std::string& axis : axes) cells.push_back(input_text(point, axis));
    for (const std::string_view column : columns) {
      const auto figure = point.figure(column);
      cells.push_back(figure.has_value() ? fmt::format("{:.6g}", *figure) : "");
    }
    std::string status(name_of(point.status));
    if (!point.stale.empty()) status += fmt::format(", stale: {}", point.stale);
    if (!point.error.empty()) status += ": " + point.error.substr(0, point.error.find('\n'));  // csv has all lines
    cells.push_back(std::move(status));
    table.add_row(std::move(cells));
  }
  return table.to_string();
}

std::string csv(const std::vector<StoredPoint>& points) {
  std::vector<std::string> axes;
  for (const StoredPoint& point : points) {
    for (const auto& [name, value] : point.inputs.items()) {
      if (std::find(axes.begin(), axes.end(), name) == axes.end()) axes.push_back(name);
    }
  }
  std::string text = "point,id,command";
  for (const std::string& axis : axes) text += ',' + csv_field(axis);
  text += fmt::format(",{},status,error,version,platform_hash,stale\n", fmt::join(figure_columns, ","));
  for (const StoredPoint& point : points) {
    text += fmt::format("{},{},{}", point.number, point.id, point.command);
    for (const std::string& axis : axes) text += ',' + csv_field(input_text(point, axis));
    for (const std::optional<double>& figure : point.figures) {
      text += figure.has_value() ? fmt::format(",{}", *figure) : ",";
    }
    text += fmt::format(",{},{},{},{},{}\n", name_of(point.status), csv_field(point.error), point.version,
                        point.platform_hash, csv_field(point.stale));
  }
  return text;
}

Json json_of(const StoredPoint& point) {
  Json json{{"point", point.number},          {"id", point.id},           {"command", point.command},
            {"inputs", point.inputs},         {"version", point.version}, {"platform_hash", point.platform_hash},
            {"status", name_of(point.status)}};
  for (std::size_t i = 0; i < figure_columns.size(); ++i) {
    if (point.figures.at(i).has_value()) json[std::string(figure_columns.at(i))] = *point.figures.at(i);
  }
  if (point.status == PointStatus::failed) {
    json["error"] = {{"kind", point.error_kind}, {"exit_status", point.exit_status}, {"message", point.error}};
  }
  if (!point.stale.empty()) json["stale"] = point.stale;
  if (point.status == PointStatus::done || !point.result.empty()) {
    json["result"] = point.result_json();
  }
  return json;
}

/// `chosen`: what to export; results are read one at a time.
std::string json(const std::vector<StoredPoint>& chosen, const std::string& database) {
  std::map<std::int64_t, const StoredPoint*> known;  // by number of point
  for (const StoredPoint& point : chosen) known[point.number] = &point;
  Json points = Json::array();
  const auto add = [&](StoredPoint point) {
    const auto found = known.find(point.number);
    if (found == known.end()) return;
    point.stale = found->second->stale;
    point.command = found->second->command;
    points.push_back(json_of(point));
  };
  SweepStore(database, SweepStore::Access::read).for_each(add, true);
  return Json{{"format_version", 1}, {"points", points}}.dump(2) + '\n';
}

std::vector<StoredPoint> best_points(const std::vector<StoredPoint>& points, const SweepShowCommand& command) {
  std::optional<study::Criterion> criterion;
  if (!command.criterion.empty()) criterion = study::parse_criterion(command.criterion);
  std::vector<StoredPoint> best;
  for (const study::RankedGroup& group : study::ranked(points, criterion)) best.push_back(*group.best);
  if (!best.empty()) return best;
  const std::string stale = study::stale_text(points);
  if (!stale.empty())
    bad_input("sweep", "{}: {}; the same `hcclsim sweep run` takes the files as they are now", command.database, stale);
  bad_input("sweep", "{}: no point with {} is done", command.database,
            criterion ? criterion->column : study::default_criterion(points.front().command).column);
}

std::string best_text(const std::vector<StoredPoint>& best, const std::vector<std::string>& axes) {
  std::string text;
  for (const StoredPoint& point : best) {
    if (!text.empty()) text += '\n';
    text += fmt::format("Point {}: {}\n", point.number, study::name_of_point(point.inputs, axes));
    for (const std::string_view each : figure_columns) {
      if (const auto figure = point.figure(each)) text += fmt::format("  {} {:.9g}\n", each, *figure);
    }
    text += fmt::format("Command: {}\n", study::command_line(point.command, point.inputs));
  }
  return text;
}

/// `--where batch=32`, once for each input.
void keep_chosen(const std::vector<std::string>& where, std::vector<StoredPoint>& points, const std::string& database) {
  for (const std::string& one : where) {
    const std::size_t equals = one.find('=');
    if (equals == std::string::npos || equals == 0) bad_input("option", "--where: '{}' is not NAME=VALUE", one);
    study::keep_points_at(one.substr(0, equals), one.substr(equals + 1), points, database);
  }
}

std::string heat_map(const std::vector<StoredPoint>& points, const SweepShowCommand& command) {
  const study::Criterion criterion = study::parse_criterion(column_of(command, points));
  study::FigureMap map = study::map_of(points, criterion, command.heat, command.x, command.database);
  return svg_heat_map({.title = fmt::format("{} over {} and {}", criterion.column, map.across, map.down),
                       .x_label = map.across,
                       .y_label = map.down,
                       .columns = std::move(map.columns),
                       .rows = std::move(map.rows),
                       .figures = std::move(map.figures),
                       .best = std::move(map.best)});
}

std::string plot(std::vector<StoredPoint> points, const SweepShowCommand& command) {
  keep_chosen(command.where, points, command.database);
  if (!command.heat.empty()) return heat_map(points, command);
  const std::string_view column = column_of(command, points);
  const study::Curves curves = curves_of(points, column, command.x, command.database);
  LineChart chart{.title = fmt::format("{} over {}", column, curves.x),
                  .x_label = curves.unit.empty() ? curves.x : fmt::format("{} ({})", curves.x, curves.unit),
                  .y_label = std::string(column),
                  .series = {},
                  .log_x = curves.geometric};
  if (curves.geometric) chart.x_ticks = {curves.values.begin(), curves.values.end()};
  for (const auto& [name, line] : curves.lines) chart.series.push_back({name, {line.begin(), line.end()}});
  return svg_line_chart(chart);
}

/// One that cannot be read does not stop the others.
void merge(const SweepShowCommand& command) {
  std::vector<std::string> faults;
  std::optional<SweepStore> store;  // not made before there is something to take
  for (const std::string& other : command.others) {
    try {
      static_cast<void>(SweepStore(other, SweepStore::Access::read));
      if (!store.has_value()) store.emplace(command.database, study::access_to(command.database, false));
      const std::uint64_t taken = store->merge(other);
      print(fmt::format("{}: {} points\n", other, taken));
    } catch (const Error& error) {
      faults.emplace_back(error.what());
    }
  }
  if (!faults.empty()) bad_input("database", "{}", fmt::join(faults, "\n"));
}

void add_database(Command& command, SweepShowCommand& options,
                  const char* help = "File that `hcclsim sweep run` made") {
  command.add("DATABASE", read_file(options.database), help).required();
}

Command& add_command(Command& sweep, const char* name, const char* description, SweepShowCommand& options) {
  Command& command = sweep.add_command(name, description);
  add_database(command, options);
  return command;
}

void add_old(Command& command, SweepShowCommand& options) {
  command.add("--old", flag(options.old),
              "Also results that newer ones of the same inputs replace: of a platform before it was edited, of another "
              "version");
}

}  // namespace

void add_sweep_show_commands(Command& sweep) {
  const auto options = std::make_shared<SweepShowCommand>();
  Command& table = add_command(sweep, "show", "A table of the points and their figures", *options);
  add_old(table, *options);
  table.on_run([options] { print(show(runs_among(chosen_points(*options), options->database))); });

  Command& exported = sweep.add_command("export", "All points as CSV, or as JSON with their results");
  exported.add("FORM", one_of({"csv", "json"}, options->form), "csv or json").value_name("TEXT").required();
  add_database(exported, *options);
  add_old(exported, *options);
  add_output_option(exported, "-o,--output", options->output);
  exported.on_run([options] {
    const std::vector<StoredPoint> points = chosen_points(*options);
    write_output(options->output, options->form == "csv" ? csv(points) : json(points, options->database));
  });

  Command& chosen =
      add_command(sweep, "best", "The best point of each work, and the command that computes it", *options);
  chosen
      .add("--by", parsed(study::parse_criterion, options->criterion),
           "Figure, the least or the most of it; without it the least time of a step, of a collective or of a job")
      .value_name("COLUMN[:min|max]");
  add_format_option(chosen, options->format, {"text", "json"});
  chosen.on_run([options] {
    const std::vector<StoredPoint> points =
        runs_among(study::newest(read_points(options->database)), options->database);
    const std::vector<StoredPoint> best = best_points(points, *options);
    print(options->format == "json" ? json(best, options->database) : best_text(best, study::axes_of(points)));
    print_stale(points, options->database);
  });

  Command& curves = add_command(sweep, "plot", "A figure over a varied input as SVG", *options);
  curves
      .add("--by", one_of({figure_columns.begin(), figure_columns.end()}, options->column),
           "Figure; without it the time of a step, of a collective or of a job")
      .value_name("COLUMN");
  curves
      .add("--x", text(options->x),
           "Input at the x axis, such as batch, others being lines; without it the last one that varies in numbers")
      .value_name("OPTION");
  curves.add("--heat", text(options->heat), "A map of coloured cells: this input down, --x or another one across")
      .value_name("OPTION");
  Value where = texts(options->where);
  where.name = "NAME=VALUE";
  curves.add("--where", where, "Only points with this value of an input; may be repeated");
  add_output_option(curves, "-o,--output", options->output);
  curves.on_run([options] {
    write_output(options->output, plot(runs_among(chosen_points(*options), options->database), *options));
  });

  Command& merged = sweep.add_command("merge", "Take the finished points of other databases, such as those of shards");
  add_database(merged, *options, "Database that takes them; it is made if there is none");
  merged.add("OTHER", read_files(options->others), "Databases whose points are taken").required().value_name("FILE…");
  merged.on_run([options] { merge(*options); });
}

}  // namespace hcclsim::cli
