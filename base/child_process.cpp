#include "base/child_process.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "base/user_error.hpp"

namespace hcclsim {
namespace {

// The first byte of what a child sends: its result, or an Error.
constexpr char result_tag = 'R';
constexpr char error_tag = 'E';

struct SentError {
  ErrorCode code = ErrorCode::internal;
  std::string kind;
  std::string message;
};

void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the parent is gone: nobody is left to tell
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Lets the kernel end this process when its parent ends, however that happens: a simulation that nobody waits for must
/// not go on, nor leave files.
void end_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it ended before the call
}

void send_error(int result_pipe, const Error& error) {
  write_all(result_pipe, error_tag + encoded(SentError{error.code(), error.kind(), error.what()}));
}

/// What the child does: it runs the work, sends the result and ends without running exit handlers.
[[noreturn]] void child_main(const std::function<std::string()>& work, int result_pipe) {
  int status = 0;
  try {
    const std::string result = work();
    write_all(result_pipe, std::string(1, result_tag) + result);
  } catch (const Error& error) {
    send_error(result_pipe, error);
  } catch (const std::exception& error) {
    if (const std::optional<Error> wrong = user_error(error)) {
      send_error(result_pipe, *wrong);
    } else {
      write_all(STDERR_FILENO, fmt::format("{}\n", error.what()));
      status = 1;
    }
  }
  std::fflush(nullptr);
  ::_exit(status);
}

/// Reads both pipes to their ends, whichever has data first, so that neither side can block the other.
void drain(int result_pipe, int stderr_pipe, std::string& result, std::string& diagnostics) {
  std::array<pollfd, 2> files{{{result_pipe, POLLIN, 0}, {stderr_pipe, POLLIN, 0}}};
  const std::array<std::string*, 2> sinks{&result, &diagnostics};
  std::array<char, 65536> buffer{};
  int open = 2;
  while (open > 0) {
    if (::poll(files.data(), files.size(), -1) < 0) {
      if (errno == EINTR) continue;  // by a signal that the caller handles; nothing is known of the files
      break;
    }
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (files[i].fd < 0 || files[i].revents == 0) continue;
      const ssize_t count = ::read(files[i].fd, buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        files[i].fd = -1;
        --open;
      } else {
        sinks[i]->append(buffer.data(), static_cast<std::size_t>(count));
      }
    }
  }
}

}  // namespace

Child::Child(const std::function<std::string()>& work) {
  std::fflush(nullptr);
  std::array<int, 2> result{};
  std::array<int, 2> diagnostics{};
  if (::pipe(result.data()) != 0 || ::pipe(diagnostics.data()) != 0) {
    internal_error("cannot make a pipe: {}", std::strerror(errno));
  }
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) internal_error("cannot fork: {}", std::strerror(errno));
  if (pid_ == 0) {
    end_with_parent(parent);
    ::close(result[0]);
    ::close(diagnostics[0]);
    ::dup2(diagnostics[1], STDERR_FILENO);
    ::close(diagnostics[1]);
    child_main(work, result[1]);
  }
  ::close(result[1]);
  ::close(diagnostics[1]);
  result_pipe_ = result[0];
  stderr_pipe_ = diagnostics[0];
}

Child::Child(Child&& other) noexcept
    : pid_(other.pid_), result_pipe_(other.result_pipe_), stderr_pipe_(other.stderr_pipe_) {
  other.pid_ = other.result_pipe_ = other.stderr_pipe_ = -1;
}

Child::~Child() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  ::close(result_pipe_);
  ::close(stderr_pipe_);
}

std::string Child::result() {
  std::string sent;
  std::string diagnostics;
  drain(result_pipe_, stderr_pipe_, sent, diagnostics);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  ::close(result_pipe_);
  ::close(stderr_pipe_);
  pid_ = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && !sent.empty()) {
    if (sent.front() == result_tag) {
      write_all(STDERR_FILENO, diagnostics);  // warnings
      return sent.substr(1);
    }
    const auto error = decoded<SentError>(std::string_view(sent).substr(1));
    throw Error(error.code, error.kind, error.message);
  }
  while (!diagnostics.empty() && diagnostics.back() == '\n') diagnostics.pop_back();
  const std::string end = WIFSIGNALED(status)
                              ? fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))
                              : fmt::format("ended with status {}", WEXITSTATUS(status));
  throw Error(ErrorCode::internal, "crash",
              fmt::format("the simulating process was {}{}{}", end, diagnostics.empty() ? "" : ":\n", diagnostics));
}

}  // namespace hcclsim
