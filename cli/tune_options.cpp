#include "cli/tune_options.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/option_checks.hpp"

namespace hcclsim::cli {
namespace {

/// A factor of 0.001 to 1000 that is the whole text.
std::optional<double> parse_factor(std::string_view text) {
  const std::optional<double> factor = parse_number<double>(text);
  return factor >= 1e-3 && factor <= 1e3 ? factor : std::nullopt;
}

constexpr const char* hidden_group = "";

/// Hides what a run writes or computes beside its times; who gives it all the same is told where it belongs.
void hide_what_run_writes(CLI::App& command) {
  constexpr std::array<std::string_view, 4> files{"--trace", "--trace-ranks", "--step-trace", "--advice"};
  for (CLI::Option* const option : command.get_options()) {
    const bool is_file = std::find(files.begin(), files.end(), option->get_name()) != files.end();
    if (is_file || option->get_group() == numerics_group) option->group(hidden_group)->configurable(false);
  }
}

void refuse_what_run_writes(CLI::App& command) {
  for (const CLI::Option* const option : command.get_options()) {
    if (option->get_group() != hidden_group || option->empty()) continue;
    bad_input("option", "--{}: tune looks for a split; give it to `hcclsim run` with that split",
              option->get_lnames().front());
  }
}

/// That of run without csv.
void replace_format(CLI::App& command, OutputFormat& format) {
  CLI::Option* const of_run = command.get_option("--format");
  const std::string group = of_run->get_group();
  command.remove_option(of_run);
  command
      .add_option_function<std::string>(
          "--format",
          [&format](const std::string& text) { format = text == "json" ? OutputFormat::json : OutputFormat::text; },
          "What is printed")
      ->check(one_of({"text", "json"}))
      ->default_str("text")
      ->type_name("")
      ->group(group);
}

}  // namespace

BandwidthRange parse_bandwidth_range(std::string_view text) {
  for (int kind = 0; kind <= static_cast<int>(sim::LinkKind::other); ++kind) {
    if (text == name_of(static_cast<sim::LinkKind>(kind))) return {.kind = static_cast<sim::LinkKind>(kind)};
  }
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::optional<double> low = parse_factor(text.substr(0, colon));
  const std::optional<double> high = colon < text.size() ? parse_factor(text.substr(colon + 1)) : std::nullopt;
  if (!low.has_value() || !high.has_value() || *low >= *high) {
    bad_input(
        "option",
        "'{}' is no range: give factors LOW:HIGH from 0.001 to 1000, such as 0.5:2, or a kind of link whose range "
        "the platform gives: hccs, pcie, sio, ub, roce, other",
        text);
  }
  return {.low = *low, .high = *high};
}

void add_tune_options(CLI::App& command, TuneOptions& options) {
  add_run_options(command, options.run);
  hide_what_run_writes(command);
  replace_format(command, options.run.format);
  const std::string group = "Tuning";
  command.add_option("--max-segments", options.most_segments, "Most segments that a split may have; HCCL takes 8")
      ->check(whole_number(1, 1024))
      ->capture_default_str()
      ->type_name("")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--cost", [&options](const std::string& name) { options.cost = study::parse_cost_model(name); },
          "Cost of an allreduce: fitted line, straight between simulated sizes, every segment simulated")
      ->check(one_of({"affine", "table", "simulated"}))
      ->default_str("affine")
      ->type_name("")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--objective", [&options](const std::string& name) { options.objective = study::parse_objective(name); },
          "Of equal ends any split, or that with the fewest segments")
      ->check(one_of({"time", "time,segments"}))
      ->default_str("time,segments")
      ->type_name("")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--streams", [&options](const std::string& name) { options.streams = study::parse_streams(name); },
          "Communication streams, and whether they share their links")
      ->check(one_of({"1", "2-shared", "2-disjoint"}))
      ->default_str("1")
      ->type_name("")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--compare", [&options](const std::string& list) { options.compare = study::parse_strategies(list); },
          "What the table holds, of given, default, single, each, threshold:SIZE, mgwfbp, asc, dear, optimal, "
          "by-segments, lb (default: all)")
      ->check(parsed_by(study::parse_strategies, ""))
      ->type_name("LIST")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--bandwidth-range",
          [&options](const std::string& text) { options.bandwidth_range = parse_bandwidth_range(text); },
          "Where the split stays the best: factors on all bandwidths, or a kind of link and its published range")
      ->check(parsed_by(parse_bandwidth_range, ""))
      ->type_name("LOW:HIGH|KIND")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--verify", [&options](const std::string&) { options.verify = true; },
          "brute: try all splits, of up to 24 gradients")
      ->check(one_of({"brute"}))
      ->type_name("")
      ->group(group);
}

void finish_tune_options(CLI::App& command, TuneOptions& options) {
  refuse_what_run_writes(command);
  finish_run_options(command, options.run);
  if (command.get_option("--hcom-parallel")->count() == 0) options.run.hcom_parallel = true;
}

}  // namespace hcclsim::cli
