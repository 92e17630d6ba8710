#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/compression/hook_steps.hpp"
#include "hccl/parallel/segments/segment.hpp"
#include "hccl/schedule/schedule.hpp"
#include "models/program.hpp"

/// A Plan says what every rank's streams do in one training step. It is data: it is timed (training/executor.hpp),
/// computed with real numbers (training/numerics/trainer.hpp) and read when figures are made of a trace
/// (training/step_view.hpp). Ranks that do the same share a role: data parallelism has one.
namespace hcclsim::hccl {

enum class StreamKind : std::uint8_t { compute, communication, update, host, data };

[[nodiscard]] std::string_view name_of(StreamKind kind);

/// The part of a step that a task belongs to; `reduction` is the communication of gradients, `gather` that of weights,
/// `result` that of what a network gives that is not trained; `input` is what prepares and brings the batch,
/// `checkpoint` what writes the weights away.
enum class StepPhase : std::uint8_t { forward, backward, reduction, check, update, gather, result, input, checkpoint };

[[nodiscard]] std::string_view name_of(StepPhase phase);
[[nodiscard]] StepPhase phase_of(models::Phase phase);

/// What a task is there for. The operator of a kernel is in the Program.
struct Purpose {
  static constexpr std::uint32_t none = ~0U;

  StepPhase phase = StepPhase::forward;
  std::uint32_t stage = 0;
  std::uint32_t chunk = 0;
  std::uint32_t micro_batch = 0;
  std::uint32_t segment = none;        ///< of gradients, of a reduction; of a gather its number in Role::gathers
  std::optional<HookAction> action{};  ///< of a compression hook; of a block of kernels that of the first one
};

/// Steps that carry a task out: begin, begin + every, … before `end`, counted from the first one that is simulated.
struct StepRange {
  static constexpr std::uint32_t no_end = ~0U;

  std::uint32_t begin = 0;
  std::uint32_t end = no_end;
  std::uint32_t every = 1;

  [[nodiscard]] bool contains(std::uint32_t step) const {
    return step >= begin && step < end && (step - begin) % every == 0;
  }
};

/// Kernels first … first + count − 1 of the role's Program, one behind the other. Other tasks wait for all of them or
/// for none, and all of them wait for the same tasks.
struct KernelBlock {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};
/// The rank's part of a collective.
struct CollectiveTask {
  std::uint32_t collective = 0;  ///< index into Plan::collectives
};
/// One end of a message. The rank of the other end is that of this one plus `offset`.
struct SendTask {
  std::uint32_t message = 0;  ///< index into Plan::messages
  std::int64_t offset = 0;
  std::uint32_t tag = 0;
};
struct ReceiveTask {
  std::uint32_t message = 0;
  std::int64_t offset = 0;
  std::uint32_t tag = 0;
};
struct HostWork {
  Seconds duration = 0;
};
/// Samples that the data workers of the rank prepare, as fast as they are.
struct InputWork {
  std::uint64_t samples = 0;
};
/// Bytes from the memory of the server's CPU to that of the rank, or back, on the way that the platform has between
/// them.
struct HostCopy {
  Bytes bytes = 0;
  bool back = false;
};

struct PlanTask {
  std::variant<KernelBlock, CollectiveTask, SendTask, ReceiveTask, HostWork, InputWork, HostCopy> work;
  Purpose purpose{};
  std::uint32_t stream = 0;            ///< index into Role::streams
  std::vector<std::uint32_t> after{};  ///< tasks of this role, in other streams, that must have ended
  /// The kernel of the role's Program that communication carries out, if it comes from there.
  std::uint32_t kernel = Purpose::none;
  /// Kernels and other tasks of the role before this one: what the jitter of a kernel depends on.
  std::uint32_t ordinal = 0;
  StepRange steps{};  ///< in others it is left out, and nothing waits for it
};

/// A place in a role's tasks.
struct TaskPart {
  std::uint32_t task = 0;
  std::uint32_t part = 0;  ///< number of a kernel in its block

  auto operator<=>(const TaskPart&) const = default;
};

/// Streams of every role, by their numbers; a role that does not use one has no tasks in it. Messages between stages,
/// gathers of weights and collectives of operators have their own, so that they do not wait for reductions.
namespace role_stream {
inline constexpr std::uint32_t compute = 0;
inline constexpr std::uint32_t communication = 1;
inline constexpr std::uint32_t update = 2;
inline constexpr std::uint32_t messages = 3;
inline constexpr std::uint32_t gathers = 4;
inline constexpr std::uint32_t operators = 5;
inline constexpr std::uint32_t compression = 6;  ///< of the first segment; those of the others follow
}  // namespace role_stream

/// Weights of which every rank has a part, put together by one collective. They are of one type.
struct WeightGather {
  std::vector<std::uint32_t> parameters;  ///< of the program
  bool each_use = false;                  ///< for every pass that reads one of them; else once per step
  std::uint32_t copies = 0;               ///< family of the stage whose groups share them (StageProgram::families)
};

/// Tasks in the order in which they are enqueued: a task comes after those it waits for.
struct Role {
  std::shared_ptr<const models::Program> program;
  std::vector<StreamKind> streams;
  std::vector<PlanTask> tasks;
  std::vector<Segment> segments{};  ///< of the gradients
  std::vector<WeightGather> gathers{};
  std::uint32_t stage = 0;
  /// Of each stream, steps by which it may be ahead of the others; behind the end: 0. A step begins to use what such
  /// streams bring when the first task that waits for it begins; then each of them may go on with the step that is so
  /// many further. The end of a step does not wait for them.
  std::vector<std::uint32_t> ahead{};

  [[nodiscard]] std::uint32_t lead(std::uint32_t stream) const { return stream < ahead.size() ? ahead[stream] : 0; }
  /// "compute", "communication", "messages", …
  [[nodiscard]] std::string_view stream_title(std::uint32_t stream) const;
};

/// Groups of one kind, such as the replicas of every stage: each rank is in one of them.
struct GroupFamily {
  std::vector<Communicator> groups;
};

struct PlannedCollective {
  std::uint32_t family = 0;                                ///< index into Plan::families
  Operation operation{};                                   ///< that every group carries out
  std::vector<std::shared_ptr<const Schedule>> schedules;  ///< of each group; those of one shape share one
  std::string name;
  std::uint32_t segment = Purpose::none;  ///< of gradients

  [[nodiscard]] const std::string& algorithm() const { return schedules.front()->algorithm; }
};

/// Messages of one kind.
struct PlannedMessage {
  std::shared_ptr<const Schedule> schedule;  ///< of one message between two ranks
  std::string name;
  Bytes bytes = 0;
};

struct Plan {
  std::vector<Role> roles;
  std::vector<std::uint32_t> role_of;  ///< of each rank of the cluster that takes part: 0 … size − 1
  std::vector<GroupFamily> families;
  std::vector<PlannedCollective> collectives;
  std::vector<PlannedMessage> messages{};
  std::optional<CompressionSettings> compression{};  ///< of all reductions

  [[nodiscard]] Rank ranks() const { return static_cast<Rank>(role_of.size()); }
  [[nodiscard]] const Role& role(Rank rank) const { return roles[role_of[rank]]; }
  /// Name of a task in timelines; of a block that of a kernel in it.
  [[nodiscard]] const std::string& name(const Role& role, TaskPart at) const;
};

/// Chooses and builds the schedule of a collective of a group, or of a message between two ranks (send_recv).
using ScheduleMaker = std::function<std::shared_ptr<const Schedule>(const Communicator&, const Operation&)>;

/// The tasks that a step carries out: a Plan whose steps are all alike.
[[nodiscard]] Plan plan_of_step(const Plan& plan, std::uint32_t step);

/// Name of the collective of the overflow flag.
inline constexpr std::string_view overflow_flag_name = "overflow_flag";

}  // namespace hcclsim::hccl
