#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <optional>

#include "base/counter_random.hpp"
#include "base/error.hpp"
#include "sim/network/network.hpp"

/// bench_random_transfers PLATFORM TRANSFERS [ROUTING]: every NPU sends 1 MiB to a random other one, and again when it
/// has arrived, until so many transfers are done; they meet on the links of the fabric. Prints the simulated seconds.
namespace {

using namespace hcclsim;

class Senders final : public sim::EventHandler {
 public:
  Senders(sim::Cluster& cluster, sim::EventLoop& loop, sim::Network& network, std::uint64_t transfers)
      : cluster_(cluster), loop_(loop), network_(network), left_(transfers) {}

  void start() {
    for (Rank rank = 0; rank < cluster_.size(); ++rank) send(rank);
  }
  void on_event(std::uint64_t rank) override { send(static_cast<Rank>(rank)); }

 private:
  void send(Rank rank) {
    if (left_ == 0) return;
    constexpr Bytes payload = Bytes{1} << 20U;
    const auto distance = static_cast<Rank>(1 + counter_bits(1, rank, --left_) % (cluster_.size() - 1));
    network_.transfer(cluster_.route(rank, (rank + distance) % cluster_.size()), sim::Access::write, payload,
                      loop_.now(), {rank, 0}, *this, rank);
  }

  sim::Cluster& cluster_;
  sim::EventLoop& loop_;
  sim::Network& network_;
  std::uint64_t left_;
};

void simulate(const char* platform, std::uint64_t transfers, const std::optional<sim::Routing>& routing) {
  sim::Cluster cluster(platform, {}, routing);
  sim::EventLoop loop;
  const auto network = sim::make_network(sim::NetworkKind::fluid, cluster, loop);
  Senders senders(cluster, loop, *network, transfers);
  senders.start();
  loop.run();
  fmt::print("{} NPUs: {:.9f} s simulated, {} transfers\n", cluster.size(), loop.now(), network->completed());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    fmt::print(stderr, "usage: bench_random_transfers PLATFORM TRANSFERS [ROUTING]\n");
    return 2;
  }
  try {
    std::optional<sim::Routing> routing;
    if (argc == 4) routing = sim::parse_routing(argv[3]);
    simulate(argv[1], std::strtoull(argv[2], nullptr, 10), routing);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}
