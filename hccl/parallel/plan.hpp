#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "device/workload.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/parallel/segment.hpp"
#include "hccl/schedule/schedule.hpp"

/// A Plan says what every rank's streams do in one training step. It is data; ranks that do the same share a role.
/// Data parallelism has one role, a pipeline will have one per stage.
namespace hcclsim::hccl {

enum class PlanTaskKind : std::uint8_t { kernel, collective };

struct PlanTask {
  PlanTaskKind kind = PlanTaskKind::kernel;
  models::Phase phase = models::Phase::forward;
  std::uint32_t stream = 0;
  std::uint32_t collective = 0;  ///< collective: index into Plan::collectives
  Seconds duration = 0;          ///< kernel: on a nominal NPU
  std::string name;
  std::vector<std::uint32_t> after;  ///< tasks of this role, in other streams, that must have ended
};

/// Tasks in the order in which they are enqueued: a task comes after those it waits for.
struct Role {
  std::vector<std::string> streams;  ///< names
  std::vector<PlanTask> tasks;
};

struct PlannedCollective {
  std::uint32_t communicator = 0;  ///< index into Plan::communicators
  std::shared_ptr<const Schedule> schedule;
  std::string name;
};

struct Plan {
  std::vector<Role> roles;
  std::vector<std::uint32_t> role_of;  ///< of each rank of the cluster that takes part: 0 … size − 1
  std::vector<Communicator> communicators;
  std::vector<PlannedCollective> collectives;
};

// Streams of the role of data parallelism.
inline constexpr std::uint32_t compute_stream = 0;
inline constexpr std::uint32_t communication_stream = 1;
inline constexpr std::uint32_t update_stream = 2;

/// Name of the collective of the overflow flag.
inline constexpr std::string_view overflow_flag_name = "overflow_flag";

/// The collectives of a step; on one NPU they are empty and take no time.
struct StepSchedules {
  std::vector<std::shared_ptr<const Schedule>> allreduces;  ///< one per segment
  std::shared_ptr<const Schedule> overflow_flag;            ///< null unless the workload has an overflow flag
};

/// Data parallelism: forward, backward, one allreduce per segment, update.
///
/// With `hcom_parallel` a segment's allreduce starts when its last gradient is ready and the one before it has ended,
/// and updates run in a stream of their own, each waiting for its own segment only (the pass behind the option moves
/// everything after an allreduce into new streams). Without it the allreduces follow the backward pass in series, and
/// all updates follow the last of them.
///
/// Dynamic loss scaling and clipping put the workload's checks between reduction and update, in the stream of the
/// updates: those of a gradient wait for what its update would wait for, so with `hcom_parallel` they run beside the
/// backward pass too. When all are done, the overflow flag is reduced in the communication stream, and the factor of
/// the clip is computed from the norms: every rank has the whole of every reduced gradient, so the norm needs no
/// communication. No update starts before both. A Plan does not know whether a step overflows: one whose update is
/// skipped is timed like any other.
///
/// Kernels of the two streams run side by side at full speed: cores and HBM are not shared between streams.
[[nodiscard]] Plan data_parallel_plan(const device::Workload& workload, const Communicator& world,
                                      std::span<const Segment> segments, const StepSchedules& schedules,
                                      bool hcom_parallel);

}  // namespace hcclsim::hccl
