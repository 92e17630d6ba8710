#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/commands/commands.hpp"
#include "cli/draw/timelines.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/parse/values.hpp"
#include "cli/options/platform_options.hpp"
#include "cli/options/timeline_options.hpp"
#include "cli/terminal/output.hpp"
#include "clients/exec.hpp"
#include "hccl/settings/launch_mode.hpp"

namespace hcclsim::cli {
namespace {

constexpr const char* exec_examples =
    "Examples:\n"
    "  hcclsim exec --flags                                      what g++ needs to compile and link a program\n"
    "  hcclsim exec --platform atlas800t-a2 -- ./program         one process, with a thread for each NPU\n"
    "  hcclsim exec -n 8 -- echo 'a process for each NPU'        eight processes of the same program\n"
    "  hcclsim exec -n 8 --wall-timeout 60 -- ./program          not longer than a minute, in a test\n"
    "  hcclsim exec -n 8 --poison -- ./program                   find what does not wait for data\n"
    "  hcclsim exec -n 8 --trace timeline.json -- ./program      what NPU 0 does, for Perfetto";

struct ExecOptions {
  PlatformChoice platform;
  clients::ExecSpec spec;
  TimelineOptions timeline{};
  std::string launch = "op";
  bool flags = false;
};

void run(Command& command, ExecOptions& options) {
  if (options.flags) {
    print(clients::compiler_flags() + '\n');
    return;
  }
  const OptionOrigins origins(command, {});
  finish_platform_options(origins, {}, options.platform);
  check_trace_options(origins, options.timeline);
  clients::ExecSpec& spec = options.spec;
  spec.platform = options.platform.platform_spec();
  spec.platform.rank_table = {};
  spec.launch = hccl::parse_launch_mode(options.launch);
  spec.words = command.rest();
  if (!spec.words.empty() && spec.words.front().starts_with('-')) {
    bad_input("option", "unknown option {}; a program comes behind --", spec.words.front());
  }
  if (!options.timeline.trace.empty()) {
    spec.traced = options.timeline.trace_ranks.empty() ? std::vector<Rank>{0} : options.timeline.trace_ranks;
    spec.traces_all = options.timeline.trace_all_ranks;
    const Timelines unused(options.timeline, spec.traced);  // dropped: they can be written
  }
  const clients::ExecResult result = exec(spec, [&](const clients::ExecTrace& trace) {
    Timelines timelines(options.timeline, trace.npus);
    timelines.write(trace.plan, trace.spans, spec.faults);
    timelines.commit();
  });
  print_remarks_apart(result.unmodelled, result.notes);
}

}  // namespace

void add_exec_command(Command& app) {
  app.add_command("exec", "Run programs for HCCL on simulated NPUs", [](Command& command) {
    command.footer(exec_examples);
    const auto options = std::make_shared<ExecOptions>();
    options->platform.platform = "atlas800-9000";
    command.add("--platform", read_file(options->platform.platform), "A platform file, or the name of a shipped one")
        .value_name("TEXT")
        .with_default();
    add_hccl_options(command, options->platform.hccl_options);
    command
        .add("-n,--processes", whole_number(options->spec.processes, 1, 1U << 16U), "How many, all of the same program")
        .value_name("UINT")
        .with_default();
    command
        .add("--per-server", whole_number(options->spec.per_server, 1, 1U << 16U),
             "Processes on each server [as many as it has NPUs]")
        .value_name("UINT");
    add_launch_option(command, options->launch,
                      "How hosts issue communication; op: each call by itself; graph: as if it were loaded in advance");
    add_platform_edits(command, options->spec.platform.edits);
    add_faults(command, options->spec.faults);
    add_trace_options(command, options->timeline, "0");
    command
        .add("--wall-timeout", number(options->spec.wall_timeout_s, 0.1, 1e9),
             "Real time that the program may take; one that has not ended then is told who waits for whom [no limit]")
        .value_name("SECONDS");
    command.add(
        "--poison", flag(options->spec.poison),
        "Fresh memory of devices holds 0x7f in every byte, and a program that uses memory before a task under way "
        "is done with it ends with an error");
    command.add("--flags", flag(options->flags),
                "Print the compiler's and linker's flags for a program, and do nothing else");
    command.keep_rest_behind_dashes();
    command.on_run([&command, options] { run(command, *options); });
  });
}

}  // namespace hcclsim::cli
