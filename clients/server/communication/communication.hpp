#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "clients/server/communication/answers.hpp"
#include "clients/server/communication/call_reader.hpp"
#include "clients/server/communication/connections.hpp"
#include "clients/server/communication/issuer.hpp"
#include "clients/server/communication/records.hpp"
#include "clients/server/communication/schedules.hpp"
#include "clients/server/core.hpp"
#include "clients/server/devices/copies.hpp"

namespace hcclsim::clients {

/// Carries out collectives and messages: each is read, finds out what it belongs to, connects, and is issued.
class Communication {
 public:
  /// Calls that connect wait for their peers for `timeout` seconds.
  Communication(Core& core, Meetings& meetings, Seconds timeout, const Devices& devices, Streams& streams,
                Copies& copies, const Communicators& communicators, const PeerMemory& peer_memory)
      : core_(core),
        copies_(copies),
        reader_(core, streams, communicators, peer_memory),
        schedules_(core, communicators),
        records_(core.workers),
        connections_(core, meetings, timeout),
        issuer_(core, devices, streams, schedules_, records_) {}

  /// Calls of a thread, those of a group or one.
  std::optional<Result> run(ThreadId id, const std::vector<Question>& questions);
  /// Calls that other ranks have not made, line by line.
  [[nodiscard]] std::string missing_calls() const { return records_.missing_calls(); }

 private:
  /// Calls of a group that follow each other: of a communicator's rank, and of messages the peer and the direction.
  using Chain = std::vector<Question>;
  using ChainKey = std::tuple<std::uint64_t, std::uint32_t, bool>;

  [[nodiscard]] static ChainKey chain_of(const Question& question);
  /// Carries out the calls from a place of the chain on, each when the one before it has been issued.
  void begin(ThreadId id, const std::shared_ptr<const Chain>& chain, std::size_t place,
             const std::shared_ptr<Answers>& answers);
  void collective(ThreadId id, const Question& question, const std::shared_ptr<Answers>& answers, const Done& done);
  void batch(ThreadId id, const Question& question, Answers& answers, const Done& done);
  void connect(const std::shared_ptr<const RankCall>& call, Answers& answers, const Done& done);
  [[nodiscard]] std::string transport_of(const RankCall& call);

  Core& core_;
  Copies& copies_;
  CallReader reader_;
  Schedules schedules_;
  Records records_;
  Connections connections_;
  Issuer issuer_;
};

}  // namespace hcclsim::clients
