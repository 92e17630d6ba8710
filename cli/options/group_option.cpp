#include "cli/options/group_option.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "cli/options/parse/command.hpp"

namespace hcclsim::cli {

namespace {

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

}  // namespace

std::vector<hccl::Communicator> parse_groups(const std::string& text) {
  std::vector<hccl::Communicator> groups;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    // The next one begins behind the last comma before its equals sign.
    const std::size_t equals = text.find('=', begin);
    const std::size_t next = equals == std::string::npos ? equals : text.find('=', equals + 1);
    const std::size_t comma = next == std::string::npos ? next : text.rfind(',', next);
    const std::size_t end = comma == std::string::npos || comma < equals ? text.size() : comma;
    groups.push_back(parse_group(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return groups;
}

void add_group_option(Command& command, const std::string& does, std::vector<hccl::Communicator>& groups) {
  Value value{.check = [](const std::string& given) { static_cast<void>(parse_groups(given)); },
              .take =
                  [&groups](const std::vector<std::string>& given) {
                    groups.clear();
                    for (const std::string& text : given) {
                      for (hccl::Communicator& group : parse_groups(text)) groups.push_back(std::move(group));
                    }
                  },
              .count = Count::several};
  command.add("--group", value, does).value_name("NAME=RANKS");
}

}  // namespace hcclsim::cli
