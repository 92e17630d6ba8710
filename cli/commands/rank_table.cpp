#include "cli/commands/commands.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/terminal/output.hpp"
#include "hccl/comm/rank_table.hpp"
#include "sim/platform/generate.hpp"
#include "study/platform/rank_tables.hpp"
#include "study/platform/shipped_platforms.hpp"

namespace hcclsim::cli {
namespace {

/// "0-3,6": the numbers in their order, those that follow each other as a range.
std::string ranges(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == first ? fmt::to_string(numbers[first]) : fmt::format("{}-{}", numbers[first], numbers[last]);
    first = last + 1;
  }
  return text;
}

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string describe(const hccl::RankTable& table) {
  const bool super_pods = !table.super_pods.empty();
  Table servers(super_pods ? "<server|<super-pod|<devices|<ranks" : "<server|<devices|<ranks");
  std::vector<std::string> pod_of(table.servers.size());
  for (const hccl::SuperPod& pod : table.super_pods) {
    for (const std::uint32_t server : pod.servers) pod_of[server] = pod.id;
  }
  for (std::size_t i = 0; i < table.servers.size(); ++i) {
    std::vector<std::uint32_t> devices;
    std::vector<std::uint32_t> ranks;
    for (const hccl::RankTableDevice& device : table.servers[i].devices) {
      devices.push_back(device.device);
      ranks.push_back(device.rank);
    }
    std::vector<std::string> row{table.servers[i].id};
    if (super_pods) row.push_back(pod_of[i]);
    row.push_back(ranges(devices));
    row.push_back(ranges(ranks));
    servers.add_row(std::move(row));
  }
  std::string text = fmt::format("{}: {}, {} on {}", table.file,
                                 table.version == hccl::RankTableVersion::group_list
                                     ? std::string("older form without version")
                                     : fmt::format("version {}", name_of(table.version)),
                                 counted(table.ranks(), "rank"), counted(table.servers.size(), "server"));
  if (super_pods) text += fmt::format(" in {}", counted(table.super_pods.size(), "super-pod"));
  text += '\n' + servers.to_string("  ");
  for (const std::string& note : table.notes) text += fmt::format("Note: {}\n", note);
  return text;
}

/// Prints the problems; throws Error(bad_input, "rank-table") if there are any.
void report(const std::vector<hccl::RankTableProblem>& problems, const std::string& file) {
  if (problems.empty()) return;
  for (const hccl::RankTableProblem& problem : problems) print(to_string(problem, file) + '\n');
  bad_input("rank-table", "{}: {}", file, counted(problems.size(), "error"));
}

struct CheckOptions {
  std::string file;
  std::string platform;
};

void check(const CheckOptions& options) {
  const std::string platform = options.platform.empty() ? "" : study::find_platform(options.platform);
  const hccl::CheckedRankTable checked = hccl::check_rank_table(options.file);
  report(checked.problems, options.file);
  if (!platform.empty()) report(study::find_on_platform(checked.table, platform), options.file);
  print(describe(checked.table));
  if (!platform.empty()) print(fmt::format("Every rank has an NPU of {}.\n", platform));
}

struct GenerateRankTable {
  std::string platform;
  std::optional<Rank> npus;
  std::string output = "-";
};

void generate(const GenerateRankTable& options) {
  write_output(options.output, study::rank_table_of_platform(study::find_platform(options.platform), options.npus));
}

}  // namespace

void add_rank_table_command(Command& app) {
  app.add_command("ranktable", "HCCL rank tables: which NPU each rank is", [](Command& command) {
    command.require_command();
    command.footer(
        "Examples:\n"
        "  hcclsim ranktable check hccl.json --platform atlas800-9000-x4\n"
        "  hcclsim ranktable generate --platform atlas800t-a2-x2 -o hccl.json\n"
        "  hcclsim platform generate --rank-table hccl.json --soc 910B2 --output cluster.xml\n"
        "  hcclsim run --platform cluster.xml --rank-table hccl.json");

    Command& checking = command.add_command("check", "Servers, devices and ranks, or what is wrong");
    const auto checked = std::make_shared<CheckOptions>();
    checking.add("FILE", read_file(checked->file), "A rank table").value_name("TEXT").required();
    checking.add("--platform", read_file(checked->platform),
                 "Also find its NPUs in this platform file, or shipped platform");
    checking.on_run([checked] { check(*checked); });

    Command& generating = command.add_command("generate", "Write the rank table of a platform");
    const auto options = std::make_shared<GenerateRankTable>();
    generating.add("--platform", read_file(options->platform), "A platform file, or the name of a shipped one")
        .required();
    generating.add("--npus", whole_number(options->npus, 1, sim::max_generated_npus),
                   "Number of NPUs, the first ones [all]");
    add_output_option(generating, "-o,--output", options->output);
    generating.on_run([options] { generate(*options); });
  });
}

}  // namespace hcclsim::cli
