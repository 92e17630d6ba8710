#include "cli/platform.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <pugixml.hpp>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/output_file.hpp"
#include "cli/option_checks.hpp"
#include "cli/output.hpp"
#include "cli/platform_path.hpp"
#include "cli/platform_show.hpp"
#include "hccl/comm/placement.hpp"
#include "hccl/comm/rank_table.hpp"
#include "sim/cluster.hpp"
#include "sim/platform_check.hpp"
#include "sim/platform_generate.hpp"

namespace hcclsim::cli {
namespace {

void list() {
  Table table({{"platform", Table::Align::left}, {"holds", Table::Align::left}});
  for (const std::string& name : shipped_platforms()) {
    pugi::xml_document document;
    document.load_file((platform_folder() + "/" + name + ".xml").c_str());
    const pugi::xml_node zone = document.child("platform").first_child();
    const auto property = [&](const char* id) {
      return std::string(zone.find_child_by_attribute("prop", "id", id).attribute("value").value());
    };
    table.add_row({name, property("name") + ": " + property("description")});
  }
  print(table.to_string());
}

struct ShowOptions {
  std::string file;
  std::string route;
  std::string format = "text";
};

void show(const ShowOptions& options) {
  const std::string path = find_platform(options.file);
  std::optional<std::pair<Rank, Rank>> route;
  if (!options.route.empty()) route = parse_route(options.route);
  const ShowFormat format = options.format == "json" ? ShowFormat::json : ShowFormat::text;
  print(run_in_child([&] {
    sim::Cluster cluster(path);
    return show_cluster(cluster, route, format);
  }));
}

void check(const std::string& file) {
  const std::string path = find_platform(file);
  const std::vector<sim::PlatformProblem> problems = sim::check_platform(path);
  std::size_t fatal = 0;
  for (const sim::PlatformProblem& problem : problems) {
    if (problem.fatal) ++fatal;
    const std::string line = problem.line == 0 ? "" : fmt::format(":{}", problem.line);
    print(fmt::format("{}{}: {}: {}\n", path, line, problem.fatal ? "error" : "warning", problem.message));
  }
  if (fatal > 0) bad_input("platform", "{}: {} error{}", path, fatal, fatal == 1 ? "" : "s");
  // What the check cannot know, SimGrid tells: it loads the file and finds the ways between NPU 0 and the others.
  print(run_in_child([&] {
    sim::Cluster cluster(path);
    for (Rank rank = 1; rank < cluster.size(); ++rank) {
      static_cast<void>(cluster.route(0, rank));
      static_cast<void>(cluster.route(rank, 0));
    }
    return fmt::format("{}: {} NPUs in {} server{}, no errors\n", path, cluster.size(), cluster.servers(),
                       cluster.servers() == 1 ? "" : "s");
  }));
}

struct GenerateOptions {
  sim::PlatformOptions platform;
  std::string rank_table;
  std::string super_pods;
  std::string pcie = "pairs";
  std::string fabric = "star";
  std::string output = "-";
};

void generate(const GenerateOptions& options) {
  sim::PlatformOptions platform = options.platform;
  platform.shared_pcie = options.pcie == "shared";
  platform.fabric = sim::parse_fabric(options.fabric);
  if (!options.super_pods.empty()) platform.super_pods = sim::parse_super_pods(options.super_pods, platform.servers);
  if (!options.rank_table.empty()) {
    platform = hccl::platform_for(hccl::read_rank_table(options.rank_table), std::move(platform));
  } else if (platform.soc.empty()) {
    bad_input("option", "--soc is required without --rank-table; give an NPU such as 910A, 910B2 or 910_9391");
  }
  const std::string text = sim::generate_platform(platform);
  if (options.output == "-") {
    print(text);
  } else {
    write_file_atomically(options.output, text);
  }
}

}  // namespace

void add_platform_command(CLI::App& app) {
  CLI::App* const platform = app.add_subcommand("platform", "Platform files: the clusters that are simulated");
  platform->require_subcommand(1);
  platform->footer(
      "Examples:\n"
      "  hcclsim platform list\n"
      "  hcclsim platform generate --soc 910B2 --servers 4 --output cluster.xml\n"
      "  hcclsim platform check cluster.xml\n"
      "  hcclsim platform show cluster.xml");

  platform->add_subcommand("list", "List the shipped platform files")->callback(list);

  CLI::App* const show_command =
      platform->add_subcommand("show", "Servers, NPUs, links, costs and routes of a platform");
  const auto show_options = std::make_shared<ShowOptions>();
  show_command->add_option("FILE", show_options->file, "A platform file, or the name of a shipped one")->required();
  show_command->add_option("--route", show_options->route, "Also the route between two NPUs, by rank: 0:9");
  show_command->add_option("--format", show_options->format, "text or json")
      ->check(one_of({"text", "json"}))
      ->capture_default_str();
  show_command->callback([show_options] { show(*show_options); });

  CLI::App* const check_command = platform->add_subcommand("check", "Say what is wrong with a platform file, by line");
  const auto checked = std::make_shared<std::string>();
  check_command->add_option("FILE", *checked, "A platform file, or the name of a shipped one")->required();
  check_command->callback([checked] { check(*checked); });

  CLI::App* const generate_command = platform->add_subcommand("generate", "Write a platform file");
  const auto options = std::make_shared<GenerateOptions>();
  generate_command->add_option("--soc", options->platform.soc,
                               "NPU: 910A, 910ProA, 910B2, 910_9391 and others [910A or 910_9391 for the rank table]");
  CLI::Option* const servers =
      generate_command->add_option("--servers", options->platform.servers, "Servers")->capture_default_str();
  CLI::Option* const super_pods =
      generate_command
          ->add_option("--super-pods", options->super_pods,
                       "A3: number of super-pods, joined by RoCE, or the servers of each, such as 3,1 [one]")
          ->type_name("N|LIST");
  generate_command->add_option("--rank-table", options->rank_table, "HCCL rank table: servers for its ranks")
      ->type_name("FILE")
      ->excludes(servers)
      ->excludes(super_pods);
  generate_command
      ->add_option("--npus-per-server", options->platform.npus_per_server,
                   "NPUs (A3: dies) of a server [a full server]")
      ->check(CLI::PositiveNumber);
  generate_command->add_option("--pcie", options->pcie, "910A: pairs (a path per pair i, i+4) or shared (one path)")
      ->check(CLI::IsMember({"pairs", "shared"}))
      ->capture_default_str();
  generate_command
      ->add_option("--fabric", options->fabric,
                   "star, or fat-tree[:levels=2|3,oversubscription=R,leaf=server|rail,leaf-size=K]")
      ->capture_default_str();
  generate_command->add_option("--output", options->output, "File to write, - for standard output")
      ->capture_default_str();
  generate_command->callback([options] { generate(*options); });
}

}  // namespace hcclsim::cli
