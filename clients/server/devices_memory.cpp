#include <sys/uio.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <acl/acl_rt.h>

#include "clients/server/devices.hpp"

// The memory of devices, and copies from and to it. Bytes of programs' hosts are read and written in their processes.
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

/// What is wrong with a copy of this kind between memory of these places; empty: nothing.
std::string problem_of_kind(std::uint64_t number, bool to_device, bool from_device) {
  if (number > ACL_MEMCPY_INTER_DEVICE_TO_DEVICE) return "there is no such kind";
  const auto kind = static_cast<aclrtMemcpyKind>(number);
  const bool wants_from = kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE ||
                          kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE || kind == ACL_MEMCPY_INTER_DEVICE_TO_DEVICE;
  const bool wants_to = kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE ||
                        (wants_from && kind != ACL_MEMCPY_DEVICE_TO_HOST);
  if (kind == ACL_MEMCPY_DEFAULT || (wants_to == to_device && wants_from == from_device)) return {};
  const bool destination_is_wrong = wants_to != to_device;
  return fmt::format("{} is memory of {}, which is not what the kind says", destination_is_wrong ? "dst" : "src",
                     (destination_is_wrong ? to_device : from_device) ? "a device" : "the host");
}

/// Throws if the program has freed memory of a device that a task needs, which ends now.
void require_there(const DeviceSpan& span, const std::string& task) {
  if (span.pages == nullptr || !span.pages->freed()) return;
  simulated_failure("client", "{}: memory of NPU {} was freed before it had ended", task, span.npu);
}

}  // namespace

std::optional<Result> Devices::handle_memory(ThreadId id, const Question& question) {
  const HostThread& thread = core_.hosts.thread(id);
  const auto& values = question.values;
  DeviceMemory& memory = core_.memory;
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
    case Call::free_host:
      return free_host(thread.process, values[0], values[1]);
    case Call::allocate_physical: {
      const std::optional<Rank> npu = npu_of(core_.hosts.process(thread.process).server, values[1]);
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
      return Result{.values = {memory.free_bytes(*thread.npu), memory.total()}};
    case Call::reserve_address: {
      const std::optional<std::uint64_t> address = memory.reserve(thread.process, *thread.npu, values[0]);
      if (!address.has_value()) return refused(ACL_ERROR_RT_MEMORY_ALLOCATION, "there are not so many addresses");
      return Result{.values = {*address}};
    }
    case Call::copy:
      return copy(id, question);
    default:
      return fill(id, question);
  }
}

/// Waits for a task of a stream that the program cannot name, or goes on.
std::optional<Result> Devices::after_task(ThreadId id, ClientStream& stream, const std::string& what) {
  if (!stream.is_hidden) return Result{};
  return synchronize(id, {&stream}, -1, 0, what);
}

std::optional<Result> Devices::copy(ThreadId id, const Question& question) {
  const HostThread& thread = core_.hosts.thread(id);
  const auto [destination, room, source, bytes, kind_number, handle, at_once, pinned] = question.values;
  static_cast<void>(room);
  const bool to_device = DeviceMemory::is_device(destination);
  const bool from_device = DeviceMemory::is_device(source);
  const std::string wrong_kind = problem_of_kind(kind_number, to_device, from_device);
  if (!wrong_kind.empty()) return refused(ACL_ERROR_RT_PARAM_INVALID, wrong_kind);
  FoundSpan to;
  FoundSpan from;
  if (to_device) to = core_.memory.find(thread.process, destination, bytes);
  if (from_device) from = core_.memory.find(thread.process, source, bytes);
  if (!to.problem.empty()) return refused(ACL_ERROR_RT_PARAM_INVALID, "dst: " + to.problem);
  if (!from.problem.empty()) return refused(ACL_ERROR_RT_PARAM_INVALID, "src: " + from.problem);
  if (to_device && from_device && !have_access(thread.process, to.span.npu, from.span.npu)) {
    return refused(ACL_ERROR_RT_PARAM_INVALID,
                   fmt::format("dst is memory of NPU {}, src of NPU {}: call aclrtDeviceEnablePeerAccess before",
                               to.span.npu, from.span.npu));
  }

  constexpr std::uint32_t copies = 0;
  ClientStream* const stream =
      at_once != 0 ? &hidden_stream(thread.process, *thread.npu, copies) : stream_of(id, handle);
  if (at_once == 0) {
    const Result wrong = usable(id, handle, stream);
    if (wrong.status != 0) return wrong;
  }
  if (bytes == 0) return Result{};
  if (to_device && from_device) {
    reach(*stream, thread.date);
    copy_within(*stream, to.span, from.span);
  } else {
    const HostCopy wanted{.process = thread.process,
                          .source = source,
                          .destination = destination,
                          .from = from.span,
                          .to = to.span,
                          .bytes = bytes,
                          .later = at_once == 0,
                          .pinned = pinned != 0};
    Result wrong = copy_host(*stream, thread.date, wanted);
    if (wrong.status != 0) return wrong;
  }
  return at_once != 0 ? after_task(id, *stream, "aclrtMemcpy") : Result{};
}

/// Why the process has no such memory to copy from or to; empty: it has. Takes what it gives.
std::string Devices::take_from_host(const HostCopy& copy, std::vector<std::byte>& taken) const {
  const HostProcess& process = core_.hosts.process(copy.process);
  std::string problem;
  if (copy.from_host()) {
    taken.resize(copy.bytes);
    problem = read_host(process, taken.data(), copy.source, copy.bytes);
    if (!problem.empty()) return "src: " + problem;
  }
  std::byte probe{};
  for (const std::uint64_t at : {copy.destination, copy.destination + copy.bytes - 1}) {
    if (copy.to_host() && problem.empty()) problem = read_host(process, &probe, at, 1);
  }
  return problem.empty() ? problem : "dst: " + problem;
}

Result Devices::copy_host(ClientStream& stream, Seconds date, const HostCopy& copy) {
  // What the program gives is taken now, as it may be gone when the stream comes to it; pinned memory is read then.
  const auto taken = std::make_shared<std::vector<std::byte>>();
  const std::string problem = take_from_host(copy, *taken);
  if (!problem.empty()) return refused(ACL_ERROR_RT_PARAM_INVALID, problem);
  const bool is_watched = core_.accesses != nullptr && copy.later && is_left_alone(copy);
  if (is_watched && !copy.from_host()) {
    static_cast<void>(fill_host(core_.hosts.process(copy.process), poison_byte, copy.destination, copy.bytes));
  }
  reach(stream, date);
  const std::string text = fmt::format("a copy of {} bytes", copy.bytes);
  Uses uses;
  if (!copy.from_host()) uses.reads.push_back(copy.from);
  if (!copy.to_host()) uses.writes.push_back(copy.to);
  begin_task(stream, text, std::move(uses));
  const std::uint32_t name = core_.trace.intern("copy");
  if (!copy.to_host()) core_.runtime.copy_from_host(stream.id, copy.bytes, name);
  if (!copy.from_host()) core_.runtime.copy_to_host(stream.id, copy.bytes, name);
  const std::string where = fmt::format("{} in stream {} of NPU {}", text, stream.number, stream.npu);
  const std::uint64_t use = next_handle_++;
  if (copy.later) host_uses_[use] = {copy.process, copy.host_address(), copy.bytes, where};
  end_task(stream, [this, copy, use, where, taken, is_watched] {
    host_uses_.erase(use);
    require_there(copy.from, where);
    require_there(copy.to, where);
    const HostProcess& owner = core_.hosts.process(copy.process);
    std::string gone;
    if (copy.from_host() && copy.pinned && copy.later) {
      const std::vector<std::byte> given = is_watched ? *taken : std::vector<std::byte>();
      gone = read_host(owner, taken->data(), copy.source, copy.bytes);
      if (gone.empty() && is_watched) require_same(given, *taken, copy, where);
    }
    std::byte* const data = copy.from_host() ? taken->data() : copy.from.data;
    if (copy.to_host()) {
      gone = write_host(owner, data, copy.destination, copy.bytes);
    } else {
      std::memmove(copy.to.data, data, copy.bytes);
    }
    if (gone.empty() || owner.ended) return;  // who has ended gets nothing
    simulated_failure("client", "{}: memory of process {} was freed before it had ended: {}", where, copy.process,
                      gone);
  });
  return {};
}

/// Whether nothing that is under way may use the memory of the process before the copy does.
bool Devices::is_left_alone(const HostCopy& copy) const {
  const bool is_used = std::ranges::any_of(
      host_uses_, [&](const auto& one) { return meets(one.second, copy.process, copy.host_address(), copy.bytes); });
  return !is_used && std::ranges::none_of(streams_, [&](const auto& one) {
    return one.second->process == copy.process && one.second->holds > 0;
  });
}

/// Throws if the program has written to pinned memory that a copy under way was still to read.
void Devices::require_same(const std::vector<std::byte>& given, const std::vector<std::byte>& read,
                           const HostCopy& copy, const std::string& where) {
  const auto at = static_cast<Bytes>(std::ranges::mismatch(given, read).in1 - given.begin());
  if (at == given.size()) return;
  simulated_failure(
      "client",
      "process {} has written to the memory that {} reads, at 0x{:x}, before that had ended: it has to wait "
      "for it before, as by aclrtSynchronizeStream (--poison)",
      copy.process, where, copy.source + at);
}

void Devices::copy_within(ClientStream& stream, const DeviceSpan& to, const DeviceSpan& from) {
  const Bytes bytes = from.bytes;
  const Seconds setup = core_.costs.transfer_setup(sim::Transport::sdma, bytes);
  Seconds duration = setup + 2 * static_cast<double>(bytes) / core_.platform.soc.hbm_bandwidth;
  if (to.npu != from.npu) {
    const sim::Route& route = core_.cluster.route(from.npu, to.npu);
    duration =
        setup + route.latency + static_cast<double>(bytes) * route.write_factor / core_.cluster.capacity(route.slowest);
  }
  const std::string text = fmt::format("a copy of {} bytes", bytes);
  begin_task(stream, text, {{from}, {to}});
  core_.runtime.launch(stream.id, duration, core_.trace.intern("copy"));
  end_task(stream, [to, from, where = fmt::format("{} in stream {} of NPU {}", text, stream.number, stream.npu)] {
    require_there(to, where);
    require_there(from, where);
    std::memmove(to.data, from.data, from.bytes);
  });
}

bool Devices::meets(const HostUse& use, std::uint32_t process, std::uint64_t address, Bytes bytes) {
  return use.process == process && use.address < address + bytes && address < use.address + use.bytes;
}

Result Devices::free_host(std::uint32_t process, std::uint64_t address, Bytes bytes) const {
  for (const auto& [number, use] : host_uses_) {
    if (!meets(use, process, address, bytes)) continue;
    simulated_failure("client", "process {} frees pinned memory (aclrtFreeHost) that {} uses, which is under way",
                      process, use.what);
  }
  return {};
}

std::optional<Result> Devices::fill(ThreadId id, const Question& question) {
  const HostThread& thread = core_.hosts.thread(id);
  const auto [address, room, value, bytes, handle, at_once, pinned, unused] = question.values;
  static_cast<void>(unused);
  if (bytes > room) {
    return refused(ACL_ERROR_RT_PARAM_INVALID, fmt::format("{} bytes to a place of {}", bytes, room));
  }
  const bool of_host = pinned != 0 && !DeviceMemory::is_device(address);
  const FoundSpan found = of_host ? FoundSpan{} : core_.memory.find(thread.process, address, bytes);
  if (!found.problem.empty()) return refused(ACL_ERROR_RT_PARAM_INVALID, "devPtr: " + found.problem);
  constexpr std::uint32_t copies = 0;
  ClientStream* const stream =
      at_once != 0 ? &hidden_stream(thread.process, *thread.npu, copies) : stream_of(id, handle);
  if (at_once == 0) {
    const Result wrong = usable(id, handle, stream);
    if (wrong.status != 0) return wrong;
  }
  const Seconds duration = core_.costs.transfer_setup(sim::Transport::sdma, bytes) +
                           static_cast<double>(bytes) / core_.platform.soc.hbm_bandwidth;
  reach(*stream, thread.date);
  const std::string text = fmt::format("filling {} bytes", bytes);
  Uses uses;
  if (!of_host) uses.writes.push_back(found.span);
  begin_task(*stream, text, std::move(uses));
  core_.runtime.launch(stream->id, duration, core_.trace.intern("fill"));
  const std::string where = fmt::format("{} in stream {} of NPU {}", text, stream->number, stream->npu);
  const auto byte = static_cast<int>(value & 0xff);
  if (of_host) {
    const std::uint64_t use = next_handle_++;
    host_uses_[use] = {thread.process, address, bytes, where};
    end_task(*stream, [this, use, number = thread.process, byte, address = address, bytes = bytes] {
      host_uses_.erase(use);
      static_cast<void>(fill_host(core_.hosts.process(number), byte, address, bytes));
    });
    return Result{};
  }
  end_task(*stream, [span = found.span, byte, where] {
    require_there(span, where);
    std::memset(span.data, byte, span.bytes);
  });
  return at_once != 0 ? after_task(id, *stream, "aclrtMemset") : Result{};
}

}  // namespace hcclsim::clients
