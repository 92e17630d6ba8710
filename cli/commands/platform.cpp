#include "cli/commands/commands.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/memory_file_name.hpp"
#include "base/text.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/print/platform_report.hpp"
#include "cli/terminal/output.hpp"
#include "hccl/comm/placement.hpp"
#include "hccl/comm/rank_table.hpp"
#include "sim/platform/check.hpp"
#include "sim/platform/generate.hpp"
#include "study/platform/shipped_platforms.hpp"

namespace hcclsim::cli {
namespace {

void list_platforms() {
  Table table("<platform|<holds");
  for (const std::string& name : study::shipped_platforms()) {
    table.add_row({name, study::platform_title(study::platform_folder() + "/" + name + ".xml")});
  }
  print(table.to_string());
}

struct ShowPlatform {
  std::string file;
  std::string route;
  std::string format = "text";
};

/// Parses "0:9".
std::pair<Rank, Rank> parse_route(const std::string& text) {
  const std::vector<std::string_view> ends = split(text, ':');
  const auto first = parse_number<Rank>(ends.front());
  const auto last = parse_number<Rank>(ends.back());
  if (ends.size() == 2 && first.has_value() && last.has_value()) return {*first, *last};
  bad_input("route", "--route: '{}' is not two ranks of NPUs such as 0:9", text);
}

void show(const ShowPlatform& options) {
  const std::string path = study::find_platform(options.file);
  std::optional<std::pair<Rank, Rank>> route;
  if (!options.route.empty()) route = parse_route(options.route);
  const study::PlatformSummary platform = study::summarize_platform(path, route);
  print(options.format == "json" ? platform_json(platform) : platform_text(platform));
}

void check(const std::string& file) {
  const std::string path = study::find_platform(file);
  const std::vector<sim::PlatformProblem> problems = sim::check_platform(path);
  std::size_t fatal = 0;
  for (const sim::PlatformProblem& problem : problems) {
    if (problem.fatal) ++fatal;
    const std::string line = problem.line == 0 ? "" : fmt::format(":{}", problem.line);
    print(fmt::format("{}{}: {}: {}\n", without_memory_files(path), line, problem.fatal ? "error" : "warning",
                      problem.message));
  }
  if (fatal > 0) bad_input("platform", "{}: {} error{}", path, fatal, fatal == 1 ? "" : "s");
  const study::PlatformSize size = study::load_platform(path);
  print(fmt::format("{}: {} NPUs in {} server{}, no errors\n", without_memory_files(path), size.npus, size.servers,
                    size.servers == 1 ? "" : "s"));
}

constexpr std::uint64_t most_servers = 16384;  // of one NPU each

struct GeneratePlatform {
  sim::PlatformOptions platform;
  std::string rank_table;
  std::string super_pods;
  std::string pcie = "pairs";
  std::string fabric = "star";
  std::string output = "-";
};

void generate(const GeneratePlatform& options) {
  sim::PlatformOptions platform = options.platform;
  platform.shared_pcie = options.pcie == "shared";
  platform.fabric = sim::parse_fabric(options.fabric);
  if (!options.super_pods.empty()) platform.super_pods = sim::parse_super_pods(options.super_pods, platform.servers);
  if (!options.rank_table.empty()) {
    platform = hccl::platform_for(hccl::read_rank_table(options.rank_table), std::move(platform));
  } else if (platform.soc.empty()) {
    bad_input("option", "--soc is required without --rank-table; give an NPU such as 910A, 910B2 or 910_9391");
  }
  write_output(options.output, sim::generate_platform(platform));
}

}  // namespace

void add_platform_command(Command& app) {
  app.add_command("platform", "Platform files: the clusters that are simulated", [](Command& platform) {
    platform.require_command();
    platform.footer(
        "Examples:\n"
        "  hcclsim platform list\n"
        "  hcclsim platform generate --soc 910B2 --servers 4 --output cluster.xml\n"
        "  hcclsim platform check cluster.xml\n"
        "  hcclsim platform show cluster.xml");

    platform.add_command("list", "List the shipped platform files").on_run(list_platforms);

    Command& shown = platform.add_command("show", "Servers, NPUs, links, costs and routes of a platform");
    const auto show_options = std::make_shared<ShowPlatform>();
    const auto add_file = [](Command& command, std::string& file) {
      command.add("FILE", read_file(file), "A platform file, or the name of a shipped one")
          .value_name("TEXT")
          .required();
    };
    add_file(shown, show_options->file);
    shown.add("--route", text(show_options->route), "Also the route between two NPUs, by rank: 0:9");
    add_format_option(shown, show_options->format, {"text", "json"});
    shown.on_run([show_options] { show(*show_options); });

    Command& checking = platform.add_command("check", "Say what is wrong with a platform file, by line");
    const auto checked = std::make_shared<std::string>();
    add_file(checking, *checked);
    checking.on_run([checked] { check(*checked); });

    Command& generating = platform.add_command("generate", "Write a platform file");
    const auto options = std::make_shared<GeneratePlatform>();
    generating.add("--soc", text(options->platform.soc),
                   "NPU: 910A, 910ProA, 910B2, 910_9391 and others [910A or 910_9391 for the rank table]");
    Option& servers =
        generating.add("--servers", whole_number(options->platform.servers, 1, most_servers), "Servers").with_default();
    Option& super_pods = generating
                             .add("--super-pods", text(options->super_pods),
                                  "A3: number of super-pods, joined by RoCE, or the servers of each, such as 3,1 [one]")
                             .value_name("N|LIST");
    generating.add("--rank-table", read_file(options->rank_table), "HCCL rank table: servers for its ranks")
        .excludes(servers)
        .excludes(super_pods);
    Value npus = whole_number(options->platform.npus_per_server, 1, UINT32_MAX);
    npus.accepted = "POSITIVE";
    generating.add("--npus-per-server", npus, "NPUs (A3: dies) of a server [a full server]").value_name("UINT");
    Value pcie = one_of({"pairs", "shared"}, options->pcie);
    pcie.accepted = "{pairs,shared}";
    generating.add("--pcie", pcie, "910A: pairs (a path per pair i, i+4) or shared (one path)")
        .value_name("TEXT")
        .with_default();
    generating
        .add("--fabric", text(options->fabric),
             "star, or fat-tree[:levels=2|3,oversubscription=R,leaf=server|rail,leaf-size=K,routing=dmodk|ecmp|ideal]")
        .with_default();
    add_output_option(generating, "--output", options->output).value_name("TEXT");
    generating.on_run([options] { generate(*options); });
  });
}

}  // namespace hcclsim::cli
