#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/names.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/training/foreign_options.hpp"
#include "cli/options/training/run_options.hpp"
#include "cli/print/plan/comm_reuse_report.hpp"
#include "cli/terminal/output.hpp"
#include "study/run/experiment/plans.hpp"

namespace hcclsim::cli {
namespace {

/// Differences that are printed.
constexpr std::size_t most_differences = 20;

/// Options that ask for what comes out of a simulation.
constexpr std::array<std::string_view, 9> told_by_runs{"trace-ranks",         "advice", "explain", "explain-memory",
                                                       "explain-uncertainty", "links",  "mtbf",    "fault",
                                                       "routing-seeds"};

struct PlanCommand {
  RunOptions run{};
  std::vector<std::string> files{};
  std::string format = "text";
};

/// Of a file, or of what the options of a run say.
study::PlanDocument document(const PlanCommand& command, std::size_t number) {
  if (number < command.files.size()) return study::read_plan(command.files[number]);
  return study::plan_of_run(command.run.spec);
}

std::string check_line(const study::PlanDocument& document) {
  return fmt::format(
      "The step comes to its end: {} of {} on {}, every message has both ends, all ranks of a group "
      "call its collectives in one order. With links that take no time it takes {:.3f} ms.\n",
      counted(document.tasks, "task"), counted(document.plan.roles.size(), "role"),
      counted(document.plan.ranks(), "rank"), document.ideal * 1e3);
}

void show_plan(const PlanCommand& command) {
  const study::PlanDocument shown = document(command, 0);
  if (command.format == "json") {
    if (!shown.comm_reuse.has_value()) {
      print(json_of(shown) + '\n');
    } else {
      Json json = Json::parse(json_of(shown));
      json["comm_reuse"] = comm_reuse_json(*shown.comm_reuse);
      print(json.dump(1) + '\n');
    }
    return;
  }
  std::string text = shown.comm_reuse.has_value() ? comm_reuse_text(*shown.comm_reuse) : "";
  for (const hccl::StreamText& stream : streams_of(shown)) {
    text += fmt::format("{} {}\n", stream.whose, stream.stream);
    for (const std::string& line : stream.lines) text += "  " + line + '\n';
  }
  print(text);
}

void check_plan(const PlanCommand& command) {
  const study::PlanDocument checked = document(command, 0);
  if (command.format == "text") {
    print(check_line(checked));
    return;
  }
  print(Json{{"ok", true},
             {"tasks", checked.tasks},
             {"roles", checked.plan.roles.size()},
             {"ranks", checked.plan.ranks()},
             {"ideal_step_s", checked.ideal}}
            .dump(2) +
        '\n');
}

void compare_plans(const PlanCommand& command) {
  const study::PlanDocument one = document(command, 0);
  const study::PlanDocument other = document(command, 1);
  const std::vector<hccl::PlanDifference> differences = study::differences(one, other);
  const std::string second = command.files.size() > 1 ? command.files[1] : "the options";
  if (command.format == "json") {
    Json list = Json::array();
    for (const hccl::PlanDifference& difference : differences) {
      list.push_back({{"stage", difference.stage.has_value() ? Json(*difference.stage) : Json()},
                      {"whose", difference.whose},
                      {"stream", difference.stream},
                      {"place", difference.place},
                      {"first", difference.first},
                      {"second", difference.second}});
    }
    print(Json{{"equal", differences.empty()}, {"differences", std::move(list)}}.dump(2) + '\n');
  } else {
    std::string text = differences.empty() ? "The Plans are equal.\n" : "";
    for (std::size_t i = 0; i < std::min(differences.size(), most_differences); ++i) {
      const hccl::PlanDifference& difference = differences[i];
      text += fmt::format("{} {}, place {}:\n  - {}\n  + {}\n", difference.whose, difference.stream, difference.place,
                          difference.first, difference.second);
    }
    if (differences.size() > most_differences) {
      text += fmt::format("{} more differences\n", differences.size() - most_differences);
    }
    print(text);
  }
  if (differences.empty()) return;
  throw Error(ErrorCode::check_failed, "plan", fmt::format("{} and {} differ", command.files[0], second));
}

/// Whether the command line has more than files and --format.
bool has_run_options(const Command& command) {
  return std::ranges::any_of(command.options(), [](const auto& option) {
    return option->given() && !option->key().empty() && option->key() != "format";
  });
}

void add_command(Command& plan, const char* name, const char* what, Count files, void (*work)(const PlanCommand&)) {
  Command& command = plan.add_command(name, what);
  const auto options = std::make_shared<PlanCommand>();
  Value value = read_files(options->files);
  command
      .add("FILE", value,
           files == Count::one ? "What `plan show --format json` wrote, in place of the options of a run"
                               : "One or two such files; one is compared with the options of a run")
      .value_name("TEXT");
  const std::size_t before = command.options().size();
  add_run_options(command, options->run);
  refuse_foreign_options(std::span(command.options()).subspan(before), told_by_runs,
                         "a Plan is not simulated; give it to `hcclsim run`");
  command.replace("--format", one_of({"text", "json"}, options->format), "What is printed").with_default();
  command.footer(
      fmt::format("Examples:\n"
                  "  hcclsim plan {} {}--model gpt2-small --stages 4 --batch 8 --micro-batches 8",
                  name, files == Count::one ? "" : "plan.json "));
  command.on_run([&command, options, files, work, name] {
    const std::size_t most = files == Count::one ? 1 : 2;
    if (options->files.size() > most || (most == 2 && options->files.empty())) {
      bad_input("option", "plan {}: {} file{}; accepted: {}", name, options->files.size(),
                options->files.size() == 1 ? "" : "s", most == 1 ? "none or one" : "one or two");
    }
    if (options->files.size() == 1 && most == 2 && !has_run_options(command)) {
      bad_input("option",
                "plan diff {}: there is nothing to compare it with; give a second file, or the options of a run, such "
                "as --model gpt2-small",
                options->files.front());
    }
    if (options->files.size() == most && has_run_options(command)) {
      bad_input("option", "plan {} {}: options of a run do not go with {}; give one or the other", name,
                fmt::join(options->files, " "), most == 1 ? "a file" : "two files");
    }
    finish_run_options(command, options->run);
    refuse_parameter_servers(options->run.ps, "a Plan is of ranks that reduce their gradients");
    options->run.spec.platform.file = options->run.platform;
    work(*options);
  });
}

}  // namespace

void add_plan_command(Command& app) {
  Command& plan = app.add_command("plan", "What the streams of every rank do in a step, and whether it can end");
  plan.require_command();
  plan.footer(
      "Examples:\n"
      "  hcclsim plan show --stages 4 --batch 8 --micro-batches 8\n"
      "  hcclsim plan check --stages 4 --batch 8 --micro-batches 8 --schedule gpipe");
  add_command(plan, "show", "Print the tasks of every stage, stream by stream", Count::one, show_plan);
  add_command(plan, "check", "Prove that the step comes to its end", Count::one, check_plan);
  add_command(plan, "diff", "Compare two Plans; status 1 if they differ", Count::several, compare_plans);
  add_plan_redistribute(plan);
}

}  // namespace hcclsim::cli
