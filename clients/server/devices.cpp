#include "clients/server/devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include <acl/acl_rt.h>

namespace hcclsim::clients {
namespace {

constexpr std::uint64_t stream_tag = std::uint64_t{0x51} << 56U;
constexpr std::uint64_t event_tag = std::uint64_t{0x52} << 56U;

}  // namespace

Devices::Devices(Core& core) : core_(core), streams_of_npu_(core.cluster.size(), 0) {
  for (Rank npu = 0; npu < core.cluster.size(); ++npu) {
    const sim::Npu& one = core.cluster.npu(npu);
    npu_of_device_[{one.server, one.device}] = npu;
  }
}

std::optional<Result> Devices::handle(ThreadId id, const Question& question) {
  HostThread& thread = core_.hosts.thread(id);
  const std::uint32_t server = core_.hosts.process(thread.process).server;
  switch (question.call) {
    case Call::date:
      return Result{.values = {std::bit_cast<std::uint64_t>(thread.date)}};
    case Call::device_count:
      return Result{.values = {devices_of(server), server}, .bytes = fmt::format("server{}", server)};
    case Call::soc_name:
      return Result{.bytes = core_.platform.soc.name};
    case Call::set_device:
      return set_device(id, question.values[0]);
    case Call::get_device:
      if (!thread.npu.has_value()) return refused(ACL_ERROR_RT_CONTEXT_NULL, "the thread has set no device");
      return Result{.values = {core_.cluster.npu(*thread.npu).device}};
    case Call::reset_device: {
      const std::optional<Rank> npu = npu_of(server, question.values[0]);
      if (!npu.has_value()) return refused(ACL_ERROR_RT_INVALID_DEVICEID, "there is no such device");
      if (thread.npu == npu) thread.npu.reset();
      return Result{};
    }
    case Call::device_topology:
      return topology(id, question);
    case Call::set_saturation:
      if (!thread.npu.has_value()) return refused(ACL_ERROR_RT_CONTEXT_NULL, "the thread has set no device");
      if (question.values[0] != 0 && question.values[1] != 0) saturating_.insert(*thread.npu);
      if (question.values[0] != 0 && question.values[1] == 0) saturating_.erase(*thread.npu);
      return Result{.values = {saturates(*thread.npu) ? 1U : 0U}};
    case Call::allocate:
    case Call::free:
    case Call::memory_info:
    case Call::copy:
    case Call::fill:
    case Call::reserve_address:
    case Call::release_address:
    case Call::allocate_physical:
    case Call::free_physical:
    case Call::map_memory:
    case Call::unmap_memory:
      return handle_memory(id, question);
    case Call::create_stream:
    case Call::destroy_stream:
    case Call::synchronize_stream:
    case Call::query_stream:
    case Call::synchronize_device:
    case Call::launch_kernel:
      return handle_stream(id, question);
    case Call::launch_function:
    case Call::subscribe:
    case Call::unsubscribe:
    case Call::next_function:
    case Call::function_done:
      return handle_function(id, question);
    default:
      return handle_event(id, question);
  }
}

std::uint32_t Devices::devices_of(std::uint32_t server) const {
  const auto is_there = [&](const auto& one) { return one.first.first == server; };
  return static_cast<std::uint32_t>(std::ranges::count_if(npu_of_device_, is_there));
}

std::optional<Rank> Devices::npu_of(std::uint32_t server, std::uint64_t device) const {
  const auto found = npu_of_device_.find({server, static_cast<std::uint32_t>(device)});
  return found == npu_of_device_.end() || device > ~std::uint32_t{0} ? std::nullopt : std::optional(found->second);
}

Result Devices::set_device(ThreadId id, std::uint64_t device) {
  HostThread& thread = core_.hosts.thread(id);
  const std::uint32_t server = core_.hosts.process(thread.process).server;
  const std::optional<Rank> npu = npu_of(server, device);
  if (!npu.has_value()) {
    return refused(ACL_ERROR_RT_INVALID_DEVICEID, fmt::format("there is no device {}: the server has {}",
                                                              static_cast<std::int64_t>(device), devices_of(server)));
  }
  thread.npu = npu;
  return {};
}

Result Devices::topology(ThreadId id, const Question& question) {
  const std::uint32_t server = core_.hosts.process(core_.hosts.thread(id).process).server;
  const std::optional<Rank> one = npu_of(server, question.values[0]);
  const std::optional<Rank> other = npu_of(server, question.values[1]);
  if (!one.has_value() || !other.has_value()) return refused(ACL_ERROR_RT_INVALID_DEVICEID, "there is no such device");
  if (one == other) return refused(ACL_ERROR_RT_PARAM_INVALID, "the devices are the same");
  std::uint64_t links = 0;
  for (const sim::LinkId link : core_.cluster.route(*one, *other).links) {
    switch (core_.cluster.links()[link].kind) {
      case sim::LinkKind::hccs:
        links |= ACL_DEVICES_TOPO_HCCS;
        break;
      case sim::LinkKind::pcie:
        links |= ACL_DEVICES_TOPO_PHB;
        break;
      case sim::LinkKind::sio:
        links |= ACL_DEVICES_TOPO_SIO;
        break;
      case sim::LinkKind::ub:
        links |= ACL_DEVICES_TOPO_HCCS_SW;
        break;
      case sim::LinkKind::roce:
      case sim::LinkKind::other:
        links |= ACL_DEVICES_TOPO_SYS;
        break;
    }
  }
  return {.values = {links}};
}

// ---- Streams

ClientStream& Devices::add_stream(std::uint32_t process, Rank npu) {
  const std::uint64_t handle = stream_tag | next_handle_++;
  auto stream = std::make_unique<ClientStream>();
  stream->id = core_.runtime.create_stream(npu);
  stream->npu = npu;
  stream->process = process;
  stream->number = streams_of_npu_[npu]++;
  ClientStream& made = *stream;
  streams_[handle] = std::move(stream);
  return made;
}

ClientStream& Devices::hidden_stream(std::uint32_t process, Rank npu, std::uint32_t number) {
  ClientStream*& own = hidden_streams_[{{process, npu}, number}];
  if (own == nullptr) own = &add_stream(process, npu);
  own->is_default = true;  // no program can name it
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
  }
  return own;
}

void Devices::begin_task(ClientStream& stream, std::string name) {
  ++stream.pending;
  stream.tasks.push_back(std::move(name));
}

void Devices::end_task(ClientStream& stream, std::function<void()> done) {
  core_.runtime.host_function(stream.id, [&stream, done = std::move(done)] {
    --stream.pending;
    stream.tasks.pop_front();
    done();
  });
}

std::optional<Result> Devices::handle_stream(ThreadId id, const Question& question) {
  HostThread& thread = core_.hosts.thread(id);
  const auto no_device = [] { return refused(ACL_ERROR_RT_CONTEXT_NULL, "the thread has set no device"); };
  if (question.call == Call::create_stream) {
    if (!thread.npu.has_value()) return no_device();
    ClientStream* const made = question.values[0] != 0 ? stream_of(id, 0) : &add_stream(thread.process, *thread.npu);
    if (made == nullptr) return no_device();
    for (const auto& [handle, stream] : streams_) {
      if (stream.get() == made) return Result{.values = {handle}};
    }
    internal_error("a stream that was made is not among those that there are");
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
  if (stream == nullptr && handle == 0) return no_device();
  if (stream == nullptr) return refused(ACL_ERROR_RT_PARAM_INVALID, "this is no stream, or it was destroyed");
  switch (question.call) {
    case Call::destroy_stream: {
      if (stream->is_default) return refused(ACL_ERROR_RT_PARAM_INVALID, "the default stream is not destroyed");
      stream->destroyed = true;
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
                      "process {} ended before its device was done: in stream {} of NPU {} are {} more tasks, "
                      "the first is {}",
                      process, stream->number, stream->npu, stream->pending, stream->tasks.front());
  }
}

std::string Devices::unfinished() const {
  std::string text;
  for (const auto& [handle, stream] : streams_) {
    if (stream->pending == 0) continue;
    text += fmt::format("\n  NPU {}, stream {} (process {}): {}", stream->npu, stream->number, stream->process,
                        stream->tasks.front());
    if (stream->pending > 1) text += fmt::format(", {} more behind", stream->pending - 1);
  }
  return text;
}

// ---- Events

Devices::Event* Devices::event_of(ThreadId id, std::uint64_t handle) {
  const auto found = events_.find(handle);
  const bool usable = found != events_.end() && found->second->process == core_.hosts.thread(id).process;
  return usable ? found->second.get() : nullptr;
}

void Devices::record(ThreadId id, Event& event, ClientStream& stream) {
  reach(stream, core_.hosts.thread(id).date);
  const std::uint64_t record = ++event.records;
  begin_task(stream, "the record of an event");
  core_.runtime.record(stream.id, event.id);
  end_task(stream, [this, &event, record] {
    event.done = std::max(event.done, record);
    event.date = core_.loop.now();
    std::vector<std::pair<ThreadId, std::uint64_t>> waiting;
    waiting.swap(event.waiting);
    for (const auto& [waiter, until] : waiting) {
      if (until <= event.done) {
        stop_waiting(waiter, core_.loop.now(), {});
      } else {
        event.waiting.emplace_back(waiter, until);
      }
    }
  });
}

std::optional<Result> Devices::synchronize_event(ThreadId id, Event& event, std::int64_t milliseconds) {
  if (core_.failure.has_value()) return refused(ACL_ERROR_RT_FFTS_PLUS_TIMEOUT, "the simulated cluster has failed");
  if (event.done == event.records) {
    if (event.records > 0) core_.hosts.thread(id).date = std::max(core_.hosts.thread(id).date, event.date);
    return Result{};
  }
  wait_for_device(id, "aclrtSynchronizeEvent", milliseconds, ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
  event.waiting.emplace_back(id, event.records);
  return std::nullopt;
}

std::optional<Result> Devices::handle_event(ThreadId id, const Question& question) {
  const HostThread& thread = core_.hosts.thread(id);
  const auto& values = question.values;
  if (question.call == Call::create_event) {
    if (!thread.npu.has_value()) return refused(ACL_ERROR_RT_CONTEXT_NULL, "the thread has set no device");
    const std::uint64_t handle = event_tag | next_handle_++;
    events_[handle] = std::make_unique<Event>();
    events_[handle]->id = core_.runtime.create_event();
    events_[handle]->process = thread.process;
    return Result{.values = {handle}};
  }
  const bool second = question.call == Call::wait_event;
  Event* const event = event_of(id, second ? values[1] : values[0]);
  if (event == nullptr) return refused(ACL_ERROR_RT_PARAM_INVALID, "this is no event, or it was destroyed");
  ClientStream* stream = nullptr;
  if (question.call == Call::record_event || question.call == Call::reset_event || second) {
    const std::uint64_t handle = second ? values[0] : values[1];
    stream = stream_of(id, handle);
    if (stream == nullptr && handle == 0) {
      return refused(ACL_ERROR_RT_CONTEXT_NULL, "the thread has set no device");
    }
    if (stream == nullptr) return refused(ACL_ERROR_RT_PARAM_INVALID, "this is no stream, or it was destroyed");
  }
  switch (question.call) {
    case Call::destroy_event:
      event->process = ~std::uint32_t{0};  // nobody's: what is in streams may still come to it
      return Result{};
    case Call::record_event:
      record(id, *event, *stream);
      return Result{};
    case Call::wait_event:
      reach(*stream, thread.date);
      ++event->waits;
      begin_task(*stream, "the wait for an event");
      core_.runtime.wait(stream->id, event->id);
      end_task(*stream, [event] { ++event->passed; });
      return Result{};
    case Call::reset_event:
      return Result{};
    case Call::synchronize_event:
      return synchronize_event(id, *event, static_cast<std::int64_t>(values[1]));
    case Call::query_event:
      return Result{.values = {event->done == event->records ? 1U : 0U, event->passed == event->waits ? 1U : 0U}};
    case Call::event_time:
      if (event->records == 0 || event->done != event->records) {
        return refused(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "the event is not recorded yet");
      }
      return Result{.values = {static_cast<std::uint64_t>(std::llround(event->date * 1e6))}};
    default: {
      const Event* const end = event_of(id, values[1]);
      if (end == nullptr) return refused(ACL_ERROR_RT_PARAM_INVALID, "the second is no event, or it was destroyed");
      for (const Event* const one : {static_cast<const Event*>(event), end}) {
        if (one->records > 0 && one->done == one->records) continue;
        return refused(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "an event is not recorded yet");
      }
      if (end->date < event->date) return refused(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL, "the second comes first");
      const auto milliseconds = static_cast<float>((end->date - event->date) * 1e3);
      return Result{.values = {std::bit_cast<std::uint32_t>(milliseconds)}};
    }
  }
}

// ---- Functions of the host

Result Devices::function_for(const HostFunction& function) {
  const std::uint64_t ticket = next_handle_++;
  if (function.blocks) held_[ticket] = function.stream;
  return {.values = {function.function, function.argument, ticket}};
}

void Devices::deliver(Desk& desk) {
  if (!desk.waiting.has_value() || desk.functions.empty()) return;
  const ThreadId id = *std::exchange(desk.waiting, std::nullopt);
  core_.deadlines.cancel(desk.deadline);
  Result result = function_for(desk.functions.front());
  desk.functions.pop_front();
  core_.hosts.resume(id, core_.loop.now(), std::move(result));
}

std::optional<Result> Devices::handle_function(ThreadId id, const Question& question) {
  HostThread& thread = core_.hosts.thread(id);
  const auto& values = question.values;
  switch (question.call) {
    case Call::subscribe:
      if (stream_of(id, values[1]) == nullptr) return refused(ACL_ERROR_RT_PARAM_INVALID, "this is no stream");
      subscribers_[values[1]] = values[0];
      return Result{};
    case Call::unsubscribe:
      if (subscribers_.erase(values[1]) == 0) return refused(ACL_ERROR_RT_STREAM_NO_CB_REG, "nobody has subscribed");
      return Result{};
    case Call::launch_function: {
      ClientStream* const stream = stream_of(id, values[0]);
      if (stream == nullptr) return refused(ACL_ERROR_RT_PARAM_INVALID, "this is no stream, or no device is set");
      std::uint64_t subscriber = none;
      if (values[4] != 0) {
        const auto found = subscribers_.find(values[0]);
        if (found == subscribers_.end()) {
          return refused(ACL_ERROR_RT_STREAM_NO_CB_REG, "no thread has subscribed to the stream: aclrtSubscribeReport");
        }
        subscriber = found->second;
      }
      const bool blocks = values[3] != 0;
      reach(*stream, thread.date);
      begin_task(*stream, "a function of the host");
      core_.runtime.hold(stream->id, [this, stream, subscriber, blocks, process = thread.process, function = values[1],
                                      argument = values[2]] {
        Desk& desk = desks_[{process, subscriber}];
        desk.functions.push_back({function, argument, stream, blocks});
        if (!blocks) core_.runtime.release(stream->id);
        deliver(desk);
      });
      end_task(*stream, [] {});
      return Result{};
    }
    case Call::next_function: {
      Desk& desk = desks_[{thread.process, values[0]}];
      if (!desk.functions.empty()) {
        Result result = function_for(desk.functions.front());
        desk.functions.pop_front();
        return result;
      }
      desk.waiting = id;
      const auto milliseconds = static_cast<std::int64_t>(values[1]);
      desk.deadline = 0;
      if (milliseconds >= 0) {
        const Seconds date = thread.date + static_cast<double>(milliseconds) * 1e-3;
        desk.deadline = core_.deadlines.at(std::max(date, core_.loop.now()), [this, id, date, &desk] {
          desk.waiting.reset();
          core_.hosts.resume(id, date, {.status = ACL_ERROR_RT_WAIT_TIMEOUT});
        });
      }
      core_.hosts.park(
          id, [] { return "waits in aclrtProcessReport for functions of the host"; }, values[0] == none);
      return std::nullopt;
    }
    default: {
      const auto found = held_.find(values[0]);
      if (found == held_.end()) return Result{};
      ClientStream* const stream = found->second;
      held_.erase(found);
      core_.loop.at(std::max(thread.date, core_.loop.now()), hccl::event_order(stream->npu, stream->number),
                    [this, stream] { core_.runtime.release(stream->id); });
      return Result{};
    }
  }
}

}  // namespace hcclsim::clients
