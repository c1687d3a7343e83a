#include "vatlas/runtime/communicators.h"

#include <map>
#include <mutex>
#include <utility>

namespace vatlas::runtime {
namespace {

struct Entry {
  CommunicatorInfo info;
  CommunicatorUse use = CommunicatorUse::None;
};

// One registry a process, as names are looked up by operators that know nothing but a string. Leaked: it may
// be used while the process exits.
struct Registry {
  std::mutex mutex;
  std::map<std::pair<std::string, int>, Entry> entries;
};
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

}  // namespace

bool addCommunicator(CommunicatorInfo info) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::pair<std::string, int> key{info.name, info.device};
  return all.entries.try_emplace(std::move(key), Entry{std::move(info), CommunicatorUse::None}).second;
}

bool removeCommunicator(std::string_view name, int device) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return all.entries.erase({std::string(name), device}) != 0;
}

std::optional<CommunicatorInfo> findCommunicator(std::string_view name, int device) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.entries.find({std::string(name), device});
  if (found == all.entries.end()) return std::nullopt;
  return found->second.info;
}

bool communicatorNameInUse(std::string_view name) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.entries.lower_bound({std::string(name), -1});
  return found != all.entries.end() && found->first.first == name;
}

CommunicatorUse communicatorUse(std::string_view name, int device) {
  return noteCommunicatorUse(name, device, CommunicatorUse::None);
}

CommunicatorUse noteCommunicatorUse(std::string_view name, int device, CommunicatorUse use) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.entries.find({std::string(name), device});
  if (found == all.entries.end()) return CommunicatorUse::None;
  if (found->second.use == CommunicatorUse::None) found->second.use = use;
  return found->second.use;
}

void clearCommunicators() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.entries.clear();
}

}  // namespace vatlas::runtime
