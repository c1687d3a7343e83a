#include "session/thread_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

namespace vatlas::runtime {

ThreadLook lookAtThread(int tid) {
  ThreadLook look;
  const std::string path = fmt::format("/proc/self/task/{}/status", tid);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return look;
  std::array<char, 4096> buffer{};
  const ssize_t got = read(fd, buffer.data(), buffer.size());
  close(fd);
  if (got <= 0) return look;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(got));
  constexpr std::string_view kState = "\nState:\t";
  constexpr std::string_view kSwitches = "\nvoluntary_ctxt_switches:\t";
  const std::size_t state = text.find(kState);
  if (state == std::string_view::npos || state + kState.size() >= text.size()) return look;
  const char letter = text[state + kState.size()];
  look.exists = letter != 'Z' && letter != 'X';
  look.asleep = letter == 'S';
  const std::size_t switches = text.find(kSwitches);
  if (switches != std::string_view::npos) {
    const char* begin = text.data() + switches + kSwitches.size();
    std::from_chars(begin, text.data() + text.size(), look.switches);
  }
  return look;
}

std::vector<int> threadsOfProcess() {
  std::vector<int> tids;
  DIR* folder = opendir("/proc/self/task");
  if (folder == nullptr) return tids;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') tids.push_back(std::atoi(entry->d_name));
  }
  closedir(folder);
  return tids;
}

}  // namespace vatlas::runtime
