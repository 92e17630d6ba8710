#include "cli/options/parse/option_table.hpp"

#include <string>
#include <vector>

#include "cli/options/parse/command.hpp"

namespace hcclsim::cli {
namespace {

Json names_of(const Option& option) {
  std::vector<std::string> names;
  if (option.key().empty()) return Json::array({option.name()});
  if (!option.short_name().empty()) names.push_back('-' + option.short_name());
  for (const std::string& name : option.long_names()) names.push_back("--" + name);
  return names;
}

Json file_of(Role role) {
  return role == Role::reads_file ? Json("read") : role == Role::writes_file ? Json("written") : Json(nullptr);
}

Json described(const Option& option) {
  return Json::object({{"names", names_of(option)},
                       {"argument", option.key().empty()},
                       {"flag", option.is_flag()},
                       {"several", option.takes_several()},
                       {"required", option.is_required()},
                       {"file", file_of(option.role())},
                       {"value", option.is_flag() ? "" : option.value_name()},
                       {"accepted", option.accepted()},
                       {"default", option.default_text()},
                       {"group", option.group()},
                       {"help", option.help()}});
}

/// With those of alternatives, which have a title of their own only.
void add_options(const Command& command, Json& options) {
  for (const auto& option : command.options()) {
    if (!option->group().empty()) options.push_back(described(*option));
  }
  for (const auto& one : command.commands()) {
    if (one->name().empty()) add_options(*one, options);
  }
}

}  // namespace

Json option_table(const Command& command) {
  Json options = Json::array();
  add_options(command, options);
  Json commands = Json::array();
  for (const auto& one : command.commands()) {
    if (!one->name().empty()) commands.push_back(option_table(*one));
  }
  return Json::object({{"name", command.name()},
                       {"help", command.description()},
                       {"footer", command.footer()},
                       {"options", options},
                       {"commands", commands}});
}

}  // namespace hcclsim::cli
