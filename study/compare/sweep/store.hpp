#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "study/compare/sweep/database.hpp"
#include "study/compare/sweep/point.hpp"

/// The points of sweeps in an SQLite file: inputs, results and errors (docs/formats.md, "Sweep database"). Every change
/// is one transaction, so that whatever ends a sweep leaves whole points. Several sweeps may work on one file: a point
/// is claimed before it is computed, and the claims of a process that has died are void. Of a process of the same
/// kernel that is seen at once; one of another machine has died when nothing was heard of it for five minutes.
namespace hcclsim::study {

enum class PointStatus : std::uint8_t { waiting, running, done, failed };
[[nodiscard]] std::string_view name_of(PointStatus status);

/// The columns of figures, in their order; a figure that a command has not is NULL. Databases of earlier versions lack
/// the last ones, which are added when one is written to.
inline constexpr std::array<std::string_view, 9> figure_columns{
    "step_time_s", "images_per_s", "exposed_communication_s", "hbm_peak_bytes", "time_s", "algbw_Bps", "busbw_Bps",
    "goodput",     "restarts"};

/// What came of a point.
struct Outcome {
  std::string id;
  bool ok = true;
  std::string result{};                                   ///< JSON; if ok, or if what was simulated failed
  std::vector<std::pair<std::string, double>> figures{};  ///< by column of figure_columns
  std::string error{};                                    ///< if not ok
  std::string error_kind{};                               ///< as Error::kind()
  int exit_status = 0;
  double wall_s = 0;  ///< real time that it took
};

/// A row of the table of points.
struct StoredPoint {
  std::int64_t number = 0;  ///< in the order in which points were added
  std::string id;
  std::string command;
  Json inputs;
  std::string platform_hash;
  std::string version;
  PointStatus status = PointStatus::waiting;
  std::string result;  ///< JSON; empty unless done, or failed in the simulation
  std::string error;
  std::string error_kind;
  int exit_status = 0;
  std::int64_t npus = 0;  ///< that take part, as the result says; 0 if it does not
  std::array<std::optional<double>, figure_columns.size()> figures{};
  std::string stale{};  ///< why its command would not give its result today, as mark_stale() finds; empty: it would
  std::string today{};  ///< id of the point that it would give; empty: none

  [[nodiscard]] std::optional<double> figure(std::string_view column) const;
  /// The result as a value, null if there is none. Throws Error(bad_input, "database") for what is no JSON.
  [[nodiscard]] Json result_json() const;
};

struct PointCounts {
  std::uint64_t waiting = 0, running = 0, done = 0, failed = 0;
  [[nodiscard]] std::uint64_t all() const { return waiting + running + done + failed; }
  [[nodiscard]] std::uint64_t& of(PointStatus status);
};

class SweepStore {
 public:
  enum class Access : std::uint8_t { read, work, share };

  /// Access::work and Access::share make the file if there is none, and enter this process among those that work on it;
  /// Access::share is for a file that processes of other machines open, too (Journal::rollback). On file systems that
  /// are not known to be local both do the same. All functions throw Error(bad_input, "database").
  SweepStore(const std::string& path, Access access);
  SweepStore(const SweepStore&) = delete;
  SweepStore(SweepStore&&) = delete;
  SweepStore& operator=(const SweepStore&) = delete;
  SweepStore& operator=(SweepStore&&) = delete;
  /// Gives back what is claimed and leaves a single file behind if no other process uses it.
  ~SweepStore();

  /// Adds those points that are not there yet.
  void add(const std::vector<Point>& points);
  /// Makes failed points wait again.
  void retry(const std::vector<std::string>& ids);
  /// The status of points that are there.
  [[nodiscard]] std::vector<PointStatus> statuses(const std::vector<std::string>& ids);
  /// Claims one waiting point for this process; false if another has it or it is finished.
  [[nodiscard]] bool claim(const std::string& id);
  /// Stores what came of claimed points, all at once.
  void finish(const std::vector<Outcome>& outcomes);
  /// Gives points back that this process has claimed.
  void release(const std::vector<std::string>& ids);
  /// Says that this process lives, for those on other machines; to be called several times in five minutes.
  void keep_alive();
  /// Makes points wait again whose process has died. Writes only if there are such processes or points.
  void void_claims_of_the_dead();

  /// Points of processes that have died wait.
  [[nodiscard]] PointCounts counts();
  /// Visits points in their order; `results` says whether their results are read, too.
  void for_each(const std::function<void(const StoredPoint&)>& visit, bool results);
  /// All points without their results.
  [[nodiscard]] std::vector<StoredPoint> points();

  /// Takes the points of another database that are finished there and not here; returns how many. What the other one
  /// holds stays as it is; if it is damaged, nothing is taken.
  std::uint64_t merge(const std::string& other);

 private:
  void make_tables();
  void check_format() const;
  [[nodiscard]] bool has_column(std::string_view name) const;
  /// Of each figure its column, or NULL where the file is of a version that had it not.
  [[nodiscard]] std::string figures_in_file() const;
  [[nodiscard]] std::vector<std::int64_t> dead_owners() const;

  Database database_;
  std::int64_t owner_ = 0;  ///< row of this process in the table of sweeps; 0: only reads
};

}  // namespace hcclsim::study
