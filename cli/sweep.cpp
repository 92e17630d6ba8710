#include "cli/sweep.hpp"

#include "cli/sweep_run.hpp"
#include "cli/sweep_show.hpp"
#include "cli/sweep_submit.hpp"

namespace hcclsim::cli {

void add_sweep_command(CLI::App& app) {
  CLI::App* const sweep = app.add_subcommand("sweep", "Simulate every point of a grid of options");
  sweep->require_subcommand(1);
  add_sweep_run_command(*sweep);
  add_sweep_show_commands(*sweep);
  add_sweep_submit_commands(*sweep);
}

}  // namespace hcclsim::cli
