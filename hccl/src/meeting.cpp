#include "meeting.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>

namespace vatlas::hccl {
namespace {

using runtime::HostThread;

struct Guest {
  int device = 0;
  HostThread* thread = nullptr;
  HcclComm comm = nullptr;
};

struct Meeting {
  std::string key;
  std::uint32_t ranks = 0;
  std::string name;
  Settings settings;
  std::map<std::uint32_t, Guest> guests;  // by rank
  bool over = false;
  HcclResult result = HCCL_SUCCESS;
  std::string why;
  std::condition_variable changed;
};

struct Meetings {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Meeting>> open;
};
Meetings& meetings() {
  static auto* all = new Meetings;  // leaked: used while the process exits
  return *all;
}

std::chrono::milliseconds grace() {
  const char* text = std::getenv("VATLAS_PEER_GRACE_MS");
  const long value = text != nullptr ? std::strtol(text, nullptr, 10) : 0;
  return std::chrono::milliseconds(value > 0 ? value : 3000);
}

// Why a rank cannot join; empty when it can.
std::string objection(const Meeting& meeting, const Arrival& arrival) {
  if (meeting.ranks != arrival.ranks)
    return fmt::format("rank {} says there are {} ranks, others say {}", arrival.rank, arrival.ranks,
                       meeting.ranks);
  if (meeting.guests.count(arrival.rank) != 0) return fmt::format("rank {} is there already", arrival.rank);
  for (const auto& [rank, guest] : meeting.guests) {
    if (guest.device == arrival.device)
      return fmt::format("device {} is rank {} already", arrival.device, rank);
  }
  if (!(meeting.settings == arrival.settings)) {
    return fmt::format("rank {} asks for name \"{}\" and {} MB, others for \"{}\" and {} MB", arrival.rank,
                       arrival.settings.name, arrival.settings.bufferMb, meeting.settings.name,
                       meeting.settings.bufferMb);
  }
  return {};
}

void missingRanks(Meeting& meeting) {
  std::string missing;
  for (std::uint32_t rank = 0; rank < meeting.ranks; ++rank) {
    if (meeting.guests.count(rank) == 0) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  meeting.result = HCCL_E_TIMEOUT;
  meeting.why = fmt::format("rank {} of {} did not come", missing, meeting.ranks);
}

// All ranks are there: the communicator, or the reason why there is none.
void conclude(const char* function, const runtime::Call& call, Meeting& meeting) {
  std::vector<int> devices;
  for (const auto& [rank, guest] : meeting.guests) devices.push_back(guest.device);
  Settings settings = meeting.settings;
  if (settings.name.empty()) settings.name = meeting.name;
  const auto group = makeGroup(function, call.session, devices, settings);
  if (!group) {
    meeting.result = HCCL_E_OOM;
    meeting.why = "there is no room for the windows";
    return;
  }
  for (auto& [rank, guest] : meeting.guests) {
    guest.comm = addRank(group, static_cast<int>(rank));
    if (guest.comm != nullptr) continue;
    meeting.result = HCCL_E_PARA;
    meeting.why = fmt::format("the name {} is taken on device {}", settings.name, guest.device);
  }
}

// Wakes everybody; all go on from the same simulated time.
void endMeeting(const runtime::Call& call, Meeting& meeting) {
  meeting.over = true;
  meetings().open.erase(meeting.key);
  runtime::SimTime clock = 0;
  for (const auto& [rank, guest] : meeting.guests)
    clock = std::max(clock, call.session->clock(*guest.thread));
  clock += call.session->cluster().product.host.apiCall;
  for (const auto& [rank, guest] : meeting.guests) call.session->endBlock(*guest.thread, clock);
  meeting.changed.notify_all();
}

}  // namespace

HcclResult meet(const char* function, const runtime::Call& call, const Arrival& arrival, HcclComm& comm) {
  Meetings& all = meetings();
  std::unique_lock lock(all.mutex);
  std::shared_ptr<Meeting>& slot = all.open[arrival.key];
  if (!slot) {
    slot = std::make_shared<Meeting>();
    slot->key = arrival.key;
    slot->ranks = arrival.ranks;
    slot->name = arrival.name;
    slot->settings = arrival.settings;
  }
  const std::shared_ptr<Meeting> meeting = slot;
  if (const std::string why = objection(*meeting, arrival); !why.empty())
    return refuse(HCCL_E_PARA, function, why, "EI0005");
  meeting->guests[arrival.rank] = {arrival.device, call.thread, nullptr};
  call.session->beginBlock(*call.thread);
  if (meeting->guests.size() == meeting->ranks) {
    conclude(function, call, *meeting);
    endMeeting(call, *meeting);
  } else {
    meeting->changed.notify_all();  // those who wait count their patience from now
    while (!meeting->over) {
      const std::size_t present = meeting->guests.size();
      const bool news = meeting->changed.wait_for(
          lock, grace(), [&] { return meeting->over || meeting->guests.size() != present; });
      if (news) continue;
      missingRanks(*meeting);
      endMeeting(call, *meeting);
    }
  }
  if (meeting->result != HCCL_SUCCESS) return refuse(meeting->result, function, meeting->why, "EI0015");
  comm = meeting->guests[arrival.rank].comm;
  return HCCL_SUCCESS;
}

}  // namespace vatlas::hccl
