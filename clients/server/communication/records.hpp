#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "clients/server/communication/payload.hpp"
#include "clients/server/communication/rank_call.hpp"
#include "clients/server/communication/schedules.hpp"
#include "device/numerics/worker_pool.hpp"

namespace hcclsim::clients {

/// Knows the collectives and messages that are under way: which calls of ranks belong together, and how far they are.
class Records {
 public:
  /// `workers` move and reduce data.
  explicit Records(device::WorkerPool& workers) : workers_(workers) {}

  /// Finds out what the call belongs to, in the order of the calls of its rank. Throws Error(simulated_failure,
  /// "mismatch") if another rank has called something else.
  void announce(RankCall& call);
  /// The rank has called something that moves nothing.
  void note_empty(const RankCall& call);
  /// What the call belongs to moves nothing, as has turned out.
  void forget(const RankCall& call) { records_.erase(call.key); }

  /// The call is a task of the stream now. Returns the name of the task.
  const std::string& enqueue(const RankCall& call, const ClientStream& stream, const MadeSchedule& made);
  /// The call begins or ends in its stream. Throws Error(simulated_failure, "client") if the program has freed memory
  /// that it uses.
  void begin(const RankCall& call, device::Overflow overflow);
  void end(const RankCall& call);

  /// Calls that other ranks have not made, line by line.
  [[nodiscard]] std::string missing_calls() const;

 private:
  /// A collective or message of which some ranks may not have called yet.
  struct Record {
    std::shared_ptr<Payload> payload{};  // null: of a barrier
    std::string what{};                  // "HcclAllReduce of 8 fp32, sum"
    std::string name{};                  // "HcclAllReduce #3 on world"
    std::shared_ptr<const CommunicatorGroup> group{};
    std::vector<Rank> members{};                    // of the group, by rank of the payload
    std::set<Rank> called{};                        // ranks of the payload …
    std::set<Rank> arrived{};                       // … and those that have begun it on the device
    std::map<Rank, const ClientStream*> streams{};  // … in which they do
    hccl::Operation operation{};
    bool zero_copy = false;
  };

  [[nodiscard]] std::string missing_from(const Record& record) const;

  device::WorkerPool& workers_;
  std::map<RankCall::Key, Record> records_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, Rank, Rank, bool>, std::uint64_t> messages_;  // ends, so far
  std::map<std::pair<std::uint32_t, Rank>, std::uint64_t> collectives_;  // of a group's rank, so far
  std::map<std::pair<std::uint32_t, Rank>, std::string> empty_;  // what it has called since then that moves nothing
};

}  // namespace hcclsim::clients
