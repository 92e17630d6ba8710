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

/// HCCL's formulas of time (its documentation, coll_algo_intro): D = alpha + n·beta + n·gamma per step. alpha is what a
/// step costs before its first byte flows, beta the time of a byte on the way, and gamma the time of reducing a byte, 0
/// if the transfer reduces. With p ranks and n bytes of the whole payload:
///
///     algorithm         reduce-scatter                allgather              allreduce
///     ring              (p−1)α + (p−1)/p·n(β+γ)       (p−1)α + (p−1)/p·nβ    both
///     k rings at once   each carries n/k              each carries n/k       both
///     mesh, two-shot    α + n/p·β + (p−1)/p·nγ        α + n/p·β              both
///     mesh, one-shot                                                         α + nβ + (p−1)nγ
///     halving-doubling  log p·α + (p−1)/p·n(β+γ)      log p·α + (p−1)/p·nβ   both (p = 2^k)
///     NHR, NB           ⌈log p⌉α + (p−1)/p·n(β+γ)     ⌈log p⌉α + (p−1)/p·nβ  both
///
/// Halving-doubling of other numbers of ranks, its broadcast and its reduce are in algorithm/halving_doubling.hpp. With
/// a root, a scatter of NHR and NB takes as long as their all-gather, and a broadcast is a scatter and an all-gather. A
/// hierarchy adds up its levels, each on its part of the payload (algorithm/hierarchical.hpp); AHC is in
/// algorithm/ahc.hpp, pipeline in algorithm/pipeline.hpp. The formulas hold if no two transfers share a link; any
/// additional time in the simulation is contention.
namespace hcclsim::hccl {

/// What a formula counts on one level, for the rank that has most to do.
struct FormulaTerms {
  double steps = 0;
  double bytes = 0;    ///< that flow one step after the other
  double reduced = 0;  ///< bytes
  sim::Access access = sim::Access::write;

  FormulaTerms& operator+=(const FormulaTerms& other);
};

/// The terms of an algorithm of one level, with the names of Schedule::algorithm and its parts: ring, multi-ring (of
/// `rings` rings), mesh and mesh-two-shot, mesh-one-shot, halving-doubling, nhr, nb. Nothing if HCCL gives no formula.
[[nodiscard]] std::optional<FormulaTerms> formula_terms(std::string_view algorithm, Collective collective, Rank ranks,
                                                        double payload, std::uint32_t rings = 1);

/// What a formula counts on the links of one extent.
struct LevelTerms {
  Extent extent = Extent::server;
  FormulaTerms terms;
  bool with_next = false;  ///< at the same time as the next one: the longer of both counts
};
/// Levels of more than one rank, beginning with the innermost. An algorithm that does not know servers has all its
/// steps on the slowest links.
using Formula = std::vector<LevelTerms>;

/// The formula of an algorithm named as in Schedule::algorithm, or of these levels if it is hierarchical. Nothing if
/// there is none, for example if blocks differ in size.
[[nodiscard]] std::optional<Formula> formula_of(std::string_view algorithm, const Operation& operation,
                                                const Topology& topology, const device::Soc& soc,
                                                const std::vector<HierarchyLevel>& levels);

/// The formula of one window of the communicator's buffer (Schedule::window), and how often it is paid.
struct FormulaPass {
  Formula formula;
  std::uint32_t times = 1;
};
/// All full windows, and a shorter last one if there is one. They follow each other, as all of them use one buffer.
using FormulaPasses = std::vector<FormulaPass>;

/// The formula of a whole schedule, window after window: the time of its transfers and reductions, without the copies
/// into and out of the communicator's buffer and without the launch. Nothing if formula_of has none for its algorithm.
[[nodiscard]] std::optional<FormulaPasses> formula_of_windows(const Schedule& schedule, const Topology& topology,
                                                              const device::Soc& soc,
                                                              const std::vector<HierarchyLevel>& levels);

/// "14α + 1.75nβ + 0.875nγ", n being the payload; of several levels "inside …; between …; between super-pods …"; of
/// levels that work at the same time "max(between …; inside …)"; of several windows "8 × (14α + 0.2188nβ)", and "7 ×
/// (…) + (…)" if the last is shorter.
[[nodiscard]] std::string to_string(const Formula& formula, Bytes payload);
[[nodiscard]] std::string to_string(const FormulaPasses& passes, Bytes payload);

/// Speeds of a level: those of the slowest route between two ranks.
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

/// Speeds between the others and the first rank of the communicator's first server (of its largest server if they
/// differ), for reductions of this type and operator.
[[nodiscard]] FormulaCosts formula_costs(const Communicator& communicator, sim::Cluster& cluster,
                                         const device::Soc& soc, const device::TaskCosts& tasks, DataType type,
                                         ReduceOp op);

/// alpha of a step that moves `step` bytes: the notifies "my memory is free" and "written" with their waits, the set-up
/// and the latency.
[[nodiscard]] Seconds alpha_of(const LevelCosts& level, const device::TaskCosts& tasks, Bytes step);

/// The formula's time.
[[nodiscard]] Seconds formula_time(const Formula& formula, const FormulaCosts& costs);
[[nodiscard]] Seconds formula_time(const FormulaPasses& passes, const FormulaCosts& costs);

}  // namespace hcclsim::hccl
