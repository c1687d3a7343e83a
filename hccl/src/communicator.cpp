#include "communicator.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "vatlas/kernel/hccl_context.h"

namespace vatlas::hccl {

using runtime::Session;
using sim::MemoryStatus;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint32_t kLargestBufferMb = 65535;

std::optional<std::uint32_t> environmentBuffer(bool& bad) {
  const char* text = std::getenv("HCCL_BUFFSIZE");
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  bad = errno != 0 || *end != '\0' || value < 1 || value > static_cast<long>(kLargestBufferMb);
  if (bad) return std::nullopt;
  return static_cast<std::uint32_t>(value);
}

}  // namespace

Group::~Group() {
  const std::shared_ptr<Session> alive = session.lock();
  if (!alive) return;
  for (void* address : memory) alive->memory().release(address);
}

CommunicatorTable& communicatorTable() {
  static auto* table = new CommunicatorTable;  // leaked: used while the process exits
  return *table;
}

HcclResult refuse(HcclResult code, const char* function, const std::string& message, const char* number) {
  runtime::setError({number, "HCCL call not possible", fmt::format("{}: {}", function, message), {}, {}});
  return code;
}

HcclResult readSettings(const char* function, const Session& session, const HcclCommConfig* config,
                        Settings& settings) {
  bool bad = false;
  const std::optional<std::uint32_t> environment = environmentBuffer(bad);
  if (bad) {
    return refuse(
        HCCL_E_PARA, function,
        fmt::format(
            "environment variable HCCL_BUFFSIZE is \"{:.40}\"; allowed: a whole number of MB from 1 to {}",
            std::getenv("HCCL_BUFFSIZE"), kLargestBufferMb),
        "EI0001");
  }
  settings.bufferMb = environment.value_or(session.cluster().hcclBufferSizeMb);
  if (config == nullptr) return HCCL_SUCCESS;
  std::size_t size = 0;
  std::uint32_t words[2] = {};
  std::memcpy(&size, config->reserved, sizeof size);
  std::memcpy(words, config->reserved + sizeof size, sizeof words);
  if (words[0] != HCCL_COMM_CONFIG_MAGIC_WORD || words[1] > HCCL_COMM_CONFIG_VERSION ||
      size > sizeof *config) {
    return refuse(HCCL_E_PARA, function, "the config was not filled by HcclCommConfigInit of this version");
  }
  if (strnlen(config->hcclCommName, COMM_NAME_MAX_LENGTH) == COMM_NAME_MAX_LENGTH) {
    return refuse(HCCL_E_PARA, function, "hcclCommName has 128 characters or more; allowed: up to 127");
  }
  settings.name = config->hcclCommName;
  if (config->hcclBufferSize != HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET) {
    if (config->hcclBufferSize < 1 || config->hcclBufferSize > kLargestBufferMb) {
      return refuse(
          HCCL_E_PARA, function,
          fmt::format("hcclBufferSize is {}; allowed: 1 to {} MB", config->hcclBufferSize, kLargestBufferMb));
    }
    settings.bufferMb = config->hcclBufferSize;
  }
  return HCCL_SUCCESS;
}

std::string freshName() {
  CommunicatorTable& table = communicatorTable();
  const std::lock_guard lock(table.mutex);
  const std::shared_ptr<Session> session = Session::currentOrNull();
  if (table.named.lock() != session) table.nextName = 0;
  table.named = session;
  return fmt::format("vatlas_comm_{}", table.nextName++);
}

std::shared_ptr<Group> makeGroup(const char* function, const std::shared_ptr<Session>& session,
                                 const std::vector<int>& devices, const Settings& settings) {
  auto group = std::make_shared<Group>();
  group->session = session;
  group->gang = std::make_shared<runtime::GangGroup>();
  group->gang->name = settings.name.empty() ? freshName() : settings.name;
  group->gang->devices = devices;
  group->windowBytes = 2 * settings.bufferMb * kMiB + kMiB;
  kernels::HcclCombinOpParam context{};
  context.rankDim = static_cast<std::uint32_t>(devices.size());
  context.winSize = group->windowBytes;
  const auto allocate = [&](int device, std::uint64_t bytes) -> void* {
    void* address = nullptr;
    if (session->memory().allocate(device, bytes, 512, true, address) == MemoryStatus::Ok) {
      group->memory.push_back(address);
      return address;
    }
    refuse(HCCL_E_OOM, function,
           fmt::format("device {} has no room for a window of {} bytes ({} are free)", device, bytes,
                       session->memory().freeBytes(device)));
    return nullptr;
  };
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    void* window = allocate(devices[rank], group->windowBytes);
    if (window == nullptr) return nullptr;
    context.windowsIn[rank] = reinterpret_cast<std::uint64_t>(window);
    context.windowsOut[rank] = context.windowsIn[rank] + group->windowBytes / 2;
  }
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    void* address = allocate(devices[rank], sizeof context);
    if (address == nullptr) return nullptr;
    context.rankId = static_cast<std::uint32_t>(rank);
    std::memcpy(address, &context, sizeof context);
    group->contexts.push_back(address);
  }
  return group;
}

HcclComm addRank(const std::shared_ptr<Group>& group, int rank) {
  const auto index = static_cast<std::size_t>(rank);
  auto communicator = std::make_shared<Communicator>();
  communicator->group = group;
  communicator->rank = rank;
  communicator->device = group->gang->devices[index];
  runtime::CommunicatorInfo info;
  info.name = group->gang->name;
  info.gang = group->gang;
  info.rank = rank;
  info.rankSize = static_cast<int>(group->gang->devices.size());
  info.device = communicator->device;
  info.hcclContext = group->contexts[index];
  info.windowBytes = group->windowBytes / 2;
  if (!runtime::addCommunicator(info)) return nullptr;
  CommunicatorTable& table = communicatorTable();
  const std::lock_guard lock(table.mutex);
  return reinterpret_cast<HcclComm>(table.communicators.add(std::move(communicator)));
}

}  // namespace vatlas::hccl
