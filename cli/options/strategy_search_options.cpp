#include "cli/options/strategy_search_options.hpp"

#include <array>
#include <limits>

#include "base/error.hpp"
#include "base/units.hpp"
#include "cli/options/parse/command.hpp"

namespace hcclsim::cli {
namespace {

constexpr std::array of_strategies{"--given",
                                   "--save",
                                   "--simulate",
                                   "--fully-use-devices",
                                   "--elementwise-op-strategy-follow",
                                   "--tensor-slice-align-size",
                                   "--algo-approxi-epsilon",
                                   "--device-memory",
                                   "--costmodel-alpha",
                                   "--costmodel-beta",
                                   "--costmodel-gamma",
                                   "--rp-matmul-mem-coef"};
constexpr std::array of_plans{"--database", "--jobs", "--prune", "--shown"};
/// Options of run that cut operators or gradients: a search of strategies cuts the operators itself.
constexpr std::array of_cuts{"--model-parallel",    "--context-parallel",    "--expert-parallel",
                             "--sequence-parallel", "--vocabulary-parallel", "--compress"};
constexpr double largest = std::numeric_limits<double>::max();

void add_cost_model_options(Command& command, study::StrategySearchSpec& spec) {
  hccl::SearchOptions& options = spec.options;
  command
      .add("--fully-use-devices", on_off_or_python(options.fully_use_devices),
           "Strategies use all devices or one; off: any number that divides theirs")
      .with_default();
  command
      .add("--elementwise-op-strategy-follow", on_off_or_python(options.elementwise_op_strategy_follow),
           "Element-wise operators have the layout of their first input")
      .with_default();
  command
      .add("--tensor-slice-align-size",
           whole_number(
               [&options](std::uint64_t size) {
                 options.tensor_slice_align_enable = true;
                 options.tensor_slice_align_size = static_cast<std::uint32_t>(size);
               },
               1, 1024),
           "Sizes of slices of matrix products are multiples of it")
      .value_name("UINT");
  command
      .add(
          "--algo-approxi-epsilon",
          parsed(
              [](const std::string& text) {
                const std::optional<Quantity> quantity = parse_quantity(text);
                if (!quantity.has_value() || !quantity->unit.empty() || quantity->number <= 0 || quantity->number > 1) {
                  bad_input("option", "must be a number above 0 and at most 1, got '{}'", text);
                }
                return quantity->number;
              },
              [&options](double epsilon) {
                options.enable_algo_approxi = true;
                options.algo_approxi_epsilon = epsilon;
              }),
          "Lists of costs are thinned out: what is left out may be better by this fraction")
      .value_name("FLOAT");
  command
      .add("--device-memory",
           parsed(parse_bytes,
                  [&spec](Bytes bytes) {
                    spec.options.device_memory = bytes;
                    spec.memory_given = true;
                  }),
           "Memory of a device by the cost model, in which strategies must fit")
      .value_name("SIZE")
      .with_default("16GiB; exact: any, as far as the step fits");
  command.add("--costmodel-alpha", number(options.alpha, 0, largest), "Weight of computation").with_default();
  command.add("--costmodel-beta", number(options.beta, 0, largest), "Weight of communication").with_default();
  command
      .add("--costmodel-gamma", number(options.gamma, 0, 1),
           "Share of the communication of parameters that is not hidden")
      .with_default();
  command
      .add("--rp-matmul-mem-coef", number(options.rp_matmul_mem_coef, 0, largest),
           "Recursive programming: weight of the memory of a matrix product's whole weight")
      .with_default();
}

}  // namespace

void add_strategy_search_options(Command& command, study::StrategySearchSpec& spec) {
  command.begin_group(searching_strategies);
  command.add("--given", read_file(spec.given),
              "Strategies of some operators, as run --strategy takes them: sharding_propagation spreads them to all, "
              "dynamic_programming and exact leave them as they are");
  command.replace("--save", written_file(spec.save), "File of the strategies found, for run --strategy")
      .group(searching_strategies);
  command
      .add("--simulate", on_off(spec.simulates),
           "Simulates the strategies found beside data parallelism and model parallelism")
      .with_default();
  add_cost_model_options(command, spec);
}

void check_strategy_search_options(const Command& command, bool strategies, study::StrategySearchMode mode) {
  for (const char* const name : of_strategies) {
    if (!strategies && command.get(name).asks()) {
      bad_input("option", "{} is of searches of strategies: give --mode recursive_programming or another of them",
                name);
    }
  }
  for (const char* const name : of_plans) {
    if (strategies && command.get(name).asks()) {
      bad_input("option", "{} is of the search of plans: it goes with --mode plan only", name);
    }
  }
  for (const char* const name : of_cuts) {
    if (!strategies || !command.get(name).asks()) continue;
    bad_input("option",
              "{} does not go with a search of strategies, which decides how operators are cut; leave it out{}", name,
              std::string_view(name) == "--compress" ? "" : ", or give --mode plan");
  }
  if (strategies && mode == study::StrategySearchMode::recursive_programming && command.get("--given").given()) {
    bad_input("option", "--given: recursive_programming decides about every operator; the other searches take it");
  }
}

}  // namespace hcclsim::cli
