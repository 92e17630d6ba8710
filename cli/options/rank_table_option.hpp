#pragma once

#include <initializer_list>
#include <string>

#include "cli/options/parse/origins.hpp"

/// Which rank table a command obeys: that of --rank-table, else RANK_TABLE_FILE's, as HCCL does. Where an option says
/// which NPUs take part (--npus, --ranks), the table of the environment is not used, and --rank-table is an error.
namespace hcclsim::cli {

struct RankTableChoice {
  std::string file;               ///< empty: the platform's order
  bool of_environment = false;    ///< the file is RANK_TABLE_FILE's
  std::string not_used_beside{};  ///< option for which RANK_TABLE_FILE, which is set, is not used; empty: none
};

void add_rank_table_option(Command& command, RankTableChoice& choice);

/// After parsing. `selecting`: options, without dashes, that say which NPUs take part. Throws Error(bad_input) if one
/// of them is given beside --rank-table.
void finish_rank_table_option(const OptionOrigins& origins, std::initializer_list<const char*> selecting,
                              RankTableChoice& choice);

}  // namespace hcclsim::cli
