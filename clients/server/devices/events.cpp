#include "clients/server/devices/events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include <acl/acl_rt.h>

namespace hcclsim::clients {
namespace {

constexpr std::uint32_t nobody = ~std::uint32_t{0};  // no process

}  // namespace

Events::Event* Events::find(ThreadId id, std::uint64_t handle) {
  const auto found = events_.find(handle);
  const bool usable = found != events_.end() && found->second->process == core_.hosts.thread(id).process;
  return usable ? found->second.get() : nullptr;
}

/// What is in streams may still come to it.
void Events::end(Event& event) {
  event.process = nobody;
  --on_npu_[event.npu];
}

void Events::record(ThreadId id, Event& event, ClientStream& stream) {
  streams_.reach(stream, core_.hosts.thread(id).date);
  const std::uint64_t record = ++event.records;
  streams_.begin_task(stream, "the record of an event");
  core_.runtime.record(stream.id, event.id);
  streams_.end_task(stream, [this, &event, record] {
    event.done = std::max(event.done, record);
    event.date = core_.loop.now();
    std::vector<std::pair<ThreadId, std::uint64_t>> waiting;
    waiting.swap(event.waiting);
    for (const auto& [waiter, until] : waiting) {
      if (until <= event.done) {
        waits_.end(waiter);
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
Result Events::wait(ThreadId id, Event& event, ClientStream& stream) {
  if (event.maker != EventMaker::create_ex_with_flag && !event.is_flag && event.records == 0) {
    return refused(ACL_ERROR_RT_PARAM_INVALID,
                   "the event was never recorded: call aclrtRecordEvent before, or make it with "
                   "aclrtCreateEventWithFlag and ACL_EVENT_SYNC, on which a stream can wait before");
  }
  streams_.reach(stream, core_.hosts.thread(id).date);
  ++event.waits;
  const std::uint64_t record = event.is_flag ? event.record_to_wait_for() : event.records;
  event.awaited = record;
  streams_.begin_task(
      stream, record > event.records ? "the wait for an event that is still to be recorded" : "the wait for an event");
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
  streams_.end_task(stream, [&event, &stream] {
    ++event.passed;
    if (event.is_flag) --stream.holds;
  });
  return {};
}

/// Of a flag it clears the record for which streams wait, too.
void Events::reset(Event& event, ClientStream& stream) {
  event.spent = std::max(event.records, event.awaited);
  streams_.begin_task(stream, "the reset of an event");
  streams_.end_task(stream, [&event, until = event.is_flag ? event.spent : event.records] {
    event.reset = std::max(event.reset, until);
  });
}

bool Events::Event::is_recorded() const {
  if (records == 0) return maker == EventMaker::create_ex_with_flag;  // there are no tasks that it holds
  return done == records && records > reset;
}

std::optional<Result> Events::synchronize(ThreadId id, Event& event, std::int64_t milliseconds) {
  if (const Result wrong = waits_.refusal(milliseconds); wrong.status != 0) return wrong;
  if (event.done == event.records) {
    if (event.records > 0) core_.hosts.thread(id).date = std::max(core_.hosts.thread(id).date, event.date);
    return Result{};
  }
  waits_.begin(id, "aclrtSynchronizeEvent", milliseconds, ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
  event.waiting.emplace_back(id, event.records);
  return std::nullopt;
}

Result Events::create(const HostThread& thread, EventMaker maker, std::uint64_t flags) {
  if (!thread.npu.has_value()) return refused(ACL_ERROR_RT_CONTEXT_NULL, "the thread has set no device");
  const std::uint32_t most = core_.platform.soc.events;
  if (on_npu_[*thread.npu] >= most) {
    return refused(ACL_ERROR_RT_NO_EVENT_RESOURCE, fmt::format("NPU {} has no more than {} events", *thread.npu, most));
  }
  ++on_npu_[*thread.npu];
  const std::uint64_t handle = handles_.next(HandleKind::event);
  events_[handle] =
      std::make_unique<Event>(Event{.id = core_.runtime.create_event(),
                                    .process = thread.process,
                                    .npu = *thread.npu,
                                    .maker = maker,
                                    .is_flag = maker == EventMaker::create_with_flag && (flags & ACL_EVENT_SYNC) != 0});
  return {.values = {handle}};
}

Result Events::time_between(const Event& begin, const Event& end) {
  for (const Event* const one : {&begin, &end}) {
    if (one->records > 0 && one->done == one->records) continue;
    return refused(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "an event is not recorded yet");
  }
  if (end.date < begin.date) return refused(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL, "the second comes first");
  const auto milliseconds = static_cast<float>((end.date - begin.date) * 1e3);
  return {.values = {std::bit_cast<std::uint32_t>(milliseconds)}};
}

void Events::release(std::uint32_t process, Rank npu) {
  for (const auto& [handle, event] : events_) {
    if (event->process == process && event->npu == npu) end(*event);
  }
}

std::optional<Result> Events::handle(ThreadId id, const Question& question) {
  const auto& values = question.values;
  if (question.call == Call::create_event) {
    return create(core_.hosts.thread(id), static_cast<EventMaker>(values[1]), values[0]);
  }
  const bool second = question.call == Call::wait_event;
  Event* const event = find(id, second ? values[1] : values[0]);
  if (event == nullptr) return refused(ACL_ERROR_RT_PARAM_INVALID, "this is no event, or it was destroyed");
  FoundStream found;
  if (question.call == Call::record_event || question.call == Call::reset_event || second) {
    found = streams_.usable(id, second ? values[0] : values[1]);
    if (found.stream == nullptr) return found.wrong;
  }
  switch (question.call) {
    case Call::destroy_event:
      end(*event);
      return Result{};
    case Call::record_event:
      record(id, *event, *found.stream);
      return Result{};
    case Call::wait_event:
      return wait(id, *event, *found.stream);
    case Call::reset_event:
      reset(*event, *found.stream);
      return Result{};
    case Call::synchronize_event:
      return synchronize(id, *event, static_cast<std::int64_t>(values[1]));
    case Call::query_event:
      return Result{.values = {event->done == event->records ? 1U : 0U, event->passed == event->waits ? 1U : 0U,
                               event->is_recorded() ? 1U : 0U}};
    case Call::event_time:
      if (event->records == 0 || event->done != event->records) {
        return refused(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "the event is not recorded yet");
      }
      return Result{.values = {static_cast<std::uint64_t>(std::llround(event->date * 1e6))}};
    default: {
      const Event* const other = find(id, values[1]);
      if (other == nullptr) return refused(ACL_ERROR_RT_PARAM_INVALID, "the second is no event, or it was destroyed");
      return time_between(*event, *other);
    }
  }
}

}  // namespace hcclsim::clients
