#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.hpp"
#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "tests/support/built.hpp"
#include "tests/support/rig.hpp"
#include "tests/support/simulation.hpp"

/// SimGrid's own MPI, an independent implementation of the same algorithms on the same platform files, takes the same
/// time: its `lr` is our ring, its `rab` our halving-doubling. SMPI sends 16 bytes with every message and takes 10 ns
/// for MPI_Wtime; it does not model reductions, and neither do we here.
namespace hcclsim::hccl {
namespace {

constexpr Bytes mpi_header = 16;
constexpr double mpi_wtime = 10e-9;

/// Adds SMPI's header to every transfer.
class WithHeader final : public sim::Network {
 public:
  explicit WithHeader(sim::Network& network) : network_(network) {}
  void transfer(const sim::Route& route, sim::Access access, Bytes bytes, Seconds date, sim::EventOrder order,
                sim::EventHandler& handler, std::uint64_t tag) override {
    network_.transfer(route, access, bytes + mpi_header, date, order, handler, tag);
  }

 private:
  sim::Network& network_;
};

/// Where the ranks meet: an uncontended star, a star with a slow core, two groups with one trunk between them. All
/// routes of a platform have the same latency. `placement` is the device number of each host.
std::string platform(const std::string& fabric, const std::vector<Rank>& placement) {
  const auto size = static_cast<Rank>(placement.size());
  const bool trunk = fabric == "trunk";
  std::string xml = fmt::format(
      "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
      "<platform version=\"4.1\">\n<zone id=\"cluster\" routing=\"{}\">\n",
      trunk ? "Full" : "Cluster");
  for (const auto& [key, value] : test::no_task_costs())
    xml += fmt::format("<prop id=\"{}\" value=\"{}\"/>\n", key, value);
  for (Rank i = 0; i < size; ++i) {
    xml += fmt::format(
        "<host id=\"npu-{}\" speed=\"1Gf\"><prop id=\"npu\" value=\"Ascend910A\"/><prop id=\"server\" value=\"0\"/>"
        "<prop id=\"device\" value=\"{}\"/></host>\n",
        i, placement[i]);
  }
  for (Rank i = 0; i < size; ++i) {
    xml += fmt::format("<link id=\"port-{}\" bandwidth=\"10GBps\" latency=\"500ns\" sharing_policy=\"SPLITDUPLEX\"/>\n",
                       i);
  }
  if (trunk) {
    xml += "<link id=\"trunk\" bandwidth=\"25GBps\" latency=\"0ns\" sharing_policy=\"SPLITDUPLEX\"/>\n";
    for (Rank i = 0; i < size; ++i) {
      for (Rank j = i + 1; j < size; ++j) {
        const bool crosses = i < size / 2 && j >= size / 2;
        xml += fmt::format(
            "<route src=\"npu-{}\" dst=\"npu-{}\"><link_ctn id=\"port-{}\" direction=\"UP\"/>{}"
            "<link_ctn id=\"port-{}\" direction=\"DOWN\"/></route>\n",
            i, j, i, crosses ? "<link_ctn id=\"trunk\" direction=\"UP\"/>" : "", j);
      }
    }
  } else {
    for (Rank i = 0; i < size; ++i)
      xml += fmt::format("<host_link id=\"npu-{}\" up=\"port-{}_UP\" down=\"port-{}_DOWN\"/>\n", i, i, i);
    if (fabric == "core") xml += "<backbone id=\"core\" bandwidth=\"30GBps\" latency=\"0ns\"/>\n";
  }
  return test::write_temporary(fabric + ".xml", xml + "</zone>\n</platform>\n");
}

/// Seconds that SMPI's implementation takes.
double smpi_time(const std::string& platform_file, const std::vector<Rank>& placement, const std::string& algorithm,
                 std::uint64_t elements) {
  std::string hosts;
  for (Rank rank = 0; rank < placement.size(); ++rank) {
    for (Rank i = 0; i < placement.size(); ++i) {
      if (placement[i] == rank) hosts += fmt::format("npu-{}\n", i);
    }
  }
  const std::string command = fmt::format(
      "smpirun -np {} -platform {} -hostfile {} --cfg=network/model:CM02 --cfg=network/crosstraffic:0 "
      "--cfg=network/TCP-gamma:1e30 --cfg=surf/precision:1e-12 --cfg=smpi/allreduce:{} "
      "--cfg=smpi/simulate-computation:no --cfg=smpi/async-small-thresh:0 --cfg=smpi/send-is-detached-thresh:0 "
      "--cfg=smpi/host-speed:1Gf --log=root.thres:error {} {}",
      placement.size(), platform_file, test::write_temporary("hosts", hosts), algorithm, HCCLSIM_SMPI_ALLREDUCE,
      elements);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  double time = 0;
  if (pipe == nullptr || std::fscanf(pipe.get(), "%lf", &time) != 1) internal_error("no time from: {}", command);
  return time - mpi_wtime;
}

double our_time(const std::string& platform_file, const Schedule& schedule, sim::NetworkKind kind) {
  return test::in_child([&] {
    test::Rig rig(platform_file, kind);
    WithHeader network(*rig.network);
    const Machine machine{rig.loop, network, rig.cluster, rig.costs, rig.soc, rig.trace};
    Runtime runtime(machine);
    const CommunicatorId world = runtime.create_communicator(world_communicator(schedule.ranks));
    const auto shared = std::make_shared<const Schedule>(schedule);
    for (Rank rank = 0; rank < schedule.ranks; ++rank) {
      runtime.collective(runtime.create_stream(rank), world, shared, rig.trace.intern("allreduce"));
    }
    runtime.run();
    return runtime.collectives().back().last_end;
  });
}

using Parameters = std::tuple<std::string, Rank>;
class Smpi : public testing::TestWithParam<Parameters> {};
INSTANTIATE_TEST_SUITE_P(Witness, Smpi,
                         testing::Combine(testing::Values("star", "core", "trunk"), testing::Values(8U, 16U)),
                         [](const auto& info) {
                           return fmt::format("{}_{}_ranks", std::get<0>(info.param), std::get<1>(info.param));
                         });

TEST_P(Smpi, TakesTheSameTime) {
  const auto& [fabric, size] = GetParam();
  std::vector<Rank> in_order;
  std::vector<Rank> spread;  // neighbours in rank lie in different halves
  for (Rank i = 0; i < size; ++i) {
    in_order.push_back(i);
    spread.push_back(i < size / 2 ? 2 * i : 2 * (i - size / 2) + 1);
  }
  for (const auto& placement : {in_order, spread}) {
    const std::string file = platform(fabric, placement);
    for (const std::uint64_t elements : {std::uint64_t{size} * 32 * 8, std::uint64_t{size} * 32 * 4096}) {
      const Operation spec{size, elements};
      const double lr = smpi_time(file, placement, "lr", elements);
      const double rab = smpi_time(file, placement, "rab", elements);
      for (const auto kind : {sim::NetworkKind::simgrid, sim::NetworkKind::fluid}) {
        EXPECT_NEAR(our_time(file, ring_allreduce(spec, true), kind) / lr, 1, 1e-9) << elements;
        EXPECT_NEAR(our_time(file, test::built<Algorithm::halving_doubling>(spec, true), kind) / rab, 1, 1e-9)
            << elements;
      }
    }
  }
}

}  // namespace
}  // namespace hcclsim::hccl
