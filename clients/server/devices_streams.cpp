#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include <acl/acl_rt.h>

#include "clients/server/devices.hpp"

// Streams, and how threads wait for them.
namespace hcclsim::clients {
namespace {

constexpr std::uint64_t stream_tag = std::uint64_t{0x51} << 56U;

}  // namespace

ClientStream& Devices::add_stream(std::uint32_t process, Rank npu) {
  const std::uint64_t handle = stream_tag | next_handle_++;
  auto stream = std::make_unique<ClientStream>();
  stream->id = core_.runtime.create_stream(npu);
  stream->npu = npu;
  stream->process = process;
  stream->number = npus_[npu].numbered_streams++;
  ClientStream& made = *stream;
  streams_[handle] = std::move(stream);
  return made;
}

ClientStream& Devices::hidden_stream(std::uint32_t process, Rank npu, std::uint32_t number) {
  ClientStream*& own = hidden_streams_[{{process, npu}, number}];
  if (own == nullptr) own = &add_stream(process, npu);
  own->is_hidden = true;
  return *own;
}

ClientStream* Devices::stream_of(ThreadId id, std::uint64_t handle) {
  const HostThread& thread = core_.hosts.thread(id);
  if (handle != 0) {
    const auto found = streams_.find(handle);
    const bool usable =
        found != streams_.end() && !found->second->destroyed && found->second->process == thread.process;
    return usable ? found->second.get() : nullptr;
  }
  if (!thread.npu.has_value()) return nullptr;
  ClientStream*& own = default_streams_[{thread.process, *thread.npu}];
  if (own == nullptr) {
    own = &add_stream(thread.process, *thread.npu);
    own->is_default = true;
    ++npus_[own->npu].streams;
  }
  return own;
}

Result Devices::usable(ThreadId id, std::uint64_t handle, const ClientStream* stream) const {
  const HostThread& thread = core_.hosts.thread(id);
  if (stream == nullptr && handle != 0) {
    return refused(ACL_ERROR_RT_PARAM_INVALID, "this is no stream, or it was destroyed");
  }
  if (stream == nullptr || !thread.npu.has_value()) {
    return refused(ACL_ERROR_RT_CONTEXT_NULL, "the thread has set no device");
  }
  if (stream->npu == *thread.npu) return {};
  return refused(ACL_ERROR_RT_STREAM_CONTEXT,
                 fmt::format("the stream is on NPU {}, the thread has set NPU {}", stream->npu, *thread.npu));
}

Result Devices::create_stream(const HostThread& thread) {
  const std::uint32_t most = core_.platform.soc.streams;
  if (npus_[*thread.npu].streams >= most) {
    return refused(ACL_ERROR_RT_NO_STREAM_RESOURCE,
                   fmt::format("NPU {} has no more than {} streams", *thread.npu, most));
  }
  ++npus_[*thread.npu].streams;
  return {.values = {handle_of(add_stream(thread.process, *thread.npu))}};
}

std::uint64_t Devices::handle_of(const ClientStream& stream) const {
  const auto is_it = [&](const auto& one) { return one.second.get() == &stream; };
  return std::ranges::find_if(streams_, is_it)->first;
}

void Devices::end_stream(ClientStream& stream) {
  if (!std::exchange(stream.destroyed, true)) --npus_[stream.npu].streams;
}

void Devices::begin_task(ClientStream& stream, std::string name, Uses uses) {
  ++stream.pending;
  StreamTask& task = stream.tasks.emplace_back(StreamTask{.name = std::move(name)});
  if (core_.accesses == nullptr || (uses.reads.empty() && uses.writes.empty())) return;
  task.uses = core_.accesses->issue(
      stream, fmt::format("{} in stream {} of NPU {}", task.name, stream.number, stream.npu), std::move(uses));
  core_.runtime.host_function(stream.id, [this, number = task.uses] { core_.accesses->begin(number); });
}

void Devices::end_task(ClientStream& stream, std::function<void()> done) {
  core_.runtime.host_function(stream.id, [this, &stream, done = std::move(done)] {
    --stream.pending;
    const Accesses::Number uses = stream.tasks.front().uses;
    if (uses != 0) core_.accesses->end(uses);
    stream.tasks.pop_front();
    done();
  });
}

std::optional<Result> Devices::handle_stream(ThreadId id, const Question& question) {
  HostThread& thread = core_.hosts.thread(id);
  const auto no_device = [] { return refused(ACL_ERROR_RT_CONTEXT_NULL, "the thread has set no device"); };
  if (question.call == Call::create_stream) {
    if (!thread.npu.has_value()) return no_device();
    if (question.values[0] == 0) return create_stream(thread);
    return Result{.values = {handle_of(*stream_of(id, 0))}};
  }
  if (question.call == Call::synchronize_device) {
    if (!thread.npu.has_value()) return no_device();
    std::vector<ClientStream*> all;
    for (const auto& [handle, stream] : streams_) {
      if (stream->npu == *thread.npu && stream->process == thread.process) all.push_back(stream.get());
    }
    return synchronize(id, all, static_cast<std::int64_t>(question.values[0]), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                       "aclrtSynchronizeDevice");
  }
  const std::uint64_t handle = question.call == Call::launch_kernel ? question.values[1] : question.values[0];
  ClientStream* const stream = stream_of(id, handle);
  const Result wrong = usable(id, handle, stream);
  if (wrong.status != 0) return wrong;
  switch (question.call) {
    case Call::destroy_stream: {
      if (stream->is_default) return refused(ACL_ERROR_RT_PARAM_INVALID, "the default stream is not destroyed");
      end_stream(*stream);
      if (question.values[1] != 0) return Result{};
      return synchronize(id, {stream}, -1, 0, "aclrtDestroyStream");
    }
    case Call::synchronize_stream:
      return synchronize(id, {stream}, static_cast<std::int64_t>(question.values[1]), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                         "aclrtSynchronizeStream");
    case Call::query_stream:
      return Result{.values = {stream->pending == 0 ? 1U : 0U, stream->number}};
    default: {
      const auto duration = std::bit_cast<double>(question.values[0]);
      if (!(duration >= 0) || !std::isfinite(duration)) return refused(ACL_ERROR_RT_PARAM_INVALID, "no duration");
      reach(*stream, thread.date);
      begin_task(*stream, question.bytes);
      core_.runtime.launch(stream->id, duration, core_.trace.intern(question.bytes));
      end_task(*stream, [] {});
      return Result{};
    }
  }
}

void Devices::wait_for_device(ThreadId id, const std::string& what, std::int64_t milliseconds,
                              std::int32_t timeout_status) {
  Deadlines::Number deadline = 0;
  if (milliseconds >= 0) {
    const Seconds date = core_.hosts.thread(id).date + static_cast<double>(milliseconds) * 1e-3;
    deadline = core_.deadlines.at(std::max(date, core_.loop.now()), [this, id, date, timeout_status] {
      device_waiters_.erase(id);
      core_.hosts.resume(id, date, refused(timeout_status, "the time-out has come first"));
    });
  }
  device_waiters_[id] = deadline;
  core_.hosts.park(id, [what] { return "waits in " + what; });
}

void Devices::stop_waiting(ThreadId id, Seconds date, Result result) {
  const auto found = device_waiters_.find(id);
  if (found == device_waiters_.end()) return;  // it has given up
  core_.deadlines.cancel(found->second);
  device_waiters_.erase(found);
  core_.hosts.resume(id, date, std::move(result));
}

std::optional<Result> Devices::synchronize(ThreadId id, const std::vector<ClientStream*>& streams,
                                           std::int64_t milliseconds, std::int32_t timeout_status,
                                           const std::string& what) {
  if (core_.failure.has_value()) {
    return refused(ACL_ERROR_RT_FFTS_PLUS_TIMEOUT, "the simulated cluster has failed");
  }
  if (milliseconds < -1) return no_such_timeout(milliseconds);
  if (streams.empty()) return Result{};
  wait_for_device(id, what, milliseconds, timeout_status);
  // Shared by what comes last in each of them.
  const auto left = std::make_shared<std::size_t>(streams.size());
  const Seconds date = core_.hosts.thread(id).date;
  for (ClientStream* const stream : streams) {
    reach(*stream, date);
    core_.runtime.host_function(stream->id, [this, id, left] {
      if (--*left == 0) stop_waiting(id, core_.loop.now(), {});
    });
  }
  return std::nullopt;
}

Result Devices::no_such_timeout(std::int64_t milliseconds) {
  return refused(ACL_ERROR_RT_PARAM_INVALID, fmt::format("timeout: {}; accepted: -1, or milliseconds", milliseconds));
}

void Devices::fail_all() {
  const auto waiters = device_waiters_;
  for (const auto& [id, deadline] : waiters) {
    stop_waiting(id, core_.loop.now(),
                 refused(ACL_ERROR_RT_FFTS_PLUS_TIMEOUT,
                         "the simulated cluster has failed: " + std::string(core_.failure->what())));
  }
}

void Devices::end_process(std::uint32_t process) {
  core_.memory.free_all(process);
  for (const auto& [handle, stream] : streams_) {
    if (stream->process != process || stream->pending == 0 || core_.failure.has_value()) continue;
    simulated_failure("client",
                      "process {} ended before its device was done: in stream {} of NPU {} {} left, "
                      "the first is {}",
                      process, stream->number, stream->npu,
                      stream->pending == 1 ? "1 task is" : fmt::format("{} tasks are", stream->pending),
                      stream->tasks.front().name);
  }
}

std::string Devices::unfinished() const {
  std::string text;
  for (const auto& [handle, stream] : streams_) {
    if (stream->pending == 0) continue;
    text += fmt::format("\n  NPU {}, stream {} (process {}): {}", stream->npu, stream->number, stream->process,
                        stream->tasks.front().name);
    if (stream->pending > 1) text += fmt::format(", {} more behind", stream->pending - 1);
  }
  return text;
}

}  // namespace hcclsim::clients
