#include "cli/options/platform_options.hpp"

#include "base/error.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/platform_path.hpp"

namespace hcclsim::cli {

study::PlatformSpec PlatformChoice::platform_spec() const {
  return {find_platform(platform), rank_table, hccl_settings};
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

}  // namespace hcclsim::cli
