#pragma once

namespace vatlas::runtime {

// false: each thread has its own latest message; true: one for the process.
void setErrorMode(bool wholeProcess) noexcept;

}  // namespace vatlas::runtime
