#include "clients/server/system_state.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string_view>

namespace hcclsim::clients {

SystemState state_of(pid_t process, pid_t thread) {
  std::FILE* const file = std::fopen(fmt::format("/proc/{}/task/{}/stat", process, thread).c_str(), "re");
  if (file == nullptr) return {};
  std::array<char, 512> text{};
  const std::size_t length = std::fread(text.data(), 1, text.size() - 1, file);
  std::fclose(file);
  const std::string_view line(text.data(), length);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string_view::npos) return {};
  char state = 0;
  unsigned long user = 0;
  unsigned long system = 0;
  const int found = std::sscanf(text.data() + name_end + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                                &state, &user, &system);
  if (found != 3) return {};
  return {true, state == 'S', static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK))};
}

}  // namespace hcclsim::clients
