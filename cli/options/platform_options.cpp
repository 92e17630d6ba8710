#include "cli/options/platform_options.hpp"

#include <cstdlib>

#include "base/error.hpp"
#include "cli/options/parse/command.hpp"
#include "study/platform/shipped_platforms.hpp"

namespace hcclsim::cli {

void add_rank_table_option(Command& command, RankTableChoice& choice) {
  Value file = read_file(choice.file);
  file.check = {};  // '' does without the table of the environment
  command.add("--rank-table", file, "HCCL rank table: which NPU each rank is (default: that of RANK_TABLE_FILE)");
}

void finish_rank_table_option(const OptionOrigins& origins, std::initializer_list<const char*> selecting,
                              RankTableChoice& choice) {
  for (const char* const option : selecting) origins.require_one_of("rank-table", option);
  const char* const file = std::getenv("RANK_TABLE_FILE");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  if (file == nullptr || *file == '\0' || origins.given("rank-table")) return;
  for (const char* const option : selecting) {
    if (!origins.given(option)) continue;
    choice.not_used_beside = origins.name(option);
    return;
  }
  choice.file = file;
  choice.of_environment = true;
}

study::PlatformSpec PlatformChoice::platform_spec() const {
  return {study::find_platform(platform), rank_table, hccl_settings};
}

void add_platform_options(Command& command, const std::string& description, PlatformChoice& choice) {
  command.add("--platform", read_file(choice.platform), description).value_name("TEXT").with_default();
  add_rank_table_option(command, choice.rank_table);
  add_hccl_options(command, choice.hccl_options);
}

void finish_platform_options(const OptionOrigins& origins, std::initializer_list<const char*> selecting,
                             PlatformChoice& choice) {
  choice.hccl_settings = hccl_settings(origins, choice.hccl_options);
  if (!choice.platform.empty()) {
    finish_rank_table_option(origins, selecting, choice.rank_table);
  } else if (!choice.rank_table.file.empty()) {
    bad_input("option", "--rank-table needs --platform, on which it places the ranks");
  }
}

void add_network_option(Command& command, sim::NetworkKind& network) {
  const auto take = [&network](const std::string& name) {
    network = name == "simgrid" ? sim::NetworkKind::simgrid : sim::NetworkKind::fluid;
  };
  command
      .add("--network", one_of({"fluid", "simgrid", "auto"}, take),
           "How transfers share links: fluid, our solver; simgrid, SimGrid's own, the reference, for some dozens of "
           "NPUs; "
           "the two agree to 1e-9; auto is fluid")
      .value_name("TEXT")
      .with_default("fluid");
}

}  // namespace hcclsim::cli
