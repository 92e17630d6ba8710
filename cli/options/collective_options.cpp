#include "cli/options/collective_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/error.hpp"
#include "cli/options/collective_names.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/parse/origins.hpp"

namespace hcclsim::cli {
namespace {

/// Forms with counts have equal ones, as in hccl_test.
hccl::Collective collective_of(const std::string& op) { return parse_collective_with_payload(op).collective; }

/// hccl_test calls bf16 bfp16.
DataType parse_type(std::string_view name) { return name == "bfp16" ? DataType::bf16 : parse_data_type(name); }

/// The options that hccl_test has.
void add_test_options(Command& command, CollectiveOptions& options) {
  command.begin_group("As hccl_test");
  const auto add_size = [&](const char* name, const char* help, auto set) -> Option& {
    return command.add(name, parsed(parse_size, set), help).value_name("SIZE");
  };
  SizeRange& sizes = options.measurement.sizes;
  Option& least = add_size("-b,--minbytes", "Least size of the payload; K, M, G are powers of two", [&](Bytes size) {
                    sizes.first = size;
                  }).with_default("64M");
  Option& largest =
      add_size("-e,--maxbytes", "Largest size", [&](Bytes size) { sizes.last = size; }).with_default("64M");
  add_size("-i,--stepbytes", "From size to size; 0: -b alone [a tenth of the range]",
           [&](Bytes size) { sizes.step = size; });
  add_size("--size", "One size: -b and -e in one", [&](Bytes size) { sizes.first = sizes.last = size; })
      .excludes(least)
      .excludes(largest);
  constexpr double largest_factor = 1e6;
  constexpr std::uint64_t most_iterations = 1'000'000;
  MeasurementOptions& measured = options.measurement;
  command.add("-f,--stepfactor", number(sizes.factor, 0, largest_factor), "From size to size, in place of a step")
      .value_name("FLOAT");
  command.add("-d,--datatype", parsed(parse_type, options.type), "Type of the elements").with_default();
  command.add("-o,--op", parsed(parse_reduce_op, options.reduction), "sum, prod, max or min").with_default();
  command
      .add("-r,--root", whole_number(measured.operation.root, 0, (1U << 20U) - 1),
           "Of broadcast, reduce, scatter, gather")
      .value_name("UINT")
      .with_default();
  command.add("-n,--iters", whole_number(measured.iterations, 1, most_iterations), "How often, back to back")
      .value_name("UINT")
      .with_default();
  command
      .add("-w,--warmup_iters", whole_number(measured.warmups, 0, most_iterations),
           "Iterations before them that do not count")
      .value_name("UINT")
      .with_default();
  command
      .add("-c,--check", whole_number(options.check, 0, 2),
           "1: check the results, on real data up to 64 MiB in total, by proof beyond; 2: the same")
      .value_name("UINT")
      .with_default();
  command.add("-z,--zero_copy", whole_number(options.zero_copy, 0, 1), "1: buffers are registered, nothing is copied")
      .value_name("UINT")
      .with_default();
  command.add("-p,--npus", whole_number(measured.npus_per_server, 1, 1U << 16U), "The first NPUs of each server [all]")
      .value_name("UINT");
}

}  // namespace

void add_collective_options(Command& command, CollectiveOptions& options) {
  command.begin_group();
  command
      .add("OP", parsed(collective_of, options.op),
           "allreduce, reducescatter, reducescatterv, allgather, allgatherv, broadcast, reduce, scatter, gather, "
           "alltoall, alltoallv, alltoallvc, sendrecv or batchsendrecv")
      .required();
  add_test_options(command, options);
  command.begin_group();
  add_collective_choice(command, "op", options);
  add_platform_edits(command, options.platform_edits);
  command.add("--network", one_of({"fluid", "simgrid"}, options.network), "Network model; the two agree to 1e-9")
      .value_name("TEXT")
      .with_default();
  command.add("--extended", flag(options.extended), "Also bus bandwidth, bound, algorithm, what limits it, formula");
  command.add("--explain", flag(options.measurement.explain),
              "Why each algorithm was chosen, and what the others cost");
  add_format_option(command, options.format, {"text", "json", "csv"});
  command.add("--plot", written_file(options.plot), "Time and bandwidth over the size as an SVG file");
}

MeasurementOptions measurement_options(Command& command, const CollectiveOptions& given) {
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
