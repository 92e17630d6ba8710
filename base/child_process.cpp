#include "base/child_process.hpp"

#include <malloc.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
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
#include <utility>

#include "base/error.hpp"
#include "base/user_error.hpp"

namespace hcclsim {
namespace {

// The first byte of what a child sends: its result, or an Error; before it, texts of a stream with their lengths.
constexpr char result_tag = 'R';
constexpr char error_tag = 'E';
constexpr char text_tag = 'T';

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

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) refused_by_system("a pipe", errno);
  return ends;
}

/// Forks a child that does `work` with the writing end of the pipe and sends its result there. Returns its number; this
/// process keeps the reading end.
pid_t start_child(const std::array<int, 2>& pipe, const std::function<std::string(int file)>& work) {
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) refused_by_system("a further process", errno);
  if (child == 0) {
    end_with_parent(parent);
    ::close(pipe[0]);
    child_main([&] { return work(pipe[1]); }, pipe[1]);
  }
  ::close(pipe[1]);
  return child;
}

/// A text with its length before it.
std::string framed(std::string_view text) {
  const std::uint64_t bytes = text.size();
  std::string frame(sizeof bytes, '\0');
  std::memcpy(frame.data(), &bytes, sizeof bytes);
  return frame.append(text);
}

/// Waits for a child that has nothing more to send, and returns how it ended.
int status_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void kill_child(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

[[noreturn]] void throw_sent_error(std::string_view encoded_error) {
  const auto error = decoded<SentError>(encoded_error);
  throw Error(error.code, error.kind, error.message);
}

[[noreturn]] void throw_crash(int status, std::string diagnostics) {
  while (!diagnostics.empty() && diagnostics.back() == '\n') diagnostics.pop_back();
  const std::string end = WIFSIGNALED(status)
                              ? fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))
                              : fmt::format("ended with status {}", WEXITSTATUS(status));
  throw Error(ErrorCode::internal, "crash",
              fmt::format("the simulating process was {}{}{}", end, diagnostics.empty() ? "" : ":\n", diagnostics));
}

/// Reads both pipes to their ends, whichever has data first, so that neither side can block the other.
/// Ends early once `complete` says so of what has come.
void drain(
    int result_pipe, int stderr_pipe, std::string& result, std::string& diagnostics,
    const std::function<bool()>& complete = [] { return false; }) {
  std::array<pollfd, 2> files{{{result_pipe, POLLIN, 0}, {stderr_pipe, POLLIN, 0}}};
  const std::array<std::string*, 2> sinks{&result, &diagnostics};
  std::array<char, 65536> buffer{};
  int open = 2;
  while (open > 0 && !complete()) {
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

/// Appends what is there to read, without waiting.
void take_waiting(int pipe, std::string& text) {
  std::array<char, 4096> buffer{};
  pollfd file{pipe, POLLIN, 0};
  while (::poll(&file, 1, 0) > 0 && (file.revents & POLLIN) != 0) {
    const ssize_t count = ::read(pipe, buffer.data(), buffer.size());
    if (count <= 0) return;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

/// As write_all(), to a socket whose other side may be gone.
void send_all(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// So many bytes, or fewer at the end of the file.
std::string read_bytes(int file, std::size_t bytes) {
  std::string text(bytes, '\0');
  std::size_t size = 0;
  while (size < bytes) {
    const ssize_t count = ::read(file, text.data() + size, bytes - size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return text;
}

/// What this process frees stays for what it allocates next, in place of going back to the kernel.
void keep_memory() {
  constexpr int most_kept = 1 << 30;
  constexpr int at_once = 1 << 22;
  constexpr int mapped_from = 1 << 25;
  ::mallopt(M_TRIM_THRESHOLD, most_kept);
  ::mallopt(M_TOP_PAD, at_once);
  ::mallopt(M_MMAP_THRESHOLD, mapped_from);
}

/// The next text that was sent as framed() makes it; none: the other side is gone.
std::optional<std::string> read_framed(int file) {
  const std::string length = read_bytes(file, sizeof(std::uint64_t));
  std::uint64_t bytes = 0;
  if (length.size() < sizeof bytes) return std::nullopt;
  std::memcpy(&bytes, length.data(), sizeof bytes);
  std::string text = read_bytes(file, bytes);
  if (text.size() < bytes) return std::nullopt;
  return text;
}

}  // namespace

Child::Child(const std::function<std::string()>& work) {
  const std::array<int, 2> result = make_pipe();
  const std::array<int, 2> diagnostics = make_pipe();
  pid_ = start_child(result, [&](int /*file*/) {
    ::close(diagnostics[0]);
    ::dup2(diagnostics[1], STDERR_FILENO);
    ::close(diagnostics[1]);
    return work();
  });
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
  kill_child(pid_);
  ::close(result_pipe_);
  ::close(stderr_pipe_);
}

std::string Child::result() {
  std::string sent;
  std::string diagnostics;
  drain(result_pipe_, stderr_pipe_, sent, diagnostics);
  const int status = status_of(pid_);
  ::close(result_pipe_);
  ::close(stderr_pipe_);
  pid_ = -1;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || sent.empty()) throw_crash(status, std::move(diagnostics));
  if (sent.front() == error_tag) throw_sent_error(std::string_view(sent).substr(1));
  write_all(STDERR_FILENO, diagnostics);  // warnings
  return sent.substr(1);
}

ChildStream::ChildStream(const std::function<void(const Send&)>& work) {
  const std::array<int, 2> pipe = make_pipe();
  pid_ = start_child(pipe, [&](int file) {
    work([file](std::string_view text) { write_all(file, text_tag + framed(text)); });
    return std::string();
  });
  pipe_ = pipe[0];
}

ChildStream::~ChildStream() {
  if (pid_ >= 0) kill_child(pid_);
  if (pipe_ >= 0) ::close(pipe_);
}

std::optional<std::string> ChildStream::next() {
  if (pid_ < 0) return std::nullopt;
  const std::string tag = read_bytes(pipe_, 1);
  if (tag.starts_with(text_tag)) {
    if (std::optional<std::string> text = read_framed(pipe_)) return text;
  }
  std::string error;
  for (std::string more = read_bytes(pipe_, 4096); tag.starts_with(error_tag) && !more.empty();
       more = read_bytes(pipe_, 4096)) {
    error += more;
  }
  const int status = status_of(std::exchange(pid_, -1));
  if (!error.empty()) throw_sent_error(error);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !tag.starts_with(result_tag)) throw_crash(status, {});
  return std::nullopt;
}

ChildService::ChildService(const Answer& answer) {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    refused_by_system("a socket", errno);
  }
  const std::array<int, 2> diagnostics = make_pipe();
  pid_ = start_child(sockets, [&](int file) {
    ::close(diagnostics[0]);
    ::dup2(diagnostics[1], STDERR_FILENO);
    ::close(diagnostics[1]);
    keep_memory();
    while (const std::optional<std::string> question = read_framed(file)) {
      const std::string text = answer(*question);
      std::fflush(nullptr);  // what belongs to the answer comes before it
      write_all(file, text_tag + framed(text));
    }
    return std::string();
  });
  ::close(diagnostics[1]);
  socket_ = sockets[0];
  stderr_pipe_ = diagnostics[0];
}

ChildService::~ChildService() {
  if (pid_ >= 0) kill_child(pid_);
  ::close(socket_);
  ::close(stderr_pipe_);
}

std::string ChildService::ask(std::string_view question) {
  if (pid_ < 0) internal_error("nobody is left to answer");
  send_all(socket_, framed(question));  // if the child is gone, there is no answer
  std::string sent;
  std::string diagnostics;
  constexpr std::size_t header = 1 + sizeof(std::uint64_t);
  std::uint64_t bytes = 0;
  drain(socket_, stderr_pipe_, sent, diagnostics, [&] {
    if (sent.size() < header || sent.front() != text_tag) return false;
    std::memcpy(&bytes, sent.data() + 1, sizeof bytes);
    return sent.size() - header == bytes;
  });
  if (!sent.starts_with(text_tag) || sent.size() < header || sent.size() - header != bytes) {
    const int status = status_of(std::exchange(pid_, -1));
    if (sent.starts_with(error_tag)) throw_sent_error(std::string_view(sent).substr(1));
    throw_crash(status, std::move(diagnostics));
  }
  take_waiting(stderr_pipe_, diagnostics);
  write_all(STDERR_FILENO, diagnostics);  // warnings
  return sent.substr(header);
}

}  // namespace hcclsim
