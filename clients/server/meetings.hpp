#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "clients/server/core.hpp"

/// Hosts that wait for each other: to form a communicator, to connect for the first time, or for an exchange of bytes.
/// A meeting ends when all have come, at the date of the last one, or at the first guest's deadline for that guest.
namespace hcclsim::clients {

struct Guest {
  ThreadId thread = 0;
  std::uint32_t process = 0;
  Rank npu = 0;         ///< for which it comes, to form a communicator
  std::string bytes{};  ///< that it brings
  /// Called when the meeting is over: with all guests, by rank, or with none if the guest's time was over.
  std::function<void(const std::map<Rank, Guest>* all, Seconds date)> done{};
  Deadlines::Number deadline = 0;
};

class Meetings {
 public:
  explicit Meetings(Core& core) : core_(core) {}

  /// Why a guest of the process cannot come as `rank` of `needed`; empty: it can.
  [[nodiscard]] std::string problem(const std::string& name, Rank rank, Rank needed) const {
    const auto found = meetings_.find(name);
    if (found == meetings_.end() || found->second.guests.empty()) return {};
    const Meeting& meeting = found->second;
    const auto& [other, first] = *meeting.guests.begin();
    if (needed != meeting.needed) {
      return fmt::format("rank {} of {}, but rank {} (process {}) has called with {} ranks", rank, needed, other,
                         first.process, meeting.needed);
    }
    const auto same = meeting.guests.find(rank);
    if (same == meeting.guests.end()) return {};
    return fmt::format("rank {} is there already: process {} has called", rank, same->second.process);
  }

  /// The guest comes as `rank` of `needed`, to whom problem() has no objection. `timeout`: infinite for none.
  void join(const std::string& name, Rank rank, Rank needed, Guest guest, Seconds timeout) {
    Meeting& meeting = meetings_[name];
    const Seconds date = core_.hosts.thread(guest.thread).date;
    meeting.needed = needed;
    meeting.latest = std::max(meeting.latest, date);
    if (timeout < never) {
      const Seconds end = std::max(date + timeout, core_.loop.now());
      guest.deadline = core_.deadlines.at(
          end, [this, name, rank, end] { leave(name, rank, end); }, true);
    }
    meeting.guests[rank] = std::move(guest);
    if (meeting.guests.size() < needed) return;
    const Meeting all = std::move(meeting);
    meetings_.erase(name);
    for (const auto& [place, one] : all.guests) core_.deadlines.cancel(one.deadline);
    for (const auto& [place, one] : all.guests) one.done(&all.guests, all.latest);
  }

  /// Ranks that are not there, and have not left since this date either.
  [[nodiscard]] std::vector<Rank> missing_ranks(const std::string& name, Seconds since = never) const {
    std::vector<Rank> ranks;
    const auto found = meetings_.find(name);
    if (found == meetings_.end()) return ranks;
    const Meeting& meeting = found->second;
    for (Rank rank = 0; rank < meeting.needed; ++rank) {
      const auto left = meeting.left.find(rank);
      const bool was_there = left != meeting.left.end() && left->second >= since;
      if (!meeting.guests.contains(rank) && !was_there) ranks.push_back(rank);
    }
    return ranks;
  }

  /// The same for people: "ranks 1, 5 of 8".
  [[nodiscard]] std::string missing(const std::string& name, Seconds since = never) const {
    const auto found = meetings_.find(name);
    if (found == meetings_.end()) return "nobody";
    const std::vector<Rank> ranks = missing_ranks(name, since);
    constexpr std::size_t most = 8;
    std::string text;
    for (std::size_t i = 0; i < std::min(ranks.size(), most); ++i)
      text += fmt::format("{}{}", i > 0 ? ", " : "", ranks[i]);
    if (ranks.size() > most) text += ", …";
    return fmt::format("rank{} {} of {}", ranks.size() == 1 ? "" : "s", text, found->second.needed);
  }

 private:
  static constexpr Seconds never = std::numeric_limits<Seconds>::infinity();

  struct Meeting {
    Rank needed = 0;
    std::map<Rank, Guest> guests{};
    Seconds latest = 0;
    std::map<Rank, Seconds> left{};  // dates at which guests have given up
  };

  void leave(const std::string& name, Rank rank, Seconds date) {
    Meeting& meeting = meetings_[name];
    const Guest guest = std::move(meeting.guests[rank]);
    guest.done(nullptr, date);  // what is missing is told with the guest still expected
    meeting.guests.erase(rank);
    meeting.left[rank] = date;
    if (meeting.guests.empty()) meetings_.erase(name);
  }

  Core& core_;
  std::map<std::string, Meeting> meetings_;
};

}  // namespace hcclsim::clients
