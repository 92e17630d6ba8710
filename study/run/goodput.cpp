#include "study/run/goodput.hpp"

#include <algorithm>
#include <cmath>

#include "base/counter_random.hpp"
#include "base/error.hpp"

namespace hcclsim::study {
namespace {

/// Exponentially distributed numbers with mean 1, from comparisons of uniform ones alone (J. von Neumann, Various
/// techniques used in connection with random digits, 1951), so that no function of a library takes part.
class Exponential {
 public:
  Exponential(std::uint64_t seed, std::uint64_t run) : seed_(seed), stream_(random_stream::npu_failures + run) {}

  double next() {
    for (double whole = 0;; ++whole) {
      const double first = uniform();
      double last = first;
      std::uint32_t falling = 1;
      for (double next = uniform(); next < last; next = uniform()) {
        last = next;
        ++falling;
      }
      if (falling % 2 == 1) return whole + first;
    }
  }

 private:
  /// In [0, 1), 53 bits.
  double uniform() { return static_cast<double>(counter_bits(seed_, stream_, index_++) >> 11U) * 0x1p-53; }

  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t index_ = 0;
};

Goodput simulate(const FailingJob& job, const FailureSpec& spec) {
  Goodput result{.job = job, .mean = {}};
  for (std::uint32_t run = 0; run < spec.runs; ++run) {
    const JobTimes times = run_failing_job(job, spec.seed, run);
    const double part = 1. / spec.runs;
    result.mean.steps += times.steps * part;
    result.mean.checkpoints += times.checkpoints * part;
    result.mean.lost += times.lost * part;
    result.mean.restarts += times.restarts * part;
    result.mean.failures += times.failures * part;
    result.least = run == 0 ? times.goodput() : std::min(result.least, times.goodput());
    result.most = std::max(result.most, times.goodput());
  }
  return result;
}

/// A stretch between checkpoints that takes k times the mean time between failures is done at the e^k-th attempt, and
/// so is a restart.
void require_progress(const FailingJob& job, std::uint32_t runs) {
  constexpr double most = 12;
  const double stretch_steps = static_cast<double>(std::min(job.checkpoint_every, job.steps));
  const Seconds stretch = stretch_steps * job.step + job.checkpoint;
  if (job.restart > most * job.mtbf) {
    bad_input("option",
              "--restart-time: the job fails every {:.4g} s, and needs {:.4g} s to start again: it would hardly ever "
              "end; accepted: at most {} times the time between failures, {:.4g} s",
              job.mtbf, job.restart, most, most * job.mtbf);
  }
  if (stretch > most * job.mtbf) {
    bad_input(
        "option",
        "--mtbf: the job fails every {:.4g} s, and needs {:.4g} s from one checkpoint to the next: it would hardly "
        "ever end; write checkpoints {}",
        job.mtbf, stretch, job.checkpoint > most * job.mtbf ? "faster" : "more often (--checkpoint-every)");
  }
  constexpr double most_attempts = 1e8;
  const double attempts =
      runs * (static_cast<double>(job.steps) / stretch_steps) * std::exp((stretch + job.restart) / job.mtbf);
  if (attempts <= most_attempts) return;
  bad_input("option",
            "--job-time: {} runs of {} steps with a checkpoint every {} steps take about {:.2g} attempts from one "
            "checkpoint to the next; accepted: {:g}; give a shorter job, fewer --job-runs, or another "
            "--checkpoint-every",
            runs, job.steps, job.checkpoint_every, attempts, most_attempts);
}

/// Steps that take so long without failures.
std::uint64_t steps_of(Seconds length, Seconds step) {
  constexpr double most = 1e15;
  if (!(length / step <= most)) {
    bad_input("option", "--job-time: {:.4g} s are more than {:g} steps of {:.4g} s; give {:.4g} s or less", length,
              most, step, most * step);
  }
  return std::max<std::uint64_t>(1, std::llround(length / step));
}

}  // namespace

JobTimes run_failing_job(const FailingJob& job, std::uint64_t seed, std::uint64_t run) {
  Exponential random(seed, run);
  JobTimes times;
  Seconds until_failure = random.next() * job.mtbf;
  std::uint64_t done = 0;
  while (done < job.steps) {
    // Up to the next checkpoint; behind the last step there is none.
    const std::uint64_t steps = std::min(job.checkpoint_every, job.steps - done);
    const Seconds work = static_cast<double>(steps) * job.step;
    const Seconds saved = done + steps < job.steps ? job.checkpoint : 0;
    if (until_failure >= work + saved) {
      until_failure -= work + saved;
      times.steps += work;
      times.checkpoints += saved;
      done += steps;
      continue;
    }
    times.lost += until_failure;
    ++times.failures;
    for (until_failure = random.next() * job.mtbf; until_failure < job.restart;
         until_failure = random.next() * job.mtbf) {
      times.restarts += until_failure;
      ++times.failures;
    }
    times.restarts += job.restart;
    until_failure -= job.restart;
  }
  return times;
}

Seconds daly_interval(Seconds checkpoint, Seconds mtbf) {
  if (checkpoint >= 2 * mtbf) return mtbf;
  const double ratio = checkpoint / (2 * mtbf);
  return std::sqrt(2 * checkpoint * mtbf) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - checkpoint;
}

GoodputResult goodput_of(const FailureSpec& spec, Seconds step, Bytes checkpoint_bytes, Rank npus) {
  FailingJob job{.step = step,
                 .checkpoint = static_cast<double>(checkpoint_bytes) / spec.checkpoint_bandwidth,
                 .mtbf = spec.npu_mtbf / npus,
                 .restart = spec.restart,
                 .steps = steps_of(spec.length, step)};
  const Seconds interval = daly_interval(job.checkpoint, job.mtbf);
  constexpr double most_steps = 1e15;
  const auto analytic = static_cast<std::uint64_t>(std::clamp(std::round(interval / step), 1.0, most_steps));
  job.checkpoint_every = spec.checkpoint_every.value_or(analytic);
  require_progress(job, spec.runs);
  GoodputResult result{.checkpoint_bytes = checkpoint_bytes, .runs = spec.runs, .asked = simulate(job, spec)};
  if (job.checkpoint_every == analytic) return result;
  job.checkpoint_every = analytic;
  require_progress(job, spec.runs);
  result.optimum = simulate(job, spec);
  return result;
}

}  // namespace hcclsim::study
