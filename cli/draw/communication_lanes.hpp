#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/draw/profiler_names.hpp"

/// Threads of the process "Communication" of a rank, as msprof draws it: of each group of ranks a thread of its
/// operators, then one for every plane of the tasks inside them. Viewers nest spans of a thread by their dates, so what
/// may be under way at the same time has threads of its own: another group, and another stream of the same group.
namespace hcclsim::cli {

class CommunicationLanes {
 public:
  /// Of the rank that these spans are of; there is a thread of the group of all in any case.
  CommunicationLanes(const ProfiledGroups& groups, const std::vector<const sim::Span*>& spans);

  /// The thread of an operator, or of a task inside one, of these spans.
  [[nodiscard]] std::uint32_t thread(const sim::Span& span) const;
  /// Calls name(thread, its name), in their order.
  void name(const std::function<void(std::uint32_t, const std::string&)>& name) const;

 private:
  struct Lane {
    std::uint32_t first = 0;  ///< thread of its operators
    std::set<std::uint32_t> planes{};
  };

  const ProfiledGroups& groups_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Lane> lanes_;  // by group and stream
  std::map<std::uint32_t, std::uint32_t> streams_;                 // of each group: how many
};

}  // namespace hcclsim::cli
