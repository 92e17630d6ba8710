#include "cli/options/training/foreign_options.hpp"

#include <algorithm>

namespace hcclsim::cli {

void refuse_foreign_options(std::span<const std::unique_ptr<Option>> options_of_run,
                            std::span<const std::string_view> keys, const std::string& reason) {
  for (const auto& option : options_of_run) {
    const bool is_foreign = std::ranges::find(keys, option->key()) != keys.end();
    if (option->role() == Role::writes_file || is_foreign) option->refuse(reason);
  }
}

}  // namespace hcclsim::cli
