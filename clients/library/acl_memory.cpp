// Memory of devices, whose addresses mean nothing to the host, and pinned memory of the host, which is as any other.
// NOLINTBEGIN(readability-identifier-naming): names are the interface's
#include <acl/acl.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <string>

#include "clients/library/api.hpp"

using namespace hcclsim::clients;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::size_t granularity_of_memory = std::size_t{2} << 20U;

/// Pinned memory: blocks and their bytes.
std::map<const char*, std::size_t>& host_blocks() {
  static auto* const all = new std::map<const char*, std::size_t>;
  return *all;
}

bool is_pinned(const void* address) {
  const char* const place = static_cast<const char*>(address);
  const auto behind = host_blocks().upper_bound(place);
  return behind != host_blocks().begin() && place < std::prev(behind)->first + std::prev(behind)->second;
}

int allocate(const char* function, void** address, std::size_t size) {
  if (address == nullptr) return fail(function, ACL_ERROR_INVALID_PARAM, "devPtr is null");
  if (size == 0) return fail(function, ACL_ERROR_INVALID_PARAM, "of 0 bytes");
  const Answer answer = ask(Call::allocate, {size});
  *address = answer.status == 0 ? handle_of(answer.values[0]) : nullptr;
  return status_of(function, answer);
}

int copy(const char* function, void* destination, std::size_t room, const void* source, std::size_t count,
         aclrtMemcpyKind kind, std::uint64_t stream, bool at_once) {
  if (destination == nullptr || source == nullptr) {
    return fail(function, ACL_ERROR_INVALID_PARAM, destination == nullptr ? "dst is null" : "src is null");
  }
  if (count > room) {
    return fail(function, ACL_ERROR_INVALID_PARAM,
                std::to_string(count) + " bytes to a place of " + std::to_string(room));
  }
  if (kind == ACL_MEMCPY_HOST_TO_HOST && at_once) {
    std::memmove(destination, source, count);
    return ACL_SUCCESS;
  }
  return status_of(function, ask(Call::copy, {number_of(destination), room, number_of(source), count,
                                              static_cast<std::uint64_t>(kind), stream, at_once ? 1U : 0U,
                                              is_pinned(source) ? 1U : 0U}));
}

int copy_rows(const char* function, void* destination, std::size_t destination_pitch, const void* source,
              std::size_t source_pitch, std::size_t width, std::size_t height, aclrtMemcpyKind kind,
              std::uint64_t stream, bool at_once) {
  if (width > destination_pitch || width > source_pitch) {
    return fail(function, ACL_ERROR_INVALID_PARAM, "rows are longer than their distance");
  }
  for (std::size_t row = 0; row < height; ++row) {
    const int status = copy(function, static_cast<char*>(destination) + row * destination_pitch, width,
                            static_cast<const char*>(source) + row * source_pitch, width, kind, stream, at_once);
    if (status != 0) return status;
  }
  return ACL_SUCCESS;
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy /*policy*/) {
  return allocate(__func__, devPtr, size);
}
aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy /*policy*/) {
  return allocate(__func__, devPtr, size);
}
aclError aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy /*policy*/) {
  return allocate(__func__, devPtr, size);
}

aclError aclrtFree(void* devPtr) {
  if (devPtr == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "devPtr is null");
  return status_of(__func__, ask(Call::free, {number_of(devPtr)}));
}

aclError aclrtMallocHost(void** hostPtr, size_t size) {
  if (hostPtr == nullptr || size == 0) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null, or of 0 bytes");
  constexpr std::size_t page = 4096;
  *hostPtr = std::aligned_alloc(page, (size + page - 1) / page * page);
  if (*hostPtr == nullptr) return fail(__func__, ACL_ERROR_BAD_ALLOC, "there is not so much memory");
  host_blocks()[static_cast<const char*>(*hostPtr)] = size;
  return ACL_SUCCESS;
}

aclError aclrtFreeHost(void* hostPtr) {
  const auto found = host_blocks().find(static_cast<const char*>(hostPtr));
  if (found == host_blocks().end()) {
    return fail(__func__, ACL_ERROR_INVALID_PARAM, "hostPtr is not from aclrtMallocHost, or was freed");
  }
  const std::size_t size = found->second;
  host_blocks().erase(found);
  if (connected()) ask(Call::free_host, {number_of(hostPtr), size});
  std::free(hostPtr);
  return ACL_SUCCESS;
}

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind) {
  return copy(__func__, dst, destMax, src, count, kind, 0, true);
}

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream) {
  return copy(__func__, dst, destMax, src, count, kind, number_of(stream), false);
}

aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                       aclrtMemcpyKind kind) {
  return copy_rows(__func__, dst, dpitch, src, spitch, width, height, kind, 0, true);
}

aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                            aclrtMemcpyKind kind, aclrtStream stream) {
  return copy_rows(__func__, dst, dpitch, src, spitch, width, height, kind, number_of(stream), false);
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  if (is_pinned(devPtr) && count <= maxCount) {
    std::memset(devPtr, value, count);
    return ACL_SUCCESS;
  }
  return status_of(__func__, ask(Call::fill, {number_of(devPtr), maxCount, as_number(value), count, 0, 1}));
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) {
  return status_of(__func__, ask(Call::fill, {number_of(devPtr), maxCount, as_number(value), count, number_of(stream),
                                              0, is_pinned(devPtr) ? 1U : 0U}));
}

aclError aclrtGetMemInfo(aclrtMemAttr /*attr*/, size_t* free, size_t* total) {
  if (free == nullptr || total == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  const Answer answer = ask(Call::memory_info, {});
  *free = answer.values[0];
  *total = answer.values[1];
  return status_of(__func__, answer);
}

aclError aclrtReserveMemAddress(void** virPtr, size_t size, size_t alignment, void* expectPtr, uint64_t /*flags*/) {
  if (virPtr == nullptr || size == 0) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null, or of 0 bytes");
  if (alignment != 0 || expectPtr != nullptr) {
    return fail(__func__, ACL_ERROR_INVALID_PARAM, "alignment and expectPtr: only 0");
  }
  const Answer answer = ask(Call::reserve_address, {size});
  if (answer.status == 0) *virPtr = handle_of(answer.values[0]);
  return status_of(__func__, answer);
}

aclError aclrtReleaseMemAddress(void* virPtr) {
  return status_of(__func__, ask(Call::release_address, {number_of(virPtr)}));
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle* handle, size_t size, const aclrtPhysicalMemProp* prop,
                             uint64_t /*flags*/) {
  if (handle == nullptr || prop == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  if (prop->location.type != ACL_MEM_LOCATION_TYPE_DEVICE) {
    return fail(__func__, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "only memory of devices is there");
  }
  if (size == 0 || size % granularity_of_memory != 0) {
    return fail(__func__, ACL_ERROR_INVALID_PARAM,
                "size: only multiples of 2 MiB, see aclrtMemGetAllocationGranularity");
  }
  const std::int32_t device = device_on_server(static_cast<std::int32_t>(prop->location.id));
  if (device < 0) {
    return fail(__func__, ACL_ERROR_RT_INVALID_DEVICEID, no_such_device(static_cast<std::int32_t>(prop->location.id)));
  }
  const Answer answer = ask(Call::allocate_physical, {size, as_number(device)});
  if (answer.status == 0) *handle = handle_of(answer.values[0]);
  return status_of(__func__, answer);
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
  return status_of(__func__, ask(Call::free_physical, {number_of(handle)}));
}

aclError aclrtMapMem(void* virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t /*flags*/) {
  return status_of(__func__, ask(Call::map_memory, {number_of(virPtr), size, offset, number_of(handle)}));
}

aclError aclrtUnmapMem(void* virPtr) { return status_of(__func__, ask(Call::unmap_memory, {number_of(virPtr)})); }

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp* prop, aclrtMemGranularityOptions /*option*/,
                                          size_t* granularity) {
  if (prop == nullptr || granularity == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  *granularity = granularity_of_memory;
  return ACL_SUCCESS;
}

#pragma GCC visibility pop
}
// NOLINTEND(readability-identifier-naming)
