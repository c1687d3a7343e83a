#include "host_limits.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace vatlas::sim {
namespace {

// A number in a file of one word; what is not there or says "max" does not limit.
std::uint64_t readLimit(const char* path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  return file >> value ? value : UINT64_MAX;
}

}  // namespace

std::uint64_t hostMemoryCeiling() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long pageBytes = sysconf(_SC_PAGESIZE);
  std::uint64_t bytes = pages > 0 && pageBytes > 0
                            ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(pageBytes)
                            : std::uint64_t{4} << 30;
  bytes = std::min(bytes, readLimit("/sys/fs/cgroup/memory.max"));
  bytes = std::min(bytes, readLimit("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  return bytes / 100 * 85;
}

}  // namespace vatlas::sim
