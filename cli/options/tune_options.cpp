#include "cli/options/tune_options.hpp"

#include <array>
#include <memory>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/training/foreign_options.hpp"

namespace hcclsim::cli {
namespace {

/// What a run tells or computes beside its times.
void refuse_what_run_tells(std::span<const std::unique_ptr<Option>> options_of_run) {
  constexpr const char* reason = "tune looks for a split; give it to `hcclsim run` with that split";
  constexpr std::array<std::string_view, 12> others{
      "routing-seeds",  "trace-ranks", "advice", "uncertainty", "explain-uncertainty",
      "explain-memory", "links",       "mtbf",   "fault",       "restart-time",
      "job-time",       "job-runs"};
  refuse_foreign_options(options_of_run, others, reason);
  for (const auto& option : options_of_run) {
    if (option->group() == numerics_group) option->refuse(reason);
  }
}

/// Options of the search for splits.
constexpr std::array of_splits{"--max-segments", "--objective",       "--cost",  "--streams",
                               "--compare",      "--bandwidth-range", "--verify"};

/// That of run without csv.
void replace_format(Command& command, OutputFormat& format) {
  command
      .replace("--format",
               one_of({"text", "json"},
                      [&format](const std::string& word) {
                        format = word == "json" ? OutputFormat::json : OutputFormat::text;
                      }),
               "What is printed")
      .with_default("text");
}

}  // namespace

void add_tune_options(Command& command, TuneOptions& options) {
  const std::size_t before = command.options().size();
  add_run_options(command, options.run);
  refuse_what_run_tells(std::span(command.options()).subspan(before));
  replace_format(command, options.run.format);
  command.begin_group("Tuning");
  command
      .add("--max-segments", whole_number(options.spec.search.aim.most_segments, 1, 1024),
           "Most segments that a split may have; HCCL takes 8")
      .with_default();
  command
      .add("--objective",
           one_of({"step", "communication"},
                  [&options](const std::string& name) {
                    options.spec.search.aim.objective = study::parse_objective(name);
                  }),
           "What is to be least: the step, updates included, or the end of the last allreduce")
      .with_default("step");
  command
      .add("--cost",
           one_of({"affine", "table", "simulated", "aoe"},
                  [&options](const std::string& name) { options.spec.search.cost = study::parse_cost_model(name); }),
           "Cost of an allreduce: fitted line, straight between simulated sizes, every segment simulated, or the "
           "estimate of the vendor's tool AOE")
      .with_default("table");
  command
      .add("--streams",
           one_of({"1", "2-shared", "2-disjoint"},
                  [&options](const std::string& name) { options.spec.streams = study::parse_streams(name); }),
           "Communication streams, and whether they share their links")
      .with_default("1");
  command
      .add("--compare", parsed(study::parse_strategies, options.spec.compare),
           "What the table holds, of given, default, single, each, threshold:SIZE, mgwfbp, asc, dear, optimal, "
           "by-segments, lb (default: all)")
      .value_name("LIST");
  command
      .add("--bandwidth-range", parsed(study::parse_bandwidth_range, options.spec.bandwidth_range),
           "Where the split stays the best: factors on all bandwidths, or a kind of link and its published range")
      .value_name("LOW:HIGH|KIND");
  command.add("--verify", one_of({"brute"}, [&options](const std::string&) { options.spec.verify = true; }),
              "brute: try all splits, of up to 24 gradients");
}

void finish_tune_options(Command& command, TuneOptions& options) {
  finish_run_options(command, options.run);
  refuse_parameter_servers(options.run.ps, "tune looks for a split of gradients that ranks reduce");
  for (const char* const name : of_splits) {
    if (options.run.spec.is_data_parallel() || !command.get(name).asks()) continue;
    bad_input("option", "{} is of splits: with stages or shared parameters tune looks for the best --fusion", name);
  }
  if (options.run.explain && !options.run.spec.is_data_parallel()) {
    bad_input("option", "--explain is of splits: with stages or shared parameters tune looks for the best --fusion");
  }
  for (const char* const name : of_splits) {
    if (!options.run.spec.step.compression.has_value() || !command.get(name).asks()) continue;
    bad_input("option", "{} is of splits: with --compress tune looks for the speed of links at which it pays", name);
  }
  if (options.run.spec.step.pad_segments) {
    bad_input(
        "option",
        "--pad-segments: tune compares segments by the bytes of their gradients; leave it out, and give it to run");
  }
  if (!command.get("--hcom-parallel").given()) options.run.spec.step.hcom_parallel = true;
  options.spec.run = options.run.spec;
  options.spec.link_speeds = options.run.explain;
}

}  // namespace hcclsim::cli
