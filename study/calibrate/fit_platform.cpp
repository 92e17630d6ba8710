#include "study/calibrate/fit_platform.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"
#include "hccl/runtime/simulate_each.hpp"
#include "study/calibrate/platform_rewrite.hpp"
#include "study/measure/names.hpp"

namespace hcclsim::study {
namespace {

/// An hccl_test log with what it measured.
struct MeasuredLog {
  CollectiveLog contents;
  MeasureSpec measured;
  std::string what{};  ///< "allreduce, 8 ranks"
  std::vector<std::vector<hccl::CollectiveCall>> calls{};
};

/// Takes "allreduce:8=" off "allreduce:8=FILE".
std::pair<std::string, std::string> source_parts(const std::string& source) {
  const std::size_t equals = source.find('=');
  if (equals == std::string::npos || source.substr(0, equals).find('/') != std::string::npos) return {"", source};
  return {source.substr(0, equals), source.substr(equals + 1)};
}

MeasuredLog read_log(const CalibrateSpec& spec, const std::string& prefix, const std::string& file,
                     const std::string& text) {
  MeasuredLog result{.contents = parse_collective_log(text, file), .measured = spec.measured};
  MeasureSpec& measured = result.measured;
  const CollectiveLog& log = result.contents;
  const std::size_t colon = std::min(prefix.find(':'), prefix.size());
  std::string op = !prefix.empty() ? prefix.substr(0, colon) : !spec.op.empty() ? spec.op : log.operation;
  if (op.empty()) {
    bad_input("log", "{}: which collective was measured? Give --op, or {}=FILE", file, "allreduce:8");
  }
  measured.request.operation.collective = parse_collective_name(op).collective;
  measured.request.operation.in_place = measured.request.operation.collective == hccl::Collective::broadcast;
  const std::string type = !spec.type.empty() ? spec.type : log.type.empty() ? "fp32" : log.type;
  measured.request.operation.type = parse_data_type(type);
  if (colon < prefix.size()) {
    const auto ranks = parse_number<Rank>(prefix.substr(colon + 1));
    if (!ranks.has_value() || *ranks == 0) bad_input("option", "{}={}: give OP:RANKS=FILE", prefix, file);
    measured.ranks = *ranks;
  } else if (measured.ranks == 0) {
    measured.ranks = log.ranks.value_or(0);
  }
  if (measured.npus_per_server == 0) measured.npus_per_server = log.npus_per_server.value_or(0);
  if (measured.ranks == 0 && measured.npus_per_server == 0) {
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

/// The collectives among the logs whose base the platform gives apart, and whether there are others.
struct Bases {
  std::set<std::string> own;
  bool others = false;
};

/// Everything that the logs depend on, the more important first: what times depend on most in all platforms.
std::vector<FitChoice> known_choices(const std::set<sim::LinkKind>& kinds, const std::optional<Bases>& op_mode) {
  using Target = FitChoice::Target;
  std::vector<FitChoice> known;
  for (const sim::LinkKind kind : kinds) known.push_back({.target = Target::bandwidth, .kind = kind});
  if (op_mode.has_value()) {
    known.push_back({.target = Target::task});
    if (op_mode->others) known.push_back({.target = Target::base});
    for (const std::string& name : op_mode->own) known.push_back({.target = Target::base, .collective = name});
  }
  for (const sim::LinkKind kind : kinds) known.push_back({.target = Target::latency, .kind = kind});
  return known;
}

/// "hccs.bandwidth,op.task" as choices; without a list all known ones.
std::vector<FitChoice> choices_of(const std::string& list, const std::vector<FitChoice>& known) {
  if (list.empty()) return known;
  std::vector<FitChoice> choices;
  std::vector<std::string> names;
  const std::string wanted = ',' + list + ',';
  for (const FitChoice& choice : known) {
    names.push_back(choice.name());
    if (wanted.find(',' + names.back() + ',') != std::string::npos) choices.push_back(choice);
  }
  const auto given = static_cast<std::size_t>(std::count(list.begin(), list.end(), ',')) + 1;
  if (given != choices.size()) {
    bad_input("option", "--fit {}: accepted are, each once, {}", list, fmt::join(names, ","));
  }
  return choices;
}

class Calibrator {
 public:
  explicit Calibrator(const CalibrateSpec& spec)
      : spec_(spec),
        cluster_(spec.measured.platform.file, spec.measured.platform.edits),
        platform_(platform_of(spec.measured, cluster_)) {}

  FittedPlatform fit() {
    for (const std::string& source : spec_.sources) read(source);
    hold_out(points_);
    const bool op_mode = !logs_.empty() && logs_.front().measured.request.launch == hccl::LaunchMode::op;
    const std::vector<FitChoice> choices =
        choices_of(spec_.fit, known_choices(kinds_, op_mode ? std::optional(bases()) : std::nullopt));
    FittedPlatform fitted{.on = platform_.facts(), .sources = sources_, .calibration = {}, .text = {}};
    fitted.calibration = calibrate(
        cluster_, platform_.costs, choices, points_, [this](const PlatformChange& change) { return simulated(change); },
        !spec_.fit.empty());
    note_errors(fitted);
    fitted.text =
        rewritten_platform(cluster_.path(), fitted.calibration.change, fmt::format("{}", fmt::join(sources_, ", ")));
    return fitted;
  }

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
    MeasuredLog log = read_log(spec_, prefix, file, text);
    add_calls(log);
    sources_.push_back(fmt::format("{} ({})", name, log.what));
    logs_.push_back(std::move(log));
  }

  /// Says so if the fitted platform has not the measured times.
  static void note_errors(FittedPlatform& fitted) {
    constexpr double large = 0.1;
    const CalibrationError error = error_of(fitted.calibration, false, true);
    if (error.mean < large) return;
    fitted.on.notes.push_back(fmt::format(
        "the fitted platform misses the measured times by {:.0f} % in the mean: they are noisy, or not of what "
        "was simulated (collective, ranks, algorithm)",
        error.mean * 100));
  }

  void add_transfers(const std::string& file, const std::string& text) {
    const auto links = cluster_.links();
    const bool has_hccs =
        std::any_of(links.begin(), links.end(), [](const sim::Link& link) { return link.kind == sim::LinkKind::hccs; });
    for (MeasuredTransfer transfer : parse_communication(text, file)) {
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
    const MeasureSpec& measured = log.measured;
    const hccl::Communicator communicator = communicator_of(measured, platform_);
    const hccl::Topology topology = hccl::topology_of(communicator, cluster_);
    hccl::CollectiveRequest request = measured.request;
    request.config = platform_.config;
    request.operation.ranks = topology.ranks;
    platform_.note_algorithm(spec_.measured.platform.hccl_settings, request, topology);
    log.what = fmt::format("{}, {} ranks", log.what, topology.ranks);
    for (const CollectiveLog::Row& row : log.contents.rows) {
      log.calls.push_back({call_of(request, row.size, topology, platform_.soc, communicator.ranks)});
      points_.push_back({.file = log.contents.file, .what = log.what, .size = row.size, .measured = row.time});
    }
    order_.emplace_back(false, logs_.size());
    for (const sim::LinkKind kind : kinds_between(cluster_, communicator.ranks)) kinds_.insert(kind);
  }

  [[nodiscard]] Bases bases() const {
    Bases bases;
    for (const MeasuredLog& log : logs_) {
      const std::string name(name_of(log.measured.request.operation.collective));
      if (platform_.costs.issue.base_of.contains(name)) {
        bases.own.insert(name);
      } else {
        bases.others = true;
      }
    }
    return bases;
  }

  /// Times of all points on the changed platform.
  std::vector<Seconds> simulated(const PlatformChange& change) {
    cluster_.adjust(change.links);
    const device::TaskCosts costs = change.applied_to(platform_.costs);
    std::vector<Seconds> times;
    for (const auto& [is_transfer, index] : order_) {
      if (is_transfer) {
        times.push_back(transfer_time(cluster_, costs, transfers_[index], ""));
        continue;
      }
      const MeasuredLog& log = logs_[index];
      const hccl::SimulateOptions simulate{.network = sim::NetworkKind::fluid,
                                           .launch = log.measured.request.launch,
                                           .iterations = log.measured.iterations,
                                           .warmups = log.measured.warmups};
      for (const auto& result : simulate_each(cluster_, platform_.soc, costs, simulate, log.calls)) {
        times.push_back(result.calls.front().per_iteration);
      }
    }
    return times;
  }

  const CalibrateSpec& spec_;
  sim::Cluster cluster_;
  LoadedPlatform platform_;
  std::vector<std::string> sources_;
  std::vector<MeasuredLog> logs_;
  std::vector<MeasuredTransfer> transfers_;
  std::vector<std::pair<bool, std::size_t>> order_;  // of the points: whether a transfer, index
  std::vector<CalibrationPoint> points_;
  std::set<sim::LinkKind> kinds_;
};

}  // namespace

FittedPlatform fit_platform(const CalibrateSpec& spec) {
  return run_in_child([&] { return Calibrator(spec).fit(); });
}

}  // namespace hcclsim::study
