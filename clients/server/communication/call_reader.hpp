#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "clients/server/communication/rank_call.hpp"
#include "clients/server/communicators/communicators.hpp"
#include "clients/server/communicators/peer_memory.hpp"
#include "clients/server/core.hpp"
#include "clients/server/devices/streams.hpp"

namespace hcclsim::clients {

/// Checks the arguments of HCCL's functions, and finds the operations and buffers that they mean. It changes nothing.
class CallReader {
 public:
  /// Messages of a rank that belong together.
  struct Batch {
    std::vector<std::shared_ptr<RankCall>> calls{};
    std::vector<RankCall> to_itself{};  ///< what the rank sends to itself and receives from itself, or nothing
  };

  CallReader(Core& core, Streams& streams, const Communicators& communicators, const PeerMemory& peer_memory)
      : core_(core), streams_(streams), communicators_(communicators), peer_memory_(peer_memory) {}

  /// Reads a collective or a message. Tells why it cannot be; status 0: it can.
  Result read(ThreadId id, const Question& question, RankCall& call) const;
  /// Reads a batch, likewise.
  Result read(ThreadId id, const Question& question, Batch& batch) const;

 private:
  using Counts = std::vector<std::uint64_t>;
  /// Blocks of a buffer, in elements.
  struct Blocks {
    Counts counts{};
    Counts places{};
  };

  /// Finds the communicator of a call; null, and why it is `wrong`, if it cannot communicate.
  const ClientCommunicator* find(ThreadId id, std::uint64_t handle, Result& wrong) const;
  Result read_collective(RankCall& call, const CollectiveArguments& arguments, const Counts& counts) const;
  /// Reads which blocks the call sends, and which it receives.
  static Result read_blocks(RankCall& call, const CollectiveArguments& arguments, const Counts& counts, Blocks& sent,
                            Blocks& received);
  Result read_message(RankCall& call, std::uint32_t type, std::uint32_t peer, std::uint64_t address,
                      std::uint64_t count, bool may_be_itself) const;
  /// The type of the call's elements, of which there are so many.
  Result find_type(RankCall& call, std::uint32_t type, std::uint64_t count, const Counts& counts) const;
  Result find_pieces(const RankCall& call, const char* which, std::uint64_t address, const Blocks& blocks,
                     Pieces& pieces) const;

  Core& core_;
  Streams& streams_;
  const Communicators& communicators_;
  const PeerMemory& peer_memory_;
};

}  // namespace hcclsim::clients
