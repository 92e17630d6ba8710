#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hccl/training/trace_points.hpp"
#include "study/run/experiment/on_experiment.hpp"
#include "study/run/result.hpp"
#include "study/spec/run_spec.hpp"

/// A training run, from its spec to its result.
namespace hcclsim::study {

/// A StepView of every rank takes memory and time for each.
inline constexpr Rank most_ranks_by_phase = 64;

/// A step of so many kernels takes seconds, and memory for each of them.
[[nodiscard]] bool has_many_kernels(const Experiment& experiment);

/// What is wanted of the links.
struct LinkWishes {
  std::size_t most = 0;       ///< links in the report; 0: no report
  std::size_t intervals = 1;  ///< of the step, for each of which there are loads
};

/// What is wanted of a run beside its times.
struct RunWishes {
  std::vector<Rank> traced{};                        ///< ranks that are in the trace besides the printed one
  bool tasks = true;                                 ///< with the tasks inside their collectives
  std::shared_ptr<const hccl::SpanStream> stream{};  ///< takes spans in place of the trace
  /// The range of the step over what is assumed, and what each assumption alone does; of many NPUs the range alone,
  /// unless `explained_uncertainty`.
  bool uncertainty = false;
  bool explained_uncertainty = false;
  bool compared = false;               ///< with one NPU, hcom_parallel turned and other splits
  bool compared_at_any_size = false;   ///< with these also where many ranks are simulated one by one
  bool without_faults = false;         ///< the step without the faults of the run
  bool hook_compared = false;          ///< with steps of which none, or each one, has the hook that compresses
  bool explained = false;              ///< why each allreduce has its algorithm
  bool gradient_dates = false;         ///< when each gradient of every stage is ready
  LinkWishes links{};                  ///< how busy links were
  bool by_rank = false;                ///< phases of every rank, of up to most_ranks_by_phase
  std::uint32_t routing_seeds = 0;     ///< under routing ecmp, the step with so many seeds, and with ideal routing
  hccl::TracePoints trace_points{};    ///< of the iterations of the view
  std::shared_ptr<SharedWork> work{};  ///< counts the steps of all simulations; null: nobody asks
  bool seeds_are_given = false;        ///< under another routing, a note says that they do nothing
};

/// Simulates the loaded run, and what it is to be compared with. Uses up experiment.notes. To be called once per
/// process, as SimGrid holds one simulation.
[[nodiscard]] RunResult simulate_run(Experiment& experiment, RunWishes wishes = {});

/// The figures of a run.
struct RunFigures {
  Seconds step_time = 0;
  double images_per_second = 0;
  device::HbmAccount hbm{};  ///< of the NPU that needs most
  hccl::StepView view{};
  std::vector<std::string> notes{};
};

/// Simulates the times of a run, without real gradients, in a child: any number of runs may follow each other. Throws
/// Error as the command would report it.
[[nodiscard]] RunFigures simulate(const RunSpec& spec);

}  // namespace hcclsim::study
