#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include <acl/acl_rt.h>

#include "clients/server/devices.hpp"

// Events, and functions of the host in streams.
namespace hcclsim::clients {
namespace {

constexpr std::uint64_t event_tag = std::uint64_t{0x52} << 56U;
constexpr std::uint32_t nobody = ~std::uint32_t{0};  // no process

}  // namespace

Devices::Event* Devices::event_of(ThreadId id, std::uint64_t handle) {
  const auto found = events_.find(handle);
  const bool usable = found != events_.end() && found->second->process == core_.hosts.thread(id).process;
  return usable ? found->second.get() : nullptr;
}

/// What is in streams may still come to it.
void Devices::end_event(Event& event) {
  event.process = nobody;
  --npus_[event.npu].events;
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
    std::vector<std::pair<ClientStream*, std::uint64_t>> held;
    held.swap(event.streams);
    for (const auto& [waiter, until] : held) {
      if (until <= event.done) {
        core_.runtime.release(waiter->id);
      } else {
        event.streams.emplace_back(waiter, until);
      }
    }
  });
}

/// A wait that comes before any record. As the runtime of CANN has it: an event of aclrtCreateEventExWithFlag holds no
/// tasks until then, and nothing waits for it; a flag holds the stream until somebody records it; others are refused.
Result Devices::wait(ThreadId id, Event& event, ClientStream& stream) {
  if (event.maker != EventMaker::create_ex_with_flag && !event.is_flag && event.records == 0) {
    return refused(ACL_ERROR_RT_PARAM_INVALID,
                   "the event was never recorded: call aclrtRecordEvent before, or make it with "
                   "aclrtCreateEventWithFlag and ACL_EVENT_SYNC, on which a stream can wait before");
  }
  reach(stream, core_.hosts.thread(id).date);
  ++event.waits;
  const std::uint64_t record = event.is_flag ? event.record_to_wait_for() : event.records;
  event.awaited = record;
  begin_task(stream,
             record > event.records ? "the wait for an event that is still to be recorded" : "the wait for an event");
  if (event.is_flag) {
    ++stream.holds;
    core_.runtime.hold(stream.id, [this, &event, &stream, record] {
      if (record <= event.done) {
        core_.runtime.release(stream.id);
      } else {
        event.streams.emplace_back(&stream, record);
      }
    });
  } else {
    core_.runtime.wait(stream.id, event.id);
  }
  end_task(stream, [&event, &stream] {
    ++event.passed;
    if (event.is_flag) --stream.holds;
  });
  return {};
}

/// Of a flag it clears the record for which streams wait, too.
void Devices::reset(Event& event, ClientStream& stream) {
  event.spent = std::max(event.records, event.awaited);
  begin_task(stream, "the reset of an event");
  end_task(stream, [&event, until = event.is_flag ? event.spent : event.records] {
    event.reset = std::max(event.reset, until);
  });
}

bool Devices::Event::is_recorded() const {
  if (records == 0) return maker == EventMaker::create_ex_with_flag;  // there are no tasks that it holds
  return done == records && records > reset;
}

std::optional<Result> Devices::synchronize_event(ThreadId id, Event& event, std::int64_t milliseconds) {
  if (core_.failure.has_value()) return refused(ACL_ERROR_RT_FFTS_PLUS_TIMEOUT, "the simulated cluster has failed");
  if (milliseconds < -1) return no_such_timeout(milliseconds);
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
    const std::uint32_t most = core_.platform.soc.events;
    if (npus_[*thread.npu].events >= most) {
      return refused(ACL_ERROR_RT_NO_EVENT_RESOURCE,
                     fmt::format("NPU {} has no more than {} events", *thread.npu, most));
    }
    ++npus_[*thread.npu].events;
    const std::uint64_t handle = event_tag | next_handle_++;
    auto event = std::make_unique<Event>();
    event->id = core_.runtime.create_event();
    event->process = thread.process;
    event->npu = *thread.npu;
    event->maker = static_cast<EventMaker>(values[1]);
    event->is_flag = event->maker == EventMaker::create_with_flag && (values[0] & ACL_EVENT_SYNC) != 0;
    events_[handle] = std::move(event);
    return Result{.values = {handle}};
  }
  const bool second = question.call == Call::wait_event;
  Event* const event = event_of(id, second ? values[1] : values[0]);
  if (event == nullptr) return refused(ACL_ERROR_RT_PARAM_INVALID, "this is no event, or it was destroyed");
  ClientStream* stream = nullptr;
  if (question.call == Call::record_event || question.call == Call::reset_event || second) {
    const std::uint64_t handle = second ? values[0] : values[1];
    stream = stream_of(id, handle);
    const Result wrong = usable(id, handle, stream);
    if (wrong.status != 0) return wrong;
  }
  switch (question.call) {
    case Call::destroy_event:
      end_event(*event);
      return Result{};
    case Call::record_event:
      record(id, *event, *stream);
      return Result{};
    case Call::wait_event:
      return wait(id, *event, *stream);
    case Call::reset_event:
      reset(*event, *stream);
      return Result{};
    case Call::synchronize_event:
      return synchronize_event(id, *event, static_cast<std::int64_t>(values[1]));
    case Call::query_event:
      return Result{.values = {event->done == event->records ? 1U : 0U, event->passed == event->waits ? 1U : 0U,
                               event->is_recorded() ? 1U : 0U}};
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
      if (const Result wrong = usable(id, values[1], stream_of(id, values[1])); wrong.status != 0) return wrong;
      subscribers_[values[1]] = values[0];
      return Result{};
    case Call::unsubscribe:
      if (subscribers_.erase(values[1]) == 0) return refused(ACL_ERROR_RT_STREAM_NO_CB_REG, "nobody has subscribed");
      return Result{};
    case Call::launch_function: {
      ClientStream* const stream = stream_of(id, values[0]);
      if (const Result wrong = usable(id, values[0], stream); wrong.status != 0) return wrong;
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
      ++stream->holds;
      begin_task(*stream, "a function of the host");
      core_.runtime.hold(stream->id, [this, stream, subscriber, blocks, process = thread.process, function = values[1],
                                      argument = values[2]] {
        Desk& desk = desks_[{process, subscriber}];
        desk.functions.push_back({function, argument, stream, blocks});
        if (!blocks) core_.runtime.release(stream->id);
        deliver(desk);
      });
      end_task(*stream, [stream] { --stream->holds; });
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
