#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "clients/server/memory.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/execute/data_flow.hpp"
#include "hccl/schedule/schedule.hpp"

/// The data of one collective or message: what its Schedule does to the buffers of its ranks.
///
/// A rank's buffers count from its arrival on the device until its end there. All data are moved and reduced in one go
/// when the first rank ends after all have arrived. A rank may end before others have arrived, as the root of a
/// broadcast does: then its result, which cannot depend on them, is computed by itself, and what it gave is kept for
/// the rest, as its program may write there.
namespace hcclsim::clients {

/// A piece of the user's memory of a rank: blocks at places of their own are several.
using Pieces = std::vector<DeviceSpan>;

struct RankBuffers {
  Pieces input{};
  Pieces output{};
};

class Payload {
 public:
  Payload(std::shared_ptr<const hccl::Schedule> schedule, std::shared_ptr<const hccl::DataFlow> flow);

  void arrive(Rank rank, RankBuffers buffers, device::Overflow overflow);
  void end(Rank rank, device::WorkerPool& workers);
  [[nodiscard]] bool finished() const { return ended_ == states_.size(); }
  [[nodiscard]] const hccl::Schedule& schedule() const { return *schedule_; }

 private:
  struct State {
    RankBuffers buffers{};
    bool arrived = false;
    bool ended = false;
    std::vector<std::byte> kept{};  // what it gave, of one that has ended early
  };

  /// Computes all results, for the ranks that have not ended; with `only`, that of one rank.
  void execute(const State* only, device::WorkerPool& workers);
  [[nodiscard]] std::vector<std::byte> given_by(const State& state, Rank rank) const;

  std::shared_ptr<const hccl::Schedule> schedule_;
  std::shared_ptr<const hccl::DataFlow> flow_;
  std::vector<State> states_;
  device::Overflow overflow_ = device::Overflow::infinity;
  Rank arrived_ = 0;
  Rank ended_ = 0;
  bool executed_ = false;
};

}  // namespace hcclsim::clients
