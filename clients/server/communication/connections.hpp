#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "clients/server/communication/answers.hpp"
#include "clients/server/communication/rank_call.hpp"
#include "clients/server/core.hpp"
#include "clients/server/meetings.hpp"

namespace hcclsim::clients {

/// The first call that needs a transport waits on the host for all peers: of a collective all ranks of the
/// communicator, for each operator and algorithm; of a message its other end. So does every call whose counts only the
/// other ranks know (HcclAlltoAllV).
class Connections {
 public:
  using Counts = std::vector<std::uint64_t>;

  /// A call waits for its peers for `timeout` seconds.
  Connections(Core& core, Meetings& meetings, Seconds timeout) : core_(core), meetings_(meetings), timeout_(timeout) {}

  /// Calls `connected` when the transport of the call is there, which may be at once; or `failed` with the reason.
  void connect(const std::shared_ptr<const RankCall>& call, const std::string& transport, Answers& answers,
               const Done& failed, const std::function<void()>& connected);
  /// Calls `known` with the counts of all pairs of ranks, or `failed` with the reason. Throws Error(simulated_failure,
  /// "mismatch") for ranks that do not expect what they are sent.
  void exchange_counts(const std::shared_ptr<const RankCall>& call, Answers& answers, const Done& failed,
                       const std::function<void(Counts)>& known);

 private:
  using Guests = std::map<Rank, Guest>;

  void meet(const std::string& meeting, const std::shared_ptr<const RankCall>& call, std::string bytes,
            Answers& answers, const Done& failed, const std::function<void(const Guests&)>& met);
  /// Puts together the counts that the guests have brought. Throws as exchange_counts() does.
  static Counts counts_of(const Guests& guests, const std::string& communicator);
  /// Whom a call waits for; `ranks`: those that have not come to its meeting.
  static std::string missing(const RankCall& call, const std::string& ranks);
  /// Says why the missing ranks do not come: "; process 2 has ended".
  [[nodiscard]] std::string doing_of(const RankCall& call, const std::vector<Rank>& missing) const;

  Core& core_;
  Meetings& meetings_;
  Seconds timeout_;
  std::set<std::pair<std::uint32_t, std::string>> connected_;          // transports of groups that all have used
  std::map<std::pair<std::uint32_t, Rank>, std::uint64_t> exchanges_;  // of counts of a group's rank, so far
};

}  // namespace hcclsim::clients
