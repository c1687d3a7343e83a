// Explanations of errors: what aclGetRecentErrMsg answers. One per thread; the last one wins, reading clears.
#pragma once

#include <string>
#include <string_view>

namespace vatlas::runtime {

// A user-facing error: code such as "EE1001" or "EZ1001", a short title, what was wrong with the value that
// was given, and what to do.
struct ErrorText {
  std::string code;
  std::string title;
  std::string message;
  std::string cause;     // may be empty
  std::string solution;  // may be empty
};

void setError(ErrorText text);   // for the calling thread
const char* takeErrorMessage();  // null when there is none; valid until the thread's next call
// Remembers the code as the thread's last aclError (aclrtGetLastError) and gives it back, for `return
// fail(...)`.
int fail(int code, ErrorText text);
int lastError(bool clear) noexcept;  // 0: none
void noteError(int code) noexcept;

}  // namespace vatlas::runtime
