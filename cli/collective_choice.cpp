#include "cli/collective_choice.hpp"

#include "cli/option_checks.hpp"

namespace hcclsim::cli {

void add_collective_choice(CLI::App& command, const std::string& launch, CollectiveChoice& choice) {
  choice.platform = "atlas800-9000";
  choice.launch = launch;
  add_platform_options(command, "A platform file, or the name of a shipped one", choice);
  command.add_option("--ranks", choice.ranks, "How many NPUs in all, the first ones [all]")
      ->check(whole_number(1, 1U << 20U));
  command.add_option("--algorithm", choice.algorithm, "ring, mesh, …; auto chooses as HCCL does")
      ->capture_default_str();
  add_levels_option(command, choice.levels);
  command
      .add_option("--launch", choice.launch,
                  "graph: tasks are loaded in advance, on the user's buffers; op: each call by itself, through the "
                  "communicator's")
      ->check(one_of({"graph", "op"}))
      ->capture_default_str();
}

}  // namespace hcclsim::cli
