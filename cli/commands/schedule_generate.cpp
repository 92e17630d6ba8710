#include "cli/commands/schedule_generate.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "cli/options/collective_choice.hpp"
#include "cli/options/collective_names.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/platform_path.hpp"
#include "cli/print/output.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/schedule/file/schedule_file.hpp"

namespace hcclsim::cli {
namespace {

struct GenerateSchedule : CollectiveChoice {
  std::string collective = "allreduce";
  std::optional<std::uint64_t> elements;
  std::string bytes;
  std::string counts;
  std::string type = "fp32";
  std::string op = "sum";
  Rank root = 0;
  std::optional<bool> in_place;
  bool binary = false;
  std::string output = "-";
};

/// Elements of a block, by whichever option gives them.
std::uint64_t elements_of(const GenerateSchedule& options, const NamedCollective& named, DataType type) {
  const int given =
      (options.elements.has_value() ? 1 : 0) + (options.bytes.empty() ? 0 : 1) + (options.counts.empty() ? 0 : 1);
  if (named.collective == hccl::Collective::barrier && given == 0) return 0;
  if (named.takes_counts && options.counts.empty()) {
    bad_input("option", "{} needs --counts, the elements of every {}", options.collective,
              hccl::counts_pairs(named.collective) ? "pair of ranks" : "rank");
  }
  if (given != 1) {
    bad_input("option", "{} needs one of --elements, --bytes and --counts; {} are given", options.collective, given);
  }
  if (options.bytes.empty()) return options.elements.value_or(0);
  const Bytes bytes = parse_size(options.bytes);
  if (bytes % size_of(type) != 0) {
    bad_input("option", "--bytes {}: not a multiple of {} bytes, an element of {}", options.bytes, size_of(type),
              name_of(type));
  }
  return bytes / size_of(type);
}

hccl::CollectiveRequest request_of(const GenerateSchedule& options, Rank ranks) {
  const NamedCollective named = parse_collective_name(options.collective);
  if (options.root != 0 && !hccl::is_rooted(named.collective)) {
    bad_input("option", "--root {}: {} has none", options.root, options.collective);
  }
  hccl::Operation operation{.ranks = ranks, .collective = named.collective, .root = options.root};
  operation.type = parse_data_type(options.type);
  operation.op = parse_reduce_op(options.op);
  operation.elements = elements_of(options, named, operation.type);
  if (!options.counts.empty()) {
    operation.counts = block_counts(named.collective, ranks, parse_counts(options.counts));
  }
  const bool can_be_in_place = named.collective != hccl::Collective::send_recv &&
                               (operation.counts.empty() || !hccl::counts_pairs(named.collective));
  operation.in_place = options.in_place.value_or(can_be_in_place);
  return {.operation = std::move(operation),
          .algorithm = hccl::parse_algorithm(named.collective, options.algorithm),
          .launch = hccl::parse_launch_mode(options.launch),
          .levels = options.levels.empty() ? std::vector<hccl::HierarchyLevel>{} : hccl::parse_levels(options.levels)};
}

/// A schedule has no dates, and without the communicator's buffer no windows.
std::vector<std::string_view> obeyed_variables(const GenerateSchedule& options) {
  std::vector<std::string_view> obeyed{"HCCL_ALGO", "HCCL_DETERMINISTIC", "HCCL_INTER_HCCS_DISABLE"};
  if (hccl::parse_launch_mode(options.launch) == hccl::LaunchMode::op) obeyed.emplace_back("HCCL_BUFFSIZE");
  return obeyed;
}

void generate(const GenerateSchedule& options) {
  const std::string path = find_platform(options.platform);
  write_output(options.output, run_in_child([&] {
                 sim::Cluster cluster(path);
                 LoadedPlatform platform(options.rank_table, options.hccl_settings, obeyed_variables(options), cluster);
                 const Rank ranks = platform.participating(options.ranks);
                 hccl::CollectiveRequest request = request_of(options, ranks);
                 request.config = platform.config;
                 const hccl::Topology topology = hccl::topology_of(hccl::world_communicator(ranks), cluster);
                 std::string schedule =
                     contents_of(*hccl::make_collective(request, topology, platform.soc),
                                 options.binary ? hccl::ScheduleForm::binary : hccl::ScheduleForm::text);
                 platform.note_algorithm(options.hccl_settings, request, topology);
                 print_remarks_apart(platform.unmodelled, platform.notes);
                 return schedule;
               }));
}

}  // namespace

void add_schedule_generate(Command& schedule) {
  Command& command = schedule.add_command("generate", "Write the schedule of a collective");
  const auto options = std::make_shared<GenerateSchedule>();
  command
      .add("--collective", parsed(parse_collective_name, options->collective),
           "allreduce, reduce-scatter, alltoallv, …")
      .with_default();
  add_collective_choice(command, "graph", *options);
  command
      .add("--elements", whole_number(options->elements, 0, std::uint64_t{1} << 40U),
           "Of a block: what a rank contributes, gets, or sends to each other one; of allreduce, broadcast and reduce "
           "the payload")
      .value_name("UINT");
  command.add("--bytes", parsed(parse_size, options->bytes), "The same in bytes: 8K, 64M, 1G are powers of two");
  command.add("--counts", parsed(parse_counts, options->counts),
              "Elements of every rank's block; of alltoall and send-recv of every pair, sender by sender: 0,1,2,0");
  command.add("--dtype", parsed(parse_data_type, options->type), "Type of the elements").with_default();
  command.add("--op", parsed(parse_reduce_op, options->op), "Reduction").with_default();
  command.add("--root", whole_number(options->root, 0, (1U << 20U) - 1), "Of broadcast, reduce, scatter and gather")
      .value_name("UINT")
      .with_default();
  command
      .add("--in-place", on_off(options->in_place),
           "One buffer for input and output; off for send-recv and counts of pairs")
      .with_default("on");
  command.add("--binary", flag(options->binary), "The binary form instead of the text form");
  add_output_option(command, "-o,--output", options->output).value_name("TEXT");
  command.footer(
      "Examples:\n"
      "  hcclsim schedule generate --algorithm ring --bytes 4M -o ring.txt\n"
      "  hcclsim schedule generate --collective alltoall --platform atlas800t-a2-x2 --bytes 1M --binary -o a2a.bin");
  command.on_run([&command, options] {
    const OptionOrigins origins(command, {});
    finish_platform_options(origins, {"ranks"}, *options);
    require_one_algorithm(
        origins, options->hccl_options, "algorithm",
        hccl::parse_algorithm(parse_collective_name(options->collective).collective, options->algorithm));
    generate(*options);
  });
}

}  // namespace hcclsim::cli
