#pragma once

#include <memory>
#include <string>

#include "cli/options/html_report.hpp"

/// The commands of `hcclsim`, one file each: it declares the options, and says what is done with them. They print to
/// standard output and throw Error.
namespace hcclsim::cli {

class Command;

/// `run`: simulates data-parallel training and prints when everything happened.
void add_run_command(Command& app);
/// `plan show | check | diff`: what the streams of every rank do in a step, and the proof that it comes to an end.
/// `plan redistribute`: the steps of a tensor between two layouts.
void add_plan_command(Command& app);
void add_plan_redistribute(Command& plan);
/// `context show | get`: the options of MindSpore's auto-parallel context, as a file and the command line leave them.
void add_context_command(Command& app);
/// `tune`: the best gradient split of a training step, with its proof, what others would do, and both confirmed by
/// simulation.
void add_tune_command(Command& app);
/// `search`: ways to spread a step over NPUs that no other beats in time and memory.
void add_search_command(Command& app);
/// `job`: an MSJob of the MindSpore operator for Kubernetes, from its creation to its end.
void add_job_command(Command& app);
/// `calibrate`: link speeds of a platform fitted to measured communication times.
void add_calibrate_command(Command& app);
/// `validate`: published measurements beside what is simulated.
void add_validate_command(Command& app);
/// `collective`: measures a collective as HCCL's test tool hccl_test does, with its options and its table.
void add_collective_command(Command& app);
/// `exec`: programs written for HCCL on simulated NPUs.
void add_exec_command(Command& app);
// Make a command do what that of the name does, and write its report where `html` says when it is called; null: none.
void set_up_run(Command& command, const std::shared_ptr<const HtmlReport>& html);
void set_up_tune(Command& command, const std::shared_ptr<const HtmlReport>& html);
void set_up_job(Command& command, const std::shared_ptr<const HtmlReport>& html);
void set_up_collective(Command& command, const std::shared_ptr<const HtmlReport>& html);
/// `script`: what a training script sets, read and not executed, and then simulated as `run` does.
void add_script_command(Command& app);
/// `doctor`: what is installed and works.
void add_doctor_command(Command& app);
/// `completion`: the scripts of shells; `complete`, which they ask.
void add_completion_commands(Command& app);
/// `options`: all commands and options, for programs.
void add_options_command(Command& app);
/// `models list | show`: the networks, their layers, parameters, gradients in production order and kernels as launched.
void add_models_command(Command& app);
/// `platform list | show | check | generate`: the platform files, what they hold, what is wrong with them, new ones.
void add_platform_command(Command& app);
/// `ranktable check | generate`.
void add_rank_table_command(Command& app);
/// `replay`: carries out an execution trace, of Chakra or GOAL.
void add_replay_command(Command& app);
/// `report`: what another command finds, as one HTML file to look at, to print and to send. `report run` and its like
/// take all that the command takes, print what it prints and write the file besides. `command_line`: the command as it
/// was given, for a shell.
void add_report_command(Command& app, const std::string& command_line);
/// `schedule`: schedules of collectives as files (docs/formats.md), and its sub-commands: how a file is made, what each
/// rank does, its proof (docs/checker.md), its time, its difference from another, its execution on real data.
void add_schedule_command(Command& app);
void add_schedule_generate(Command& schedule);
void add_schedule_show(Command& schedule);
void add_schedule_check(Command& schedule);
void add_schedule_time(Command& schedule);
void add_schedule_diff(Command& schedule);
void add_schedule_run(Command& schedule);
/// `sweep`: many runs or collectives, their results in a database: computed here or on a cluster that Slurm manages,
/// and shown.
void add_sweep_command(Command& app);
void add_sweep_run_command(Command& sweep);
void add_sweep_show_commands(Command& sweep);
void add_sweep_submit_commands(Command& sweep);

}  // namespace hcclsim::cli
