#include "clients/library/connection.hpp"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "clients/wire/peer.hpp"

namespace hcclsim::clients {
namespace {

constexpr int status_without = 500000;  // ACL_ERROR_INTERNAL_ERROR; of HcclResult see hccl.cpp

/// What all threads share; only the one that has the token changes it.
struct Process {
  bool connected = false;
  std::uint64_t number = 0;
  std::uint64_t started = 1;
  std::string socket_name;
  std::set<int> sockets;  // of its threads
  // Of a child that is about to be forked: its socket until it has made one itself, and its number.
  int next_socket = -1;
  std::uint64_t next_number = 0;
};

Process& process() {
  static Process* const one = new Process;  // never freed: threads may outlive static objects
  return *one;
}

thread_local int own_socket = -1;
thread_local std::uint64_t own_questions = 0;
thread_local std::string* own_message = nullptr;

[[noreturn]] void lose() { ::_exit(lost_status); }

void send_all(int socket, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) lose();
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
}

void receive_all(int socket, void* data, std::size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::recv(socket, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) lose();
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

void send_request(int socket, Call call, std::initializer_list<std::uint64_t> values, std::string_view bytes) {
  Request request{.call = call, .bytes = static_cast<std::uint32_t>(bytes.size())};
  std::copy(values.begin(), values.end(), request.values.begin());
  send_all(socket, &request, sizeof request);
  send_all(socket, bytes.data(), bytes.size());
}

Answer receive_answer(int socket) {
  Reply reply;
  receive_all(socket, &reply, sizeof reply);
  Answer answer{reply.status, reply.values, std::string(reply.bytes, '\0')};
  receive_all(socket, answer.bytes.data(), answer.bytes.size());
  return answer;
}

/// A new connection to the simulator; −1 if there is none, or if another user has taken its place.
int connect_to(const std::string& name) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::copy_n(name.data(), length, address.sun_path + 1);  // the first byte is 0: an abstract name
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), bytes) == 0) {
    const uid_t user = peer_of(socket).uid;
    if (user == ::geteuid() || user == 0) return socket;
  }
  ::close(socket);
  return -1;
}

std::uint64_t thread_id() { return static_cast<std::uint64_t>(::syscall(SYS_gettid)); }

void adopt(int socket) {
  own_socket = socket;
  keep_socket(socket);
}

/// The socket of the calling thread, made known to the simulator if it was not.
int socket_of_thread() {
  if (own_socket >= 0) return own_socket;
  std::uint64_t thread = 0;
  const int socket = socket_of_new_thread(thread);
  if (socket < 0) lose();
  begin_thread_on(socket);
  keep_socket(socket);
  return socket;
}

/// The calling thread, the only one of its process, joins the simulator as the process of this number, and waits for
/// the token. False if there is no simulator.
bool join_as(std::uint64_t number) {
  Process& own = process();
  const int socket = connect_to(own.socket_name);
  if (socket < 0) return false;
#ifdef PR_SET_PTRACER
  ::prctl(PR_SET_PTRACER, peer_of(socket).pid, 0, 0, 0);  // it reads and writes the memory of the program
#endif
  adopt(socket);
  send_request(socket, Call::begin_process, {number, thread_id()}, {});
  own.number = receive_answer(socket).values[0];
  return true;
}

/// Its destructor tells the simulator that a thread ends.
pthread_key_t end_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    ::pthread_key_create(&made, [](void*) { end_of_thread(); });
    return made;
  }();
  return key;
}

// A process that forks: the child is a process of its own.
void before_fork() {
  if (!connected()) return;
  const int socket = connect_to(process().socket_name);
  if (socket < 0) lose();
  send_request(socket, Call::begin_fork, {}, {});
  process().next_number = receive_answer(socket).values[0];
  process().next_socket = socket;
}

void after_fork_in_parent() {
  if (!connected()) return;
  ::close(std::exchange(process().next_socket, -1));
}

void after_fork_in_child() {
  if (!connected()) return;
  Process& own = process();
  for (const int socket : std::exchange(own.sockets, {})) ::close(socket);
  own_questions = 0;
  if (!join_as(own.next_number)) lose();
  ::close(std::exchange(own.next_socket, -1));
}

/// Joins the simulator before main(), and waits there for the token.
__attribute__((constructor)) void join_simulator() {
  const char* const name = std::getenv(socket_variable);     // NOLINT(concurrency-mt-unsafe)
  const char* const number = std::getenv(process_variable);  // NOLINT(concurrency-mt-unsafe)
  const char* const count = std::getenv(count_variable);     // NOLINT(concurrency-mt-unsafe)
  if (name == nullptr || number == nullptr || count == nullptr) return;
  Process& own = process();
  own.socket_name = name;
  own.started = std::strtoull(count, nullptr, 10);
  if (!join_as(std::strtoull(number, nullptr, 10))) {
    std::fputs("hcclsim: the simulator that started this program is gone\n", stderr);
    lose();
  }
  own.connected = true;
  ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

}  // namespace

bool connected() { return process().connected; }
std::uint64_t process_number() { return process().number; }
std::uint64_t processes_started() { return process().started; }

Answer ask(Call call, std::initializer_list<std::uint64_t> values, std::string_view bytes) {
  if (!connected()) {
    keep_message("this program was not started by hcclsim exec: there are no NPUs");
    static bool told = false;
    if (!std::exchange(told, true)) std::fputs("hcclsim: start this program with: hcclsim exec -- PROGRAM\n", stderr);
    return {.status = status_without};
  }
  const int socket = socket_of_thread();
  if (!only_looks(call)) ++own_questions;
  send_request(socket, call, values, bytes);
  Answer answer = receive_answer(socket);
  if (answer.status != 0 && !answer.bytes.empty()) keep_message(answer.bytes);
  return answer;
}

std::string take_message() { return own_message == nullptr ? std::string() : std::exchange(*own_message, {}); }

void keep_message(std::string message) {
  if (own_message == nullptr) own_message = new std::string;  // freed by nobody: it is small, and threads are few
  *own_message = std::move(message);
}

int socket_of_new_thread(std::uint64_t& thread) {
  const int socket = connect_to(process().socket_name);
  if (socket < 0) return -1;
  send_request(socket, Call::begin_thread, {}, {});
  thread = receive_answer(socket).values[1];
  return socket;
}

void keep_socket(int socket) { process().sockets.insert(socket); }

void drop_socket(int socket) {
  process().sockets.erase(socket);
  ::close(socket);
}

void begin_thread_on(int socket) {
  own_socket = socket;
  ::pthread_setspecific(end_key(), &process());  // any value
  send_request(socket, Call::begin_thread, {thread_id()}, {});
  static_cast<void>(receive_answer(socket));
}

void end_of_thread() {
  if (own_socket < 0 || !connected()) return;
  const int socket = std::exchange(own_socket, -1);
  process().sockets.erase(socket);
  send_request(socket, Call::end_thread, {}, {});
  ::close(socket);
}

std::uint64_t questions() { return own_questions; }

void yield(Yield kind, bool again) { ask(Call::yield, {static_cast<std::uint64_t>(kind), again ? 1U : 0U}); }

}  // namespace hcclsim::clients
