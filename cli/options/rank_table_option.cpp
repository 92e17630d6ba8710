#include "cli/options/rank_table_option.hpp"
#include "cli/options/parse/command.hpp"

#include <cstdlib>

namespace hcclsim::cli {

void add_rank_table_option(Command& command, RankTableChoice& choice) {
  command.add("--rank-table", read_file(choice.file),
              "HCCL rank table: which NPU each rank is (default: that of RANK_TABLE_FILE)");
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

}  // namespace hcclsim::cli
