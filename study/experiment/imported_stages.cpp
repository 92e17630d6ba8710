#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "study/experiment/experiment.hpp"
#include "study/profile/import.hpp"
#include "study/profile/profile_set.hpp"

/// Measured durations in the programs of an Experiment's stages.
namespace hcclsim::study {

void Experiment::import_profile_of_stages(const RunSpec& spec) {
  for (const std::string& path : spec.profiles) {
    if (!std::filesystem::exists(path)) bad_input("profile", "cannot read {}: No such file or directory", path);
  }
  if (spec.profiles.size() > 1 || !is_profile_folder(spec.profiles.front())) {
    bad_input("option",
              "--profile {}: in stages, or where ranks share parameters or operators, it takes the folder of a "
              "cluster's profile (--profile-output), with files of a rank of every stage",
              spec.profiles.front());
  }
  std::vector<models::Program> programs;
  for (const hccl::StageProgram& stage : training.stages) programs.push_back(*stage.program);
  std::vector<ImportedStage> imported;
  for (std::size_t i = 0; i < programs.size(); ++i) imported.push_back({graphs[i].graph, programs[i]});
  import_stages(spec.profiles.front(), imported, training.step.stage_ranks(), batch.micro_batches, spec.simulation.rank,
                profile.emplace());
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (spec.step.host_launch.has_value()) leave_out_idle_time(programs[i]);
    training.stages[i].program = std::make_shared<models::Program>(std::move(programs[i]));
  }
}

}  // namespace hcclsim::study
