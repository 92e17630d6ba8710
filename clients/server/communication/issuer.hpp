#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "clients/server/communication/rank_call.hpp"
#include "clients/server/communication/records.hpp"
#include "clients/server/communication/schedules.hpp"
#include "clients/server/core.hpp"
#include "clients/server/devices/devices.hpp"
#include "clients/server/devices/streams.hpp"

namespace hcclsim::clients {

/// Makes tasks of streams from calls, at the dates at which the hosts of their ranks issue them. The collective forms
/// in the runtime (hccl/runtime/runtime.hpp), and its data move when it ends (payload.hpp).
class Issuer {
 public:
  Issuer(Core& core, const Devices& devices, Streams& streams, Schedules& schedules, Records& records)
      : core_(core), devices_(devices), streams_(streams), schedules_(schedules), records_(records) {}

  /// Issues a call in its stream.
  void issue(const std::shared_ptr<const RankCall>& call);
  /// Issues messages of one stream that work side by side, between two places of it.
  void issue_together(const std::vector<std::shared_ptr<RankCall>>& calls);

 private:
  /// Enqueues the call on a stream, whose tasks are there from the beginning of the pace on.
  void enqueue(const std::shared_ptr<const RankCall>& call, ClientStream& stream, const MadeSchedule& made,
               const hccl::Pace& pace);

  Core& core_;
  const Devices& devices_;
  Streams& streams_;
  Schedules& schedules_;
  Records& records_;
  std::map<const ClientStream*, std::pair<hccl::EventId, hccl::EventId>> forks_;  // of hidden streams: begin, end
};

}  // namespace hcclsim::clients
