#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>

#include "base/json.hpp"
#include "cli/options/hccl_options.hpp"
#include "cli/print/schedule/schedule_report.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

using hccl::ChangeKind;

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

}  // namespace

std::string comparison_text(const study::ScheduleComparison& comparison, const study::CompareSpec& spec) {
  const auto& [difference, times, on] = comparison;
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
  if (difference.equal()) text += fmt::format("{} and {} do the same\n", spec.first, spec.second);
  if (times.has_value()) {
    const auto [first, second] = *times;
    text += fmt::format("time on {}: {:.3f} us -> {:.3f} us", on.platform, first / microsecond, second / microsecond);
    if (comparison.equal_times()) {
      text += ", equal\n";
    } else {
      text += fmt::format(" ({:+.3f} us", (second - first) / microsecond);
      text += first > 0 ? fmt::format(", {:+.2f} %)\n", (second / first - 1) * 100) : ")\n";
    }
  }
  return text + remarks_text(on.unmodelled, on.notes);
}

std::string comparison_json(const study::ScheduleComparison& comparison, const study::CompareSpec& spec) {
  const auto& [difference, times, on] = comparison;
  Json json{{"format_version", 2},
            {"a", spec.first},
            {"b", spec.second},
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
    const auto [first, second] = *times;
    json["time"] = {{"platform", on.platform}, {"a_s", first}, {"b_s", second}, {"difference_s", second - first}};
  }
  if (!on.unmodelled.empty()) json["not_modelled"] = on.unmodelled;
  if (times.has_value()) json["notes"] = on.notes;
  return json.dump(2) + '\n';
}

}  // namespace hcclsim::cli
