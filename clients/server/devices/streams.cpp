#include "clients/server/devices/streams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include <acl/acl_rt.h>

namespace hcclsim::clients {

ClientStream& Streams::add(std::uint32_t process, Rank npu) {
  const std::uint64_t handle = handles_.next(HandleKind::stream);
  auto stream = std::make_unique<ClientStream>();
  stream->id = core_.runtime.create_stream(npu);
  stream->npu = npu;
  stream->process = process;
  stream->number = npus_[npu].numbered++;
  ClientStream& made = *stream;
  streams_[handle] = std::move(stream);
  return made;
}

ClientStream& Streams::hidden(std::uint32_t process, Rank npu, std::uint32_t number) {
  ClientStream*& own = hidden_[{{process, npu}, number}];
  if (own == nullptr) own = &add(process, npu);
  own->is_hidden = true;
  return *own;
}

ClientStream* Streams::find(ThreadId id, std::uint64_t handle) {
  const HostThread& thread = core_.hosts.thread(id);
  if (handle != 0) {
    const auto found = streams_.find(handle);
    const bool usable =
        found != streams_.end() && !found->second->destroyed && found->second->process == thread.process;
    return usable ? found->second.get() : nullptr;
  }
  if (!thread.npu.has_value()) return nullptr;
  ClientStream*& own = defaults_[{thread.process, *thread.npu}];
  if (own == nullptr) {
    own = &add(thread.process, *thread.npu);
    own->is_default = true;
    ++npus_[own->npu].streams;
  }
  return own;
}

FoundStream Streams::usable(ThreadId id, std::uint64_t handle) {
  ClientStream* const stream = find(id, handle);
  const std::optional<Rank> npu = core_.hosts.thread(id).npu;
  if (stream == nullptr && handle != 0) {
    return {.wrong = refused(ACL_ERROR_RT_PARAM_INVALID, "this is no stream, or it was destroyed")};
  }
  if (stream == nullptr || !npu.has_value()) {
    return {.wrong = refused(ACL_ERROR_RT_CONTEXT_NULL, "the thread has set no device")};
  }
  if (stream->npu == *npu) return {.stream = stream};
  return {.wrong = refused(ACL_ERROR_RT_STREAM_CONTEXT,
                           fmt::format("the stream is on NPU {}, the thread has set NPU {}", stream->npu, *npu))};
}

Result Streams::create(const HostThread& thread) {
  const std::uint32_t most = core_.platform.soc.streams;
  if (npus_[*thread.npu].streams >= most) {
    return refused(ACL_ERROR_RT_NO_STREAM_RESOURCE,
                   fmt::format("NPU {} has no more than {} streams", *thread.npu, most));
  }
  ++npus_[*thread.npu].streams;
  return {.values = {handle_of(add(thread.process, *thread.npu))}};
}

std::uint64_t Streams::handle_of(const ClientStream& stream) const {
  const auto is_it = [&](const auto& one) { return one.second.get() == &stream; };
  return std::ranges::find_if(streams_, is_it)->first;
}

void Streams::end(ClientStream& stream) {
  if (!std::exchange(stream.destroyed, true)) --npus_[stream.npu].streams;
}

void Streams::begin_task(ClientStream& stream, std::string name, Uses uses) {
  ++stream.pending;
  StreamTask& task = stream.tasks.emplace_back(StreamTask{.name = std::move(name)});
  if (accesses_ == nullptr || (uses.reads.empty() && uses.writes.empty())) return;
  task.uses = accesses_->issue(stream, fmt::format("{} in stream {} of NPU {}", task.name, stream.number, stream.npu),
                               std::move(uses));
  core_.runtime.host_function(stream.id, [this, number = task.uses] { accesses_->begin(number); });
}

void Streams::end_task(ClientStream& stream, std::function<void()> done) {
  core_.runtime.host_function(stream.id, [this, &stream, done = std::move(done)] {
    --stream.pending;
    const Accesses::Number uses = stream.tasks.front().uses;
    if (uses != 0) accesses_->end(uses);
    stream.tasks.pop_front();
    done();
  });
}

std::optional<Result> Streams::handle(ThreadId id, const Question& question) {
  HostThread& thread = core_.hosts.thread(id);
  const auto no_device = [] { return refused(ACL_ERROR_RT_CONTEXT_NULL, "the thread has set no device"); };
  if (question.call == Call::create_stream) {
    if (!thread.npu.has_value()) return no_device();
    if (question.values[0] == 0) return create(thread);
    return Result{.values = {handle_of(*find(id, 0))}};
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
  const auto [stream, wrong] = usable(id, handle);
  if (stream == nullptr) return wrong;
  switch (question.call) {
    case Call::destroy_stream: {
      if (stream->is_default) return refused(ACL_ERROR_RT_PARAM_INVALID, "the default stream is not destroyed");
      end(*stream);
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

std::optional<Result> Streams::synchronize(ThreadId id, const std::vector<ClientStream*>& streams,
                                           std::int64_t milliseconds, std::int32_t timeout_status,
                                           const std::string& what) {
  if (const Result wrong = waits_.refusal(milliseconds); wrong.status != 0) return wrong;
  if (streams.empty()) return Result{};
  waits_.begin(id, what, milliseconds, timeout_status);
  // Shared by what comes last in each of them.
  const auto left = std::make_shared<std::size_t>(streams.size());
  const Seconds date = core_.hosts.thread(id).date;
  for (ClientStream* const stream : streams) {
    reach(*stream, date);
    core_.runtime.host_function(stream->id, [this, id, left] {
      if (--*left == 0) waits_.end(id);
    });
  }
  return std::nullopt;
}

bool Streams::any_held(std::uint32_t process) const {
  return std::ranges::any_of(streams_,
                             [&](const auto& one) { return one.second->process == process && one.second->holds > 0; });
}

void Streams::release(std::uint32_t process, Rank npu) {
  for (const auto& [handle, stream] : streams_) {
    if (stream->process == process && stream->npu == npu && !stream->is_hidden) end(*stream);
  }
  defaults_.erase({process, npu});
}

void Streams::end_process(std::uint32_t process) const {
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

std::string Streams::unfinished() const {
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
