#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "study/compare/sweep/runner.hpp"

/// A sweep as a whole: its points computed into a database, and what the database has of them.
namespace hcclsim::study {

struct SweepSpec {
  std::string database;
  std::uint32_t jobs = 0;        ///< points at a time; 0: one per processor
  std::optional<Shard> shard{};  ///< a part of the points, for one of several machines
  std::string not_in{};          ///< points that are finished in this database are left out; empty: none
  bool retry_failed = false;
  bool shared = false;  ///< other machines open the database, too
};

/// What the store has of the points of a grid.
struct SweepReport {
  std::vector<StoredPoint> points;
  std::vector<std::string> axes;  ///< that differ between them
  std::size_t done = 0;
  std::size_t failed = 0;
  std::vector<std::string> unmodelled{};  ///< settings of HCCL that had no effect on some of them
  std::uint64_t computed = 0;             ///< now

  [[nodiscard]] std::size_t left() const { return points.size() - done - failed; }
};

/// Processors that this process may use.
[[nodiscard]] std::uint32_t processors();

[[nodiscard]] SweepReport report_of(SweepStore& store, const std::vector<Point>& points, std::uint64_t computed);

/// Computes those points that the database has not yet; `stop` and `progress` as RunnerOptions has them. Throws
/// Error(bad_input, "database") for one that vanished meanwhile.
[[nodiscard]] SweepReport run_sweep(const SweepSpec& spec, std::vector<Point> points, const LoadGroup& load,
                                    const std::function<bool()>& stop,
                                    const std::function<void(const Tally&)>& progress);

[[nodiscard]] std::vector<std::string> ids_of(const std::vector<Point>& points);
/// How this machine writes a database: the tasks of a sweep that was submitted read it on others.
[[nodiscard]] SweepStore::Access access_to(const std::string& database, bool shared);

}  // namespace hcclsim::study
