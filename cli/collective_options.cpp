#include "cli/collective_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/error.hpp"
#include "cli/collective_names.hpp"
#include "cli/option_checks.hpp"
#include "cli/option_origins.hpp"

namespace hcclsim::cli {
namespace {

/// Forms with counts have equal ones, as in hccl_test.
hccl::Collective collective_of(const std::string& op) { return parse_collective_with_payload(op).collective; }

/// hccl_test calls bf16 bfp16.
DataType parse_type(std::string_view name) { return name == "bfp16" ? DataType::bf16 : parse_data_type(name); }

/// The options that hccl_test has.
void add_test_options(CLI::App& command, CollectiveOptions& options) {
  const auto add_size = [&](const char* name, const char* description, auto set) {
    return command
        .add_option_function<std::string>(
            name, [set](const std::string& text) { set(parse_size(text)); }, description)
        ->check(parsed_by(parse_size, ""))
        ->type_name("SIZE")
        ->group("As hccl_test");
  };
  SizeRange& sizes = options.measurement.sizes;
  add_size("-b,--minbytes", "Least size of the payload; K, M, G are powers of two", [&](Bytes size) {
    sizes.first = size;
  })->default_str("64M");
  add_size("-e,--maxbytes", "Largest size", [&](Bytes size) { sizes.last = size; })->default_str("64M");
  add_size("-i,--stepbytes", "From size to size; 0: -b alone [a tenth of the range]",
           [&](Bytes size) { sizes.step = size; });
  add_size("--size", "One size: -b and -e in one", [&](Bytes size) { sizes.first = sizes.last = size; })
      ->excludes("--minbytes")
      ->excludes("--maxbytes");
  constexpr double largest_factor = 1e6;
  constexpr std::uint64_t most_iterations = 1'000'000;
  const auto in_group = [](CLI::Option* option) { option->group("As hccl_test"); };
  in_group(command.add_option("-f,--stepfactor", sizes.factor, "From size to size, in place of a step")
               ->check(number(0, largest_factor)));
  in_group(command.add_option("-d,--datatype", options.type, "Type of the elements")
               ->check(parsed_by(parse_type, ""))
               ->capture_default_str());
  in_group(command.add_option("-o,--op", options.reduction, "sum, prod, max or min")
               ->check(parsed_by(parse_reduce_op, ""))
               ->capture_default_str());
  in_group(command.add_option("-r,--root", options.measurement.operation.root, "Of broadcast, reduce, scatter, gather")
               ->check(whole_number(0, (1U << 20U) - 1))
               ->capture_default_str());
  in_group(command.add_option("-n,--iters", options.measurement.iterations, "How often, back to back")
               ->check(whole_number(1, most_iterations))
               ->capture_default_str());
  in_group(
      command.add_option("-w,--warmup_iters", options.measurement.warmups, "Iterations before them that do not count")
          ->check(whole_number(0, most_iterations))
          ->capture_default_str());
  in_group(command
               .add_option("-c,--check", options.check,
                           "1: check the results, on real data up to 64 MiB in total, by proof beyond; 2: the same")
               ->check(whole_number(0, 2))
               ->capture_default_str());
  in_group(command.add_option("-z,--zero_copy", options.zero_copy, "1: buffers are registered, nothing is copied")
               ->check(whole_number(0, 1))
               ->capture_default_str());
  in_group(command.add_option("-p,--npus", options.measurement.npus_per_server, "The first NPUs of each server [all]")
               ->check(whole_number(1, 1U << 16U)));
}

}  // namespace

void add_collective_options(CLI::App& command, CollectiveOptions& options) {
  command
      .add_option(
          "OP", options.op,
          "allreduce, reducescatter, reducescatterv, allgather, allgatherv, broadcast, reduce, scatter, gather, "
          "alltoall, alltoallv, alltoallvc, sendrecv or batchsendrecv")
      ->check(parsed_by(collective_of, ""))
      ->required();
  add_test_options(command, options);
  add_collective_choice(command, "op", options);
  add_platform_edits(command, options.platform_edits);
  command.add_option("--network", options.network, "Network model; the two agree to 1e-9")
      ->check(one_of({"fluid", "simgrid"}))
      ->capture_default_str();
  command.add_flag("--extended", options.extended, "Also bus bandwidth, bound, algorithm, what limits it, formula");
  command.add_flag("--explain", options.measurement.explain, "Why each algorithm was chosen, and what the others cost");
  command.add_option("--format", options.format, "text, json or csv")
      ->check(one_of({"text", "json", "csv"}))
      ->capture_default_str();
  command.add_option("--plot", options.plot, "Time and bandwidth over the size as an SVG file")->type_name("FILE");
}

MeasurementOptions measurement_options(CLI::App& command, const CollectiveOptions& given) {
  MeasurementOptions options = given.measurement;
  PlatformChoice platform{given.platform, given.rank_table, given.hccl_options};
  finish_platform_options(OptionOrigins(command, {}), {"ranks", "npus"}, platform);
  options.rank_table = platform.rank_table;
  options.hccl_settings = platform.hccl_settings;
  options.ranks = given.ranks;
  hccl::Operation& operation = options.operation;
  operation.collective = collective_of(given.op);
  operation.type = parse_type(given.type);
  operation.op = parse_reduce_op(given.reduction);
  // The buffers of hccl_test: one for broadcast, two otherwise.
  operation.in_place = operation.collective == hccl::Collective::broadcast;
  options.algorithm = hccl::parse_algorithm(operation.collective, given.algorithm);
  require_one_algorithm(OptionOrigins(command, {}), given.hccl_options, "algorithm", options.algorithm);
  if (!given.levels.empty()) options.levels = hccl::parse_levels(given.levels);
  options.launch = hccl::parse_launch_mode(given.launch);
  options.network = given.network == "simgrid" ? sim::NetworkKind::simgrid : sim::NetworkKind::fluid;
  options.check = given.check > 0;
  options.zero_copy = given.zero_copy > 0;
  return options;
}

bool all_right(const Measurement& measurement) {
  return std::none_of(measurement.rows.begin(), measurement.rows.end(),
                      [](const MeasurementRow& row) { return row.check.has_value() && !row.check->ok; });
}

}  // namespace hcclsim::cli
