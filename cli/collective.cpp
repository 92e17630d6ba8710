#include "cli/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/output_file.hpp"
#include "cli/collective_names.hpp"
#include "cli/collective_report.hpp"
#include "cli/collective_sweep.hpp"
#include "cli/hccl_options.hpp"
#include "cli/option_checks.hpp"
#include "cli/output.hpp"
#include "cli/platform_path.hpp"

namespace hcclsim::cli {
namespace {

constexpr const char* examples =
    "Examples:\n"
    "  hcclsim collective allreduce -b 8K -e 64M -f 2          eight 910A, as all_reduce_test prints it\n"
    "  hcclsim collective alltoall -b 1M -e 1G -f 4 --platform atlas800t-a2 --extended --plot alltoall.svg";

struct CollectiveCommand {
  std::string op;
  std::string platform = "atlas800-9000";
  std::string algorithm = "auto";
  std::string levels;
  std::string reduction = "sum";
  std::string type = "fp32";
  std::string launch = "op";
  std::string network = "fluid";
  std::string format = "text";
  std::string plot;
  bool extended = false;
  unsigned check = 1;
  unsigned zero_copy = 0;
  SweepOptions sweep;
  HcclOptions hccl_options;
};

hccl::Collective collective_of(const std::string& op) {
  const hccl::Collective collective = parse_collective_name(op).collective;
  if (collective == hccl::Collective::barrier) bad_input("option", "a barrier has no size to measure");
  return collective;
}

/// hccl_test calls bf16 bfp16.
DataType parse_type(std::string_view name) { return name == "bfp16" ? DataType::bf16 : parse_data_type(name); }

SweepOptions sweep_of(const CollectiveCommand& command) {
  SweepOptions options = command.sweep;
  options.platform = find_platform(command.platform);
  hccl::Operation& operation = options.operation;
  operation.collective = collective_of(command.op);
  operation.type = parse_type(command.type);
  operation.op = parse_reduce_op(command.reduction);
  // The buffers of hccl_test: one for broadcast, two otherwise.
  operation.in_place = operation.collective == hccl::Collective::broadcast;
  options.algorithm = hccl::parse_algorithm(operation.collective, command.algorithm);
  if (!command.levels.empty()) options.levels = hccl::parse_levels(command.levels);
  options.launch = hccl::parse_launch_mode(command.launch);
  options.network = command.network == "simgrid" ? sim::NetworkKind::simgrid : sim::NetworkKind::fluid;
  options.check = command.check > 0;
  options.zero_copy = command.zero_copy > 0;
  return options;
}

/// What the child sends: whether all checks succeeded, then what is to be printed, then the picture.
std::string measure(const CollectiveCommand& command, const SweepOptions& options) {
  const Sweep sweep = run_sweep(options);
  const bool ok = std::none_of(sweep.rows.begin(), sweep.rows.end(),
                               [](const SweepRow& row) { return row.check.has_value() && !row.check->ok; });
  std::string report = command.format == "json"  ? collective_json(sweep, options, command.op)
                       : command.format == "csv" ? collective_csv(sweep, command.op)
                                                 : collective_text(sweep, command.extended);
  const std::string plot = command.plot.empty() ? "" : collective_plot(sweep, command.op);
  return fmt::format("{}{:020}{}{}", ok ? '1' : '0', report.size(), report, plot);
}

void run(const CollectiveCommand& command) {
  const SweepOptions options = sweep_of(command);
  const std::string sent = run_in_child([&] { return measure(command, options); });
  constexpr std::size_t digits = 20;
  const std::size_t length = std::stoull(sent.substr(1, digits));
  print(std::string_view(sent).substr(1 + digits, length));
  if (!command.plot.empty()) write_file_atomically(command.plot, std::string_view(sent).substr(1 + digits + length));
  if (sent.front() == '0') throw Error(ErrorCode::check_failed, "collective", command.op + " gives wrong results");
}

/// The options that hccl_test has.
void add_test_options(CLI::App& command, const std::shared_ptr<CollectiveCommand>& options) {
  const auto add_size = [&](const char* name, const char* description, auto set) {
    return command
        .add_option_function<std::string>(
            name, [set](const std::string& text) { set(parse_size(text)); }, description)
        ->check(parsed_by(parse_size, ""))
        ->type_name("SIZE")
        ->group("As hccl_test");
  };
  SizeRange& sizes = options->sweep.sizes;
  add_size("-b,--minbytes", "Least size of the payload; K, M, G are powers of two", [&](Bytes size) {
    sizes.first = size;
  })->default_str("64M");
  add_size("-e,--maxbytes", "Largest size", [&](Bytes size) { sizes.last = size; })->default_str("64M");
  add_size("-i,--stepbytes", "From size to size; 0: -b alone [a tenth of the range]",
           [&](Bytes size) { sizes.step = size; });
  constexpr double largest_factor = 1e6;
  constexpr std::uint64_t most_iterations = 1'000'000;
  const auto in_group = [](CLI::Option* option) { option->group("As hccl_test"); };
  in_group(command.add_option("-f,--stepfactor", sizes.factor, "From size to size, in place of a step")
               ->check(number(0, largest_factor)));
  in_group(command.add_option("-d,--datatype", options->type, "Type of the elements")
               ->check(parsed_by(parse_type, ""))
               ->capture_default_str());
  in_group(command.add_option("-o,--op", options->reduction, "sum, prod, max or min")
               ->check(parsed_by(parse_reduce_op, ""))
               ->capture_default_str());
  in_group(command.add_option("-r,--root", options->sweep.operation.root, "Of broadcast, reduce, scatter, gather")
               ->check(whole_number(0, (1U << 20U) - 1))
               ->capture_default_str());
  in_group(command.add_option("-n,--iters", options->sweep.iterations, "How often, back to back")
               ->check(whole_number(1, most_iterations))
               ->capture_default_str());
  in_group(command.add_option("-w,--warmup_iters", options->sweep.warmups, "Iterations before them that do not count")
               ->check(whole_number(0, most_iterations))
               ->capture_default_str());
  in_group(command
               .add_option("-c,--check", options->check,
                           "1: check the results, on real data up to 64 MiB in total, by proof beyond; 2: the same")
               ->check(whole_number(0, 2))
               ->capture_default_str());
  in_group(command.add_option("-z,--zero_copy", options->zero_copy, "1: buffers are registered, nothing is copied")
               ->check(whole_number(0, 1))
               ->capture_default_str());
  in_group(command.add_option("-p,--npus", options->sweep.npus_per_server, "The first NPUs of each server [all]")
               ->check(whole_number(1, 1U << 16U)));
}

}  // namespace

void add_collective_command(CLI::App& app) {
  CLI::App* const command = app.add_subcommand("collective", "Measure a collective as hccl_test does");
  const auto options = std::make_shared<CollectiveCommand>();
  command
      ->add_option("OP", options->op,
                   "allreduce, reducescatter, allgather, broadcast, reduce, scatter, gather, alltoall, alltoallv or "
                   "sendrecv")
      ->check(parsed_by(collective_of, ""))
      ->required();
  add_test_options(*command, options);
  command->add_option("--ranks", options->sweep.ranks, "How many NPUs in all [all]")->check(whole_number(1, 1U << 20U));
  command->add_option("--platform", options->platform, "A platform file, or the name of a shipped one")
      ->capture_default_str();
  command->add_option("--algorithm", options->algorithm, "ring, mesh, …; auto chooses as HCCL does")
      ->capture_default_str();
  command
      ->add_option("--levels", options->levels,
                   "Levels of a hierarchy from the innermost on, such as 2:ring,8:mesh,4:nhr")
      ->check(parsed_by(hccl::parse_levels, ""));
  command->add_option("--launch", options->launch, "op: each call by itself; graph: tasks are loaded in advance")
      ->check(one_of({"graph", "op"}))
      ->capture_default_str();
  command->add_option("--network", options->network, "Network model; the two agree to 1e-9")
      ->check(one_of({"fluid", "simgrid"}))
      ->capture_default_str();
  command->add_flag("--extended", options->extended, "Also bus bandwidth, bound, algorithm, what limits it, formula");
  command->add_flag("--explain", options->sweep.explain, "Why each algorithm was chosen, and what the others cost");
  command->add_option("--format", options->format, "text, json or csv")
      ->check(one_of({"text", "json", "csv"}))
      ->capture_default_str();
  command->add_option("--plot", options->plot, "Time and bandwidth over the size as an SVG file")->type_name("FILE");
  add_hccl_options(*command, options->hccl_options);
  command->footer(examples);
  command->callback([command, options] {
    options->sweep.hccl_settings = hccl_settings(OptionOrigins(*command, {}), options->hccl_options);
    run(*options);
  });
}

}  // namespace hcclsim::cli
