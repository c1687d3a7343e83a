// Ids that are handed out as handles: a kind, a generation and an index, so that a stale or foreign value is
// told from a live one without looking at what it points to. The top byte keeps them apart from addresses.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace vatlas::runtime {

enum class HandleKind : std::uint8_t {
  Stream = 1,
  Event = 2,
  Context = 3,
  Tensor = 4,
  Executor = 5,
  Communicator = 6
};

template <typename Object>
class HandleTable {
 public:
  explicit HandleTable(HandleKind kind) : kind_(kind) {}

  std::uint64_t add(std::shared_ptr<Object> object) {
    std::uint32_t index;
    if (free_.empty()) {
      index = static_cast<std::uint32_t>(slots_.size());
      slots_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
    }
    Slot& slot = slots_[index];
    slot.object = std::move(object);
    return encode(index, slot.generation);
  }

  std::shared_ptr<Object> find(std::uint64_t id) const {
    const Slot* slot = locate(id);
    return slot == nullptr ? nullptr : slot->object;
  }

  std::shared_ptr<Object> remove(std::uint64_t id) {
    Slot* slot = const_cast<Slot*>(locate(id));
    if (slot == nullptr) return nullptr;
    slot->generation = (slot->generation + 1) & kGenerationMask;
    free_.push_back(static_cast<std::uint32_t>(id & kIndexMask));
    return std::exchange(slot->object, nullptr);
  }

  template <typename Visit>
  void forEach(Visit&& visit) const {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].object)
        visit(encode(static_cast<std::uint32_t>(i), slots_[i].generation), slots_[i].object);
    }
  }

 private:
  struct Slot {
    std::uint32_t generation = 1;
    std::shared_ptr<Object> object;
  };
  static constexpr std::uint64_t kMark = 0xA7;
  static constexpr std::uint64_t kIndexMask = 0xFFFFFF;
  static constexpr std::uint32_t kGenerationMask = 0xFFFFFFF;

  std::uint64_t encode(std::uint32_t index, std::uint32_t generation) const {
    return kMark << 56 | static_cast<std::uint64_t>(kind_) << 52 |
           static_cast<std::uint64_t>(generation) << 24 | index;
  }
  const Slot* locate(std::uint64_t id) const {
    const std::uint64_t index = id & kIndexMask;
    if (index >= slots_.size() || !slots_[index].object) return nullptr;
    return encode(static_cast<std::uint32_t>(index), slots_[index].generation) == id ? &slots_[index]
                                                                                     : nullptr;
  }

  HandleKind kind_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace vatlas::runtime
