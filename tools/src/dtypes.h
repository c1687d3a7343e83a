// Element types as the command line names them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acl/acl_base.h"

namespace vatlas::tools {

struct DType {
  const char* name;
  aclDataType acl;
  std::uint32_t bytes;
  std::vector<std::string> npyTypes;  // descr texts that hold it
  const char* npyWrite;
};

// Null when there is none of the name.
const DType* findDType(std::string_view name);
std::string dtypeNames(const std::vector<std::string>& names);

}  // namespace vatlas::tools
