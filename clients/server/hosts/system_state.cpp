#include "clients/server/hosts/system_state.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace hcclsim::clients {
namespace {

/// The beginning of a small file; empty if it cannot be read.
std::string read_beginning(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return {};
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

/// The last number of the line that begins so; 0: there is none.
pid_t last_number(const std::string& text, const std::string& name) {
  const std::size_t begin = text.find('\n' + name);
  if (begin == std::string::npos) return 0;
  const std::string line = text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1);
  return static_cast<pid_t>(std::strtol(line.c_str() + line.find_last_of(" \t") + 1, nullptr, 10));
}

/// The number of a process in /proc, which shows an outer PID namespace if nobody has mounted it for this one.
pid_t number_in_proc(pid_t process) {
  std::error_code error;
  static const bool is_own = std::filesystem::read_symlink("/proc/self", error) == std::to_string(::getpid());
  if (is_own) return process;
  const auto handle = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (handle < 0) return 0;
  const pid_t number = last_number(read_beginning(fmt::format("/proc/self/fdinfo/{}", handle)), "Pid:");
  ::close(handle);
  return number;
}

/// The folder in /proc of a thread of a process. The thread's number may be that of an inner PID namespace, in which
/// the program runs.
std::string folder_of(pid_t process, pid_t thread) {
  const std::string all = fmt::format("/proc/{}/task", number_in_proc(process));
  const auto is_it = [&](const std::string& folder) {
    return last_number(read_beginning(folder + "/status"), "NSpid:") == thread;
  };
  std::string usual = fmt::format("{}/{}", all, thread == process ? number_in_proc(process) : thread);
  if (thread == process || is_it(usual)) return usual;
  std::error_code error;
  for (const auto& one : std::filesystem::directory_iterator(all, error)) {
    if (is_it(one.path())) return one.path();
  }
  return usual;
}

}  // namespace

SystemState state_of(pid_t process, pid_t thread) {
  if (process == 0) return {.exists = true};  // a child that has yet to come
  const std::string folder = folder_of(process, thread);
  const std::string text = read_beginning(folder + "/stat");
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  char state = 0;
  unsigned long user = 0;
  unsigned long system = 0;
  const int found = std::sscanf(text.c_str() + name_end + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                                &state, &user, &system);
  if (found != 3) return {};
  const double exact_s = std::strtod(read_beginning(folder + "/schedstat").c_str(), nullptr) * 1e-9;
  const double ticks_s = static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return {true, state == 'S', exact_s > 0 ? exact_s : ticks_s};
}

}  // namespace hcclsim::clients
