#include <fmt/format.h>

#include "vatlas/kernel/core.h"

namespace vatlas::kernels {

using sim::KernelFault;

void faultRange(sim::CorePort& core, const void* address, std::uint64_t bytes, const char* call) {
  const auto offset = static_cast<const std::byte*>(address) - core.ub();
  core.fault(
      KernelFault::BadAccess,
      fmt::format("{}: {} bytes at UB offset {} are not all inside the {} bytes of UB that a block has", call,
                  bytes, offset, core.ubBytes()),
      address);
}

void faultAlignment(sim::CorePort& core, const void* address, std::uint32_t alignment, const char* call) {
  const auto offset = static_cast<const std::byte*>(address) - core.ub();
  core.fault(KernelFault::Misaligned,
             fmt::format("{}: UB offset {} is not a multiple of {} bytes", call, offset, alignment), address);
}

void faultUbBudget(sim::CorePort& core, std::uint64_t asked, std::uint64_t used) {
  core.fault(KernelFault::ApiMisuse,
             fmt::format("UB is full: a buffer of {} bytes was asked for, {} of {} bytes are taken", asked,
                         used, core.ubBytes()));
}

void faultQueue(sim::CorePort& core, const char* call, const char* why, std::uint32_t have) {
  core.fault(KernelFault::ApiMisuse, fmt::format("{}: {} (the queue has {} buffers)", call, why, have));
}

void faultArgument(sim::CorePort& core, const char* call, const char* what, std::int64_t value,
                   const char* allowed) {
  core.fault(KernelFault::ApiMisuse, fmt::format("{}: {} is {}; allowed: {}", call, what, value, allowed));
}

void faultWindow(sim::CorePort& core, std::uint64_t needed, std::uint64_t available) {
  core.fault(
      KernelFault::WindowOverrun,
      fmt::format(
          "half of the communicator's window has {} bytes, the operator needs {}: raise HCCL_BUFFSIZE or "
          "the communicator's buffer size",
          available, needed));
}

void faultNotModelled(const char* call) {
  core().fault(KernelFault::ApiMisuse, fmt::format("{} is not modelled yet", call));
}

}  // namespace vatlas::kernels
