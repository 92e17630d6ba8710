#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/runtime/bandwidth.hpp"
#include "hccl/settings/launch_mode.hpp"
#include "sim/faults/fault.hpp"
#include "sim/network/network.hpp"
#include "study/platform/link_report.hpp"
#include "study/platform/platform.hpp"

/// How long schedules take on a platform, each alone and, if asked for, all at the same time, and what limits them.
namespace hcclsim::study {

struct TimedFile {
  std::string file;
  std::vector<Rank> npus{};  ///< of its ranks; empty: the first ones of the platform
  std::string name{};        ///< in results and messages; empty: the file's
};

struct TimeSpec {
  PlatformSpec platform{};
  std::vector<TimedFile> files{};
  sim::NetworkKind network = sim::NetworkKind::fluid;
  hccl::LaunchMode launch = hccl::LaunchMode::graph;
  std::uint32_t iterations = 1;
  std::uint32_t warmups = 0;
  bool together = false;
  std::vector<sim::Fault> faults{};  ///< their dates are those since the first call of each simulation is issued
  std::size_t links = 0;             ///< that are reported, of one iteration; 0: none
};

/// What one simulation says of one schedule.
struct ScheduleTiming {
  Seconds time = 0;  ///< per iteration, launch included
  Seconds device = 0;
  std::uint64_t transfers = 0;
  std::uint32_t simulated = 0;              ///< iterations
  std::vector<hccl::FoldedClass> folded{};  ///< empty: all ranks were simulated
  std::string limit{};
};

struct TimedSchedule {
  std::string file;          ///< TimedFile::name
  std::vector<Rank> npus{};  ///< as asked for
  hccl::Collective collective = hccl::Collective::allreduce;
  std::string algorithm{};
  Rank ranks = 0;
  Bytes payload = 0;
  DataType type = DataType::fp32;
  ScheduleTiming alone{};
  hccl::Bandwidth speed{};  ///< alone
  std::optional<ScheduleTiming> together{};
  std::optional<LinkReport> links{};  ///< alone

  [[nodiscard]] double slow_down() const { return alone.time > 0 ? together->time / alone.time : 1; }
};

struct ScheduleTimes {
  PlatformFacts on;
  sim::NetworkKind network = sim::NetworkKind::fluid;
  std::vector<TimedSchedule> schedules;
  Seconds makespan = 0;               ///< of all together
  std::optional<LinkReport> links{};  ///< of all together
};

/// Throws Error(bad_input) for files that are no schedules, of more ranks than the platform has, or of more or fewer
/// than NPUs are given for.
[[nodiscard]] ScheduleTimes time_schedules(const TimeSpec& spec);

}  // namespace hcclsim::study
