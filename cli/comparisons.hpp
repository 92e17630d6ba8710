#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/child_process.hpp"
#include "cli/print/run_report.hpp"
#include "device/soc.hpp"
#include "device/task_cost.hpp"
#include "hccl/training/training.hpp"
#include "models/program.hpp"
#include "sim/cluster.hpp"

/// What the text form compares a run with: the ends of the link ranges, one NPU alone, hcom_parallel turned, and the
/// splits that the split guide's scenarios suggest. Each is a simulation in a child of the process that has loaded the
/// platform; none is a formula. The children work while this process simulates the run itself.
namespace hcclsim::cli {

/// What is simulated, loaded and ready.
struct Setting {
  sim::Cluster& cluster;
  std::shared_ptr<const models::Program> program;
  const device::Soc& soc;
  const device::TaskCosts& costs;
  hccl::TrainingOptions options;
};

class Comparisons {
 public:
  /// Starts them all. Must be called before this process simulates anything. The setting must outlive the object.
  explicit Comparisons(const Setting& setting);

  /// Waits for the results and puts them into the report.
  void finish(RunReport& report);

 private:
  struct TrialRun {
    std::vector<double> percentages;
    Child child;
  };
  void start_trials();

  const Setting& setting_;
  std::optional<Child> slowest_;
  std::optional<Child> fastest_;
  std::optional<Child> one_npu_;
  std::optional<Child> serial_;
  std::optional<hccl::SplitAdvice> advice_;
  Seconds parallel_step_ = 0;
  std::vector<TrialRun> trials_;
};

}  // namespace hcclsim::cli
