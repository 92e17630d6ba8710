#include "clients/server/devices/allocations.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

#include <acl/acl_rt.h>

namespace hcclsim::clients {

Result allocation(Core& core, const Devices& devices, ThreadId id, const Question& question) {
  const HostThread& thread = core.hosts.thread(id);
  const auto& values = question.values;
  DeviceMemory& memory = core.memory;
  const auto told = [](const std::string& problem) {
    return problem.empty() ? Result{} : refused(ACL_ERROR_RT_PARAM_INVALID, problem);
  };
  const auto no_room = [&](Rank npu, Bytes bytes) {
    return refused(ACL_ERROR_RT_MEMORY_ALLOCATION, fmt::format("{} bytes: NPU {} has {} of {} left", bytes, npu,
                                                               memory.free_bytes(npu), memory.total()));
  };
  switch (question.call) {
    case Call::release_address:
      return told(memory.release(thread.process, values[0]));
    case Call::free_physical:
      return told(memory.free_physical(values[0]));
    case Call::map_memory:
      return told(memory.map(thread.process, values[0], values[1], values[3]));
    case Call::unmap_memory:
      return told(memory.unmap(thread.process, values[0]));
    case Call::free:
      return told(memory.free(thread.process, values[0])
                      ? ""
                      : fmt::format("0x{:x} is not from aclrtMalloc, or was freed", values[0]));
    case Call::allocate_physical: {
      const std::optional<Rank> npu = devices.npu_of(core.hosts.process(thread.process).server, values[1]);
      if (!npu.has_value()) return refused(ACL_ERROR_RT_INVALID_DEVICEID, "there is no such device");
      const std::optional<std::uint64_t> handle = memory.allocate_physical(thread.process, *npu, values[0]);
      return handle.has_value() ? Result{.values = {*handle}} : no_room(*npu, values[0]);
    }
    default:
      break;
  }
  if (!thread.npu.has_value()) return refused(ACL_ERROR_RT_CONTEXT_NULL, "the thread has set no device");
  switch (question.call) {
    case Call::allocate: {
      const std::optional<std::uint64_t> address = memory.allocate(thread.process, *thread.npu, values[0]);
      return address.has_value() ? Result{.values = {*address}} : no_room(*thread.npu, values[0]);
    }
    case Call::memory_info:
      return {.values = {memory.free_bytes(*thread.npu), memory.total()}};
    default: {
      const std::optional<std::uint64_t> address = memory.reserve(thread.process, *thread.npu, values[0]);
      if (!address.has_value()) return refused(ACL_ERROR_RT_MEMORY_ALLOCATION, "there are not so many addresses");
      return {.values = {*address}};
    }
  }
}

}  // namespace hcclsim::clients
