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

/// Why a collective uses the algorithm that it uses: the rule of selection.hpp in words, and beside the chosen
/// algorithm all others of the collective, with HCCL's formula of their time or the reason why they cannot work.
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
};

/// Of what make_collective does with the request, whose errors it throws.
[[nodiscard]] Explanation explain(const CollectiveRequest& request, const Communicator& communicator,
                                  sim::Cluster& cluster, const device::Soc& soc, const device::TaskCosts& tasks);

/// What α, β and γ are on each level, a line each.
[[nodiscard]] std::vector<std::string> level_lines(const Explanation& explanation);

}  // namespace hcclsim::hccl
