#include "clients/server/hosts/questions.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>

namespace hcclsim::clients {
namespace {

constexpr std::uint32_t most_bytes = 1U << 30U;

bool receive_all(int socket, void* data, std::size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::recv(socket, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool send_all(int socket, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace

std::optional<Question> receive_question(int socket) {
  Request request;
  if (!receive_all(socket, &request, sizeof request) || request.bytes > most_bytes) return std::nullopt;
  Question question{.call = request.call, .values = request.values, .bytes = std::string(request.bytes, '\0')};
  if (!receive_all(socket, question.bytes.data(), question.bytes.size())) return std::nullopt;
  return question;
}

void send_result(int socket, const Result& result) {
  const Reply reply{
      .status = result.status, .bytes = static_cast<std::uint32_t>(result.bytes.size()), .values = result.values};
  if (send_all(socket, &reply, sizeof reply)) send_all(socket, result.bytes.data(), result.bytes.size());
}

}  // namespace hcclsim::clients
