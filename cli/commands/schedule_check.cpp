#include "cli/commands/schedule_check.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "cli/commands/schedule_run.hpp"
#include "cli/loaded_platform.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/platform_path.hpp"
#include "cli/print/check_report.hpp"
#include "cli/print/output.hpp"
#include "hccl/check/check.hpp"
#include "hccl/schedule/file/schedule_file.hpp"
#include "hccl/verify/timed_check.hpp"
#include "hccl/verify/topology_cuts.hpp"
#include "hccl/verify/value_check.hpp"
#include "sim/cluster.hpp"

namespace hcclsim::cli {
namespace {

constexpr std::string_view buffer_size = "HCCL_BUFFSIZE";

struct CheckCommand : PlatformChoice {
  std::string file;
  std::string format = "text";
  std::string soc;
  std::uint32_t queue_depth = 0;
  std::string order;
  std::string levels = "L7";
  bool run = false;
};

/// "1f0c3b5a77e2d604", as the report prints it.
std::uint64_t parse_signature(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  constexpr std::size_t digits = 16;
  if (error == std::errc() && end == text.data() + text.size() && text.size() == digits) return value;
  bad_input("option", "'{}': a signature is {} hexadecimal digits, as `schedule check` prints it", text, digits);
}

/// Level L6; the levels below have found nothing.
hccl::LevelReport values_level(const CheckCommand& command, const hccl::Schedule& schedule) {
  require_memory(command.file, schedule);
  device::WorkerPool workers(0);
  const hccl::ValueCheck check = hccl::check_values(schedule, 1, workers);
  hccl::LevelReport level{"L6"};
  if (check.ok()) return level;
  const hccl::WrongElement& first = *check.first_wrong;
  level.ok = false;
  level.count = check.wrong;
  level.findings.push_back(
      {"value",
       fmt::format("{} of {} elements are wrong; first: element {} of rank {} should be {}, is {}", check.wrong,
                   check.elements, first.element, first.rank, first.expected, first.found),
       {first.rank}});
  return level;
}

void take_limits(const device::Soc& soc, hccl::CheckOptions& options) {
  options.notifies = soc.notifies;
  options.streams = soc.streams;
}

/// The communicator's buffers, one for the payload and one for scratch memory. Schedules that do not go through them
/// have their scratch memory from the graph.
void take_buffers(const CheckCommand& command, const hccl::Schedule& schedule, const hccl::HcclConfig& config,
                  hccl::CheckOptions& options) {
  if (find_setting(command.hccl_settings, buffer_size) == nullptr || schedule.ccl == 0) return;
  options.ccl = config.buffer_bytes;
  options.scratch = config.buffer_bytes;
}

/// The levels up to L7, and L6 if it is asked for.
hccl::CheckReport check_with(const CheckCommand& command, const hccl::Schedule& schedule,
                             const hccl::CheckOptions& options) {
  hccl::CheckReport report = hccl::check(schedule, options);
  if (command.run && report.ok) add_level(report, values_level(command, schedule));
  return report;
}

struct Outcome {
  bool ok = false;
  std::string text;
};

Outcome outcome_of(const CheckCommand& command, const CheckResult& result) {
  return {result.report.ok, command.format == "json" ? check_json(result) : check_text(result)};
}

/// Also L8 and L9.
Outcome check_on_platform(const CheckCommand& command, const std::shared_ptr<const hccl::Schedule>& schedule,
                          const std::string& path, hccl::CheckOptions options) {
  constexpr std::array<std::string_view, 2> obeyed{buffer_size, "HCCL_INTER_HCCS_DISABLE"};
  sim::Cluster cluster(path);
  const LoadedPlatform platform(command.rank_table, command.hccl_settings, obeyed, cluster);
  platform.require_ranks(command.file, schedule->ranks);
  CheckResult result{.report = {}, .unmodelled = platform.unmodelled, .notes = platform.notes};
  take_limits(platform.soc, options);
  take_buffers(command, *schedule, platform.config, options);
  const bool to_the_end = options.last_level >= 7;
  if (to_the_end) {
    constexpr Rank most_ranks = 1024;
    std::vector<Rank> npus(schedule->ranks);
    std::iota(npus.begin(), npus.end(), Rank{0});
    hccl::TopologyBounds bounds = hccl::topology_bounds(cluster, npus, platform.costs, most_ranks);
    options.cuts = std::move(bounds.cuts);
    options.least_step = bounds.least_step;
    if (!bounds.all_routes) {
      result.notes.push_back(fmt::format(
          "of more than {} ranks L7 and L8 look at routes to a few other servers, and suppose that the routes to all "
          "others begin and end at the same links",
          most_ranks));
    }
  }
  result.report = check_with(command, *schedule, options);
  if (!to_the_end || !result.report.ok) return outcome_of(command, result);
  const std::uint64_t tasks = task_count(*schedule);
  if (tasks <= hccl::most_timed_tasks) {
    result.timing = check_timing(schedule, *result.report.distances, cluster, platform.soc, platform.costs);
    add_level(result.report, result.timing->l8);
    add_level(result.report, result.timing->conservation.l9);
  } else {
    result.notes.push_back(fmt::format("L8 and L9 were not checked: {} tasks, up to {} are simulated",
                                       with_thousands(tasks), with_thousands(hccl::most_timed_tasks)));
  }
  return outcome_of(command, result);
}

/// Without a chip HCCL_BUFFSIZE alone is read, whose values are the same for all.
Outcome check_alone(const CheckCommand& command, const hccl::Schedule& schedule, hccl::CheckOptions options) {
  CheckResult result;
  constexpr std::array<std::string_view, 1> obeyed{buffer_size};
  std::vector<hccl::HcclSetting> settings = command.hccl_settings;
  result.unmodelled = unmodelled(settings, obeyed);
  device::Generation generation = device::Generation::a1;
  if (!command.soc.empty()) {
    std::vector<std::string> of_kernels;
    const device::Soc soc = device::find_soc(command.soc, of_kernels);
    take_limits(soc, options);
    generation = soc.generation;
  } else {
    std::erase_if(settings, [](const hccl::HcclSetting& setting) { return setting.variable != buffer_size; });
  }
  take_buffers(command, schedule, read_hccl_config(settings, generation, result.notes), options);
  result.report = check_with(command, schedule, options);
  return outcome_of(command, result);
}

void check(const CheckCommand& command) {
  const auto schedule = std::make_shared<const hccl::Schedule>(hccl::read_schedule(command.file).schedule);
  hccl::CheckOptions options{.queue_depth = command.queue_depth,
                             .last_level = static_cast<std::uint32_t>(command.levels.back() - '0')};
  if (!command.order.empty()) options.recorded_order = parse_signature(command.order);
  Outcome outcome;
  if (command.platform.empty()) {
    outcome = check_alone(command, *schedule, options);
  } else {
    const std::string platform = find_platform(command.platform);
    const std::string handed_back = run_in_child([&] {
      const Outcome found = check_on_platform(command, schedule, platform, options);
      return (found.ok ? '+' : '-') + found.text;
    });
    outcome = {handed_back.front() == '+', handed_back.substr(1)};
  }
  print(outcome.text);
  if (!outcome.ok) throw Error(ErrorCode::check_failed, "schedule", command.file + " is refused");
}

}  // namespace

void add_schedule_check(Command& schedule) {
  Command& command = schedule.add_command("check", "Prove a schedule, or say what is wrong: docs/checker.md");
  const auto options = std::make_shared<CheckCommand>();
  command.add("FILE", read_file(options->file), "A schedule in either form").value_name("TEXT").required();
  Option& soc = command.add("--soc", text(options->soc), "Chip whose streams and notifies a rank has, such as 910B2");
  add_platform_options(command,
                       "The same of a platform (file, or name of a shipped one); also its bounds (L7), time (L8) and "
                       "conservation (L9)",
                       *options);
  command.get("--platform").excludes(soc);
  command
      .add("--queue-depth", whole_number(options->queue_depth, 0, std::numeric_limits<std::uint32_t>::max()),
           "Tasks that a stream takes in advance; 0: any number")
      .value_name("UINT")
      .with_default();
  command.add("--order", parsed(parse_signature, options->order),
              "Signature of the order of reduction that it must have (L5)");
  command
      .add("--levels", one_of({"L0", "L1", "L2", "L3", "L4", "L5", "L7"}, options->levels),
           "The highest level to check")
      .value_name("TEXT")
      .with_default();
  command.add("--run", flag(options->run), "Also execute it on real data (L6)");
  add_format_option(command, options->format, {"text", "json"});
  command.footer(
      "Examples:\n"
      "  hcclsim schedule check ring.txt --run\n"
      "  hcclsim schedule check ring.txt --platform atlas800-9000 --format json");
  command.on_run([&command, options] {
    finish_platform_options(OptionOrigins(command, {}), {}, *options);
    check(*options);
  });
}

}  // namespace hcclsim::cli
