#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "clients/wire/message.hpp"

/// What threads of programs ask, and what they are answered, as it goes over their sockets.
namespace hcclsim::clients {

/// Answer to a question.
struct Result {
  std::int32_t status = 0;
  std::array<std::uint64_t, 4> values{};
  std::string bytes{};
};

/// What a thread is told that has asked for something impossible.
[[nodiscard]] inline Result refused(std::int32_t status, std::string why) {
  return {.status = status, .bytes = std::move(why)};
}

struct Question {
  Call call{};
  std::array<std::uint64_t, 8> values{};
  std::string bytes{};
};

/// Waits for the next question; none if the other end has closed the socket.
[[nodiscard]] std::optional<Question> receive_question(int socket);
/// Does nothing if the other end has closed the socket.
void send_result(int socket, const Result& result);

}  // namespace hcclsim::clients
