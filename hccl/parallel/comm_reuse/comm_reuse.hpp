#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/plan/plan.hpp"

/// MindSpore's reuse of communication subgraphs. A compiled graph has a communication operator for every call, and each
/// takes time to be compiled and tasks on a hardware stream, of which a device has a limited number. Operators that do
/// the same can share one: a subgraph with one operator, a communicator and a stream of its own, which every place in
/// the graph calls. All such calls of a graph are threaded on one token, so that they follow each other in the order of
/// the graph: operators that ran at the same time before no longer do.
///
/// Operators of one class have the same collective, sizes, type, reduction, root and group. Point-to-point messages and
/// broadcasts have no classes, and neither do collectives that carry fused tensors. A class is shared if it has more
/// operators than fit on one stream, and as long as all shared calls stay within the limit.
///
/// Source: MindSpore r2.0, plugin/device/ascend: optimizer/ascend_comm_op_reuse, hal/device/ascend_stream_assign; the
/// documentation of comm_subgraph. In MindSpore the order in which classes are looked at is that of hashed keys; here
/// it is that of the Plan. The calls of subgraphs take no time of their own.
namespace hcclsim::hccl {

/// What a device's runtime gives, and what operators take of it.
struct StreamRules {
  /// Three collectives of 300 tasks each fit, as in the documentation's example.
  std::uint32_t tasks_per_stream = 1024;
  std::uint32_t streams = 1024;
  std::uint32_t secondary = 3;       ///< streams besides each that communicates
  std::uint32_t kernel_tasks = 3;    ///< of an operator that computes
  std::uint32_t message_tasks = 15;  ///< of a send or a receive
  std::uint32_t collective_tasks = 300;
  std::uint32_t large_tasks = 350;  ///< of a collective in a world of at least `large_world` ranks
  Rank large_world = 1024;
  std::uint32_t server_tasks = 125;  ///< of one whose group is in one server
};

/// MindSpore's communi_parallel_mode: which groups have streams of their own. The others share those of one group.
enum class GroupParallel : std::uint8_t { all, same_server, none };

/// "all_group_parallel", "same_server_group_parallel", "no_group_parallel".
[[nodiscard]] std::string_view name_of(GroupParallel mode);
/// Inverse of name_of; throws Error(bad_input, "option").
[[nodiscard]] GroupParallel parse_group_parallel(std::string_view name);

struct CommReuse {
  /// The documented default of MS_COMM_COMPILER_OPT=-1.
  static constexpr std::uint32_t default_limit = 1000;

  std::uint32_t limit = default_limit;  ///< of calls that are replaced in a graph; 0: none are
  StreamRules streams{};
  std::vector<std::uint32_t> servers{};  ///< of each rank
  GroupParallel groups = GroupParallel::all;
};

/// MS_COMM_COMPILER_OPT as the user sets it.
struct CommReuseSwitch {
  std::uint32_t limit = 0;  ///< 0: off
  std::string warning{};    ///< why it is off although it was set
};
/// "-1" is the default limit, a positive number a limit, "off" is off; 0 and other negative numbers are off with a
/// warning. Throws Error(bad_input, "environment") for anything else.
[[nodiscard]] CommReuseSwitch parse_comm_reuse(std::string_view text);

/// Communication operators that do the same.
struct ReuseClass {
  std::string title;                 ///< "allreduce of 4096 bytes, fp32, over ranks 0-3"
  std::uint32_t tasks = 0;           ///< of one operator
  std::vector<std::uint32_t> calls;  ///< by each role
  bool reused = false;
  std::string reason;  ///< why it is not: "fits on a stream", "over the limit"
};

/// The graph of a role. Streams are those of the device's runtime, not those of the Plan.
struct StreamAccount {
  std::uint64_t operators = 0;  ///< that communicate
  std::uint64_t compute = 0;    ///< streams
  std::uint64_t communication = 0;
  std::uint64_t secondary = 0;
  Seconds compile = 0;  ///< assumed_compile for each operator, assumed_call for each call of a shared one

  [[nodiscard]] std::uint64_t streams() const { return compute + communication + secondary; }
};

/// Nobody has published what it takes to compile a communication operator, or the call of one that is compiled.
inline constexpr Seconds assumed_compile = 50e-3;
inline constexpr Seconds assumed_call = 1e-3;

struct RoleAccount {
  std::uint32_t stage = 0;
  Rank first_rank = 0;
  Rank ranks = 0;
  std::uint64_t candidates = 0;  ///< operators that have a class
  std::uint32_t classes = 0;
  std::uint32_t shared = 0;    ///< classes that are reused, each with a communicator of its own
  std::uint64_t replaced = 0;  ///< operators that became calls
  StreamAccount before{};
  StreamAccount after{};
};

struct CommReuseReport {
  std::uint32_t limit = 0;
  StreamRules rules{};
  std::vector<ReuseClass> classes;  ///< in the order of the Plan
  std::vector<RoleAccount> roles;
};

/// Of a Plan without reuse. `reuse.servers` has an entry for every rank of the Plan.
[[nodiscard]] CommReuseReport comm_reuse_report(const Plan& plan, const CommReuse& reuse);

/// Throws Error(simulated_failure, "streams") with the account if a role needs more streams than there are, with the
/// reuse that the report is of.
void require_streams(const CommReuseReport& report);

/// Gives the classes that are reused a communicator and a stream of their own, and threads their calls. What followed
/// each other on a stream still does, as tasks may need what is done before them there. Ranks of a group share their
/// classes, so that they call them in one order. For Plans without compression, whose steps are all alike.
void reuse_communication(Plan& plan, const CommReuse& reuse);

}  // namespace hcclsim::hccl
