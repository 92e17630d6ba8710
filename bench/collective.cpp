#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "device/task_cost.hpp"
#include "hccl/collective/algorithm.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/runtime/private_links.hpp"
#include "hccl/runtime/runtime.hpp"

/// bench_collective ring|alltoall PLATFORM MIB [late] [simgrid]: a flat ring allreduce, or a pairwise AlltoAll, of MIB
/// per NPU over all NPUs of a platform, every transfer simulated. `late`: every rank starts at another time, within a
/// millisecond. Prints the simulated seconds and the number of transfers.
namespace {

using namespace hcclsim;

struct Case {
  bool ring = true;
  Bytes bytes = 0;
  bool late = false;
  sim::NetworkKind network = sim::NetworkKind::fluid;
};

hccl::Schedule schedule_of(const Case& what, Rank ranks) {
  const std::uint64_t elements = what.bytes / 4;  // of fp32
  if (what.ring) return build_algorithm(hccl::Algorithm::ring, {.ranks = ranks, .elements = elements}, {});
  const hccl::Operation alltoall{
      .ranks = ranks, .elements = elements / ranks, .collective = hccl::Collective::alltoall, .in_place = false};
  return build_algorithm(hccl::Algorithm::pairwise, alltoall, {});
}

void simulate(const std::string& platform, const Case& what) {
  sim::Cluster cluster(platform);
  sim::EventLoop loop;
  const auto network = sim::make_network(what.network, cluster, loop);
  std::vector<std::string> notes;
  const device::TaskCosts costs = device::read_task_costs(cluster, notes);
  const device::Soc soc = device::resolve_soc(cluster, 0, notes);
  sim::Trace trace;
  const hccl::Communicator all = hccl::world_communicator(cluster.size());
  const auto schedule = std::make_shared<const hccl::Schedule>(schedule_of(what, cluster.size()));
  hccl::PrivateLinks links(cluster);
  links.add(all, hccl::Seats::all(all), *schedule, 0);
  hccl::Machine machine{loop, *network, cluster, costs, soc, trace};
  machine.private_links = &links;
  machine.moves_all = what.network != sim::NetworkKind::fluid;
  hccl::Runtime runtime(machine);
  const hccl::CommunicatorId world = runtime.create_communicator(all);
  std::mt19937 random(1);
  for (Rank rank = 0; rank < cluster.size(); ++rank) {
    const hccl::StreamId stream = runtime.create_stream(rank);
    if (what.late) runtime.delay(stream, 1e-3 * static_cast<double>(random()) / 0x1p32);
    runtime.collective(stream, world, schedule, trace.intern("collective"));
  }
  runtime.run();
  const hccl::CollectiveStats& stats = runtime.collectives().back();
  fmt::print("{} NPUs: {:.9f} s simulated, {} transfers\n", cluster.size(), stats.last_end, stats.transfers);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 3 || (words[0] != "ring" && words[0] != "alltoall")) {
    fmt::print(stderr, "usage: bench_collective ring|alltoall PLATFORM MIB [late] [simgrid]\n");
    return 2;
  }
  Case what{.ring = words[0] == "ring", .bytes = std::strtoull(words[2].c_str(), nullptr, 10) << 20};
  for (std::size_t i = 3; i < words.size(); ++i) {
    if (words[i] == "late") what.late = true;
    if (words[i] == "simgrid") what.network = sim::NetworkKind::simgrid;
  }
  try {
    simulate(words[1], what);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}
