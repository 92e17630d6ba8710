#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/units.hpp"
#include "sim/cluster.hpp"
#include "sim/event_loop.hpp"
#include "sim/network/max_min.hpp"
#include "sim/network/network.hpp"

/// A network with memories that bytes are read from and written to, and that become full like links: the network
/// `fluid` with further links. What is moved at the same time shares links and memories by max-min fairness.
namespace hcclsim::sim {

/// What flowed while a memory, and no link, determined how fast.
struct MemoryLimit {
  Seconds time = 0;
  double bytes = 0;  ///< as they load the links' capacity
};

class MemoryNetwork : public Network {
 public:
  using Network::transfer;

  /// The transfer also loads these memories; `times` are per byte of the payload.
  virtual void transfer(const Route& route, Access access, Bytes bytes, std::span<const MemoryUse> memories,
                        Seconds date, EventOrder order, EventHandler& handler, std::uint64_t tag) = 0;

  /// From `date` on moves bytes within a memory, at most at the speed `most`, and calls the handler as transfer() does.
  /// `bytes` and `most` are above 0.
  virtual void move(double bytes, BytesPerSecond most, const MemoryUse& memory, Seconds date, EventOrder order,
                    EventHandler& handler, std::uint64_t tag) = 0;

  /// Of what has just ended; good while its handler is called. Of a transfer that several queue pairs carry: of the
  /// last part.
  [[nodiscard]] virtual MemoryLimit limit() const = 0;

  /// From now on keeps the rates of what flows.
  virtual void keep_rates() = 0;
  /// Rates of what has just ended, from its first byte on, if they are kept; good while its handler is called. Of a
  /// transfer that several queue pairs carry those of the last part.
  [[nodiscard]] virtual std::span<const RateStep> rates() const = 0;
};

/// `memories`: what each of them reads and writes together; above 0.
[[nodiscard]] std::unique_ptr<MemoryNetwork> make_memory_network(const Cluster& cluster, EventLoop& loop,
                                                                 std::span<const BytesPerSecond> memories);

}  // namespace hcclsim::sim
