#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "study/jobs/job/cluster/servers.hpp"
#include "study/jobs/job/msjob/msjob.hpp"

namespace hcclsim::study {

/// As Kubernetes counts it.
enum class PodPhase : std::uint8_t { pending, running, succeeded, failed };
/// "Pending", "Running", "Succeeded", "Failed".
[[nodiscard]] std::string_view name_of(PodPhase phase);

/// What a pod is at, finer than its phase.
enum class PodStage : std::uint8_t {
  unscheduled,  ///< no server has room for it
  creating,     ///< its images are pulled, its container is made
  waiting,      ///< its process starts, or waits for others
  training,     ///< its process takes part in training
  backing_off,  ///< its container ended and is to be started again
  unreachable,  ///< its server is lost, which nobody has noticed yet
  succeeded,
  failed,
};

/// Exit code of a container whose end nobody saw.
inline constexpr std::int32_t unknown_exit_code = 0xbeef;

struct Pod {
  struct Change {
    Seconds date = 0;
    PodStage stage = PodStage::unscheduled;
  };

  JobRole role = JobRole::worker;
  std::uint32_t index = 0;
  std::string name;
  std::map<std::string, std::string> labels{};
  std::vector<std::pair<std::string, std::string>> environment{};  ///< of the container that trains
  std::vector<Change> stages{};                                    ///< the first when it is created
  std::optional<Seconds> deleted{};
  std::optional<PodSeat> seat{};  ///< kept when it has ended
  std::string ip{};
  std::string why{};                        ///< it waits: of a pod without a server or image
  std::uint32_t starts = 0;                 ///< of its container
  Seconds started = 0;                      ///< the last of them
  std::uint32_t back_offs = 0;              ///< in a row, without a long run between them
  std::optional<std::int32_t> exit_code{};  ///< of the last end of its container
  bool reported = false;                    ///< how it ended, by the operator

  [[nodiscard]] Seconds created() const { return stages.front().date; }
  [[nodiscard]] PodStage stage() const { return stages.back().stage; }
  [[nodiscard]] PodPhase phase() const;
  [[nodiscard]] bool is_live() const { return !deleted.has_value(); }
  [[nodiscard]] bool has_ended() const { return stage() == PodStage::succeeded || stage() == PodStage::failed; }
  /// Its container runs.
  [[nodiscard]] bool runs() const { return stage() == PodStage::waiting || stage() == PodStage::training; }
  /// By the kubelet, of its container.
  [[nodiscard]] std::uint32_t restarts() const { return starts > 0 ? starts - 1 : 0; }
  void enter(Seconds date, PodStage stage) { stages.push_back({date, stage}); }
};

/// "JOB-worker-0".
[[nodiscard]] std::string pod_name(const MsJob& job, JobRole role, std::uint32_t index);
/// Those of the operator, and those of the template.
[[nodiscard]] std::map<std::string, std::string> pod_labels(const MsJob& job, JobRole role, std::uint32_t index);
/// What the container that trains sees: the variables of its template, and where there is a scheduler those of the
/// operator, which count before. `scheduler_ip`: of the scheduler's service, empty without a scheduler. A scheduler
/// gets its own address when its pod has one.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> pod_environment(const MsJob& job, JobRole role,
                                                                               std::uint32_t index,
                                                                               const std::string& scheduler_ip);

}  // namespace hcclsim::study
