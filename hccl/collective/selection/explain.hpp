#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "device/soc.hpp"
#include "device/task_cost.hpp"
#include "hccl/collective/formula.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/schedule/schedule.hpp"
#include "sim/cluster.hpp"

/// Why a collective uses its algorithm: the rule of selection.hpp in words, and beside the chosen algorithm all others
/// of the collective, with HCCL's formula of their time or the reason why they cannot work.
namespace hcclsim::hccl {

struct Alternative {
  std::string algorithm;                     ///< as in Schedule::algorithm, or the plain name if it cannot work
  std::shared_ptr<const Schedule> schedule;  ///< null: it cannot work
  std::string refused;                       ///< why
  std::optional<FormulaPasses> formula;      ///< none: HCCL gives none
  Seconds formula_time = 0;
  bool chosen = false;
};

struct Explanation {
  std::string rule;
  std::vector<Alternative> alternatives{};
  FormulaCosts costs;
  bool on_vector_cores = false;  ///< whose costs these are (runtime/collective/expansion.hpp)
};

/// Explains what make_collective does with the request, and throws the same errors.
[[nodiscard]] Explanation explain(const CollectiveRequest& request, const Communicator& communicator,
                                  sim::Cluster& cluster, const device::Soc& soc, const device::TaskCosts& tasks);

/// One line per level with the values of α, β and γ.
[[nodiscard]] std::vector<std::string> level_lines(const Explanation& explanation);

}  // namespace hcclsim::hccl
