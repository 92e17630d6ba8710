#include "cli/options/foreign_options.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace hcclsim::cli {

void hide_foreign_options(std::span<const std::unique_ptr<Option>> options_of_run,
                          std::span<const std::string_view> keys) {
  for (const auto& option : options_of_run) {
    const bool is_foreign = std::ranges::find(keys, option->key()) != keys.end();
    if (option->role() == Role::writes_file || is_foreign) option->hide();
  }
}

void refuse_hidden_options(const Command& command, std::string_view reason) {
  for (const auto& option : command.options()) {
    if (option->is_hidden() && option->given()) bad_input("option", "--{}: {}", option->key(), reason);
  }
}

}  // namespace hcclsim::cli
