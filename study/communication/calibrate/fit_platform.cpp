#include "study/communication/calibrate/fit_platform.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"
#include "hccl/runtime/simulate_each.hpp"
#include "study/communication/calibrate/platform_rewrite.hpp"
#include "study/communication/measure/names.hpp"
#include "study/platform/on_platform.hpp"

namespace hcclsim::study {
namespace {

/// An hccl_test log with what it measured.
struct MeasuredLog {
  CollectiveLog contents;
  MeasureSpec measured;
  std::string operation{};
  std::string what{};  ///< "allreduce, 8 ranks"
  std::size_t first_point{};
  std::vector<std::vector<hccl::CollectiveCall>> calls{};
};

// Behind so many calls each further one takes the same time, so that no more are simulated.
constexpr std::uint32_t enough_warmups = 2;
constexpr std::uint32_t enough_iterations = 4;

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
  if (!log.reduction.empty()) measured.request.operation.op = parse_reduce_op(log.reduction);
  measured.request.zero_copy = log.zero_copy.value_or(measured.request.zero_copy);
  measured.iterations = log.iterations.value_or(measured.iterations);
  measured.warmups = log.warmups.value_or(measured.warmups);
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
  if (measured.ranks == 1) bad_input("log", "{}: one rank communicates with nobody", file);
  result.operation = op;
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
    // A base of its own moves one collective, the cost of a task all of them.
    for (const std::string& name : op_mode->own) known.push_back({.target = Target::base, .collective = name});
    known.push_back({.target = Target::task});
    if (op_mode->others) known.push_back({.target = Target::base});
  }
  for (const sim::LinkKind kind : kinds) known.push_back({.target = Target::latency, .kind = kind});
  return known;
}

/// "hccs.bandwidth,op.task" as choices; without a list all known ones. A list may also give any of the collectives a
/// base of its own.
std::vector<FitChoice> choices_of(const std::string& list, std::vector<FitChoice> known,
                                  const std::set<std::string>& collectives) {
  if (list.empty()) return known;
  for (const std::string& name : collectives) {
    const FitChoice own{.target = FitChoice::Target::base, .collective = name};
    if (std::find(known.begin(), known.end(), own) == known.end()) known.push_back(own);
  }
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
  Calibrator(const CalibrateSpec& spec, sim::Cluster& cluster)
      : spec_(spec), cluster_(cluster), platform_(platform_of(spec.measured, cluster_)) {}

  FittedPlatform fit() {
    for (const std::string& source : spec_.sources) read(source);
    hold_out(points_);
    const bool op_mode = !logs_.empty() && logs_.front().measured.request.launch == hccl::LaunchMode::op;
    const std::vector<FitChoice> choices =
        choices_of(spec_.fit, known_choices(kinds_, op_mode ? std::optional(bases()) : std::nullopt),
                   op_mode ? collectives() : std::set<std::string>());
    FittedPlatform fitted{.on = platform_.facts(), .sources = sources_, .calibration = {}, .text = {}};
    fitted.calibration = calibrate(
        cluster_, platform_.costs, choices, points_,
        [this](const PlatformChange& change, const std::vector<bool>& wanted) { return simulated(change, wanted); },
        !spec_.fit.empty());
    note_errors(fitted);
    fitted.text = rewritten_platform(cluster_.path(), fitted.calibration.parameters);
    return fitted;
  }

 private:
  void read(const std::string& source) {
    const auto [prefix, file] = source_parts(source);
    const std::string text = read_text_file(file, "log");
    const std::string name = shown_name(file);
    const std::string_view content = trimmed(text);
    if (content.starts_with('{') || content.starts_with('[')) {
      if (!prefix.empty()) bad_input("log", "{}: {}= is for logs of hccl_test", file, prefix);
      sources_.push_back(fmt::format("{} (communication)", name));
      add_transfers(file, text);
      return;
    }
    MeasuredLog log = read_log(spec_, prefix, file, text);
    add_calls(log, name);
    logs_.push_back(std::move(log));
  }

  /// The name of a file without folders, unless another file has the same.
  [[nodiscard]] std::string shown_name(const std::string& file) const {
    const auto name_of_file = [](const std::string& path) { return std::filesystem::path(path).filename().string(); };
    const auto same = [&](const std::string& source) {
      return name_of_file(source_parts(source).second) == name_of_file(file);
    };
    return std::count_if(spec_.sources.begin(), spec_.sources.end(), same) > 1 ? file : name_of_file(file);
  }

  /// Says so if the fitted platform has not the measured times.
  static void note_errors(FittedPlatform& fitted) {
    constexpr double large = 0.1;
    const CalibrationError error = error_of(fitted.calibration, false, true);
    if (error.median < large) return;
    fitted.on.notes.push_back(fmt::format(
        "the fitted platform misses half of the measured times by {:.0f} % or more: they are noisy, or not of what "
        "was simulated (collective, ranks, algorithm)",
        error.median * 100));
  }

  void add_transfers(const std::string& file, const std::string& text) {
    const auto links = cluster_.links();
    const bool has_hccs =
        std::any_of(links.begin(), links.end(), [](const sim::Link& link) { return link.kind == sim::LinkKind::hccs; });
    for (MeasuredTransfer transfer : parse_communication(text, file)) {
      // msprof calls the unified bus of A3 HCCS, too.
      if (transfer.kind == sim::LinkKind::hccs && !has_hccs) transfer.kind = sim::LinkKind::ub;
      static_cast<void>(transfer_time(cluster_, platform_.costs, transfer, file));
      const std::string what = fmt::format("transfer over {}", name_of(transfer.kind));
      transfers_.emplace_back(points_.size(), transfer);
      points_.push_back({.file = file,
                         .source = sources_.back(),
                         .operation = what,
                         .what = what,
                         .size = transfer.bytes,
                         .measured = transfer.time});
      kinds_.insert(transfer.kind);
    }
  }

  void add_calls(MeasuredLog& log, const std::string& name) {
    const MeasureSpec& measured = log.measured;
    const hccl::Communicator communicator = communicator_of(measured, platform_);
    const hccl::Topology topology = hccl::topology_of(communicator, cluster_);
    hccl::CollectiveRequest request = measured.request;
    request.config = platform_.config;
    request.operation.ranks = topology.ranks;
    platform_.note_algorithm(spec_.measured.platform.hccl_settings, request, topology);
    log.what = fmt::format("{}, {} ranks", log.operation, topology.ranks);
    log.first_point = points_.size();
    sources_.push_back(fmt::format("{} ({})", name, log.what));
    for (const CollectiveLog::Row& row : log.contents.rows) {
      log.calls.push_back({call_of(request, row.size, topology, platform_.soc, communicator.ranks)});
      points_.push_back({.file = log.contents.file,
                         .source = sources_.back(),
                         .operation = log.operation,
                         .what = log.what,
                         .size = row.size,
                         .measured = row.time});
    }
    for (const sim::LinkKind kind : kinds_between(cluster_, communicator.ranks)) kinds_.insert(kind);
  }

  [[nodiscard]] std::set<std::string> collectives() const {
    std::set<std::string> names;
    for (const MeasuredLog& log : logs_) names.emplace(name_of(log.measured.request.operation.collective));
    return names;
  }

  [[nodiscard]] Bases bases() const {
    Bases bases;
    for (const std::string& name : collectives()) {
      if (platform_.costs.issue.base_of.contains(name)) {
        bases.own.insert(name);
      } else {
        bases.others = true;
      }
    }
    return bases;
  }

  /// Times of the wanted points on the changed platform.
  std::vector<Seconds> simulated(const PlatformChange& change, const std::vector<bool>& wanted) {
    cluster_.adjust(change.links);
    const device::TaskCosts costs = change.applied_to(platform_.costs);
    std::vector<Seconds> times(points_.size(), 0);
    for (const auto& [point, transfer] : transfers_) {
      if (wanted[point]) times[point] = transfer_time(cluster_, costs, transfer, "");
    }
    for (const MeasuredLog& log : logs_) {
      std::vector<std::vector<hccl::CollectiveCall>> calls;
      std::vector<std::size_t> points;
      for (std::size_t i = 0; i < log.calls.size(); ++i) {
        if (!wanted[log.first_point + i]) continue;
        calls.push_back(log.calls[i]);
        points.push_back(log.first_point + i);
      }
      const bool steady = log.measured.warmups > enough_warmups && log.measured.iterations > enough_iterations;
      const hccl::SimulateOptions simulate{.network = sim::NetworkKind::fluid,
                                           .launch = log.measured.request.launch,
                                           .iterations = steady ? enough_iterations : log.measured.iterations,
                                           .warmups = steady ? enough_warmups : log.measured.warmups};
      const auto results = simulate_each(cluster_, platform_.soc, costs, simulate, calls);
      for (std::size_t i = 0; i < points.size(); ++i) times[points[i]] = results[i].calls.front().per_iteration;
    }
    std::vector<Seconds> of_wanted;
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (wanted[i]) of_wanted.push_back(times[i]);
    }
    return of_wanted;
  }

  const CalibrateSpec& spec_;
  sim::Cluster& cluster_;
  LoadedPlatform platform_;
  std::vector<std::string> sources_;
  std::vector<MeasuredLog> logs_;
  std::vector<std::pair<std::size_t, MeasuredTransfer>> transfers_;  // with the number of the point
  std::vector<CalibrationPoint> points_;
  std::set<sim::LinkKind> kinds_;
};

}  // namespace

FittedPlatform fit_platform(const CalibrateSpec& spec) {
  return on_cluster(spec.measured.platform, [&](sim::Cluster& cluster) { return Calibrator(spec, cluster).fit(); });
}

}  // namespace hcclsim::study
