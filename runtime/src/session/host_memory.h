// Whether host memory can be read or written, found out without touching it from our code: the model copies
// on its own thread, where a bad pointer of the program must become an error code.
#pragma once

#include <cstdint>

namespace vatlas::runtime {

// Pages are populated as the access would do it. On kernels without that (before 5.14) only mapped is
// checked.
bool hostReadable(const void* address, std::uint64_t bytes) noexcept;
bool hostWritable(void* address, std::uint64_t bytes) noexcept;

}  // namespace vatlas::runtime
