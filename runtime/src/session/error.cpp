#include "vatlas/runtime/error.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <mutex>
#include <optional>
#include <utility>

#include "session/error_mode.h"

namespace vatlas::runtime {
namespace {

struct ThreadErrors {
  std::optional<ErrorText> text;
  std::string shown;  // what the last takeErrorMessage gave out
  int last = 0;
};

ThreadErrors& mine() {
  thread_local ThreadErrors errors;
  return errors;
}

std::atomic<bool> processLevel{false};

struct SharedErrors {
  std::mutex mutex;
  std::optional<ErrorText> text;
};
SharedErrors& shared() {
  static auto* instance = new SharedErrors;  // leaked: used while the process exits
  return *instance;
}

std::string layOut(const ErrorText& text) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::string out;
  if (text.code.ends_with("9999")) {
    out = fmt::format("{}: Inner Error!\n{}: [PID: {}] {:%Y-%m-%d-%H:%M:%S} {}", text.code, text.code,
                      getpid(), local, text.message);
  } else {
    out = fmt::format("[PID: {}] {:%Y-%m-%d-%H:%M:%S} {}({}): {}", getpid(), local, text.title, text.code,
                      text.message);
  }
  if (!text.cause.empty()) out += "\n        Possible Cause: " + text.cause;
  if (!text.solution.empty()) out += "\n        Solution: " + text.solution;
  out += "\n";
  return out;
}

}  // namespace

void setErrorMode(bool wholeProcess) noexcept {
  processLevel.store(wholeProcess);
}

void setError(ErrorText text) {
  if (processLevel.load()) {
    SharedErrors& all = shared();
    const std::lock_guard lock(all.mutex);
    all.text = std::move(text);
  } else {
    mine().text = std::move(text);
  }
}

const char* takeErrorMessage() {
  ThreadErrors& own = mine();
  std::optional<ErrorText> text;
  if (processLevel.load()) {
    SharedErrors& all = shared();
    const std::lock_guard lock(all.mutex);
    text = std::exchange(all.text, std::nullopt);
  } else {
    text = std::exchange(own.text, std::nullopt);
  }
  if (!text) return nullptr;
  own.shown = layOut(*text);
  return own.shown.c_str();
}

int fail(int code, ErrorText text) {
  setError(std::move(text));
  noteError(code);
  return code;
}

int lastError(bool clear) noexcept {
  ThreadErrors& own = mine();
  return clear ? std::exchange(own.last, 0) : own.last;
}

void noteError(int code) noexcept {
  mine().last = code;
}

}  // namespace vatlas::runtime
