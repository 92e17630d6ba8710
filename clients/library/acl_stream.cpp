// Streams, events and functions of the host.
// NOLINTBEGIN(readability-identifier-naming): names are the interface's
#include <acl/acl.h>

#include <pthread.h>

#include <bit>
#include <map>
#include <utility>

#include "clients/library/api.hpp"

using namespace hcclsim::clients;  // NOLINT(google-build-using-namespace)

namespace {

std::map<void*, std::uint32_t>& overflow_switches() {
  static auto* const all = new std::map<void*, std::uint32_t>;
  return *all;
}

int create_event(const char* function, aclrtEvent* event, std::uint32_t flag, EventMaker maker) {
  if (event == nullptr) return fail(function, ACL_ERROR_INVALID_PARAM, "null");
  const Answer answer = ask(Call::create_event, {flag, static_cast<std::uint64_t>(maker)});
  if (answer.status == 0) *event = handle_of(answer.values[0]);
  return status_of(function, answer);
}

/// Asks a question whose answer, the value at `place`, may be "not yet": then others run, and simulated time goes on,
/// before the program asks again.
Answer query(Call call, const void* handle, std::size_t place = 0) {
  Answer answer = ask(call, {number_of(handle)});
  if (answer.status == 0 && answer.values.at(place) == 0) yield(Yield::poll, true);
  return answer;
}

/// Runs the next function that has come for a thread; false if none came in time.
bool run_function(std::uint64_t thread, std::int32_t timeout) {
  const Answer next = ask(Call::next_function, {thread, as_number(timeout)});
  if (next.status != 0) return false;
  reinterpret_cast<aclrtCallback>(handle_of(next.values[0]))(handle_of(next.values[1]));
  ask(Call::function_done, {next.values[2]});
  return true;
}

/// A thread of this process for functions that no thread of the program asks for.
void start_server() {
  static bool started = false;
  if (std::exchange(started, true)) return;
  pthread_t thread{};
  const auto serve = [](void*) -> void* {
    while (run_function(none, -1)) {
    }
    return nullptr;
  };
  if (::pthread_create(&thread, nullptr, serve, nullptr) == 0) ::pthread_detach(thread);
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

aclError aclrtCreateStream(aclrtStream* stream) {
  if (stream == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  const Answer answer = ask(Call::create_stream, {0});
  if (answer.status == 0) *stream = handle_of(answer.values[0]);
  return status_of(__func__, answer);
}

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t /*priority*/, uint32_t /*flag*/) {
  return aclrtCreateStream(stream);
}

aclError aclrtDestroyStream(aclrtStream stream) {
  return status_of(__func__, ask(Call::destroy_stream, {number_of(stream), 0}));
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
  return status_of(__func__, ask(Call::destroy_stream, {number_of(stream), 1}));
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  return status_of(__func__, ask(Call::synchronize_stream, {number_of(stream), as_number(-1)}));
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  return status_of(__func__, ask(Call::synchronize_stream, {number_of(stream), as_number(timeout)}));
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  if (status == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  const Answer answer = query(Call::query_stream, stream);
  if (answer.status == 0) *status = answer.values[0] != 0 ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
  return status_of(__func__, answer);
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  return status_of(__func__, ask(Call::wait_event, {number_of(stream), number_of(event)}));
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId) {
  if (streamId == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  const Answer answer = ask(Call::query_stream, {number_of(stream)});
  if (answer.status == 0) *streamId = static_cast<int32_t>(answer.values[1]);
  return status_of(__func__, answer);
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  if (mode > ACL_STOP_ON_FAILURE) return fail(__func__, ACL_ERROR_INVALID_PARAM, "mode: 0 or 1");
  return status_of(__func__, ask(Call::query_stream, {number_of(stream)}));  // a failure stops everything
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
  if (flag > 1) return fail(__func__, ACL_ERROR_INVALID_PARAM, "flag: 0 or 1");
  overflow_switches()[stream] = flag;
  return ACL_SUCCESS;
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag) {
  if (flag == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  *flag = overflow_switches()[stream];
  return ACL_SUCCESS;
}

// Waits of streams end by HCCL_EXEC_TIMEOUT alone, and kernels have known durations.
aclError aclrtSetOpWaitTimeout(uint32_t /*timeout*/) { return ACL_SUCCESS; }
aclError aclrtSetOpExecuteTimeOut(uint32_t /*timeout*/) { return ACL_SUCCESS; }

aclError aclrtCreateEvent(aclrtEvent* event) { return create_event(__func__, event, 0, EventMaker::create); }
aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  return create_event(__func__, event, flag, EventMaker::create_with_flag);
}
aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  return create_event(__func__, event, flag, EventMaker::create_ex_with_flag);
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  return status_of(__func__, ask(Call::destroy_event, {number_of(event)}));
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  return status_of(__func__, ask(Call::record_event, {number_of(event), number_of(stream)}));
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  return status_of(__func__, ask(Call::reset_event, {number_of(event), number_of(stream)}));
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  return status_of(__func__, ask(Call::synchronize_event, {number_of(event), as_number(-1)}));
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  return status_of(__func__, ask(Call::synchronize_event, {number_of(event), as_number(timeout)}));
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  if (status == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  const Answer answer = query(Call::query_event, event);
  if (answer.status == 0) *status = answer.values[0] != 0 ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
  return status_of(__func__, answer);
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  if (status == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  constexpr std::size_t recorded = 2;
  const Answer answer = query(Call::query_event, event, recorded);
  if (answer.status == 0) {
    *status = answer.values[recorded] != 0 ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  }
  return status_of(__func__, answer);
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status) {
  if (status == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  const Answer answer = ask(Call::query_event, {number_of(event)});
  if (answer.status == 0) {
    *status = answer.values[1] != 0 ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
    if (answer.values[1] == 0) yield(Yield::poll, true);
  }
  return status_of(__func__, answer);
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  if (ms == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  const Answer answer = ask(Call::elapsed_time, {number_of(startEvent), number_of(endEvent)});
  if (answer.status == 0) *ms = std::bit_cast<float>(static_cast<std::uint32_t>(answer.values[0]));
  return status_of(__func__, answer);
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
  if (timestamp == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  const Answer answer = ask(Call::event_time, {number_of(event)});
  if (answer.status == 0) *timestamp = answer.values[0];
  return status_of(__func__, answer);
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
  return status_of(__func__, ask(Call::subscribe, {threadId, number_of(stream)}));
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
  return status_of(__func__, ask(Call::unsubscribe, {threadId, number_of(stream)}));
}

aclError aclrtLaunchCallback(aclrtCallback fn, void* userData, aclrtCallbackBlockType blockType, aclrtStream stream) {
  if (fn == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "fn is null");
  const bool blocks = blockType == ACL_CALLBACK_BLOCK;
  return status_of(__func__, ask(Call::launch_function, {number_of(stream), number_of(reinterpret_cast<void*>(fn)),
                                                         number_of(userData), blocks ? 1U : 0U, 1}));
}

aclError aclrtProcessReport(int32_t timeout) {
  const bool found = run_function(static_cast<std::uint64_t>(::pthread_self()), timeout);
  return found ? ACL_SUCCESS : ACL_ERROR_RT_WAIT_TIMEOUT;
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args) {
  if (fn == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "fn is null");
  start_server();
  return status_of(__func__, ask(Call::launch_function,
                                 {number_of(stream), number_of(reinterpret_cast<void*>(fn)), number_of(args), 1, 0}));
}

aclError hcclsimLaunchKernel(const char* name, double microseconds, aclrtStream stream) {
  if (name == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "name is null");
  return status_of(__func__, ask(Call::launch_kernel, {bits_of(microseconds * 1e-6), number_of(stream)}, name));
}

#pragma GCC visibility pop
}
// NOLINTEND(readability-identifier-naming)
