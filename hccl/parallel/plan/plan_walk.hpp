#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "hccl/parallel/plan/plan.hpp"

/// Goes through a Plan without a network: proves that a step comes to its end, and tells when with links that take no
/// time. Ranks of a class (plan_classes.hpp) do the same, so one walks for all of them.
///
/// The proof: streams carry out their tasks in order; a task begins when those that it waits for have ended; a
/// collective or a message ends when all its ranks have come to it. If every task ends in this way, no dates, and so no
/// links, can keep the step from ending. If not, there is a circle of tasks that wait for each other, which is named.
///
/// What hosts do takes no time either, unless it is asked for: then batches are prepared, kernels issued and
/// checkpoints written as the executor has it (training/executor.hpp), and the step is one that no links make shorter.
namespace hcclsim::hccl {

struct PlanWalk {
  std::vector<Seconds> computing;  ///< of each role: time during which a compute or update stream is busy
  Seconds end = 0;                 ///< of the last role; of the first step, which starts from rest
  Seconds step = 0;                ///< mean distance of the ends of successive steps, if there are several: else length
  std::uint32_t classes = 0;       ///< that have walked
};

/// A WalkPace holds the speeds of NPUs and the times that their hosts take.
struct WalkPace {
  std::vector<double> speeds{};  ///< of each rank, by which its kernels' durations are divided; empty: 1
  Seconds kernel =
      0;  ///< for the host to issue one; a step's are issued in the order of the Plan, one behind the other
  /// To call a collective or a message; what issuing its tasks takes is not counted. Empty: nothing.
  std::function<Seconds(Collective)> call{};
  std::vector<double> samples_per_second{};  ///< that the data workers of each rank prepare; empty: any number
};

/// How long a collective or a message takes from when all have come to it: a task of it (of a message its send) that
/// the rank carries out.
using MeetingTime = std::function<Seconds(const PlanTask& task, Rank rank)>;

/// Of the last steps, where some differ; all kinds of steps are proved. Throws Error(check_failed) of kind "plan" for
/// what rank_classes() refuses; if a message has one end only, or two that differ in bytes, pass or micro-batch, or are
/// of different messages; and if tasks wait for each other in a circle.
///
/// `steps` follow each other: a rank begins its next one when its last one has ended, as it does when the Plan is
/// carried out, so that `step` can be compared with what is simulated for as many iterations.
[[nodiscard]] PlanWalk walk(const Plan& plan, std::uint32_t steps = 1);
/// Walks at a pace. Copies of batches take no time, like links; checkpoints are written after their steps.
[[nodiscard]] PlanWalk walk(const Plan& plan, std::uint32_t steps, const WalkPace& pace);
/// The first step, where what ranks do together takes time, each as if it was alone on the links.
[[nodiscard]] PlanWalk first_step(const Plan& plan, const MeetingTime& time);

}  // namespace hcclsim::hccl
