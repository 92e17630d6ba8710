#include "study/communication/replay/chakra/chakra_files.hpp"

#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace hcclsim::study {
namespace {

namespace fs = std::filesystem;

/// The rank in PREFIX.<rank>.et, where `rest` is what follows the prefix and its dot.
std::optional<Rank> rank_in(std::string_view rest) {
  constexpr std::string_view suffix = ".et";
  if (!rest.ends_with(suffix)) return std::nullopt;
  rest.remove_suffix(suffix.size());
  if (rest.size() > 1 && rest.front() == '0') return std::nullopt;
  return parse_number<Rank>(rest);
}

/// Files PREFIX.<rank>.et of a folder, by prefix.
std::map<std::string, std::map<Rank, std::string>> files_by_prefix(const fs::path& folder) {
  std::map<std::string, std::map<Rank, std::string>> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.size() < 4 || !name.ends_with(".et")) continue;
    const std::size_t dot = name.rfind('.', name.size() - 4);
    if (dot == std::string::npos) continue;
    const std::optional<Rank> rank = rank_in(std::string_view(name).substr(dot + 1));
    if (rank.has_value()) found[name.substr(0, dot)][*rank] = entry.path().string();
  }
  if (error) bad_input("trace", "{}: {}", folder.string(), error.message());
  return found;
}

}  // namespace

ChakraFiles find_chakra(const std::string& path) {
  if (fs::is_regular_file(path) || path == "-") {
    return {.paths = {path}, .for_all = true, .folder = fs::path(path).parent_path().string()};
  }
  const bool is_folder = fs::is_directory(path);
  const fs::path folder = is_folder ? fs::path(path) : fs::path(path).parent_path();
  auto found = files_by_prefix(folder.empty() ? fs::path(".") : folder);
  if (!is_folder) {
    const std::string prefix = fs::path(path).filename().string();
    std::erase_if(found, [&](const auto& files) { return files.first != prefix; });
  }
  if (found.empty()) {
    bad_input("trace", "{}: there is no such file, and no {}", path,
              is_folder ? "PREFIX.0.et in the folder" : path + ".0.et");
  }
  if (found.size() > 1) {
    bad_input("trace", "{}: the folder has several traces ({}, {}, …); name one: {}", path, found.begin()->first,
              std::next(found.begin())->first, (folder / found.begin()->first).string());
  }
  ChakraFiles files{.paths = {}, .for_all = false, .folder = folder.string()};
  const auto& [prefix, by_rank] = *found.begin();
  for (const auto& [rank, file] : by_rank) {
    if (rank != files.paths.size()) {
      bad_input("trace", "{}: {}.{}.et is missing, though there is one of rank {}", path, prefix, files.paths.size(),
                rank);
    }
    files.paths.push_back(file);
  }
  return files;
}

std::string find_chakra_groups(const std::string& folder) {
  std::string found;
  for (const char* const name : {"comm_groups.json", "comm_group.json"}) {
    const std::string path = (fs::path(folder) / name).string();
    if (!fs::exists(path)) continue;
    if (!found.empty()) bad_input("trace", "{} and {} are both beside the trace; name one of them", found, path);
    found = path;
  }
  return found;
}

ChakraGroups read_chakra_groups(const std::string& path) {
  const Json read = parse_json_text(read_text_file(path, "trace"), path, "trace");
  if (!read.is_object()) bad_input("trace", "{}: it is to be an object, such as {{\"1\": [0, 1]}}", path);
  ChakraGroups groups;
  for (const Json::Member& member : read.items()) {
    std::vector<Rank>& ranks = groups[member.key];
    for (const Json& rank : member.value.is_array() ? member.value : Json::array({Json()})) {
      if (!rank.is_number_unsigned() || rank.get<std::uint64_t>() > ~Rank{0}) {
        bad_input("trace", "{}: group {} is no list of ranks", path, member.key);
      }
      ranks.push_back(rank.get<Rank>());
    }
    if (ranks.empty()) bad_input("trace", "{}: group {} has no ranks", path, member.key);
  }
  return groups;
}

}  // namespace hcclsim::study
