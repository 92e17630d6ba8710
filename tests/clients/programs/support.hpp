#pragma once

#include <hccl/hccl.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "examples/clients/check.hpp"

// What programs of tests share.

#define WANT(call, wanted)                                                                        \
  do {                                                                                            \
    const int want_status = static_cast<int>(call);                                               \
    if (want_status != static_cast<int>(wanted)) {                                                \
      std::printf("%s: status %d instead of %d\n", #call, want_status, static_cast<int>(wanted)); \
      std::exit(1);                                                                               \
    }                                                                                             \
  } while (false)

constexpr std::size_t mib = std::size_t{1} << 20U;

/// The sum over the communicator of what its members give.
inline int sum(HcclComm comm, aclrtStream stream, int value) {
  void* buffer = nullptr;
  CHECK(aclrtMalloc(&buffer, sizeof value, ACL_MEM_MALLOC_NORMAL_ONLY));
  CHECK(aclrtMemcpy(buffer, sizeof value, &value, sizeof value, ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK(HcclAllReduce(buffer, buffer, 1, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, comm, stream));
  CHECK(aclrtSynchronizeStream(stream));
  CHECK(aclrtMemcpy(&value, sizeof value, buffer, sizeof value, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(aclrtFree(buffer));
  return value;
}

/// Reserved addresses with physical memory.
struct Mapped {
  void* address = nullptr;
  aclrtDrvMemHandle memory = nullptr;
  std::size_t bytes = 0;

  explicit Mapped(std::size_t size) : bytes(size) {
    std::int32_t device = 0;
    CHECK(aclrtGetDevice(&device));
    aclrtPhysicalMemProp properties{ACL_MEM_HANDLE_TYPE_NONE, ACL_MEM_ALLOCATION_TYPE_PINNED, ACL_HBM_MEM_HUGE, {}, 0};
    properties.location = {static_cast<std::uint32_t>(device), ACL_MEM_LOCATION_TYPE_DEVICE};
    std::size_t granularity = 0;
    CHECK(aclrtMemGetAllocationGranularity(&properties, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granularity));
    WANT(bytes % granularity, 0);
    CHECK(aclrtReserveMemAddress(&address, bytes, 0, nullptr, 1));
    CHECK(aclrtMallocPhysical(&memory, bytes, &properties, 0));
    CHECK(aclrtMapMem(address, bytes, 0, memory, 0));
  }
  void end() const {
    CHECK(aclrtUnmapMem(address));
    CHECK(aclrtFreePhysical(memory));
    CHECK(aclrtReleaseMemAddress(address));
  }
};
