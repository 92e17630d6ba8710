#include "study/compare/sweep/points.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <utility>

#include "study/platform/shipped_platforms.hpp"

namespace hcclsim::study {
namespace {

/// The variables of HCCL that are set change what points give; they are inputs like others.
void add_environment(Json& inputs) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string name(text.substr(0, text.find('=')));
    if (!is_variable(name) || name.size() == text.size()) continue;
    if (name == "RANK_TABLE_FILE" && name.size() + 1 == text.size()) continue;
    inputs[name] = text.substr(name.size() + 1);
  }
}

}  // namespace

Point PointNamer::named(Json inputs) {
  Point point{.command = sweep_.command, .inputs = std::move(inputs), .version = sweep_.version};
  const auto given = point.inputs.value("platform", sweep_.platform).get<std::string>();
  const auto [platform, added] = platforms_.try_emplace(given);
  if (added) platform->second = find_platform(given);
  point.files["platform"] = platform->second;
  point.group = platform->second;
  for (const auto& [name, value] : point.inputs.items()) {
    const auto text = value.get<std::string>();
    if (is_edit(name)) point.group += fmt::format("\n{}={}", name, text);
    const bool names_file = name == "RANK_TABLE_FILE" || sweep_.files.contains(name);
    if (name != "platform" && names_file && std::filesystem::is_regular_file(text)) point.files[name] = text;
  }
  for (const auto& [name, path] : point.files) {
    const auto [hash, unread] = hashes_.try_emplace(path);
    if (unread) hash->second = content_hash_of_file(path);
    point.hashes[name] = hash->second;
  }
  point.id = point_id(point);
  return point;
}

std::string PointNamer::id_by_version(Point point, const std::string& version) {
  point.version = version;
  return point_id(point);
}

std::vector<Point> points_of(const SweepGrid& sweep) {
  PointNamer namer(sweep);
  std::vector<Point> points;
  std::set<std::string> ids;
  const std::size_t size = sweep.grid.size();
  for (std::size_t i = 0; i < size; ++i) {
    Json inputs = Json::object();
    for (const auto& [name, value] : sweep.grid.at(i)) inputs[name] = value;
    add_environment(inputs);
    Point point = namer.named(std::move(inputs));
    if (ids.insert(point.id).second) points.push_back(std::move(point));
  }
  return points;
}

}  // namespace hcclsim::study
