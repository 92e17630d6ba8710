#include "study/compare/sweep/loader.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/error.hpp"
#include "base/user_error.hpp"

namespace hcclsim::study {
namespace {

using Clock = std::chrono::steady_clock;

/// Messages are preceded by their length. An empty one says that the group is loaded, or, to the loader, to end.
using Length = std::uint64_t;

/// Whether the other side is there to read it.
bool send_message(int file, std::string_view message) {
  const Length length = message.size();
  std::string frame(sizeof length, '\0');
  std::memcpy(frame.data(), &length, sizeof length);
  frame.append(message);
  for (std::string_view bytes = frame; !bytes.empty();) {
    const ssize_t written = ::send(file, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool read_exactly(int file, char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::read(file, to, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to += count;  // NOLINT(cppcoreguidelines-pro-bounds-pointer-arithmetic): what read() has filled
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

/// The next message; nothing when the other side is gone.
std::optional<std::string> read_message(int file) {
  Length length = 0;
  std::array<char, sizeof length> prefix{};
  if (!read_exactly(file, prefix.data(), prefix.size())) return std::nullopt;
  std::memcpy(&length, prefix.data(), sizeof length);
  std::string message(length, '\0');
  if (!read_exactly(file, message.data(), message.size())) return std::nullopt;
  return message;
}

/// Cuts the first whole message off what was received; nothing if there is none yet.
std::optional<std::string> take_message(std::string& received) {
  Length length = 0;
  if (received.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, received.data(), sizeof length);
  if (received.size() - sizeof length < length) return std::nullopt;
  std::string message = received.substr(sizeof length, length);
  received.erase(0, sizeof length + length);
  return message;
}

Outcome outcome_of(const Error& error) {
  return {.id = {},
          .ok = false,
          .error = error.what(),
          .error_kind = error.kind(),
          .exit_status = static_cast<int>(error.code())};
}

/// What the process of points answers: what came of one, and whether it can compute another.
using Answer = std::pair<Outcome, bool>;

Answer compute(const ComputePoint& computer, const Point& point) {
  Outcome outcome;
  try {
    Computed computed = computer.compute(point);
    const auto& [kind, message] = computed.failure;
    if (!message.empty()) outcome = outcome_of(Error(ErrorCode::simulated_failure, kind, message));
    outcome.figures = std::move(computed.figures);
    outcome.result = std::move(computed.result);
  } catch (const Error& error) {
    outcome = outcome_of(error);
  }
  return {std::move(outcome), computer.reusable()};
}

/// Has points computed in a child that is renewed when it has died or is used up.
class PointProcess {
 public:
  PointProcess(const std::vector<Point>& points, const ComputePoint& computer) : points_(points), computer_(computer) {}

  Outcome compute(std::size_t number) {
    const Clock::time_point start = Clock::now();
    Outcome outcome;
    try {
      if (!child_.has_value()) {
        child_.emplace([this](std::string_view question) {
          return encoded(study::compute(computer_, points_[decoded<std::size_t>(question)]));
        });
      }
      auto [computed, reusable] = decoded<Answer>(child_->ask(encoded(number)));
      outcome = std::move(computed);
      if (!reusable) child_.reset();
    } catch (const Error& error) {
      outcome = outcome_of(error);
      child_.reset();
    }
    outcome.id = points_[number].id;
    outcome.wall_s = std::chrono::duration<double>(Clock::now() - start).count();
    return outcome;
  }

 private:
  const std::vector<Point>& points_;
  const ComputePoint& computer_;
  std::optional<ChildService> child_;
};

/// The loader's life.
void serve(int socket, const std::vector<Point>& points, std::size_t first, const LoadGroup& load) {
  // Ctrl-C on a terminal goes to the process group; SimGrid ends a process by it. The runner alone decides what stops.
  ::setpgid(0, 0);
  const ComputePoint computer = load(points[first]);
  send_message(socket, "");
  PointProcess process(points, computer);
  while (const auto message = read_message(socket)) {
    if (message->empty()) return;
    const auto point = decoded<std::size_t>(*message);
    if (!send_message(socket, encoded(std::pair(point, process.compute(point))))) return;
  }
}

}  // namespace

Loader::Loader(const std::vector<Point>& points, std::size_t first, const LoadGroup& load) {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    refused_by_system("a socket", errno);
  }
  socket_ = sockets[0];
  child_ = std::make_unique<Child>([&points, first, &load, sockets] {
    ::close(sockets[0]);
    serve(sockets[1], points, first, load);
    return std::string();
  });
  ::close(sockets[1]);
}

Loader::~Loader() { ::close(socket_); }

void Loader::send(std::size_t point) {
  outstanding_.push_back(point);
  send_message(socket_, encoded(point));  // if the process is gone, receive() finds out
}

void Loader::finish() { send_message(socket_, ""); }

std::vector<Outcome> Loader::receive() {
  std::array<char, 1U << 16U> buffer{};
  const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) ended_ = true;
  if (count > 0) received_.append(buffer.data(), static_cast<std::size_t>(count));
  std::vector<Outcome> outcomes;
  while (const auto message = take_message(received_)) {
    if (message->empty()) {
      loaded_ = true;
      continue;
    }
    auto [point, outcome] = decoded<std::pair<std::size_t, Outcome>>(*message);
    outcomes.push_back(std::move(outcome));
    std::erase(outstanding_, point);
  }
  return outcomes;
}

std::optional<Outcome> Loader::failure() {
  try {
    static_cast<void>(child_->result());
    return std::nullopt;
  } catch (const Error& error) {
    return outcome_of(error);
  }
}

}  // namespace hcclsim::study
