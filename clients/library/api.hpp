#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "clients/library/connection.hpp"

/// What the functions of the interfaces share: handles are the simulator's numbers, and what goes wrong is told on
/// standard error as it is returned.
namespace hcclsim::clients {

[[nodiscard]] inline std::uint64_t number_of(const void* handle) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(handle));
}
[[nodiscard]] inline void* handle_of(std::uint64_t number) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
}
[[nodiscard]] inline std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }
[[nodiscard]] inline std::uint64_t as_number(std::int32_t value) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}

/// Tells what went wrong in the function, keeps it for aclGetRecentErrMsg(), and returns the status.
__attribute__((visibility("default"))) int fail(const char* function, int status, const std::string& message);

/// The status of an answer, told if it is an error.
inline int status_of(const char* function, const Answer& answer) {
  return answer.status == 0 ? 0 : fail(function, answer.status, answer.bytes);
}

/// Devices as the program numbers them: all, or those that ASCEND_RT_VISIBLE_DEVICES lists, in its order, up to the
/// first one that the server does not have or that is there twice. −1: the program has no such device.
[[nodiscard]] __attribute__((visibility("default"))) std::int32_t device_on_server(std::int32_t device);
/// The inverse.
[[nodiscard]] std::int32_t device_of_program(std::int32_t on_server);
/// How many of the server's devices the program has.
[[nodiscard]] std::uint32_t visible_devices();
/// What to say of a device that the program does not have.
[[nodiscard]] __attribute__((visibility("default"))) std::string no_such_device(std::int32_t device);

}  // namespace hcclsim::clients
