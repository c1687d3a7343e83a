#include "session/host_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace vatlas::runtime {
namespace {

constexpr int kPopulateRead = 22;   // MADV_POPULATE_READ of Linux 5.14
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE

bool mapped(std::uintptr_t begin, std::uintptr_t end, std::uintptr_t page) noexcept {
  unsigned char present[256];
  while (begin < end) {
    const std::uintptr_t bytes = std::min(end - begin, page * sizeof present);
    if (mincore(reinterpret_cast<void*>(begin), bytes, present) != 0) return false;
    begin += bytes;
  }
  return true;
}

bool populate(std::uintptr_t address, std::uint64_t bytes, int advice) noexcept {
  if (bytes == 0) return true;
  if (address == 0 || address + bytes < address) return false;
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = address & ~(page - 1);
  const std::uintptr_t end = (address + bytes + page - 1) & ~(page - 1);
  if (end <= begin) return false;
  for (;;) {
    if (madvise(reinterpret_cast<void*>(begin), end - begin, advice) == 0) return true;
    if (errno == EINTR || errno == EAGAIN) continue;
    // EINVAL also stands for mappings without page structures (device files) and for old kernels.
    return errno == EINVAL && mapped(begin, end, page);
  }
}

}  // namespace

bool hostReadable(const void* address, std::uint64_t bytes) noexcept {
  return populate(reinterpret_cast<std::uintptr_t>(address), bytes, kPopulateRead);
}

bool hostWritable(void* address, std::uint64_t bytes) noexcept {
  return populate(reinterpret_cast<std::uintptr_t>(address), bytes, kPopulateWrite);
}

}  // namespace vatlas::runtime
