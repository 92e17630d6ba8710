#pragma once

#include <hccl/hccl_types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "clients/library/api.hpp"

/// What the functions of HCCL share.
namespace hcclsim::clients {

/// Tells what is wrong with an argument, and returns the result.
inline HcclResult failed(const char* function, HcclResult result, const std::string& message) {
  return static_cast<HcclResult>(fail(function, static_cast<int>(result), message));
}

inline HcclResult result_of(const char* function, const Answer& answer) {
  if (!connected()) return HCCL_E_INTERNAL;
  return static_cast<HcclResult>(status_of(function, answer));
}

/// Structures as they lie in memory.
template <typename Value>
std::string_view bytes_of(const Value* values, std::size_t count = 1) {
  return {reinterpret_cast<const char*>(values), count * sizeof(Value)};
}

}  // namespace hcclsim::clients
