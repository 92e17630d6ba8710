#pragma once

#include <sys/socket.h>
#include <sys/types.h>

/// Who is at the other end of a socket, as the system knows it: neither side believes what a message says of that.
namespace hcclsim::clients {

/// The process that has called connect(), or listen(), and its effective user. Its number is 0 if it is in a PID
/// namespace that the caller does not see.
[[nodiscard]] inline ucred peer_of(int socket) {
  constexpr auto nobody = static_cast<uid_t>(-1);
  ucred peer{0, nobody, static_cast<gid_t>(-1)};
  socklen_t bytes = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 ? peer : ucred{0, nobody, peer.gid};
}

}  // namespace hcclsim::clients
