#include "study/communication/replay/chakra/process_groups.hpp"

#include <cctype>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace hcclsim::study {
namespace {

constexpr std::uint64_t most_ranks = 1U << 20U;

/// The text in quotes that begins at `place`, which is then behind it. Of escapes Python's printer has \\, quotes, and
/// those of blanks; others stay as they are.
std::string quoted_text(std::string_view text, std::size_t& place) {
  const char quote = text[place++];
  std::string inside;
  for (; place < text.size() && text[place] != quote; ++place) {
    if (text[place] != '\\' || place + 1 == text.size()) {
      inside += text[place];
      continue;
    }
    const char escaped = text[++place];
    if (escaped == 'n' || escaped == 't' || escaped == 'r') {
      inside += ' ';
    } else {
      if (escaped != '\\' && escaped != '\'' && escaped != '"') inside += '\\';
      inside += escaped;
    }
  }
  if (place < text.size()) ++place;
  return inside;
}

/// Lists, dictionaries, texts and numbers as Python prints them, as JSON.
std::string json_of_python(std::string_view text) {
  std::string json;
  for (std::size_t place = 0; place < text.size();) {
    if (text[place] == '\'' || text[place] == '"') {
      json += Json(quoted_text(text, place)).dump();
      continue;
    }
    if (std::isalpha(static_cast<unsigned char>(text[place])) == 0) {
      json += text[place++];
      continue;
    }
    std::string word;
    for (; place < text.size() && std::isalpha(static_cast<unsigned char>(text[place])) != 0; ++place) {
      word += text[place];
    }
    json += word == "True" ? "true" : word == "False" ? "false" : word == "None" ? "null" : word;
  }
  return json;
}

Json json_or_null(const std::string& text) {
  try {
    return parse_json_text(text, "values", "trace");
  } catch (const Error&) {  // no JSON, or nested too deep
    return {};
  }
}

/// The list of groups: out of lists of one element, and of a text in one.
Json list_of_groups(const std::string& values) {
  Json list = json_or_null(values);
  if (list.is_null()) list = json_or_null(json_of_python(values));
  constexpr int most_around = 4;
  for (int around = 0; around < most_around && list.is_array() && list.size() == 1; ++around) {
    if (list.front().is_string()) {
      list = json_or_null(std::string(list.front().text()));
    } else if (list.front().is_array()) {
      list = Json(list.front());
    }
  }
  return list;
}

Rank rank_of(const Json& json, const std::string& group) {
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() >= most_ranks) {
    bad_input("trace", "the process group {} has {} in the place of a rank", group, json.dump());
  }
  return json.get<Rank>();
}

/// [0, 1], or {"0": 0, "1": 1}: ranks to their places.
std::vector<Rank> ranks_of(const Json& ranks, const std::string& group) {
  std::vector<Rank> members;
  if (ranks.is_array()) {
    for (const Json& rank : ranks) members.push_back(rank_of(rank, group));
  } else {
    for (const Json::Member& member : ranks.items()) {
      const auto rank = parse_number<Rank>(member.key);
      members.push_back(rank_of(rank.has_value() ? Json(*rank) : Json(member.key), group));
    }
  }
  return members;
}

}  // namespace

ProcessGroups process_groups_of(const std::string& values) {
  ProcessGroups found;
  const Json list = list_of_groups(values);
  if (!list.is_array()) return found;
  for (const Json& group : list) {
    const Json* const name = group.find("pg_name");
    const Json* const ranks = group.find("ranks");
    if (name == nullptr || !name->is_string() || ranks == nullptr || !(ranks->is_array() || ranks->is_object()))
      continue;
    std::vector<Rank> members = ranks_of(*ranks, name->text());
    const Json* const size = group.find("group_size");
    if (members.empty() && size != nullptr && size->is_number_unsigned() && size->get<std::uint64_t>() < most_ranks) {
      found.all_ranks = size->get<Rank>();
    }
    found.groups[name->text()] = std::move(members);
  }
  return found;
}

}  // namespace hcclsim::study
