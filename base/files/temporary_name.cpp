#include "base/files/temporary_name.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <system_error>

#include "base/text.hpp"

namespace hcclsim {
namespace {

constexpr std::string_view mark = ".hcclsim-";

}  // namespace

std::string temporary_name(std::string_view target, std::string_view end) {
  return fmt::format("{}{}{}.{}", target, mark, ::getpid(), end);
}

bool is_temporary_name(std::string_view name, std::string_view target, std::string_view end) {
  const std::string before = fmt::format("{}{}", target, mark);
  const std::string after = fmt::format(".{}", end);
  if (!name.starts_with(before) || !name.ends_with(after) || name.size() < before.size() + after.size()) return false;
  return parse_number<pid_t>(name.substr(before.size(), name.size() - before.size() - after.size())).has_value();
}

std::filesystem::path existing_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::path folder = std::filesystem::absolute(path, ignored).parent_path();
  while (!std::filesystem::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

}  // namespace hcclsim
