#pragma once

#include <initializer_list>

#include "cli/options/parse/origins.hpp"
#include "study/platform.hpp"

/// Which rank table a command obeys: that of --rank-table, else RANK_TABLE_FILE's, as HCCL does. Where an option says
/// which NPUs take part (--npus, --ranks), the table of the environment is not used, and --rank-table is an error.
namespace hcclsim::cli {

using study::RankTableChoice;

void add_rank_table_option(Command& command, RankTableChoice& choice);

/// After parsing. `selecting`: options, without dashes, that say which NPUs take part. Throws Error(bad_input) if one
/// of them is given beside --rank-table.
void finish_rank_table_option(const OptionOrigins& origins, std::initializer_list<const char*> selecting,
                              RankTableChoice& choice);

}  // namespace hcclsim::cli
