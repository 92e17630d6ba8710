#include "cli/options/collective_choice.hpp"

#include "cli/options/parse/common.hpp"

namespace hcclsim::cli {

void add_collective_choice(Command& command, const std::string& launch, CollectiveChoice& choice) {
  choice.platform = "atlas800-9000";
  choice.launch = launch;
  add_platform_options(command, "A platform file, or the name of a shipped one", choice);
  command.add("--ranks", whole_number(choice.ranks, 1, 1U << 20U), "How many NPUs in all, the first ones [all]")
      .value_name("UINT");
  command.add("--algorithm", text(choice.algorithm), "ring, mesh, …; auto chooses as HCCL does").with_default();
  add_levels_option(command, choice.levels);
  add_launch_option(command, choice.launch,
                    "graph: tasks are loaded in advance, on the user's buffers; op: each call by itself, through the "
                    "communicator's");
}

}  // namespace hcclsim::cli
