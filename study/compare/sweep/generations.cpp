#include "study/compare/sweep/generations.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

/// Why today's point of the same inputs is another one; empty if it is this one.
std::string reason(const StoredPoint& stored, const Point& today) {
  if (stored.id == today.id) return {};
  const bool other_version = stored.version != today.version;
  const std::string version = fmt::format("by version {}", stored.version);
  if (stored.platform_hash != today.hashes.at("platform")) {
    return other_version ? fmt::format("platform edited, {}", version) : "platform edited";
  }
  if (!other_version) return "input file changed";
  const bool same_files = PointNamer::id_by_version(today, stored.version) == stored.id;
  return same_files ? version : fmt::format("input file changed, {}", version);
}

bool has_result(const StoredPoint& point) {
  return point.status == PointStatus::done || point.status == PointStatus::failed;
}

/// Later in this order is newer.
auto age(const StoredPoint& point) { return std::tuple(has_result(point), point.stale.empty(), point.number); }

std::set<std::string> ids_with_result(const std::vector<StoredPoint>& points) {
  std::set<std::string> ids;
  for (const StoredPoint& point : points) {
    if (has_result(point)) ids.insert(point.id);
  }
  return ids;
}

/// Equal for the generations of a point.
std::string key_of(const StoredPoint& point) {
  Json inputs = point.inputs;
  inputs.sort_keys();
  return Json{point.command, inputs}.dump();
}

}  // namespace

void mark_stale(std::vector<StoredPoint>& points, const SweepOfCommand& sweep_of) {
  std::map<std::string, PointNamer> namers;
  for (StoredPoint& point : points) {
    auto namer = namers.find(point.command);
    if (namer == namers.end()) namer = namers.emplace(point.command, PointNamer(sweep_of(point.command))).first;
    if (point.inputs.value("platform", std::string()).text() == "-") {  // read from a pipe that is gone
      point.stale = "file not found";
      continue;
    }
    try {
      const Point today = namer->second.named(point.inputs);
      point.today = today.id;
      point.stale = reason(point, today);
    } catch (const Error&) {  // the command of these inputs would fail, too
      point.stale = "file not found";
    }
  }
}

bool can_be_refreshed(const std::vector<StoredPoint>& points) {
  const std::set<std::string> there = ids_with_result(points);
  return std::any_of(points.begin(), points.end(), [&](const StoredPoint& point) {
    return !point.stale.empty() && !point.today.empty() && !there.contains(point.today);
  });
}

std::vector<StoredPoint> newest(std::vector<StoredPoint> points) {
  const std::set<std::string> there = ids_with_result(points);
  std::erase_if(points, [&](const StoredPoint& point) { return !point.stale.empty() && there.contains(point.today); });
  std::map<std::string, std::size_t> places;  // of the newest, by key
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto [place, added] = places.try_emplace(key_of(points[i]), i);
    if (!added && age(points[i]) > age(points[place->second])) place->second = i;
  }
  chosen.reserve(places.size());
  for (const auto& [key, place] : places) chosen.push_back(place);
  std::sort(chosen.begin(), chosen.end());
  std::vector<StoredPoint> found;
  found.reserve(chosen.size());
  for (const std::size_t i : chosen) found.push_back(std::move(points[i]));
  return found;
}

std::string stale_text(const std::vector<StoredPoint>& points) {
  std::map<std::string, std::size_t> reasons;
  std::size_t stale = 0;
  for (const StoredPoint& point : points) {
    if (point.stale.empty()) continue;
    ++reasons[point.stale];
    ++stale;
  }
  if (stale == 0) return {};
  std::vector<std::string> parts;
  for (const auto& [why, count] : reasons) parts.push_back(fmt::format("{}: {}", why, count));
  return fmt::format("{} of {} points are stale ({})", stale, points.size(), fmt::join(parts, "; "));
}

}  // namespace hcclsim::study
