#include "cli/options/collective_choice.hpp"

#include "cli/options/parse/common.hpp"

namespace hcclsim::cli {

void add_collective_choice(Command& command, const std::string& launch, CollectiveChoice& choice) {
  choice.platform = "atlas800-9000";
  choice.launch = launch;
  add_platform_options(command, "A platform file, or the name of a shipped one", choice);
  command.add("--ranks", whole_number(choice.ranks, 1, 1U << 20U), "How many NPUs in all, the first ones [all]")
      .value_name("UINT");
  command.add("--algorithm", text(choice.algorithm), "ring, mesh, …; auto chooses as HCCL does").with_default();
  add_levels_option(command, choice.levels);
  add_launch_option(command, choice.launch,
                    "graph: tasks are loaded in advance, on the user's buffers; op: each call by itself, through the "
                    "communicator's");
}

void finish_collective_choice(const OptionOrigins& origins, std::initializer_list<const char*> selecting,
                              CollectiveChoice& choice, hccl::CollectiveRequest& request) {
  finish_platform_options(origins, selecting, choice);
  request.algorithm = hccl::parse_algorithm(request.operation.collective, choice.algorithm);
  require_one_algorithm(origins, choice.hccl_options, "algorithm", request.algorithm);
  if (!choice.levels.empty()) request.levels = hccl::parse_levels(choice.levels);
  request.launch = hccl::parse_launch_mode(choice.launch);
}

void add_repetition_options(Command& command, const char* iterations_name, std::uint32_t& iterations,
                            const char* warmups_name, std::uint32_t& warmups) {
  constexpr std::uint64_t most = 1'000'000;
  command.add(iterations_name, whole_number(iterations, 1, most), "How often, back to back")
      .value_name("UINT")
      .with_default();
  command.add(warmups_name, whole_number(warmups, 0, most), "Iterations before them that do not count")
      .value_name("UINT")
      .with_default();
}

void add_method_option(Command& command, std::uint32_t& iterations, std::uint32_t& warmups) {
  command
      .add("--method",
           one_of({"hccl-test", "single"},
                  [&](const std::string& name) {
                    if (name == "hccl-test") return;
                    iterations = 1;
                    warmups = 0;
                  }),
           "hccl-test: the mean of the iterations; single: one call, from its issue until all ranks have waited for it")
      .with_default("hccl-test")
      .excludes(command.get("--iters"))
      .excludes(command.get("--warmup_iters"));
}

void add_links_option(Command& command, std::uint32_t& links) {
  command
      .add("--links", whole_number(links, 1, 1U << 20U),
           "The so many busiest links: what they carry, for whom and why; with --format csv in place of other rows")
      .value_name("COUNT");
}

void add_uncertainty_options(Command& command, bool& uncertainty, bool& explained) {
  Option& range = command.add("--uncertainty", on_off(uncertainty),
                              "Also simulate the ends of what is assumed: link speeds, kernel times, host issue");
  range.with_default("on");
  command.add("--explain-uncertainty", flag(explained), "What each of these assumptions alone does");
}

void check_uncertainty_options(const OptionOrigins& origins, bool uncertainty) {
  if (!origins.given("explain-uncertainty") || uncertainty) return;
  bad_input("option", "{} explains the range that {} off leaves out", origins.name("explain-uncertainty"),
            origins.name("uncertainty"));
}

}  // namespace hcclsim::cli
