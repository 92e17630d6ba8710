#include "clients/server/devices/host_functions.hpp"

#include <algorithm>
#include <utility>

#include <acl/acl_rt.h>

namespace hcclsim::clients {

std::optional<Result> HostFunctions::handle(ThreadId id, const Question& question) {
  const auto& values = question.values;
  switch (question.call) {
    case Call::subscribe:
      if (const FoundStream found = streams_.usable(id, values[1]); found.stream == nullptr) return found.wrong;
      subscribers_[values[1]] = values[0];
      return Result{};
    case Call::unsubscribe:
      if (subscribers_.erase(values[1]) == 0) return refused(ACL_ERROR_RT_STREAM_NO_CB_REG, "nobody has subscribed");
      return Result{};
    case Call::launch_function:
      return launch(id, question);
    case Call::next_function:
      return next(id, question);
    default:
      done(id, values[0]);
      return Result{};
  }
}

Result HostFunctions::launch(ThreadId id, const Question& question) {
  const auto& values = question.values;
  const FoundStream found = streams_.usable(id, values[0]);
  if (found.stream == nullptr) return found.wrong;
  std::uint64_t subscriber = none;
  if (values[4] != 0) {
    const auto subscribed = subscribers_.find(values[0]);
    if (subscribed == subscribers_.end()) {
      return refused(ACL_ERROR_RT_STREAM_NO_CB_REG, "no thread has subscribed to the stream: aclrtSubscribeReport");
    }
    subscriber = subscribed->second;
  }
  const HostThread& thread = core_.hosts.thread(id);
  const HostFunction function{values[1], values[2], found.stream, values[3] != 0};
  ClientStream& stream = *found.stream;
  streams_.reach(stream, thread.date);
  ++stream.holds;
  streams_.begin_task(stream, "a function of the host");
  core_.runtime.hold(stream.id, [this, key = DeskKey(thread.process, subscriber), function] {
    Desk& desk = desks_[key];
    desk.functions.push_back(function);
    if (!function.blocks) core_.runtime.release(function.stream->id);
    deliver(desk);
  });
  streams_.end_task(stream, [&stream] { --stream.holds; });
  return {};
}

Result HostFunctions::take(Desk& desk) {
  const HostFunction function = desk.functions.front();
  desk.functions.pop_front();
  const std::uint64_t ticket = handles_.next();
  if (function.blocks) held_[ticket] = function.stream;
  return {.values = {function.function, function.argument, ticket}};
}

void HostFunctions::deliver(Desk& desk) {
  if (!desk.waiting.has_value() || desk.functions.empty()) return;
  const ThreadId id = *std::exchange(desk.waiting, std::nullopt);
  core_.deadlines.cancel(desk.deadline);
  core_.hosts.resume(id, core_.loop.now(), take(desk));
}

std::optional<Result> HostFunctions::next(ThreadId id, const Question& question) {
  const HostThread& thread = core_.hosts.thread(id);
  const auto& values = question.values;
  Desk& desk = desks_[{thread.process, values[0]}];
  if (!desk.functions.empty()) return take(desk);
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

void HostFunctions::done(ThreadId id, std::uint64_t ticket) {
  const auto found = held_.find(ticket);
  if (found == held_.end()) return;
  ClientStream* const stream = found->second;
  held_.erase(found);
  core_.loop.at(std::max(core_.hosts.thread(id).date, core_.loop.now()), hccl::event_order(stream->npu, stream->number),
                [this, stream] { core_.runtime.release(stream->id); });
}

}  // namespace hcclsim::clients
