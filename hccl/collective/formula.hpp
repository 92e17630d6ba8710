#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "device/soc.hpp"
#include "device/task_cost.hpp"
#include "hccl/collective/algorithm.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/schedule/schedule.hpp"
#include "sim/cluster.hpp"

/// HCCL's formulas of time (its documentation, coll_algo_intro): D = alpha + n·beta + n·gamma per step, with alpha what
/// a step costs before its first byte flows, beta the time of a byte on the way and gamma that of reducing one, 0 if
/// the transfer reduces. p ranks, n bytes of the whole payload:
///
///     algorithm         reduce-scatter                allgather              allreduce
///     ring              (p−1)α + (p−1)/p·n(β+γ)       (p−1)α + (p−1)/p·nβ    both
///     k rings at once   each carries n/k              each carries n/k       both
///     mesh, two-shot    α + n/p·β + (p−1)/p·nγ        α + n/p·β              both
///     mesh, one-shot                                                         α + nβ + (p−1)nγ
///     halving-doubling  log p·α + (p−1)/p·n(β+γ)      log p·α + (p−1)/p·nβ   both (p = 2^k)
///     NHR, NB           ⌈log p⌉α + (p−1)/p·n(β+γ)     ⌈log p⌉α + (p−1)/p·nβ  both
///
/// Halving-doubling of other numbers, its broadcast and its reduce are in halving_doubling.hpp. With a root, NHR and NB
/// scatter as they gather, and broadcast in both phases. A hierarchy adds what its levels do on their parts of the
/// payload (hierarchical.hpp); AHC is in ahc.hpp. All of it holds where no two transfers share a link; what the
/// simulation gives beyond that is contention.
namespace hcclsim::hccl {

/// What a formula counts on one level, of the rank that has most.
struct FormulaTerms {
  double steps = 0;
  double bytes = 0;    ///< that flow one step after the other
  double reduced = 0;  ///< bytes
  sim::Access access = sim::Access::write;

  FormulaTerms& operator+=(const FormulaTerms& other);
};

/// Of an algorithm of one level, as Schedule::algorithm and its parts name it: ring, multi-ring (of `rings` rings),
/// mesh and mesh-two-shot, mesh-one-shot, halving-doubling, nhr, nb. Nothing if HCCL gives no formula.
[[nodiscard]] std::optional<FormulaTerms> formula_terms(std::string_view algorithm, Collective collective, Rank ranks,
                                                        double payload, std::uint32_t rings = 1);

/// What a formula counts on the links of one extent.
struct LevelTerms {
  Extent extent = Extent::server;
  FormulaTerms terms;
};
/// Levels of more than one rank, from the innermost on. An algorithm that does not know servers has all of its steps
/// on the slowest links.
using Formula = std::vector<LevelTerms>;

/// Of an algorithm named as in Schedule::algorithm, or of these levels if it is hierarchical. Nothing if there is none,
/// as for blocks that differ.
[[nodiscard]] std::optional<Formula> formula_of(std::string_view algorithm, const Operation& operation,
                                                const Topology& topology, const device::Soc& soc,
                                                const std::vector<HierarchyLevel>& levels);

/// A formula that is paid again and again: of a window of the communicator's buffer (Schedule::window).
struct FormulaPass {
  Formula formula;
  std::uint32_t times = 1;
};
/// All full windows, and a shorter last one if there is one. They follow each other, as all of them use one buffer.
using FormulaPasses = std::vector<FormulaPass>;

/// Of a whole schedule, window after window: what its transfers and reductions take, without the copies into and out of
/// the communicator's buffer and without the launch. Nothing if there is no formula_of its algorithm.
[[nodiscard]] std::optional<FormulaPasses> formula_of_windows(const Schedule& schedule, const Topology& topology,
                                                              const device::Soc& soc,
                                                              const std::vector<HierarchyLevel>& levels);

/// "14α + 1.75nβ + 0.875nγ", n being the payload; of several levels "inside …; between …; between super-pods …"; of
/// several windows "8 × (14α + 0.2188nβ)", and "7 × (…) + (…)" if the last is shorter.
[[nodiscard]] std::string to_string(const Formula& formula, Bytes payload);
[[nodiscard]] std::string to_string(const FormulaPasses& passes, Bytes payload);

/// Speeds of a level: of the slowest way from a rank to another one.
struct LevelCosts {
  sim::Transport transport = sim::Transport::sdma;
  Seconds latency = 0;
  BytesPerSecond write = 0;
  BytesPerSecond read = 0;
  bool inline_reduce = true;
};

struct FormulaCosts {
  std::array<LevelCosts, 3> levels;  ///< by Extent; those that no rank has are infinitely fast
  device::TaskCosts tasks;

  [[nodiscard]] const LevelCosts& over(Extent extent) const { return levels[static_cast<std::size_t>(extent)]; }
};

/// Speeds between the first rank of the communicator's first server, or its largest, and the others, for reductions of
/// this type and operator.
[[nodiscard]] FormulaCosts formula_costs(const Communicator& communicator, sim::Cluster& cluster,
                                         const device::Soc& soc, const device::TaskCosts& tasks, DataType type,
                                         ReduceOp op);

/// Of a step that moves so many bytes: "my memory is free" and "it is there" with their waits, set-up and latency.
[[nodiscard]] Seconds alpha_of(const LevelCosts& level, const device::TaskCosts& tasks, Bytes step);

/// The formula's time.
[[nodiscard]] Seconds formula_time(const Formula& formula, const FormulaCosts& costs);
[[nodiscard]] Seconds formula_time(const FormulaPasses& passes, const FormulaCosts& costs);

}  // namespace hcclsim::hccl
