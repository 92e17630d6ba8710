#include "cli/commands/commands.hpp"

#include "cli/commands/sweep/sweep_run.hpp"
#include "cli/options/parse/command.hpp"

namespace hcclsim::cli {

void add_sweep_command(Command& app) {
  app.add_command("sweep", "Simulate every point of a grid of options", [](Command& sweep) {
    sweep.require_command();
    sweep.footer(
        "Examples:\n"
        "  hcclsim sweep run points.db run --hcom-parallel on --split-by-size 60:90:10\n"
        "  hcclsim sweep show points.db\n"
        "  hcclsim sweep best points.db --by images_per_s\n"
        "  hcclsim sweep plot points.db -o points.svg\n"
        "  hcclsim sweep export csv points.db\n"
        "  hcclsim sweep merge all.db part1.db part2.db\n"
        "  hcclsim sweep submit points.db --tasks 8 --config grid.toml  on Slurm\n"
        "  hcclsim sweep status points.db");
    add_sweep_run_command(sweep);
    add_sweep_show_commands(sweep);
    add_sweep_submit_commands(sweep);
  });
}

}  // namespace hcclsim::cli
