#include "cli/commands/calibrate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/output_file.hpp"
#include "base/text.hpp"
#include "cli/collective_measurement.hpp"
#include "cli/loaded_platform.hpp"
#include "cli/options/collective_names.hpp"
#include "cli/options/collective_sizes.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/platform_path.hpp"
#include "cli/print/calibration_report.hpp"
#include "cli/print/output.hpp"
#include "hccl/runtime/simulate_each.hpp"
#include "sim/platform/values.hpp"
#include "study/calibrate/platform_rewrite.hpp"

namespace hcclsim::cli {
namespace {

struct CalibrateCommand {
  std::vector<std::string> sources;
  PlatformChoice where{.platform = "atlas800-9000"};
  std::string op;
  std::string type;
  std::string launch = "op";
  std::string fit;
  std::string output;
  std::string format = "text";
  MeasurementOptions measured;
};

/// An hccl_test log with what it measured.
struct MeasuredLog {
  study::CollectiveLog contents;
  MeasurementOptions options;
  std::string what{};  ///< "allreduce, 8 ranks"
  std::vector<std::vector<hccl::CollectiveCall>> calls{};
};

/// Takes "allreduce:8=" off "allreduce:8=FILE".
std::pair<std::string, std::string> source_parts(const std::string& source) {
  const std::size_t equals = source.find('=');
  if (equals == std::string::npos || source.substr(0, equals).find('/') != std::string::npos) return {"", source};
  return {source.substr(0, equals), source.substr(equals + 1)};
}

MeasuredLog read_log(const CalibrateCommand& command, const std::string& prefix, const std::string& file,
                     const std::string& text) {
  MeasuredLog result{.contents = study::parse_collective_log(text, file), .options = command.measured};
  MeasurementOptions& options = result.options;
  const study::CollectiveLog& log = result.contents;
  const std::size_t colon = std::min(prefix.find(':'), prefix.size());
  std::string op = !prefix.empty() ? prefix.substr(0, colon) : !command.op.empty() ? command.op : log.operation;
  if (op.empty()) {
    bad_input("log", "{}: which collective was measured? Give --op, or {}=FILE", file, "allreduce:8");
  }
  options.operation.collective = parse_collective_name(op).collective;
  options.operation.in_place = options.operation.collective == hccl::Collective::broadcast;
  const std::string type = !command.type.empty() ? command.type : log.type.empty() ? "fp32" : log.type;
  options.operation.type = type == "bfp16" ? DataType::bf16 : parse_data_type(type);
  if (colon < prefix.size()) {
    const auto ranks = parse_number<Rank>(prefix.substr(colon + 1));
    if (!ranks.has_value() || *ranks == 0) bad_input("option", "{}={}: give OP:RANKS=FILE", prefix, file);
    options.ranks = *ranks;
  } else if (options.ranks == 0) {
    options.ranks = log.ranks.value_or(0);
  }
  if (options.npus_per_server == 0) options.npus_per_server = log.npus_per_server.value_or(0);
  if (options.ranks == 0 && options.npus_per_server == 0) {
    bad_input("log", "{}: among how many ranks was it measured? Give --ranks, or {}:8=FILE", file, op);
  }
  result.what = op;
  return result;
}

/// Kinds of the links between the ranks, whose ways are looked at from the first ones of two servers.
std::set<sim::LinkKind> kinds_between(sim::Cluster& cluster, const std::vector<Rank>& ranks) {
  constexpr std::size_t most_sources = 64;
  std::set<sim::LinkKind> kinds;
  for (std::size_t a = 0; a < std::min(ranks.size(), most_sources); ++a) {
    for (const Rank other : ranks) {
      if (other == ranks[a]) continue;
      for (const sim::LinkId link : cluster.route(ranks[a], other).links) kinds.insert(cluster.links()[link].kind);
    }
  }
  return kinds;
}

/// "hccs.bandwidth,roce.latency" as choices; without a list everything of these kinds.
std::vector<study::FitChoice> choices_of(const std::string& list, const std::set<sim::LinkKind>& kinds) {
  std::vector<study::FitChoice> choices;
  std::vector<std::string> known;
  for (const sim::LinkKind kind : kinds) {
    for (const bool latency : {false, true}) {
      known.push_back(fmt::format("{}.{}", name_of(kind), latency ? "latency" : "bandwidth"));
      const std::string wanted = ',' + list + ',';
      if (list.empty() || wanted.find(',' + known.back() + ',') != std::string::npos)
        choices.push_back({kind, latency});
    }
  }
  const auto given = static_cast<std::size_t>(std::count(list.begin(), list.end(), ',')) + 1;
  if (choices.empty() || (!list.empty() && given != choices.size())) {
    bad_input("option", "--fit {}: accepted are, each once, {}", list, fmt::join(known, ","));
  }
  return choices;
}

class Calibrator {
 public:
  Calibrator(const CalibrateCommand& command, const std::string& platform)
      : command_(command), cluster_(platform), platform_(platform_of(command.measured, cluster_)) {}

  CalibrationReport calibrate() {
    for (const std::string& source : command_.sources) read(source);
    hold_out(points_);
    const std::vector<study::FitChoice> choices = choices_of(command_.fit, kinds_);
    CalibrationReport report{
        .platform = std::filesystem::path(cluster_.path()).filename().string(),
        .sources = sources_,
        .calibration = study::calibrate(cluster_, choices, points_, [this] { return simulated(); }),
        .output = command_.output,
        .unmodelled = platform_.unmodelled,
        .notes = platform_.notes};
    note_errors(report);
    return report;
  }

  [[nodiscard]] std::string sources() const { return fmt::format("{}", fmt::join(sources_, ", ")); }

 private:
  void read(const std::string& source) {
    const auto [prefix, file] = source_parts(source);
    const std::string text = read_text_file(file, "log");
    const std::string name = std::filesystem::path(file).filename().string();
    const std::string_view content = trimmed(text);
    if (content.starts_with('{') || content.starts_with('[')) {
      if (!prefix.empty()) bad_input("log", "{}: {}= is for logs of hccl_test", file, prefix);
      add_transfers(file, text);
      sources_.push_back(fmt::format("{} (communication)", name));
      return;
    }
    MeasuredLog log = read_log(command_, prefix, file, text);
    add_calls(log);
    sources_.push_back(fmt::format("{} ({})", name, log.what));
    logs_.push_back(std::move(log));
  }

  /// Says so if the fitted platform has not the measured times.
  static void note_errors(CalibrationReport& report) {
    constexpr double large = 0.1;
    const study::CalibrationError error = error_of(report.calibration, false, true);
    if (error.mean < large) return;
    report.notes.push_back(fmt::format(
        "the fitted platform misses the measured times by {:.0f} % in the mean: they are noisy, or not of what "
        "was simulated (collective, ranks, algorithm)",
        error.mean * 100));
  }

  void add_transfers(const std::string& file, const std::string& text) {
    const auto links = cluster_.links();
    const bool has_hccs =
        std::any_of(links.begin(), links.end(), [](const sim::Link& link) { return link.kind == sim::LinkKind::hccs; });
    for (study::MeasuredTransfer transfer : study::parse_communication(text, file)) {
      // msprof calls the unified bus of A3 HCCS, too.
      if (transfer.kind == sim::LinkKind::hccs && !has_hccs) transfer.kind = sim::LinkKind::ub;
      static_cast<void>(transfer_time(cluster_, platform_.costs, transfer, file));
      points_.push_back({.file = file,
                         .what = fmt::format("transfer over {}", name_of(transfer.kind)),
                         .size = transfer.bytes,
                         .measured = transfer.time});
      transfers_.push_back(transfer);
      order_.emplace_back(true, transfers_.size() - 1);
      kinds_.insert(transfer.kind);
    }
  }

  void add_calls(MeasuredLog& log) {
    const MeasurementOptions& options = log.options;
    const hccl::Communicator communicator = communicator_of(options, platform_);
    const hccl::Topology topology = hccl::topology_of(communicator, cluster_);
    hccl::CollectiveRequest request{.operation = options.operation, .launch = options.launch};
    request.config = platform_.config;
    request.operation.ranks = topology.ranks;
    platform_.note_algorithm(command_.measured.hccl_settings, request, topology);
    const hccl::Collective collective = options.operation.collective;
    log.what = fmt::format("{}, {} ranks", log.what, topology.ranks);
    for (const study::CollectiveLog::Row& row : log.contents.rows) {
      request.operation.elements = elements_of_size(row.size, collective, topology.ranks, options.operation.type);
      log.calls.push_back({{.name = std::string(name_of(collective)),
                            .schedule = make_collective(request, topology, platform_.soc),
                            .ranks = communicator.ranks}});
      points_.push_back({.file = log.contents.file, .what = log.what, .size = row.size, .measured = row.time});
    }
    order_.emplace_back(false, logs_.size());
    for (const sim::LinkKind kind : kinds_between(cluster_, communicator.ranks)) kinds_.insert(kind);
  }

  /// Times of all points, on the links as they are now.
  std::vector<Seconds> simulated() {
    std::vector<Seconds> times;
    for (const auto& [is_transfer, index] : order_) {
      if (is_transfer) {
        times.push_back(transfer_time(cluster_, platform_.costs, transfers_[index], ""));
        continue;
      }
      const MeasuredLog& log = logs_[index];
      const hccl::SimulateOptions simulate{.network = sim::NetworkKind::fluid,
                                           .launch = log.options.launch,
                                           .iterations = log.options.iterations,
                                           .warmups = log.options.warmups};
      for (const auto& result : simulate_each(cluster_, platform_.soc, platform_.costs, simulate, log.calls)) {
        times.push_back(result.calls.front().per_iteration);
      }
    }
    return times;
  }

  const CalibrateCommand& command_;
  sim::Cluster cluster_;
  LoadedPlatform platform_;
  std::vector<std::string> sources_;
  std::vector<MeasuredLog> logs_;
  std::vector<study::MeasuredTransfer> transfers_;
  std::vector<std::pair<bool, std::size_t>> order_;  // of the points: whether a transfer, index
  std::vector<study::CalibrationPoint> points_;
  std::set<sim::LinkKind> kinds_;
};

void run(const CalibrateCommand& command) {
  const std::string platform = find_platform(command.where.platform);
  static_cast<void>(run_in_child([&] {
    OutputFile output(command.output);
    Calibrator calibrator(command, platform);
    const CalibrationReport report = calibrator.calibrate();
    output.write(study::rewritten_platform(platform, report.calibration.adjustments(), calibrator.sources()));
    print(command.format == "json" ? calibration_json(report) : calibration_text(report));
    output.commit();
    return std::string();
  }));
}

}  // namespace

void add_calibrate_command(Command& app) {
  app.add_command("calibrate", "Fit the links of a platform to measured times", [](Command& command) {
    const auto options = std::make_shared<CalibrateCommand>();
    command
        .add("LOG", read_files(options->sources),
             "What hccl_test printed, or communication.json of msprof; allreduce:8=LOG says of which collective among "
             "how "
             "many ranks, where the log does not")
        .required();
    add_platform_options(command, "A platform file, or the name of a shipped one", options->where);
    command.add("-o,--output", written_file(options->output), "The platform file to write").required();
    command.add("--op", parsed(parse_collective_name, options->op), "Collective of the logs [what they say]");
    command.add("--ranks", whole_number(options->measured.ranks, 1, 1U << 20U), "NPUs of the logs [what they say]")
        .value_name("UINT");
    command
        .add("-p,--npus", whole_number(options->measured.npus_per_server, 1, 1U << 16U),
             "The first NPUs of each server [what logs say]")
        .value_name("UINT");
    command
        .add("-d,--datatype",
             one_of({"fp32", "fp16", "bfp16", "bf16", "int8", "int16", "int32", "int64"}, options->type),
             "Type of the elements [what the logs say, or fp32]")
        .value_name("TEXT");
    constexpr std::uint64_t most_iterations = 1'000'000;
    command.add("-n,--iters", whole_number(options->measured.iterations, 1, most_iterations), "How often, back to back")
        .value_name("UINT")
        .with_default();
    command
        .add("-w,--warmup_iters", whole_number(options->measured.warmups, 0, most_iterations),
             "Iterations before them that do not count")
        .value_name("UINT")
        .with_default();
    add_launch_option(command, options->launch, "op: each call by itself; graph: tasks are loaded in advance");
    command.add("--fit", text(options->fit), "What to fit, such as hccs.bandwidth,hccs.latency [all links in use]");
    add_format_option(command, options->format, {"text", "json"});
    command.footer(
        "Examples:\n"
        "  hcclsim calibrate allreduce:8=ar8.log --platform atlas800-9000 -o mine.xml\n"
        "  hcclsim calibrate communication.json --platform atlas800t-a2-x2 --fit roce.bandwidth,roce.latency -o "
        "mine.xml");
    command.on_run([&command, options] {
      options->measured.launch = hccl::parse_launch_mode(options->launch);
      finish_platform_options(OptionOrigins(command, {}), {"ranks", "npus"}, options->where);
      options->measured.rank_table = options->where.rank_table;
      options->measured.hccl_settings = options->where.hccl_settings;
      run(*options);
    });
  });
}

}  // namespace hcclsim::cli
