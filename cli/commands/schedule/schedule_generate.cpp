#include "cli/commands/commands.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/options/collective_choice.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/terminal/output.hpp"
#include "study/communication/measure/names.hpp"
#include "study/communication/schedules/make.hpp"

namespace hcclsim::cli {
namespace {

struct GenerateSchedule : CollectiveChoice {
  std::string collective = "allreduce";
  std::optional<std::uint64_t> elements;
  std::optional<Bytes> bytes;
  std::optional<bool> in_place;
  bool binary = false;
  std::string output = "-";
  study::MakeSpec spec{};
};

/// Elements of a block, by whichever option gives them.
std::uint64_t elements_of(const GenerateSchedule& options) {
  const auto [collective, takes_counts] = study::parse_collective_name(options.collective);
  const std::vector<std::uint64_t>& counts = options.spec.counts;
  const DataType type = options.spec.request.operation.type;
  const int given =
      (options.elements.has_value() ? 1 : 0) + (options.bytes.has_value() ? 1 : 0) + (counts.empty() ? 0 : 1);
  if (collective == hccl::Collective::barrier && given == 0) return 0;
  if (takes_counts && counts.empty()) {
    bad_input("option", "{} needs --counts, the elements of every {}", options.collective,
              hccl::counts_pairs(collective) ? "pair of ranks" : "rank");
  }
  if (given != 1) {
    bad_input("option", "{} needs one of --elements, --bytes and --counts; {} are given", options.collective, given);
  }
  if (!options.bytes.has_value()) return options.elements.value_or(0);
  if (*options.bytes % size_of(type) != 0) {
    bad_input("option", "--bytes {}: not a multiple of {} bytes, an element of {}", *options.bytes, size_of(type),
              name_of(type));
  }
  return *options.bytes / size_of(type);
}

void generate(const OptionOrigins& origins, GenerateSchedule& options) {
  study::MakeSpec& spec = options.spec;
  hccl::Operation& operation = spec.request.operation;
  operation.collective = study::parse_collective_name(options.collective).collective;
  finish_collective_choice(origins, {"ranks"}, options, spec.request);
  spec.platform = options.platform_spec();
  spec.ranks = options.ranks;
  if (options.binary) spec.form = hccl::ScheduleForm::binary;
  if (operation.root != 0 && !hccl::is_rooted(operation.collective)) {
    bad_input("option", "--root {}: {} has none", operation.root, options.collective);
  }
  operation.elements = elements_of(options);
  const bool can_be_in_place = operation.collective != hccl::Collective::send_recv &&
                               (spec.counts.empty() || !hccl::counts_pairs(operation.collective));
  operation.in_place = options.in_place.value_or(can_be_in_place);
  const study::TextOnPlatform schedule = make_schedule(spec);
  print_remarks_apart(schedule.on.unmodelled, schedule.on.notes);
  write_output(options.output, schedule.text);
}

}  // namespace

void add_schedule_generate(Command& schedule) {
  Command& command = schedule.add_command("generate", "Write the schedule of a collective");
  const auto options = std::make_shared<GenerateSchedule>();
  Option& operation = command.add("OP", parsed(study::parse_collective_name, options->collective),
                                  "allreduce (if left out), reduce-scatter, alltoallv, …");
  operation.value_name("TEXT");
  command.add("--collective", parsed(study::parse_collective_name, options->collective), "The same as an option")
      .excludes(operation);
  add_collective_choice(command, "graph", *options);
  command
      .add("--elements", whole_number(options->elements, 0, std::uint64_t{1} << 40U),
           "Of a block: what a rank contributes, gets, or sends to each other one; of allreduce, broadcast and reduce "
           "the payload")
      .value_name("UINT");
  command.add("--bytes", parsed(study::parse_size, options->bytes), "The same in bytes: 8K, 64M, 1G are powers of two");
  command.add("--counts", parsed(study::parse_counts, options->spec.counts),
              "Elements of every rank's block; of alltoall and send-recv of every pair, sender by sender: 0,1,2,0");
  command.add("--dtype", parsed(parse_data_type, options->spec.request.operation.type), "Type of the elements")
      .with_default("fp32");
  command.add("--op", parsed(parse_reduce_op, options->spec.request.operation.op), "Reduction").with_default("sum");
  command
      .add("--root", whole_number(options->spec.request.operation.root, 0, (1U << 20U) - 1),
           "Of broadcast, reduce, scatter and gather")
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
      "  hcclsim schedule generate alltoall --platform atlas800t-a2-x2 --bytes 1M --binary -o a2a.bin");
  command.on_run([&command, options] { generate(OptionOrigins(command, {}), *options); });
}

}  // namespace hcclsim::cli
