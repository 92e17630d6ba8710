#include "clients/server/devices/copies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include <acl/acl_rt.h>

#include "clients/server/devices/host_memory.hpp"

namespace hcclsim::clients {
namespace {

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

/// Throws if the program has written to pinned memory that a copy under way was still to read.
void require_same(const std::vector<std::byte>& given, const std::vector<std::byte>& read, std::uint32_t process,
                  std::uint64_t address, const std::string& where) {
  const auto at = static_cast<Bytes>(std::ranges::mismatch(given, read).in1 - given.begin());
  if (at == given.size()) return;
  simulated_failure(
      "client",
      "process {} has written to the memory that {} reads, at 0x{:x}, before that had ended: it has to wait "
      "for it before, as by aclrtSynchronizeStream (--poison)",
      process, where, address + at);
}

}  // namespace

std::optional<Result> Copies::handle(ThreadId id, const Question& question) {
  const HostThread& thread = core_.hosts.thread(id);
  if (question.call == Call::free_host) {
    free_host(thread.process, question.values[0], question.values[1]);
    return Result{};
  }
  if (!thread.npu.has_value()) return refused(ACL_ERROR_RT_CONTEXT_NULL, "the thread has set no device");
  return question.call == Call::copy ? copy(id, question) : fill(id, question);
}

FoundStream Copies::stream_for(ThreadId id, std::uint64_t handle, bool at_once) {
  if (!at_once) return streams_.usable(id, handle);
  const HostThread& thread = core_.hosts.thread(id);
  constexpr std::uint32_t copies = 0;
  return {.stream = &streams_.hidden(thread.process, *thread.npu, copies)};
}

std::optional<Result> Copies::copy(ThreadId id, const Question& question) {
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
  if (to_device && from_device && !devices_.have_access(thread.process, to.span.npu, from.span.npu)) {
    return refused(ACL_ERROR_RT_PARAM_INVALID,
                   fmt::format("dst is memory of NPU {}, src of NPU {}: call aclrtDeviceEnablePeerAccess before",
                               to.span.npu, from.span.npu));
  }

  const auto [stream, unusable] = stream_for(id, handle, at_once != 0);
  if (stream == nullptr) return unusable;
  if (bytes == 0) return Result{};
  if (to_device && from_device) {
    copy_within(*stream, thread.date, to.span, from.span);
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
  if (at_once == 0) return Result{};
  return streams_.synchronize(id, {stream}, -1, 0, "aclrtMemcpy");
}

std::string Copies::take_from_host(const HostCopy& copy, std::vector<std::byte>& taken) const {
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

Result Copies::copy_host(ClientStream& stream, Seconds date, const HostCopy& copy) {
  // What the program gives is taken now, as it may be gone when the stream comes to it; pinned memory is read then.
  const auto taken = std::make_shared<std::vector<std::byte>>();
  const std::string problem = take_from_host(copy, *taken);
  if (!problem.empty()) return refused(ACL_ERROR_RT_PARAM_INVALID, problem);
  const bool is_watched = streams_.are_watched() && copy.later && is_left_alone(copy);
  if (is_watched && !copy.from_host()) {
    static_cast<void>(fill_host(core_.hosts.process(copy.process), poison_byte, copy.destination, copy.bytes));
  }
  streams_.reach(stream, date);
  const std::string text = fmt::format("a copy of {} bytes", copy.bytes);
  Uses uses;
  if (!copy.from_host()) uses.reads.push_back(copy.from);
  if (!copy.to_host()) uses.writes.push_back(copy.to);
  streams_.begin_task(stream, text, std::move(uses));
  const std::uint32_t name = core_.trace.intern("copy");
  if (!copy.to_host()) core_.runtime.copy_from_host(stream.id, copy.bytes, name);
  if (!copy.from_host()) core_.runtime.copy_to_host(stream.id, copy.bytes, name);
  const std::string where = fmt::format("{} in stream {} of NPU {}", text, stream.number, stream.npu);
  const std::uint64_t use = handles_.next();
  if (copy.later) host_uses_[use] = {copy.process, copy.host_address(), copy.bytes, where};
  streams_.end_task(stream, [this, copy, use, where, taken, is_watched] {
    host_uses_.erase(use);
    move(copy, where, *taken, is_watched);
  });
  return {};
}

void Copies::move(const HostCopy& copy, const std::string& where, std::vector<std::byte>& taken,
                  bool is_watched) const {
  require_there(copy.from, where);
  require_there(copy.to, where);
  const HostProcess& owner = core_.hosts.process(copy.process);
  std::string gone;
  if (copy.from_host() && copy.pinned && copy.later) {
    const std::vector<std::byte> given = is_watched ? taken : std::vector<std::byte>();
    gone = read_host(owner, taken.data(), copy.source, copy.bytes);
    if (gone.empty() && is_watched) require_same(given, taken, copy.process, copy.source, where);
  }
  std::byte* const data = copy.from_host() ? taken.data() : copy.from.data;
  if (copy.to_host()) {
    gone = write_host(owner, data, copy.destination, copy.bytes);
  } else {
    std::memmove(copy.to.data, data, copy.bytes);
  }
  if (gone.empty() || owner.ended) return;  // who has ended gets nothing
  simulated_failure("client", "{}: memory of process {} was freed before it had ended: {}", where, copy.process, gone);
}

bool Copies::is_left_alone(const HostCopy& copy) const {
  const bool is_used = std::ranges::any_of(
      host_uses_, [&](const auto& one) { return one.second.meets(copy.process, copy.host_address(), copy.bytes); });
  return !is_used && !streams_.any_held(copy.process);
}

void Copies::copy_within(ClientStream& stream, Seconds date, const DeviceSpan& to, const DeviceSpan& from) {
  const Bytes bytes = from.bytes;
  const Seconds setup = core_.costs.transfer_setup(sim::Transport::sdma, bytes);
  Seconds duration = setup + 2 * static_cast<double>(bytes) / core_.platform.soc.hbm_bandwidth;
  if (to.npu != from.npu) {
    const sim::Route& route = core_.cluster.route(from.npu, to.npu);
    duration =
        setup + route.latency + static_cast<double>(bytes) * route.write_factor / core_.cluster.capacity(route.slowest);
  }
  streams_.reach(stream, date);
  const std::string text = fmt::format("a copy of {} bytes", bytes);
  streams_.begin_task(stream, text, {{from}, {to}});
  core_.runtime.launch(stream.id, duration, core_.trace.intern("copy"));
  streams_.end_task(stream,
                    [to, from, where = fmt::format("{} in stream {} of NPU {}", text, stream.number, stream.npu)] {
                      require_there(to, where);
                      require_there(from, where);
                      std::memmove(to.data, from.data, from.bytes);
                    });
}

void Copies::free_host(std::uint32_t process, std::uint64_t address, Bytes bytes) const {
  for (const auto& [number, use] : host_uses_) {
    if (!use.meets(process, address, bytes)) continue;
    simulated_failure("client", "process {} frees pinned memory (aclrtFreeHost) that {} uses, which is under way",
                      process, use.what);
  }
}

std::optional<Result> Copies::fill(ThreadId id, const Question& question) {
  const HostThread& thread = core_.hosts.thread(id);
  const auto [address, room, value, bytes, handle, at_once, pinned, unused] = question.values;
  static_cast<void>(unused);
  if (bytes > room) {
    return refused(ACL_ERROR_RT_PARAM_INVALID, fmt::format("{} bytes to a place of {}", bytes, room));
  }
  const bool of_host = pinned != 0 && !DeviceMemory::is_device(address);
  const FoundSpan found = of_host ? FoundSpan{} : core_.memory.find(thread.process, address, bytes);
  if (!found.problem.empty()) return refused(ACL_ERROR_RT_PARAM_INVALID, "devPtr: " + found.problem);
  const auto [stream, unusable] = stream_for(id, handle, at_once != 0);
  if (stream == nullptr) return unusable;
  const Seconds duration = core_.costs.transfer_setup(sim::Transport::sdma, bytes) +
                           static_cast<double>(bytes) / core_.platform.soc.hbm_bandwidth;
  streams_.reach(*stream, thread.date);
  const std::string text = fmt::format("filling {} bytes", bytes);
  Uses uses;
  if (!of_host) uses.writes.push_back(found.span);
  streams_.begin_task(*stream, text, std::move(uses));
  core_.runtime.launch(stream->id, duration, core_.trace.intern("fill"));
  const std::string where = fmt::format("{} in stream {} of NPU {}", text, stream->number, stream->npu);
  const auto byte = static_cast<int>(value & 0xff);
  if (of_host) {
    const std::uint64_t use = handles_.next();
    host_uses_[use] = {thread.process, address, bytes, where};
    streams_.end_task(*stream, [this, use, number = thread.process, byte, address = address, bytes = bytes] {
      host_uses_.erase(use);
      static_cast<void>(fill_host(core_.hosts.process(number), byte, address, bytes));
    });
    return Result{};
  }
  streams_.end_task(*stream, [span = found.span, byte, where] {
    require_there(span, where);
    std::memset(span.data, byte, span.bytes);
  });
  if (at_once == 0) return Result{};
  return streams_.synchronize(id, {stream}, -1, 0, "aclrtMemset");
}

}  // namespace hcclsim::clients
