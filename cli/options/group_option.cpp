#include "cli/options/group_option.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "cli/options/parse/command.hpp"

namespace hcclsim::cli {

hccl::Communicator parse_group(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    bad_input("group", "'{}' is not a group; write a name and its ranks, for example dp0=0,4,8,12", text);
  }
  hccl::Communicator group{text.substr(0, equals), parse_ranks_in_order(std::string_view(text).substr(equals + 1))};
  std::sort(group.ranks.begin(), group.ranks.end());
  const auto twice = std::adjacent_find(group.ranks.begin(), group.ranks.end());
  if (twice != group.ranks.end()) bad_input("group", "'{}' names rank {} twice", text, *twice);
  hccl::require_group_name(group.name, "group");
  return group;
}

void add_group_option(Command& command, const std::string& does, std::vector<hccl::Communicator>& groups) {
  Value value{.check = [](const std::string& given) { static_cast<void>(parse_group(given)); },
              .take =
                  [&groups](const std::vector<std::string>& given) {
                    groups.clear();
                    for (const std::string& text : given) groups.push_back(parse_group(text));
                  },
              .count = Count::several};
  command.add("--group", value, does).value_name("NAME=RANKS");
}

}  // namespace hcclsim::cli
