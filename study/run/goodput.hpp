#pragma once

#include <cstdint>
#include <optional>

#include "base/units.hpp"
#include "study/spec/failure_spec.hpp"

/// What is left of the speed of a step when training goes on for days: NPUs fail, the job starts again from its last
/// checkpoint, and what was done since is done once more.
///
/// A renewal simulation. An NPU that does not fail for `npu_mtbf` on average, whatever its age, makes a job of N of
/// them fail after exponentially distributed times with mean npu_mtbf / N. The job does steps of one length; after
/// every `checkpoint_every` of them all ranks wait for a checkpoint. A failure loses the steps since the last whole
/// checkpoint, and the checkpoint that was being written; then the job needs `restart`, during which it may fail again.
/// Random numbers depend on the seed, the number of the run and the number of the failure alone.
namespace hcclsim::study {

/// What is repeated: a step, and behind some of them a checkpoint.
struct FailingJob {
  Seconds step = 0;
  Seconds checkpoint = 0;
  std::uint64_t checkpoint_every = 0;  ///< steps, at least one
  Seconds mtbf = 0;                    ///< of the job
  Seconds restart = 0;
  std::uint64_t steps = 0;  ///< to be done, at least one
};

/// One run of a job, or the mean of several: the parts sum to `total`.
struct JobTimes {
  Seconds steps = 0;        ///< that counted
  Seconds checkpoints = 0;  ///< that were written whole
  Seconds lost = 0;         ///< steps and checkpoints that a failure made worthless
  Seconds restarts = 0;
  double failures = 0;

  [[nodiscard]] Seconds total() const { return steps + checkpoints + lost + restarts; }
  /// Share of the time in which steps were done that counted.
  [[nodiscard]] double goodput() const { return steps / total(); }
};

[[nodiscard]] JobTimes run_failing_job(const FailingJob& job, std::uint64_t seed, std::uint64_t run);

/// Time between checkpoints that is best for a mean time M between failures and checkpoints of length C: for C < 2M
/// √(2CM) · (1 + ⅓·√(C/2M) + ⅑·C/2M) − C, else M. J. T. Daly, A higher order estimate of the optimum checkpoint
/// interval for restart dumps, Future Generation Computer Systems 22 (2006), equation 37.
[[nodiscard]] Seconds daly_interval(Seconds checkpoint, Seconds mtbf);

/// Means over the runs, and the range of their goodput.
struct Goodput {
  FailingJob job;
  JobTimes mean{};
  double least = 0;
  double most = 0;
};

struct GoodputResult {
  Bytes checkpoint_bytes = 0;  ///< that a rank writes
  std::uint32_t runs = 0;
  Goodput asked;                     ///< with the interval that was given, else with the analytic one
  std::optional<Goodput> optimum{};  ///< with the analytic interval, if another was given
};

/// Of a job whose steps take `step` on `npus` NPUs, each of which writes `checkpoint_bytes`. Throws Error(bad_input,
/// "option") if a job would hardly ever end: where it fails more often than it gets from one checkpoint to the next.
[[nodiscard]] GoodputResult goodput_of(const FailureSpec& spec, Seconds step, Bytes checkpoint_bytes, Rank npus);

}  // namespace hcclsim::study
