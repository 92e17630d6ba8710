#include "cli/options/collective_options.hpp"

#include <fmt/format.h>

#include <string_view>

#include "base/error.hpp"
#include "cli/options/group_option.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/parse/origins.hpp"
#include "study/communication/measure/names.hpp"

namespace hcclsim::cli {
namespace {

ReduceOp parse_reduction(std::string_view text) {
  if (text.find('.') != std::string_view::npos) {
    bad_input("reduce-op", "'{}' is no reduction (-o is that of hccl_test); a file goes to --output or --plot", text);
  }
  return parse_reduce_op(text);
}

/// Forms with counts have equal ones, as in hccl_test.
hccl::Collective collective_of(const std::string& op) { return study::parse_collective_with_payload(op).collective; }

/// The options that hccl_test has.
void add_test_options(Command& command, CollectiveOptions& options) {
  command.begin_group("As hccl_test");
  const auto add_size = [&](const char* name, const char* help, auto set) -> Option& {
    return command.add(name, parsed(study::parse_size, set), help).value_name("SIZE");
  };
  study::MeasureSpec& spec = options.spec;
  study::SizeRange& sizes = spec.sizes;
  hccl::Operation& operation = spec.request.operation;
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
  command.add("-f,--stepfactor", number(sizes.factor, 0, largest_factor), "From size to size, in place of a step")
      .value_name("FLOAT");
  command.add("-d,--datatype", parsed(parse_data_type, operation.type), "Type of the elements").with_default("fp32");
  command.add("-o,--op", parsed(parse_reduction, operation.op), "sum, prod, max or min").with_default("sum");
  command.add("-r,--root", whole_number(operation.root, 0, (1U << 20U) - 1), "Of broadcast, reduce, scatter, gather")
      .value_name("UINT")
      .with_default();
  add_repetition_options(command, "-n,--iters", spec.iterations, "-w,--warmup_iters", spec.warmups);
  add_method_option(command, spec.iterations, spec.warmups);
  command
      .add("-c,--check", whole_number([&spec](std::uint64_t check) { spec.check = check > 0; }, 0, 2),
           "1: check the results, on real data up to 64 MiB in total, by proof beyond; 2: the same")
      .value_name("UINT")
      .with_default("1");
  command
      .add("-z,--zero_copy",
           whole_number([&spec](std::uint64_t zero_copy) { spec.request.zero_copy = zero_copy > 0; }, 0, 1),
           "1: buffers are registered, nothing is copied")
      .value_name("UINT")
      .with_default("0");
  command.add("-p,--npus", whole_number(spec.npus_per_server, 1, 1U << 16U), "The first NPUs of each server [all]")
      .value_name("UINT");
  add_group_option(command, "The collective is among these ranks, such as dp0=0,4,8,12; several groups work at once",
                   spec.groups);
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
  add_platform_edits(command, options.spec.platform.edits);
  add_routing_options(command, options.spec.platform.routing, options.spec.routing_seeds);
  add_network_option(command, options.spec.network);
  add_faults(command, options.spec.faults);
  command.add("--extended", flag(options.extended), "Also bus bandwidth, bound, algorithm, what limits it, formula");
  command.add("--explain", flag(options.spec.explain), "Why each algorithm was chosen, and what the others cost");
  add_links_option(command, options.links);
  options.spec.uncertainty = true;
  add_uncertainty_options(command, options.spec.uncertainty, options.spec.explained_uncertainty);
  add_format_option(command, options.format, {"text", "json", "csv"});
  command.add("--plot", written_file(options.plot), "Time and bandwidth over the size as an SVG file");
}

study::MeasureSpec measure_spec(Command& command, CollectiveOptions& options) {
  study::MeasureSpec spec = options.spec;
  hccl::Operation& operation = spec.request.operation;
  operation.collective = collective_of(options.op);
  // The buffers of hccl_test: one for broadcast, two otherwise.
  operation.in_place = operation.collective == hccl::Collective::broadcast;
  const OptionOrigins origins(command, {});
  for (const char* const number : {"ranks", "npus"}) origins.require_one_of("group", number);
  check_uncertainty_options(origins, spec.uncertainty);
  finish_collective_choice(origins, {"ranks", "npus"}, options, spec.request);
  spec.platform.rank_table = options.rank_table;
  spec.platform.hccl_settings = options.hccl_settings;
  spec.ranks = options.ranks;
  spec.links = options.links;
  spec.seeds_are_given = origins.given("routing-seeds");
  return spec;
}

}  // namespace hcclsim::cli
