#include <array>
#include <cstdarg>
#include <cstdio>
#include <string_view>

#include "vatlas/kernel/core.h"
#include "vatlas/kernel/print.h"

namespace vatlas::kernels {

void printFormatted(const char* format, ...) {
  std::array<char, 4096> text;
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  if (length < 0) return;
  const auto used = static_cast<std::size_t>(length);
  core().print(std::string_view(text.data(), used < text.size() ? used : text.size() - 1));
}

}  // namespace vatlas::kernels
