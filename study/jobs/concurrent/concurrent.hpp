#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "hccl/training/training.hpp"
#include "sim/cluster.hpp"
#include "sim/faults/fault.hpp"
#include "study/platform/on_platform.hpp"
#include "study/spec/run_spec.hpp"

/// Several training runs at the same time on one platform, each on NPUs of its own, and what the links that they share
/// cost each of them. Every job repeats its step until all jobs have done their iterations; its figures are those of
/// its own iterations. For comparison each is simulated alone: the same iterations from the same date on the same NPUs,
/// with the same faults. These are of the platform: what is given for one job happens to all.
namespace hcclsim::study {

struct ConcurrentJob {
  std::string name;
  RunSpec run{};  ///< with a list of NPUs; it starts at run.skew.start
};

/// Step of the job's printed rank.
struct StepFigures {
  Seconds time = 0;     ///< mean distance of iteration ends, without the first iteration if there are others
  Seconds exposed = 0;  ///< communication beside which neither forward nor backward is computed, in the last iteration
};

struct ConcurrentJobResult {
  std::string name;
  std::string model;       ///< "ResNet50"
  std::vector<Rank> npus;  ///< of the platform, in the order of the ranks
  Rank rank = 0;           ///< whose times these are
  Seconds start = 0;
  std::uint32_t iterations = 0;  ///< of its own, which are measured
  std::uint32_t steps = 0;       ///< that it ended until all jobs had done their own
  bool hbm_contention = false;   ///< its NPUs share their HBM and AI cores
  StepFigures alone;
  StepFigures together;
  std::vector<std::string> unmodelled;  ///< settings of HCCL that have no effect
  std::vector<std::string> notes;       ///< sentences
  hccl::TimedStep step;                 ///< together

  [[nodiscard]] double slow_down() const { return together.time / alone.time; }
};

/// A link over which several jobs send.
struct MeetingLink {
  struct Part {
    double bytes = 0;  ///< of a step, as they load the link
    double load = 0;   ///< these over what the link could carry in the job's step time
  };
  std::string name;
  std::string kind;
  BytesPerSecond capacity = 0;
  std::vector<Part> parts;  ///< by job; nothing of those that do not use it

  [[nodiscard]] double load() const;
  /// Of what all jobs send in the same time.
  [[nodiscard]] double share(std::size_t job) const { return parts[job].load / load(); }
};

struct ConcurrentResult {
  std::string platform;  ///< file name without folders
  std::string npu;       ///< "Ascend910A"
  std::string network;   ///< "simgrid" or "fluid"
  std::vector<ConcurrentJobResult> jobs;
  std::vector<MeetingLink> links;  ///< where jobs meet, the most loaded first
  std::vector<sim::Fault> faults;  ///< of all jobs; the texts of those of NPUs begin with the job's name
  std::vector<std::string> notes;  ///< sentences on all of them
};

/// Throws Error(bad_input) for jobs that are not on one platform and network, have no list of NPUs, or want the same
/// NPU.
void require_concurrent(const std::vector<ConcurrentJob>& jobs);

/// `traced`: ranks of each job whose tasks inside collectives are in the traces; none of any job: no tasks are. To be
/// called once per process. Throws what is wrong with a job with its name before it; also the timeout or deadlock of a
/// job that a fault ends, alone or beside the others.
[[nodiscard]] ConcurrentResult simulate_concurrent(const std::vector<ConcurrentJob>& jobs, const sim::Cluster& cluster,
                                                   const std::vector<std::vector<Rank>>& traced = {});

/// Loads the platform of the jobs in a child and returns what `work` makes there of it. Throws what
/// require_concurrent(), loading and `work` throw.
template <typename Work>
auto on_concurrent_platform(const std::vector<ConcurrentJob>& jobs, const Work& work) {
  require_concurrent(jobs);
  const RunSpec& first = jobs.front().run;
  return on_cluster(first.platform, first.simulation.network, work);
}

}  // namespace hcclsim::study
