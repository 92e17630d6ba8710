#include "study/compare/sweep/sweep.hpp"

#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "study/compare/sweep/ranking.hpp"
#include "study/compare/sweep/slurm.hpp"

namespace hcclsim::study {
namespace {

std::size_t count_of(const std::vector<StoredPoint>& points, PointStatus status) {
  const auto has_it = [&](const StoredPoint& point) { return point.status == status; };
  return static_cast<std::size_t>(std::count_if(points.begin(), points.end(), has_it));
}

/// Settings of HCCL that had no effect on some of the points.
std::vector<std::string> unmodelled_in(SweepStore& store, const std::set<std::string>& wanted) {
  constexpr const char* key = "not_modelled";
  std::set<std::string> origins;
  const auto look_at = [&](const StoredPoint& point) {
    if (!wanted.contains(point.id) || point.result.find(key) == std::string::npos) return;
    const Json result = point.result_json();
    for (const Json& origin : result.value(key, Json::array())) origins.insert(origin.get<std::string>());
  };
  store.for_each(look_at, true);
  return {origins.begin(), origins.end()};
}

/// Leaves out the points that need not be computed, by what another database says of them.
void leave_out_finished(std::vector<Point>& points, const std::string& database, bool retry_failed) {
  SweepStore store(database, SweepStore::Access::read);
  std::set<std::string> finished;
  for (const StoredPoint& point : store.points()) {
    const bool failed = point.status == PointStatus::failed;
    if (point.status == PointStatus::done || (failed && !retry_failed)) finished.insert(point.id);
  }
  std::erase_if(points, [&](const Point& point) { return finished.contains(point.id); });
}

/// Which file has a name; 0 if there is none.
ino_t file_number(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

}  // namespace

std::uint32_t processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<std::uint32_t>(CPU_COUNT(&set)) : 1;
}

std::vector<std::string> ids_of(const std::vector<Point>& points) {
  std::vector<std::string> ids;
  for (const Point& point : points) ids.push_back(point.id);
  return ids;
}

SweepStore::Access access_to(const std::string& database, bool shared) {
  return shared || std::filesystem::exists(slurm_folder(database)) ? SweepStore::Access::share
                                                                   : SweepStore::Access::work;
}

SweepReport report_of(SweepStore& store, const std::vector<Point>& points, std::uint64_t computed) {
  const std::vector<std::string> ids = ids_of(points);
  const std::set<std::string> wanted(ids.begin(), ids.end());
  SweepReport report{.points = store.points(), .axes = {}, .computed = computed};
  std::erase_if(report.points, [&](const StoredPoint& point) { return !wanted.contains(point.id); });
  report.axes = axes_of(report.points);
  report.done = count_of(report.points, PointStatus::done);
  report.failed = count_of(report.points, PointStatus::failed);
  report.unmodelled = unmodelled_in(store, wanted);
  return report;
}

SweepReport run_sweep(const SweepSpec& spec, std::vector<Point> points, const LoadGroup& load,
                      const std::function<bool()>& stop, const std::function<void(const Tally&)>& progress) {
  if (spec.shard.has_value()) {
    std::erase_if(points, [&](const Point& point) { return !belongs(point.id, *spec.shard); });
  }
  if (!spec.not_in.empty()) leave_out_finished(points, spec.not_in, spec.retry_failed);
  SweepStore store(spec.database, access_to(spec.database, spec.shared));
  const ino_t file = file_number(spec.database);
  store.add(points);
  if (spec.retry_failed) store.retry(ids_of(points));
  const Tally tally = run_points(
      store, points, load, {.jobs = spec.jobs == 0 ? processors() : spec.jobs, .stop = stop, .progress = progress});
  if (file_number(spec.database) != file) {
    bad_input("database", "{}: was removed or replaced while the sweep ran; what it computed is lost", spec.database);
  }
  return report_of(store, points, tally.computed);
}

}  // namespace hcclsim::study
