#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "hccl/training/step_view.hpp"
#include "sim/trace.hpp"

/// What the vendor's profilers call the things of a trace: tasks, links, operators, groups of ranks. Timelines and the
/// files for MindStudio use the same names, by which its viewers join them.
namespace hcclsim::cli {

/// A task inside a collective, not the collective itself.
[[nodiscard]] bool is_task(const sim::Span& span);
/// "Notify Record", "Memcpy", …
[[nodiscard]] std::string_view task_name(const sim::Span& span);
/// Kind of the slowest link that a transfer takes: "HCCS", "PCIE", "SIO", "RDMA"; "HCCS_SW": the unified bus of A3.
[[nodiscard]] std::string_view link_type(const sim::Span& span);

/// Dates are whole nanoseconds, so that a span ends where the next one begins.
[[nodiscard]] std::int64_t nanoseconds(Seconds date);

/// Ranks that communicate with each other.
struct ProfiledGroup {
  std::string name;             ///< "hccl_world_group", or that of the Plan
  std::string key;              ///< of its communicator, in parallel_group_info
  std::string id;               ///< hash_of_key(key) in decimal digits; operators are named by the last three
  std::vector<Rank> ranks;      ///< of the cluster
  std::map<Rank, Rank> places;  ///< of these in the group, by which links are named
};

/// HCCL's hash of a communicator's name, by which profilers name its operators: two of 32 bits each, of factors 29 and
/// 131, the first one in the upper half (as msprof-analyze 26.1 computes it from the keys of parallel_group_info).
[[nodiscard]] std::uint64_t hash_of_key(std::string_view key);

/// The groups of a Plan that have two ranks or more, each set of ranks once; number 0 is the group of all.
class ProfiledGroups {
 public:
  explicit ProfiledGroups(const hccl::Plan& plan);

  [[nodiscard]] const std::vector<ProfiledGroup>& groups() const { return groups_; }
  /// That of the collective or the message which a span shows.
  [[nodiscard]] const ProfiledGroup& of(const sim::Span& span) const { return groups_[number_of(span)]; }
  /// Its place in groups(). Tasks inside a collective are of its group.
  [[nodiscard]] std::uint32_t number_of(const sim::Span& span) const;

 private:
  const hccl::Plan& plan_;
  std::vector<ProfiledGroup> groups_;
  std::vector<std::vector<std::uint32_t>> number_;  // by family, by rank
};

/// Names of operators: hcom_allReduce__<last three digits of the group's id>_<call of the iteration>_<iteration>. Calls
/// are counted by rank and iteration, in the order in which they are asked for.
class OperatorNames {
 public:
  /// Both must outlive it.
  OperatorNames(const hccl::Plan& plan, const ProfiledGroups& groups) : plan_(plan), groups_(groups) {}

  [[nodiscard]] std::string next(const sim::Span& span);

 private:
  const hccl::Plan& plan_;
  const ProfiledGroups& groups_;
  std::map<std::pair<Rank, std::int32_t>, std::uint32_t> calls_;
};

/// "allReduce", "send", …: what the span of a collective or a message carries out.
[[nodiscard]] std::string_view operation_name(const hccl::Plan& plan, const sim::Span& span);

/// What a post and the wait which consumes it have in common, and no others: flows of a trace are numbered within a
/// communicator.
using NotifyKey = std::array<std::uint64_t, 5>;

/// Of a span; nothing: it is neither a post nor a wait.
[[nodiscard]] std::optional<NotifyKey> notify_key(const hccl::Plan& plan, const sim::Span& span);

/// A number below 2^62 of the same meaning, for spans that pass one by one. 0: the span has none.
[[nodiscard]] std::uint64_t notify_flow(const hccl::Plan& plan, const sim::Span& span);

/// The spans of each of these ranks, in the order of the trace; a rank without spans has none.
[[nodiscard]] std::map<Rank, std::vector<const sim::Span*>> spans_by_rank(const sim::Trace& trace,
                                                                          const std::vector<Rank>& ranks);

}  // namespace hcclsim::cli
