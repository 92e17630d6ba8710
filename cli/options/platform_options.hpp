#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "cli/options/hccl_options.hpp"
#include "cli/options/parse/origins.hpp"
#include "sim/network_kind.hpp"
#include "study/platform/platform.hpp"

/// The options of every command that has a platform: the file, the rank table, and what HCCL's variables say.
namespace hcclsim::cli {

using study::RankTableChoice;

struct PlatformChoice {
  std::string platform{};  ///< name or file; empty: none
  RankTableChoice rank_table{};
  HcclOptions hccl_options{};                      ///< as given; what counts are the settings
  std::vector<hccl::HcclSetting> hccl_settings{};  ///< of environment and options

  /// With the platform's file. Throws Error(bad_input, "platform") if there is none.
  [[nodiscard]] study::PlatformSpec platform_spec() const;
};

/// Which rank table a command obeys: that of --rank-table, else RANK_TABLE_FILE's, as HCCL does. Where an option says
/// which NPUs take part (--npus, --ranks), the table of the environment is not used, and --rank-table is an error.
void add_rank_table_option(Command& command, RankTableChoice& choice);

/// After parsing. `selecting`: options, without dashes, that say which NPUs take part. Throws Error(bad_input) if one
/// of them is given beside --rank-table.
void finish_rank_table_option(const OptionOrigins& origins, std::initializer_list<const char*> selecting,
                              RankTableChoice& choice);

/// Adds --platform, --rank-table and the options of HCCL's variables. The description is that of --platform.
void add_platform_options(Command& command, const std::string& description, PlatformChoice& choice);
/// After parsing: completes what they say; throws Error(bad_input). `selecting` as in finish_rank_table_option. Where
/// there is no platform, --rank-table is an error and RANK_TABLE_FILE is not looked at.
void finish_platform_options(const OptionOrigins& origins, std::initializer_list<const char*> selecting,
                             PlatformChoice& choice);

/// Adds --network.
void add_network_option(Command& command, sim::NetworkKind& network);

}  // namespace hcclsim::cli
