#include "dtypes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace vatlas::tools {

const DType* findDType(std::string_view name) {
  static const std::vector<DType> kTypes = {
      {"int8", ACL_INT8, 1, {"|i1"}, "|i1"},
      {"hifloat8", ACL_HIFLOAT8, 1, {"|u1", "|i1", "|V1"}, "|u1"},
      {"float8_e4m3fn", ACL_FLOAT8_E4M3FN, 1, {"|u1", "|i1", "|V1"}, "|u1"},
      {"float8_e5m2", ACL_FLOAT8_E5M2, 1, {"|u1", "|i1", "|V1"}, "|u1"},
      {"float8_e8m0", ACL_FLOAT8_E8M0, 1, {"|u1", "|i1", "|V1"}, "|u1"},
      {"float", ACL_FLOAT, 4, {"<f4"}, "<f4"},
      {"float16", ACL_FLOAT16, 2, {"<f2"}, "<f2"},
      {"bfloat16", ACL_BF16, 2, {"<u2", "|V2"}, "<u2"},
  };
  for (const DType& type : kTypes) {
    if (name == type.name) return &type;
  }
  return nullptr;
}

std::string dtypeNames(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace vatlas::tools
