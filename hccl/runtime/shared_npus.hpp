#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "device/soc.hpp"
#include "device/task_cost.hpp"
#include "hccl/runtime/fold/rank_orbits.hpp"
#include "sim/cluster.hpp"
#include "sim/event_loop.hpp"
#include "sim/network/memory_network.hpp"

/// NPUs on which computation and communication are in each other's way. Without this, kernels, copies and transfers
/// have the HBM to themselves, and reductions the AI cores.
///
/// *HBM.* It is one more link of everything that moves bytes, with the bandwidth that the cost model of kernels has,
/// for reading and writing together (sim/network/max_min.hpp):
///
///     kernel                 its bytes, evenly over its time behind its launch, no faster than that
///     transfer               read once at its source, written once at its destination
///     … that reduces inline  read and written at its destination
///     copy from the host     written at its NPU
///     copy within an NPU     read and written
///     AI-core reduction      two operands read, the result written
///
/// A kernel of c seconds of computation and b bytes so takes max(c, b / share) at a constant share of the HBM: it slows
/// down only when its bytes become what it waits for. Units compute on what was loaded before, tile by tile, so that a
/// kernel that waits for bytes falls behind with both. L2 is not modelled: every byte counts at the HBM. What takes no
/// time without this, such as the reduction of a copy engine within an NPU, takes none with it.
///
/// *AI cores.* A kernel has them all from its launch to its end, as the cost model assumes. Kernels of all streams and
/// reductions of HCCL that no engine does on the way (Reduce_TBE, a kernel like others) take them one after the other,
/// in the order in which they come; at one date in the order of streams and queues. So the device schedules kernels:
/// one begins when cores are idle (CANN, aclrtLaunchKernelAttrValue: schemMode), and those before it leave none idle.
/// For reductions that is the most that they can cost: how many cores one takes is not published.
///
/// *Folding* (rank_orbits.hpp). NPUs that do the same have equal HBMs and cores, and the same comes to them. In exact
/// arithmetic folded ranks have the dates of all ranks. So they have in floating point while HBMs hold up kernels
/// alone, as those of real NPUs do, which are many times faster than their links. An HBM that limits transfers lets a
/// rank that is late by a rounding error make others later by more than that: then ranks that are all simulated drift
/// apart, in time by 1e-4 of a step, and those that are folded cannot.
namespace hcclsim::hccl {

/// What is to be done on the AI cores of an NPU.
struct CoreWork {
  Seconds launch = 0;  ///< the cores are taken, no bytes move
  Seconds time = 0;    ///< that the rest takes with the HBM to itself
  double bytes = 0;    ///< that are read and written in it
};

class SharedNpus final : private sim::EventHandler {
 public:
  /// `npus` NPUs, whose HBMs are the memories of the network from `first_hbm` on. What is referred to must outlive it.
  /// With `orbits`, ranks that stand for others have the HBM and cores of all.
  SharedNpus(sim::MemoryNetwork& network, sim::EventLoop& loop, const device::Soc& soc, const device::TaskCosts& costs,
             const RankOrbits* orbits, Rank npus, std::uint32_t first_hbm = 0);

  // All of these call handler.on_event(tag) when they have ended, among the events of that date in `order`.
  /// The work comes to the cores at `date`.
  void compute(Rank rank, const CoreWork& work, Seconds date, sim::EventOrder order, sim::EventHandler& handler,
               std::uint64_t tag);
  /// An AI-core reduction of so many bytes of result.
  void reduce(Rank rank, Bytes bytes, Seconds date, sim::EventOrder order, sim::EventHandler& handler,
              std::uint64_t tag);
  /// A copy whose first byte moves at `date`.
  void copy(Rank rank, Bytes bytes, Seconds date, sim::EventOrder order, sim::EventHandler& handler, std::uint64_t tag);
  /// As Network::transfer; `reduces`: into what is at the destination.
  void transfer(const sim::Route& route, sim::Access access, Bytes bytes, bool reduces, Seconds date,
                sim::EventOrder order, sim::EventHandler& handler, std::uint64_t tag);
  /// From the memory of the CPU to that of the NPU, the destination of the route.
  void write(const sim::Route& route, Bytes bytes, Seconds date, sim::EventOrder order, sim::EventHandler& handler,
             std::uint64_t tag);
  /// … where nothing but the speed of the way is known. There are bytes.
  void write(Rank rank, Bytes bytes, BytesPerSecond speed, Seconds date, sim::EventOrder order,
             sim::EventHandler& handler, std::uint64_t tag);

  /// When the work that ends at this date was given the cores; good while its handler is called.
  [[nodiscard]] Seconds began(Rank rank) const { return cores_[npu_of(rank)].began; }
  /// How much longer the transfer that ends at this date has taken because an HBM was full, if links let it flow with
  /// this speed.
  [[nodiscard]] Seconds lost(BytesPerSecond speed) const {
    const sim::MemoryLimit limit = network_.limit();
    return limit.time - limit.bytes / speed;
  }
  /// Rates of the transfer that ends at this date, as MemoryNetwork::rates() has them.
  [[nodiscard]] std::span<const sim::RateStep> rates() const { return network_.rates(); }

 private:
  struct Job {
    Rank npu = 0;
    CoreWork work;
    sim::EventOrder order;
    sim::EventHandler* handler = nullptr;
    std::uint64_t tag = 0;
  };
  struct Cores {
    bool busy = false;
    Seconds began = 0;
    std::deque<std::uint32_t> waiting;  // jobs
  };

  void on_event(std::uint64_t tag) override;
  void begin(std::uint32_t job);
  void end(std::uint32_t job);
  [[nodiscard]] Rank npu_of(Rank rank) const { return orbits_ == nullptr ? rank : orbits_->representative(rank); }
  [[nodiscard]] std::uint32_t hbm_of(Rank rank) const { return first_hbm_ + npu_of(rank); }

  sim::MemoryNetwork& network_;
  sim::EventLoop& loop_;
  const device::TaskCosts& costs_;
  BytesPerSecond hbm_;  // of each NPU
  const RankOrbits* orbits_;
  std::uint32_t first_hbm_;
  std::vector<Cores> cores_;  // by NPU
  std::vector<Job> jobs_;
  std::vector<std::uint32_t> free_jobs_;
};

}  // namespace hcclsim::hccl
