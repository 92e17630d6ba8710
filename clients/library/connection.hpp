#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "clients/wire/message.hpp"

/// The program's side of the sockets (wire/message.hpp). A thread is known to the simulator before it starts
/// (threads.cpp); one that was made in another way is made known by its first call.
namespace hcclsim::clients {

struct Answer {
  std::int32_t status = 0;
  std::array<std::uint64_t, 4> values{};
  std::string bytes{};
};

/// Whether this process was started by `hcclsim exec`, and has joined it.
[[nodiscard]] __attribute__((visibility("default"))) bool connected();

/// Asks and waits for the answer, which may come after other threads have run. An answer with a status other than 0
/// has a message, which is kept for aclGetRecentErrMsg(). A process that has lost the simulator ends. Without one,
/// `status_without`.
__attribute__((visibility("default"))) Answer ask(Call call, std::initializer_list<std::uint64_t> values,
                                                  std::string_view bytes = {});

/// The last message of the thread; empty: none. Forgets it.
[[nodiscard]] std::string take_message();
/// Keeps a message of the thread, as for aclGetRecentErrMsg().
void keep_message(std::string message);

/// Numbers of this process and of all that were started.
[[nodiscard]] __attribute__((visibility("default"))) std::uint64_t process_number();
[[nodiscard]] __attribute__((visibility("default"))) std::uint64_t processes_started();

// For threads.cpp
/// A socket for a thread that is about to start; its number to `thread`. Negative: none.
int socket_of_new_thread(std::uint64_t& thread);
/// The sockets of all threads, which a child that is forked closes. Only with the token: a thread that begins has none.
void keep_socket(int socket);
void drop_socket(int socket);
/// The calling thread takes the socket over, and waits for the token.
void begin_thread_on(int socket);
/// The calling thread has ended.
void end_of_thread();
/// How often the calling thread has asked for anything but to yield.
[[nodiscard]] std::uint64_t questions();
/// Lets others run. `again`: nothing has happened since the last time.
void yield(Yield kind, bool again);

}  // namespace hcclsim::clients
