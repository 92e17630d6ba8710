// aclInit and its like, types of elements, the log, and the profiler's switch.
// NOLINTBEGIN(readability-identifier-naming): names are the interface's
#include <acl/acl.h>
#include <acl/acl_prof.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "clients/library/api.hpp"

using namespace hcclsim::clients;  // NOLINT(google-build-using-namespace)

namespace {

bool initialised = false;
bool finalised = false;

/// Rounds to the nearest fp16, ties to even.
std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16U & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (magnitude >= 0x47800000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
  if (magnitude < 0x38800000U) {  // below the normal range: units of 2^−24
    const float scaled = std::bit_cast<float>(magnitude) * 16777216.0F;
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(scaled)));
  }
  const std::uint32_t rounded = magnitude + 0xfffU + (magnitude >> 13U & 1U);
  return static_cast<std::uint16_t>(sign | (rounded - 0x38000000U) >> 13U);
}

float from_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16U;
  const std::uint32_t exponent = half >> 10U & 0x1fU;
  const std::uint32_t fraction = half & 0x3ffU;
  if (exponent == 0) return std::copysign(static_cast<float>(fraction) / 16777216.0F, std::bit_cast<float>(sign));
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13U);
  return std::bit_cast<float>(sign | (exponent + 112U) << 23U | fraction << 13U);
}

}  // namespace

struct aclprofConfig {
  std::uint64_t kinds;
};

extern "C" {
#pragma GCC visibility push(default)

aclError aclInit(const char* /*configPath*/) {
  if (!connected()) return ask(Call::date, {}).status;
  if (std::exchange(initialised, true)) {
    return fail(__func__, ACL_ERROR_REPEAT_INITIALIZE, "the process has called it already");
  }
  finalised = false;
  return ACL_SUCCESS;
}

aclError aclFinalize(void) {
  if (finalised) return fail(__func__, ACL_ERROR_REPEAT_FINALIZE, "the process has called it already");
  if (!std::exchange(initialised, false)) return fail(__func__, ACL_ERROR_UNINITIALIZE, "aclInit was not called");
  finalised = true;
  return status_of(__func__, ask(Call::finalize, {}));
}

aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) {
  if (majorVersion == nullptr || minorVersion == nullptr || patchVersion == nullptr) {
    return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  }
  *majorVersion = ACL_MAJOR_VERSION;
  *minorVersion = ACL_MINOR_VERSION;
  *patchVersion = ACL_PATCH_VERSION;
  return ACL_SUCCESS;
}

const char* aclrtGetSocName(void) {
  static const std::string name = ask(Call::soc_name, {}).bytes;
  return name.empty() ? nullptr : name.c_str();
}

const char* aclGetRecentErrMsg(void) {
  thread_local std::string message;
  message = take_message();
  // The text is good until the thread's next call.
  return message.empty() ? nullptr : message.c_str();  // NOLINT(clang-analyzer-cplusplus.InnerPointer)
}

size_t aclDataTypeSize(aclDataType dataType) {
  switch (dataType) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
      return 1;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16:
      return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
      return 4;
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_DOUBLE:
    case ACL_COMPLEX64:
      return 8;
    case ACL_COMPLEX128:
      return 16;
    case ACL_DT_UNDEFINED:
    case ACL_STRING:
      break;
  }
  return 0;
}

float aclFloat16ToFloat(aclFloat16 value) { return from_half(value); }
aclFloat16 aclFloatToFloat16(float value) { return to_half(value); }

void aclAppLog(aclLogLevel logLevel, const char* func, const char* file, uint32_t line, const char* fmt, ...) {
  const char* const wanted = std::getenv("ASCEND_GLOBAL_LOG_LEVEL");  // NOLINT(concurrency-mt-unsafe)
  const int level = wanted == nullptr ? ACL_ERROR : std::atoi(wanted);
  if (static_cast<int>(logLevel) < level) return;
  std::array<char, 1024> text{};
  va_list list;
  va_start(list, fmt);
  std::vsnprintf(text.data(), text.size(), fmt, list);
  va_end(list);
  static constexpr std::array<const char*, 4> names{"DEBUG", "INFO", "WARNING", "ERROR"};
  std::fprintf(stderr, "[%s] %s:%u %s: %s\n", names[static_cast<unsigned>(logLevel) & 3U], file, line, func,
               text.data());
}

aclError aclprofInit(const char* profilerResultPath, size_t length) {
  if (profilerResultPath == nullptr || length == 0) return fail(__func__, ACL_ERROR_INVALID_PARAM, "no path");
  return ACL_SUCCESS;
}

aclError aclprofFinalize(void) { return ACL_SUCCESS; }

aclprofConfig* aclprofCreateConfig(uint32_t* deviceIdList, uint32_t deviceNums, aclprofAicoreMetrics /*aicoreMetrics*/,
                                   const aclprofAicoreEvents* /*aicoreEvents*/, uint64_t dataTypeConfig) {
  if (deviceIdList == nullptr && deviceNums > 0) return nullptr;
  return new aclprofConfig{dataTypeConfig};
}

aclError aclprofDestroyConfig(const aclprofConfig* profilerConfig) {
  if (profilerConfig == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  delete profilerConfig;
  return ACL_SUCCESS;
}

aclError aclprofStart(const aclprofConfig* profilerConfig) {
  if (profilerConfig == nullptr) return fail(__func__, ACL_ERROR_INVALID_PARAM, "null");
  static bool told = false;
  if (!std::exchange(told, true)) {
    std::fprintf(stderr, "hcclsim: process %llu: the profiler's switch has no effect: nothing is recorded\n",
                 static_cast<unsigned long long>(process_number()));
  }
  return ACL_SUCCESS;
}

aclError aclprofStop(const aclprofConfig* profilerConfig) {
  return profilerConfig == nullptr ? fail(__func__, ACL_ERROR_INVALID_PARAM, "null") : ACL_SUCCESS;
}

double hcclsimDate(void) { return std::bit_cast<double>(ask(Call::date, {}).values[0]); }

#pragma GCC visibility pop
}
// NOLINTEND(readability-identifier-naming)
