#include "cli/commands/schedule_diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "cli/loaded_platform.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/platform_path.hpp"
#include "cli/print/output.hpp"
#include "hccl/check/symmetry/symmetry.hpp"
#include "hccl/runtime/simulate_each.hpp"
#include "hccl/schedule/difference.hpp"
#include "hccl/schedule/file/schedule_file.hpp"
#include "hccl/schedule/walk.hpp"
#include "sim/cluster.hpp"

namespace hcclsim::cli {
namespace {

using hccl::ChangeKind;
struct DiffCommand : PlatformChoice {  // without a platform times are not compared
  std::string first;
  std::string second;
  std::string format = "text";
};

struct Times {
  std::string platform;
  std::array<Seconds, 2> times{};

  [[nodiscard]] bool equal() const {
    constexpr double tolerance = 1e-9;  // as far as the two networks agree
    return std::abs(times[1] - times[0]) <= tolerance * std::max(times[0], times[1]);
  }
};

struct Comparison {
  hccl::ScheduleDifference difference;
  std::optional<Times> times{};
  std::vector<std::string> unmodelled{};  ///< settings of HCCL without effect
  std::vector<std::string> notes{};       ///< of the platform

  [[nodiscard]] bool equal() const { return difference.equal() && (!times.has_value() || times->equal()); }
};

/// Simulates both, each alone.
void compare_times(const DiffCommand& command, const std::array<std::shared_ptr<const hccl::Schedule>, 2>& schedules,
                   Comparison& comparison) {
  const std::string path = find_platform(command.platform);
  const std::string sent = run_in_child([&] {
    constexpr std::array<std::string_view, 2> obeyed{"HCCL_EXEC_TIMEOUT", "HCCL_INTER_HCCS_DISABLE"};
    sim::Cluster cluster(path);
    const LoadedPlatform platform(command.rank_table, command.hccl_settings, obeyed, cluster);
    const std::vector<std::vector<hccl::CollectiveCall>> points{{{.name = command.first, .schedule = schedules[0]}},
                                                                {{.name = command.second, .schedule = schedules[1]}}};
    for (const auto& calls : points) platform.require_ranks(calls.front().name, calls.front().schedule->ranks);
    // One network for both, so that equal schedules take the same time.
    const bool simgrid = std::all_of(points.begin(), points.end(), [](const auto& calls) {
      return hccl::automatic_network(calls) == sim::NetworkKind::simgrid;
    });
    const hccl::SimulateOptions options{.network = simgrid ? sim::NetworkKind::simgrid : sim::NetworkKind::fluid,
                                        .exec_timeout = platform.config.exec_timeout};
    Json times = Json::array();
    for (const auto& result : simulate_each(cluster, platform.soc, platform.costs, options, points)) {
      times.push_back(result.makespan);
    }
    return Json{{"times", times}, {"unmodelled", platform.unmodelled}, {"notes", platform.notes}}.dump();
  });
  const Json json = Json::parse(sent);
  comparison.times = {.platform = std::filesystem::path(path).filename().string(),
                      .times = {json["times"][0].get<Seconds>(), json["times"][1].get<Seconds>()}};
  comparison.unmodelled = json["unmodelled"].get<std::vector<std::string>>();
  comparison.notes = json["notes"].get<std::vector<std::string>>();
}

std::string counts_text(const char* what, const std::array<std::uint64_t, hccl::change_kinds>& counts) {
  std::string text;
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    if (counts[kind] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", with_thousands(counts[kind]),
                        name_of(static_cast<ChangeKind>(kind)));
  }
  return text.empty() ? text : fmt::format("  {}: {}\n", what, text);
}

std::string place_text(const hccl::TaskPlace& place) {
  return fmt::format("rank {} stage {} queue {} task {}: {}", place.rank, place.stage, place.queue, place.number,
                     place.task);
}

std::string text_of(const DiffCommand& command, const Comparison& comparison) {
  const auto& [difference, times, unmodelled, notes] = comparison;
  std::string text;
  for (const hccl::FieldDifference& field : difference.fields) {
    text += fmt::format("{}: {} -> {}\n", field.name, field.first, field.second);
  }
  for (const hccl::StageDifference& stage : difference.stages) {
    text += fmt::format("stage '{}'\n", stage.name);
    text += counts_text("transfers", stage.transfers) + counts_text("other tasks", stage.others);
    for (const hccl::TaskChange& change : stage.examples) {
      const hccl::TaskPlace& place = change.first.has_value() ? *change.first : *change.second;
      text += fmt::format("    {:<7}  {}\n", name_of(change.kind), place_text(place));
      if (change.first.has_value() && change.second.has_value()) {
        text += fmt::format("         to  {}\n", place_text(*change.second));
      }
    }
  }
  if (difference.shown_for_all) {
    text += fmt::format("compared: rank 0; all {} ranks are its images by rotation\n", difference.ranks);
  } else if (difference.compared_ranks < difference.ranks) {
    text += fmt::format("compared: the first {} of {} ranks, as the comparison of all would take long\n",
                        difference.compared_ranks, difference.ranks);
  }
  if (difference.equal()) text += fmt::format("{} and {} do the same\n", command.first, command.second);
  if (times.has_value()) {
    const auto [first, second] = times->times;
    text +=
        fmt::format("time on {}: {:.3f} us -> {:.3f} us", times->platform, first / microsecond, second / microsecond);
    if (times->equal()) {
      text += ", equal\n";
    } else {
      text += fmt::format(" ({:+.3f} us", (second - first) / microsecond);
      text += first > 0 ? fmt::format(", {:+.2f} %)\n", (second / first - 1) * 100) : ")\n";
    }
  }
  text += unmodelled_line(unmodelled);
  for (const std::string& note : notes) text += fmt::format("Note: {}\n", note);
  return text;
}

Json json_of(const std::array<std::uint64_t, hccl::change_kinds>& counts) {
  Json json = Json::object();
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    json[std::string(name_of(static_cast<ChangeKind>(kind)))] = counts[kind];
  }
  return json;
}

Json json_of(const std::optional<hccl::TaskPlace>& place) {
  if (!place.has_value()) return nullptr;
  return {{"rank", place->rank},
          {"stage", place->stage},
          {"queue", place->queue},
          {"number", place->number},
          {"task", place->task}};
}

std::string json_of(const DiffCommand& command, const Comparison& comparison) {
  const auto& [difference, times, unmodelled, notes] = comparison;
  Json json{{"format_version", 1},
            {"a", command.first},
            {"b", command.second},
            {"equal", comparison.equal()},
            {"compared_ranks", difference.shown_for_all ? difference.ranks : difference.compared_ranks},
            {"fields", Json::array()},
            {"stages", Json::array()}};
  for (const hccl::FieldDifference& field : difference.fields) {
    json["fields"].push_back({{"name", field.name}, {"a", field.first}, {"b", field.second}});
  }
  for (const hccl::StageDifference& stage : difference.stages) {
    Json examples = Json::array();
    for (const hccl::TaskChange& change : stage.examples) {
      examples.push_back({{"kind", name_of(change.kind)}, {"a", json_of(change.first)}, {"b", json_of(change.second)}});
    }
    json["stages"].push_back({{"name", stage.name},
                              {"transfers", json_of(stage.transfers)},
                              {"others", json_of(stage.others)},
                              {"examples", std::move(examples)}});
  }
  if (times.has_value()) {
    const auto [first, second] = times->times;
    json["time"] = {{"platform", times->platform}, {"a_s", first}, {"b_s", second}, {"difference_s", second - first}};
  }
  if (!unmodelled.empty()) json["not_modelled"] = unmodelled;
  if (times.has_value()) json["notes"] = notes;
  return json.dump(2) + '\n';
}

void diff(const DiffCommand& command) {
  std::array<std::shared_ptr<const hccl::Schedule>, 2> schedules;
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    const std::string& file = i == 0 ? command.first : command.second;
    schedules[i] = std::make_shared<const hccl::Schedule>(hccl::read_schedule(file).schedule);
  }
  const auto [first, second] = schedules;
  std::optional<Rank> deciding_ranks;
  const bool large = task_count(*first) + task_count(*second) > hccl::most_compared_tasks;
  if (large && rotate_alike(*first, *second)) deciding_ranks = 1;
  Comparison comparison{.difference = hccl::difference(*first, *second, hccl::most_compared_tasks, deciding_ranks),
                        .unmodelled = hccl::unmodelled(command.hccl_settings, {})};
  if (!command.platform.empty()) compare_times(command, schedules, comparison);
  print(command.format == "json" ? json_of(command, comparison) : text_of(command, comparison));
  if (comparison.equal()) return;
  throw Error(ErrorCode::check_failed, "schedule", fmt::format("{} and {} differ", command.first, command.second));
}

}  // namespace

void add_schedule_diff(Command& schedule) {
  Command& command =
      schedule.add_command("diff", "Compare two schedules in structure and time; status 1 if they differ");
  const auto options = std::make_shared<DiffCommand>();
  command.add("A", read_file(options->first), "A schedule in either form").value_name("TEXT").required();
  command.add("B", read_file(options->second), "Another one").value_name("TEXT").required();
  add_platform_options(command, "Also compare their times on a platform file, or a shipped one by name", *options);
  add_format_option(command, options->format, {"text", "json"});
  command.footer(
      "Examples:\n"
      "  hcclsim schedule diff golden.txt ring.txt\n"
      "  hcclsim schedule diff ring.txt hd.txt --platform atlas800-9000");
  command.on_run([&command, options] {
    finish_platform_options(OptionOrigins(command, {}), {}, *options);
    diff(*options);
  });
}

}  // namespace hcclsim::cli
