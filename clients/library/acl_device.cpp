// Devices and contexts.
// NOLINTBEGIN(readability-identifier-naming): names are the interface's
#include <acl/acl.h>

#include <map>
#include <set>

#include "clients/library/api.hpp"

using namespace hcclsim::clients;  // NOLINT(google-build-using-namespace)

namespace {

struct Context {
  std::int32_t device;
};

/// Those that the program has made, and one of each device that it has set.
std::set<const Context*>& contexts() {
  static auto* const all = new std::set<const Context*>;
  return *all;
}

Context* context_of_device(std::int32_t device) {
  static auto* const all = new std::map<std::int32_t, Context*>;
  Context*& own = (*all)[device];
  if (own == nullptr) contexts().insert(own = new Context{device});
  return own;
}

thread_local Context* current = nullptr;

/// A question about a device of the program, if it has that.
int ask_of_device(const char* function, Call call, std::int32_t device, std::uint64_t value = 0) {
  const std::int32_t on_server = device_on_server(device);
  if (on_server < 0) return fail(function, ACL_ERROR_RT_INVALID_DEVICEID, no_such_device(device));
  return status_of(function, ask(call, {as_number(on_server), value}));
}

int reset_device(const char* function, std::int32_t device, bool by_force) {
  const int status = ask_of_device(function, Call::reset_device, device, by_force ? 1 : 0);
  const bool is_current = status == 0 && current != nullptr && current->device == device;
  if (is_current && ask(Call::get_device, {}).status != 0) current = nullptr;  // it was reset as often as set
  return status;
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

aclError aclrtSetDevice(int32_t deviceId) {
  const int status = ask_of_device(__func__, Call::set_device, deviceId, 1);
  if (status == 0) current = context_of_device(deviceId);
  return status;
}

aclError aclrtResetDevice(int32_t deviceId) { return reset_device(__func__, deviceId, false); }
aclError aclrtResetDeviceForce(int32_t deviceId) { return reset_device(__func__, deviceId, true); }

aclError aclrtGetDevice(int32_t* deviceId) {
  if (deviceId == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  const Answer answer = ask(Call::get_device, {});
  if (answer.status == 0) *deviceId = device_of_program(static_cast<std::int32_t>(answer.values[0]));
  return status_of(__func__, answer);
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  if (count == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  if (!connected()) return ask(Call::device_count, {}).status;
  *count = visible_devices();
  return ACL_SUCCESS;
}

aclError aclrtGetRunMode(aclrtRunMode* runMode) {
  if (runMode == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  *runMode = ACL_HOST;
  return ACL_SUCCESS;
}

aclError aclrtSynchronizeDevice(void) { return status_of(__func__, ask(Call::synchronize_device, {as_number(-1)})); }

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
  return status_of(__func__, ask(Call::synchronize_device, {as_number(timeout)}));
}

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  if (mode != ACL_RT_OVERFLOW_MODE_SATURATION && mode != ACL_RT_OVERFLOW_MODE_INFNAN) {
    return fail(__func__, ACL_ERROR_INVALID_PARAM, "neither ACL_RT_OVERFLOW_MODE_SATURATION nor …_INFNAN");
  }
  return status_of(__func__, ask(Call::set_saturation, {1, mode == ACL_RT_OVERFLOW_MODE_SATURATION ? 1U : 0U}));
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) {
  if (mode == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  const Answer answer = ask(Call::set_saturation, {0, 0});
  if (answer.status == 0) {
    *mode = answer.values[0] != 0 ? ACL_RT_OVERFLOW_MODE_SATURATION : ACL_RT_OVERFLOW_MODE_INFNAN;
  }
  return status_of(__func__, answer);
}

aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
  if (canAccessPeer == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  if (deviceId == peerDeviceId) return fail(__func__, ACL_ERROR_INVALID_PARAM, "the devices are the same");
  uint64_t links = 0;
  const int status = aclrtGetDevicesTopo(static_cast<uint32_t>(deviceId), static_cast<uint32_t>(peerDeviceId), &links);
  if (status == 0) *canAccessPeer = 1;
  return status;
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
  if (flags != 0) return fail(__func__, ACL_ERROR_INVALID_PARAM, "flags: only 0");
  return ask_of_device(__func__, Call::peer_access, peerDeviceId, 1);
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
  return ask_of_device(__func__, Call::peer_access, peerDeviceId, 0);
}

aclError aclrtGetDevicesTopo(uint32_t deviceId, uint32_t otherDeviceId, uint64_t* value) {
  if (value == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  const Answer answer = ask(Call::device_topology, {as_number(device_on_server(static_cast<int32_t>(deviceId))),
                                                    as_number(device_on_server(static_cast<int32_t>(otherDeviceId)))});
  if (answer.status == 0) *value = answer.values[0];
  return status_of(__func__, answer);
}

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  if (context == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  const int status = ask_of_device(__func__, Call::set_device, deviceId);
  if (status != 0) return status;
  current = new Context{deviceId};
  contexts().insert(current);
  *context = current;
  return ACL_SUCCESS;
}

aclError aclrtDestroyContext(aclrtContext context) {
  auto* const own = static_cast<Context*>(context);
  if (contexts().erase(own) == 0) return fail(__func__, ACL_ERROR_RT_CONTEXT_NULL, "this is no context");
  if (current == own) current = nullptr;
  if (context_of_device(own->device) != own) delete own;
  return ACL_SUCCESS;
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  auto* const own = static_cast<Context*>(context);
  if (contexts().count(own) == 0) return fail(__func__, ACL_ERROR_RT_CONTEXT_NULL, "this is no context");
  const int status = ask_of_device(__func__, Call::set_device, own->device);
  if (status == 0) current = own;
  return status;
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  if (context == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  if (current == nullptr) return fail(__func__, ACL_ERROR_RT_CONTEXT_NULL, "the thread has set no device");
  *context = current;
  return ACL_SUCCESS;
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream) {
  if (stream == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  const Answer answer = ask(Call::create_stream, {1});
  if (answer.status == 0) *stream = handle_of(answer.values[0]);
  return status_of(__func__, answer);
}

#pragma GCC visibility pop
}
// NOLINTEND(readability-identifier-naming)
