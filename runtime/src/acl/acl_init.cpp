// aclInit and its like, versions, small conversions.
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "acl/acl.h"
#include "acl/acl_state.h"
#include "session/error_mode.h"

using namespace vatlas::runtime;

namespace {

int readConfig(const char* path, std::string& text) {
  if (path == nullptr || *path == '\0') return ACL_SUCCESS;
  std::ifstream file(path);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file) {
    return badArgument(ACL_ERROR_INVALID_PARAM, "aclInit", fmt::format("the file {} cannot be read", path));
  }
  text = content.str();
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    return badArgument(ACL_ERROR_INVALID_PARAM, "aclInit", fmt::format("the file {} is not JSON", path));
  }
  const auto mode = json.is_object() ? json.find("err_msg_mode") : json.end();
  if (json.is_object() && mode != json.end()) setErrorMode(*mode == "1");
  return ACL_SUCCESS;
}

void closeMachine() {
  AclState& state = aclState();
  {
    const std::lock_guard lock(state.mutex);
    state.finalized = true;
  }
  Session::close();
  const std::lock_guard lock(state.mutex);
  state.forgetMachine();
}

}  // namespace

aclError aclInit(const char* configPath) {
  return guarded("aclInit", [&] {
    std::string text;
    if (const int code = readConfig(configPath, text); code != ACL_SUCCESS) return code;
    AclState& state = aclState();
    {
      const std::lock_guard lock(state.mutex);
      if (state.initCount > 0) {
        if (!text.empty() && text != state.configText) {
          return badArgument(ACL_ERROR_INVALID_PARAM, "aclInit",
                             "already initialised with another configuration file");
        }
        ++state.initCount;
        return fail(ACL_ERROR_REPEAT_INITIALIZE,
                    {"EH0001",
                     "Initialised before",
                     "aclInit: already initialised; this call is counted and may be ignored",
                     {},
                     {}});
      }
    }
    {
      const std::lock_guard lock(state.mutex);
      state.finalized = false;
    }
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    const std::lock_guard lock(state.mutex);
    state.initCount = 1;
    state.configText = text;
    return ACL_SUCCESS;
  });
}

aclError aclFinalizeReference(uint64_t* refCount) {
  return guarded("aclFinalizeReference", [&] {
    AclState& state = aclState();
    std::uint64_t left = 0;
    {
      const std::lock_guard lock(state.mutex);
      if (state.initCount == 0) {
        return fail(
            ACL_ERROR_REPEAT_FINALIZE,
            {"EH0001", "Not initialised", "aclFinalizeReference: there is no aclInit to take back", {}, {}});
      }
      left = --state.initCount;
    }
    if (refCount != nullptr) *refCount = left;
    if (left == 0) closeMachine();
    return ACL_SUCCESS;
  });
}

aclError aclFinalize(void) {
  return guarded("aclFinalize", [&] {
    AclState& state = aclState();
    {
      const std::lock_guard lock(state.mutex);
      if (state.initCount == 0) {
        return fail(ACL_ERROR_REPEAT_FINALIZE,
                    {"EH0001", "Not initialised", "aclFinalize: there is no aclInit to take back", {}, {}});
      }
      state.initCount = 0;
    }
    closeMachine();
    return ACL_SUCCESS;
  });
}

aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) {
  if (majorVersion == nullptr) return nullArgument("aclrtGetVersion", "majorVersion");
  if (minorVersion == nullptr) return nullArgument("aclrtGetVersion", "minorVersion");
  if (patchVersion == nullptr) return nullArgument("aclrtGetVersion", "patchVersion");
  *majorVersion = ACL_MAJOR_VERSION;
  *minorVersion = ACL_MINOR_VERSION;
  *patchVersion = ACL_PATCH_VERSION;
  return ACL_SUCCESS;
}

size_t aclDataTypeSize(aclDataType dataType) {
  switch (dataType) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0:
      return 1;
    case ACL_FLOAT16:
    case ACL_INT16:
    case ACL_UINT16:
    case ACL_BF16:
      return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_COMPLEX32:
      return 4;
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_DOUBLE:
    case ACL_COMPLEX64:
      return 8;
    case ACL_COMPLEX128:
      return 16;
    default:
      return 0;
  }
}

float aclFloat16ToFloat(aclFloat16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value >> 15) << 31;
  const std::uint32_t exponent = value >> 10 & 31u;
  const std::uint32_t mantissa = value & 1023u;
  std::uint32_t bits = sign;
  if (exponent == 31) {
    bits |= 0x7f800000u | mantissa << 13;
  } else if (exponent != 0) {
    bits |= (exponent + 112) << 23 | mantissa << 13;
  } else if (mantissa != 0) {
    const auto shift =
        static_cast<std::uint32_t>(__builtin_clz(mantissa)) - 21;  // to a leading one in bit 10
    bits |= (113 - shift) << 23 | (mantissa << shift & 1023u) << 13;
  }
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

aclFloat16 aclFloatToFloat16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const std::uint32_t sign = bits >> 31 << 15;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<aclFloat16>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<aclFloat16>(sign | 0x7c00u);  // rounds to 65536 or more
  std::uint32_t kept;
  std::uint32_t rest;
  std::uint32_t unit;
  if (magnitude < 0x38800000u) {  // subnormal: units of 2^-24
    const std::uint32_t exponent = magnitude >> 23;
    if (exponent < 102) return static_cast<aclFloat16>(sign);
    const std::uint32_t whole = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint32_t shift = 126 - exponent;
    kept = whole >> shift;
    unit = 1u << shift;
    rest = whole & (unit - 1);
  } else {
    kept = (magnitude - 0x38000000u) >> 13;
    unit = 1u << 13;
    rest = magnitude & (unit - 1);
  }
  if (rest > unit / 2 || (rest == unit / 2 && (kept & 1u) != 0)) ++kept;
  return static_cast<aclFloat16>(sign | kept);
}

const char* aclGetRecentErrMsg(void) {
  return takeErrorMessage();
}
aclError aclrtGetLastError(aclrtLastErrLevel level) {
  if (level != ACL_RT_THREAD_LEVEL)
    return badArgument(ACL_ERROR_INVALID_PARAM, "aclrtGetLastError", "the level is unknown");
  return lastError(true);
}
aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  if (level != ACL_RT_THREAD_LEVEL)
    return badArgument(ACL_ERROR_INVALID_PARAM, "aclrtPeekAtLastError", "the level is unknown");
  return lastError(false);
}
