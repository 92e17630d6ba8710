#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/run_options.hpp"
#include "device/program.hpp"
#include "hccl/training/training.hpp"
#include "sim/cluster.hpp"
#include "study/platform.hpp"
#include "study/profile/import.hpp"

namespace hcclsim::cli {

/// What the options of a run name on a loaded platform, checked: NPUs and costs, the program, and the options of the
/// simulation. Everything that simulates a training step begins with it. The platform comes apart, since SimGrid loads
/// one per process (in a child), while many runs can start from it, each in a child of that process.
struct Experiment : study::LoadedPlatform {
  /// Throws what is wrong with the options, the rank table or the program, and places the ranks of a rank table on the
  /// cluster, which must outlive the object.
  Experiment(const RunOptions& options, sim::Cluster& cluster);

  std::string model;  ///< as given to --model, or the file that replaces it
  Rank npus = 0;
  std::optional<study::ImportedProfile> profile;  ///< of --profile
  std::shared_ptr<const models::Program> program;
  device::HbmAccount hbm;
  std::vector<Bytes> gradient_sizes;  ///< production order, as they are sent
  hccl::TrainingOptions training;     ///< without traced ranks

 private:
  [[nodiscard]] models::Program load_program(const RunOptions& options);
  void add_split_notes(const RunOptions& options, const hccl::SplitStrategies& strategies);
};

}  // namespace hcclsim::cli
