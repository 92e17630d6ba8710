#include "study/compare/baseline/baseline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

/// Compares two runs; each function adds parts.
class RunComparison : private FigureComparison {
 public:
  RunComparison(const Json& before, const Json& after, double tolerance)
      : FigureComparison(tolerance), before_(before), after_(after), rank_(value_of(after, "rank")) {}

  BaselineComparison compare() {
    const bool same_gradients = add_configuration();
    const bool same_segments = value_of(before_, "segment_log") == value_of(after_, "segment_log");
    add_step();
    add_trace(same_segments);
    if (same_segments) add_segments();
    if (same_gradients) add_gradients();
    if (value_of(before_, "npus") == value_of(after_, "npus")) add_ranks();
    add_object("gradient checks", value_of(before_, "gradient_checks"), value_of(after_, "gradient_checks"));
    add_numerics();
    return std::move(*this).result();
  }

 private:
  [[nodiscard]] std::string on_rank() const {
    return rank_.is_number() ? fmt::format(" on rank {}", rank_.dump()) : std::string();
  }

  void add_object(const std::string& name, const Json& before, const Json& after) {
    if (!before.is_object()) return;
    ComparedPart& part = new_part(name);
    for (const auto& [key, value] : before.items()) add_figure(part, name + on_rank(), key, before, after);
  }

  /// What was simulated. Returns whether the gradients are the same.
  bool add_configuration() {
    constexpr std::array<std::string_view, 10> always{
        "npus", "batch", "rank", "iterations", "amp", "framework", "hcom_parallel", "launch", "network", "segment_log"};
    // Absent where the option was not given.
    constexpr std::array<std::string_view, 2> sometimes{"loss_scale", "clip_norm"};
    ComparedPart& part = new_part("configuration");
    for (const char* const key : {"model", "platform", "rank_table"}) {
      must_equal(part, key, file_name(value_of(before_, key)), file_name(value_of(after_, key)));
    }
    for (const std::string_view key : always) {
      if (before_.contains(key)) must_equal(part, std::string(key), before_[key], value_of(after_, key));
    }
    for (const std::string_view key : sometimes) {
      must_equal(part, std::string(key), value_of(before_, key), value_of(after_, key));
    }
    add_settings(part);
    must_equal(part, "numerics", before_.contains("numerics"), after_.contains("numerics"));
    return add_gradient_names(part);
  }

  /// Those of either run, unless the baseline was stored before there were any.
  void add_settings(ComparedPart& part) {
    const Json before = value_of(before_, "settings");
    const Json after = value_of(after_, "settings");
    if (!before.is_object() || !after.is_object()) return;
    for (const auto& [name, value] : before.items()) must_equal(part, name, value, value_of(after, name));
    for (const auto& [name, value] : after.items()) {
      if (!before.contains(name)) must_equal(part, name, nullptr, value);
    }
  }

  /// Whether gradients have the same names and bytes; else the first that differs is part of the configuration.
  bool add_gradient_names(ComparedPart& part) {
    const Json before = list_of(before_, "gradients");
    const Json after = list_of(after_, "gradients");
    must_equal(part, "gradients", before.size(), after.size());
    if (before.size() != after.size()) return false;
    for (std::size_t i = 0; i < after.size(); ++i) {
      for (const char* const key : {"name", "bytes"}) {
        if (value_of(before[i], key) == value_of(after[i], key)) continue;
        must_equal(part, fmt::format("gradients[{}].{}", i, key), value_of(before[i], key), value_of(after[i], key));
        return false;
      }
    }
    return true;
  }

  void add_step() {
    constexpr std::array<std::string_view, 5> keys{"step_time_s", "images_per_s", "compute_s",
                                                   "exposed_communication_s", "hbm_peak_bytes"};
    add_figures(new_part("step"), "step" + on_rank(), keys, before_, after_);
  }

  void add_trace_point(const std::string& name, const Json& before, const Json& after, const std::string& key) {
    add_figure(new_part("trace point " + name), "trace point " + name + on_rank(), key, before, after);
  }

  void add_trace(bool same_segments) {
    const Json before = value_of(before_, "trace");
    const Json after = value_of(after_, "trace");
    for (const char* const point : {"fp_start", "bp_end"}) {
      add_trace_point(point, before, after, fmt::format("{}_s", point));
    }
    const Json allreduces = list_of(after, "allreduce");
    const Json earlier = list_of(before, "allreduce");
    if (same_segments && before.is_object() && allreduces.size() != earlier.size()) {
      must_equal(new_part("trace points of allreduces"), "number", earlier.size(), allreduces.size());
    }
    for (std::size_t i = 0; same_segments && i < allreduces.size() && i < earlier.size(); ++i) {
      for (const char* const end : {"start", "end"}) {
        add_trace_point(fmt::format("allreduce{}_{}", i + 1, end), earlier[i], allreduces[i], fmt::format("{}_s", end));
      }
    }
    add_trace_point("iteration_end", before, after, "iteration_end_s");
  }

  void add_segments() {
    constexpr std::array<std::string_view, 9> keys{"bytes",     "ready_s",   "start_s", "end_s",     "algorithm",
                                                   "algbw_Bps", "busbw_Bps", "hidden",  "limited_by"};
    const Json before = list_of(before_, "segments");
    const Json after = list_of(after_, "segments");
    if (before.size() != after.size()) must_equal(new_part("segments"), "number", before.size(), after.size());
    for (std::size_t i = 0; i < after.size() && i < before.size(); ++i) {
      const std::string name = fmt::format("segment {} [{},{}]", i + 1, value_of(after[i], "first").dump(),
                                           value_of(after[i], "last").dump());
      add_figures(new_part(name), name + on_rank(), keys, before[i], after[i]);
    }
  }

  void add_gradients() {
    const Json before = list_of(before_, "gradients");
    const Json after = list_of(after_, "gradients");
    ComparedPart& part = new_part("gradients");
    for (std::size_t i = 0; i < after.size(); ++i) {
      const Json name = value_of(after[i], "name");
      const std::string number = fmt::format("gradient {}", i);
      const bool is_named = name.is_string() && name != number;
      const std::string place = fmt::format("{}{}{}", number, is_named ? " " + name.get<std::string>() : "", on_rank());
      add_figure(part, place, "ready_s", before[i], after[i]);
    }
  }

  /// Figures by rank, from entries that each stand for ranks that follow each other.
  static std::vector<Json> by_rank(const Json& run) {
    const std::size_t npus = value_of(run, "npus").is_number_unsigned() ? run["npus"].get<std::size_t>() : 0;
    std::vector<Json> ranks;
    for (const Json& entry : list_of(run, "ranks")) {
      const Json last = value_of(entry, "last");
      if (!last.is_number_unsigned()) return {};
      while (ranks.size() <= last.get<std::size_t>() && ranks.size() < npus) ranks.push_back(entry);
    }
    return ranks;
  }

  void add_ranks() {
    if (!before_.contains("ranks")) return;  // stored before there were figures by rank
    const std::vector<Json> before = by_rank(before_);
    const std::vector<Json> after = by_rank(after_);
    ComparedPart& part = new_part("ranks");
    must_equal(part, "ranks", before.size(), after.size());
    for (std::size_t rank = 0; rank < std::min(before.size(), after.size()); ++rank) {
      constexpr std::array<std::string_view, 5> keys{"step_time_s", "bp_end_s", "communication_start_s",
                                                     "communication_end_s", "exposed_communication_s"};
      add_figures(part, fmt::format("rank {}", rank), keys, before[rank], after[rank]);
    }
  }

  void add_numerics() {
    const Json before = value_of(before_, "numerics");
    const Json after = value_of(after_, "numerics");
    if (!before.is_object() || !after.is_object()) return;
    const Json earlier = list_of(before, "iterations");
    const Json iterations = list_of(after, "iterations");
    ComparedPart& training = new_part("training");
    must_equal(training, "iterations", earlier.size(), iterations.size());
    for (std::size_t i = 0; i < iterations.size() && i < earlier.size(); ++i) {
      add_object(fmt::format("training step {}", value_of(iterations[i], "iteration").dump()), earlier[i],
                 iterations[i]);
    }
    for (const char* const key : {"replica_difference", "gradient_error"}) {
      add_object(key, value_of(before, key), value_of(after, key));
    }
  }

  const Json& before_;
  const Json& after_;
  Json rank_;
};

}  // namespace

Json read_baseline(const std::string& file) {
  Json baseline = read_result(file, "run");
  const Json version = value_of(baseline, "format_version");
  if (!version.is_number_integer() || !baseline.contains("segments") || !baseline.contains("step_time_s")) {
    bad_input("baseline", "{}: this is not what a run prints; store a baseline with `hcclsim run --format json > FILE`",
              file);
  }
  require_format_version(baseline, file);
  return baseline;
}

BaselineComparison compare_runs(const Json& baseline, const Json& run, double tolerance) {
  return RunComparison(baseline, run, tolerance).compare();
}

}  // namespace hcclsim::study
