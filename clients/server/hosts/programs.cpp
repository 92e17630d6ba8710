#include "clients/server/hosts/programs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "clients/wire/message.hpp"

namespace hcclsim::clients {
namespace {

/// A socket with an abstract name, which no file stands for.
int listen_at(const std::string& name) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) internal_error("cannot make a socket: {}", std::strerror(errno));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), length) != 0 || ::listen(socket, 1024) != 0) {
    internal_error("cannot listen at the socket {}: {}", name, std::strerror(errno));
  }
  return socket;
}

/// A name that nobody can know or take before, also not where the same numbers of processes are given out elsewhere.
std::string new_socket_name() {
  std::array<std::uint64_t, 2> random{};
  if (::getrandom(random.data(), sizeof random, 0) != sizeof random) {
    internal_error("cannot get random bytes: {}", std::strerror(errno));
  }
  return fmt::format("hcclsim-{:016x}{:016x}", random[0], random[1]);
}

}  // namespace

Programs::Programs(ProgramSpec spec)
    : spec_(std::move(spec)), socket_name_(new_socket_name()), listener_(listen_at(socket_name_)) {}

Programs::~Programs() {
  for (const int handle : others_) {
    ::syscall(SYS_pidfd_send_signal, handle, SIGKILL, nullptr, 0);
    ::close(handle);
  }
  for (const pid_t pid : pids_) {
    if (pid == 0) continue;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  ::close(listener_);
}

void Programs::start() {
  for (std::uint32_t number = 0; number < spec_.processes; ++number) pids_.push_back(start(number));
}

pid_t Programs::start(std::uint32_t number) {
  std::array<int, 2> failure{};  // closed by a successful exec
  if (::pipe2(failure.data(), O_CLOEXEC) != 0) internal_error("cannot make a pipe: {}", std::strerror(errno));
  std::vector<char*> words;
  for (std::string& word : spec_.words) words.push_back(word.data());
  words.push_back(nullptr);
  const char* const path = std::getenv("LD_LIBRARY_PATH");  // NOLINT(concurrency-mt-unsafe)
  const std::string library_path =
      path == nullptr || *path == '\0' ? spec_.library_path : spec_.library_path + ':' + path;
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) internal_error("cannot fork: {}", std::strerror(errno));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::dup2(spec_.standard_error, STDERR_FILENO);
    ::personality(
        ADDR_NO_RANDOMIZE);  // addresses that a program prints are the same every time, where the system lets us
    std::signal(SIGPIPE, SIG_DFL);
    std::signal(SIGXFSZ, SIG_DFL);
    // NOLINTBEGIN(concurrency-mt-unsafe): this process has one thread
    ::setenv(socket_variable, socket_name_.c_str(), 1);
    ::setenv(process_variable, std::to_string(number).c_str(), 1);
    ::setenv(count_variable, std::to_string(spec_.processes).c_str(), 1);
    ::setenv("LD_LIBRARY_PATH", library_path.c_str(), 1);
    // NOLINTEND(concurrency-mt-unsafe)
    ::execvp(words.front(), words.data());
    const int error = errno;
    if (::write(failure[1], &error, sizeof error) < 0) ::_exit(1);
    ::_exit(1);
  }
  ::close(failure[1]);
  int error = 0;
  const ssize_t got = ::read(failure[0], &error, sizeof error);
  ::close(failure[0]);
  if (got == sizeof error) {
    ::waitpid(pid, nullptr, 0);
    bad_input("program", "{}: cannot be started: {}", spec_.words.front(), std::strerror(error));
  }
  return pid;
}

void Programs::add(pid_t pid) {
  const auto handle = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (handle >= 0) others_.push_back(handle);  // where the system has no such handles, they end with their sockets
}

std::vector<std::pair<std::uint32_t, int>> Programs::ended() {
  std::vector<std::pair<std::uint32_t, int>> all;
  for (std::uint32_t number = 0; number < pids_.size(); ++number) {
    int status = 0;
    if (pids_[number] == 0 || ::waitpid(pids_[number], &status, WNOHANG) != pids_[number]) continue;
    pids_[number] = 0;
    all.emplace_back(number, status);
  }
  return all;
}

}  // namespace hcclsim::clients
