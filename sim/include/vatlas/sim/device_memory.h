// The memories of the cards: real memory at fixed addresses, one reserved range a card, committed when
// touched. Allocation is thread-safe; the model reads the record of allocations without a lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace vatlas::sim {

enum class MemoryStatus : std::uint8_t {
  Ok,
  OutOfDeviceMemory,  // the card has no room
  OutOfHostMemory,    // the ceiling on host memory would be passed
  NotAllocated,       // free of an address that is not the start of a live allocation
  BadSize,
};

struct Allocation {
  std::uintptr_t address = 0;
  std::uint64_t bytes = 0;  // as rounded
};

class DeviceMemory {
 public:
  // Reserves the ranges; throws std::runtime_error with advice when the address space is not to be had.
  // ceilingBytes: most host memory that live allocations of all cards may take together.
  DeviceMemory(int cards, std::uint64_t bytesPerCard, std::uint64_t ceilingBytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Sizes are rounded up to 32 bytes, addresses aligned to at least 64. `zeroed` memory reads as zero
  // (communicator windows); other memory holds whatever was there.
  MemoryStatus allocate(int card, std::uint64_t bytes, std::uint64_t alignment, bool zeroed, void*& address);
  MemoryStatus release(void* address);

  int cardOf(const void* address) const noexcept;  // by range; -1 when it is no device address
  // The live allocation that holds all of [address, address + bytes).
  std::optional<Allocation> find(const void* address, std::uint64_t bytes) const;
  // What a fault message says about an address: "48 bytes past the end of the allocation ...".
  std::string describe(const void* address) const;

  std::uint64_t freeBytes(int card) const;
  std::uint64_t totalBytes(int card) const;
  std::uint64_t ceilingBytes() const noexcept;
  std::uint64_t committedBytes() const;  // all cards
  // Lock-free check for the model's own thread; see AccessCache in the source.
  class Reader;
  std::unique_ptr<Reader> reader() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// One reader per thread. Follows changes of the allocation record by its generation counter.
class DeviceMemory::Reader {
 public:
  explicit Reader(const State& state);
  ~Reader();
  // The card of the allocation that holds all of the range; -1 when none does.
  int check(const void* address, std::uint64_t bytes);

 private:
  struct View;
  std::unique_ptr<View> view_;
};

}  // namespace vatlas::sim
