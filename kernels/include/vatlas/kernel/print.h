// printf in kernels: one message a call, prefixed with card and block by the session.
#pragma once

namespace vatlas::kernels {
// At most 4 KiB a message; the rest is cut off.
void printFormatted(const char* format, ...) __attribute__((format(printf, 1, 2)));
}  // namespace vatlas::kernels

namespace AscendC {
template <typename... Args>
inline void printf(const char* format, Args... args) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  vatlas::kernels::printFormatted(format, args...);
#pragma GCC diagnostic pop
}
template <typename... Args>
inline void PRINTF(const char* format, Args... args) {
  printf(format, args...);
}
}  // namespace AscendC
