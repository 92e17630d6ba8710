#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "clients/server/hosts/hosts.hpp"
#include "clients/wire/peer.hpp"

// Who comes to the simulator's socket. Any process of this computer can, so the system is asked who it is: only
// processes of the user who simulates are served, and what is killed, read and written is the process that has come,
// whatever it says.
namespace hcclsim::clients {

void Hosts::accept_all(Seconds date) {
  pollfd listener{programs_.listener(), POLLIN, 0};
  while (::poll(&listener, 1, 0) > 0) {
    const int socket = ::accept4(programs_.listener(), nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    if (!greet(socket, date)) ::close(socket);
  }
}

bool Hosts::greet(int socket, Seconds date) {
  const ucred peer = peer_of(socket);
  if (peer.uid != ::geteuid() || peer.pid <= 0) {
    note(
        fmt::format("a process of user {}{} has come to the socket of this program and was sent away: those of user {} "
                    "are served",
                    peer.uid, peer.pid <= 0 ? ", in a PID namespace that is not seen here," : "", ::geteuid()));
    return false;
  }
  const std::optional<Question> first = receive_question(socket);
  if (!first.has_value()) return false;
  switch (first->call) {
    case Call::begin_process:
      return greet_process(socket, peer.pid, *first, date);
    case Call::begin_fork:
    case Call::begin_thread:
      return greet_of_process(socket, peer.pid, first->call == Call::begin_fork, date);
    default:
      return false;
  }
}

std::optional<std::uint32_t> Hosts::process_of(pid_t pid) const {
  for (auto number = static_cast<std::uint32_t>(processes_.size()); number-- > 0;) {
    const HostProcess& process = processes_[number];
    if (process.pid == pid && process.joined && !process.ended) return number;
  }
  return std::nullopt;
}

/// A socket that a process has made for a thread that is about to begin, or for a child that is about to be forked:
/// both run when it is their turn, and have yet to ask.
bool Hosts::greet_of_process(int socket, pid_t pid, bool is_fork, Seconds date) {
  const std::optional<std::uint32_t> own = process_of(pid);
  if (!own.has_value()) return false;
  std::uint32_t number = *own;
  if (is_fork) {
    number = static_cast<std::uint32_t>(processes_.size());
    processes_.push_back({.server = processes_[*own].server, .joined = true});
  }
  const ThreadId id = add_thread(number, socket);
  if (is_fork) processes_[number].forked = id;
  HostThread& made = *threads_[id];
  made.date = std::max(date, threads_[running_]->date);
  made.answered = false;
  made.state = HostThread::State::ready;
  ready_.push_back(id);
  send_result(socket, {.values = {number, id}});
  return true;
}

/// A process, before its main(), or a forked child, for which its parent has announced a process.
bool Hosts::greet_process(int socket, pid_t pid, const Question& question, Seconds date) {
  std::uint64_t number = question.values[0];
  const bool is_known = number < processes_.size();
  const std::optional<ThreadId> forked =
      is_known ? std::exchange(processes_[number].forked, std::nullopt) : std::nullopt;
  if (!forked.has_value() && (!is_known || processes_[number].joined)) {
    number = processes_.size();
    processes_.push_back({.server = threads_.empty() ? 0 : processes_[threads_[running_]->process].server});
  }
  HostProcess& process = processes_[number];
  process.joined = true;
  process.pid = pid;
  const std::vector<pid_t>& started = programs_.pids();
  if (number >= started.size() || started[number] != pid) programs_.add(pid);
  const Result answer{.values = {number}};
  if (forked.has_value()) {
    HostThread& own = *threads_[*forked];
    if (own.state == HostThread::State::ended) return false;
    ::close(std::exchange(own.socket, socket));
    own.system_id = static_cast<pid_t>(question.values[1]);
    own.answered = own.state == HostThread::State::ready;
    if (own.answered) {
      own.result = answer;
    } else {
      send_result(socket, answer);  // it is its turn
    }
    return true;
  }
  const ThreadId id = add_thread(static_cast<std::uint32_t>(number), socket);
  HostThread& made = *threads_[id];
  made.date = date;
  made.system_id = static_cast<pid_t>(question.values[1]);
  made.result = answer;
  made.state = HostThread::State::ready;
  ready_.push_back(id);
  return true;
}

}  // namespace hcclsim::clients
