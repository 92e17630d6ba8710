#include "clients/server/devices/host_memory.hpp"

#include <sys/uio.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace hcclsim::clients {
namespace {

/// Moves bytes between this process and one of the program; what is wrong, empty: nothing. One that has ended is left
/// alone: its number may be that of another process now.
template <typename Transfer>
std::string move_bytes(const HostProcess& process, std::byte* own, std::uint64_t other, Bytes bytes,
                       const Transfer& transfer) {
  if (process.ended || process.pid == 0) return "the process has ended";
  while (bytes > 0) {
    const iovec local{own, bytes};
    const iovec remote{reinterpret_cast<void*>(static_cast<std::uintptr_t>(other)), bytes};
    const ssize_t moved = transfer(process.pid, &local, 1, &remote, 1, 0);
    if (moved <= 0) {
      return errno == EPERM ? "the system does not let the simulator reach the memory of the program"
                            : fmt::format("0x{:x} is not memory of the program: {}", other, std::strerror(errno));
    }
    own += moved;
    other += static_cast<std::uint64_t>(moved);
    bytes -= static_cast<Bytes>(moved);
  }
  return {};
}

}  // namespace

std::string read_host(const HostProcess& process, std::byte* to, std::uint64_t from, Bytes bytes) {
  return move_bytes(process, to, from, bytes, [](auto... arguments) { return ::process_vm_readv(arguments...); });
}

std::string write_host(const HostProcess& process, std::byte* from, std::uint64_t to, Bytes bytes) {
  return move_bytes(process, from, to, bytes, [](auto... arguments) { return ::process_vm_writev(arguments...); });
}

std::string fill_host(const HostProcess& process, int byte, std::uint64_t to, Bytes bytes) {
  std::vector<std::byte> filled(bytes, static_cast<std::byte>(byte));
  return write_host(process, filled.data(), to, bytes);
}

}  // namespace hcclsim::clients
