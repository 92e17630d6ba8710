#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "hccl/collective/formula.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "tests/support/collectives/formula_platform.hpp"
#include "tests/support/collectives/formula_time.hpp"
#include "tests/support/rig.hpp"
#include "tests/support/simulation.hpp"

/// formula_of and formula_time of whatever make_collective builds: all algorithms of all collectives that have a
/// formula take that time where no link is shared.
namespace hcclsim::hccl {
namespace {

using test::formula_platform;

/// Nothing where an algorithm cannot work or has no formula.
std::optional<test::FormulaTimes> times_of(const std::string& path, Collective collective, Algorithm algorithm,
                                           ReduceOp op) {
  test::Rig rig(path, sim::NetworkKind::fluid);
  const Rank ranks = rig.cluster.size();
  std::vector<std::string> notes;
  const device::Soc soc = device::resolve_soc(rig.cluster, 0, notes);
  // Blocks, slices and halves are all multiples of 128 bytes.
  CollectiveRequest request{.operation = {.ranks = ranks, .elements = 32U * ranks * std::bit_floor(ranks), .op = op},
                            .algorithm = algorithm};
  request.operation.collective = collective;
  request.operation.in_place = !counts_pairs(collective);
  try {
    const auto schedule = make_collective(request, topology_of(world_communicator(ranks), rig.cluster), soc);
    const Topology topology = topology_of(world_communicator(ranks), rig.cluster);
    if (!formula_of(schedule->algorithm, *schedule, topology, soc, {}).has_value()) return std::nullopt;
    const Seconds simulated = rig.time_of(schedule);
    return test::FormulaTimes{.simulated = simulated, .formula = test::formula_time_of(*schedule, rig, op)};
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_nonuniform(Algorithm algorithm) { return algorithm == Algorithm::nhr || algorithm == Algorithm::nb; }

/// Whoever waits for its turn in a tree has said before that its memory is free: a post less in every round after the
/// first. So have those that halving-doubling leaves out, before they get their block.
double early_posts(Collective collective, Algorithm algorithm, Rank ranks) {
  const bool halving = algorithm == Algorithm::halving_doubling;
  const bool tree = collective == Collective::scatter
                        ? is_nonuniform(algorithm)
                        : collective == Collective::broadcast && (is_nonuniform(algorithm) || halving);
  if (tree) return std::bit_width(ranks - 1) - 1;
  return collective == Collective::reduce_scatter && halving && !std::has_single_bit(ranks) ? 1 : 0;
}

/// Every algorithm of every collective as make_collective builds it, where there is a formula.
TEST(FormulaOfAll, SimulatedTimeIsTheFormulaWhereNoLinkIsShared) {
  std::size_t compared = 0;
  for (const Rank ranks : {2U, 3U, 4U, 6U, 8U}) {
    const std::string path = test::write_platform(formula_platform(ranks));
    for (const Collective collective :
         {Collective::allreduce, Collective::reduce_scatter, Collective::allgather, Collective::broadcast,
          Collective::reduce, Collective::scatter, Collective::gather, Collective::alltoall, Collective::send_recv}) {
      for (const Algorithm algorithm : algorithms_of(collective)) {
        for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod}) {
          const auto times = test::in_child([&] { return times_of(path, collective, algorithm, op); });
          if (!times.has_value()) continue;
          ++compared;
          const double expected = times->formula - early_posts(collective, algorithm, ranks) * test::record;
          EXPECT_NEAR(times->simulated / expected, 1, 1e-9)
              << name_of(algorithm) << ' ' << name_of(collective) << ' ' << name_of(op) << ' ' << ranks << " ranks";
        }
      }
    }
  }
  EXPECT_GE(compared, 200U);
}

/// What one window of so many elements of every block copies into and out of the communicator's buffer.
double copying_time(Collective collective, Rank ranks, std::uint64_t elements) {
  constexpr double hbm = 1e12;  // the rig's
  const double block = 4.0 * static_cast<double>(elements);
  const double all = collective == Collective::allreduce ? block : block * ranks;
  const auto copy = [](double bytes) { return test::setup + 2 * bytes / hbm; };
  switch (collective) {
    case Collective::allreduce:
      return 2 * copy(all);
    case Collective::alltoall:
      return copy(all);
    default:
      return copy(all) + copy(block);
  }
}

struct WindowTimes {
  Seconds simulated = 0;
  Seconds formula = 0;
  Seconds copies = 0;
  std::uint64_t windows = 0;
};

/// In op mode through a buffer of 1 MB; nothing where there is no formula.
std::optional<WindowTimes> times_in_windows(const std::string& path, Collective collective, Algorithm algorithm,
                                            std::uint64_t windows_in_quarters) {
  test::Rig rig(path, sim::NetworkKind::fluid);
  const Rank ranks = rig.cluster.size();
  std::vector<std::string> notes;
  const device::Soc soc = device::resolve_soc(rig.cluster, 0, notes);
  const Topology topology = topology_of(world_communicator(ranks), rig.cluster);
  CollectiveRequest request{
      .operation = {.ranks = ranks, .collective = collective}, .algorithm = algorithm, .launch = LaunchMode::op};
  request.config.buffer_bytes = 1U << 20U;
  request.operation.elements = (1U << 16U) * windows_in_quarters / (collective == Collective::allreduce ? 1 : ranks);
  const auto schedule = make_collective(request, topology, soc);
  const auto formula = formula_of_windows(*schedule, topology, soc, {});
  if (!formula.has_value()) return std::nullopt;
  const FormulaCosts costs =
      formula_costs(world_communicator(ranks), rig.cluster, soc, rig.costs, DataType::fp32, ReduceOp::sum);
  Seconds copies = 0;
  const std::uint64_t window = schedule->window == 0 ? schedule->elements : schedule->window;
  for (std::uint64_t done = 0; done < schedule->elements; done += window) {
    copies += copying_time(collective, ranks, std::min(window, schedule->elements - done));
  }
  return WindowTimes{.simulated = rig.time_of(schedule),
                     .formula = formula_time(*formula, costs),
                     .copies = copies,
                     .windows = schedule->windows()};
}

/// Payloads of a quarter of the buffer, of two whole ones, and of three and a quarter. A reduction takes place where
/// the payload lies, but that of the mesh, whose scratch memory makes its windows smaller.
TEST(FormulaOfWindows, SimulatedTimeIsTheFormulaOfAllWindowsAndTheirCopies) {
  std::size_t compared = 0;
  for (const Rank ranks : {2U, 4U, 8U}) {
    const std::string path = test::write_platform(formula_platform(ranks));
    for (const Collective collective :
         {Collective::allreduce, Collective::reduce_scatter, Collective::allgather, Collective::alltoall}) {
      for (const Algorithm algorithm :
           {Algorithm::ring, Algorithm::mesh, Algorithm::mesh_two_shot, Algorithm::mesh_one_shot,
            Algorithm::halving_doubling, Algorithm::nhr, Algorithm::nb, Algorithm::pairwise}) {
        if (!has_algorithm(collective, algorithm)) continue;
        for (const std::uint64_t quarters : {1U, 8U, 13U}) {
          const auto times = test::in_child([&] { return times_in_windows(path, collective, algorithm, quarters); });
          if (!times.has_value()) continue;
          ++compared;
          EXPECT_NEAR(times->simulated / (times->formula + times->copies), 1, 1e-9)
              << name_of(algorithm) << ' ' << name_of(collective) << ", " << ranks << " ranks, " << quarters
              << " quarters, " << times->windows << " windows";
        }
      }
    }
  }
  EXPECT_GE(compared, 100U);
}

}  // namespace
}  // namespace hcclsim::hccl
