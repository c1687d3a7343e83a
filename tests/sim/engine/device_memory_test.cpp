#include <catch2/catch.hpp>
#include <cstring>

#include "vatlas/sim/device_memory.h"

using vatlas::sim::DeviceMemory;
using vatlas::sim::MemoryStatus;

namespace {
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
}

TEST_CASE("allocations are aligned, apart, on their card, and come back") {
  DeviceMemory memory(2, 64 * kMiB, 1024 * kMiB);
  void* a = nullptr;
  void* b = nullptr;
  void* c = nullptr;
  REQUIRE(memory.allocate(0, 100, 64, false, a) == MemoryStatus::Ok);
  REQUIRE(memory.allocate(0, 100, 4096, false, b) == MemoryStatus::Ok);
  REQUIRE(memory.allocate(1, 1, 64, true, c) == MemoryStatus::Ok);
  REQUIRE(reinterpret_cast<std::uintptr_t>(a) % 64 == 0);
  REQUIRE(reinterpret_cast<std::uintptr_t>(b) % 4096 == 0);
  REQUIRE(memory.cardOf(a) == 0);
  REQUIRE(memory.cardOf(c) == 1);
  REQUIRE(memory.cardOf(&memory) == -1);
  std::memset(a, 1, 128);  // sizes are rounded up to 32 bytes
  REQUIRE(*static_cast<unsigned char*>(c) == 0);
  REQUIRE(memory.find(a, 128));
  REQUIRE_FALSE(memory.find(a, 129));
  REQUIRE(memory.release(a) == MemoryStatus::Ok);
  REQUIRE(memory.release(a) == MemoryStatus::NotAllocated);
  REQUIRE(memory.release(static_cast<char*>(b) + 32) == MemoryStatus::NotAllocated);
  REQUIRE(memory.release(nullptr) == MemoryStatus::NotAllocated);
  REQUIRE_FALSE(memory.find(a, 1));
}

TEST_CASE("a card that is full, a host that is full, and sizes that are none") {
  DeviceMemory memory(2, 64 * kMiB, 80 * kMiB);
  void* a = nullptr;
  REQUIRE(memory.allocate(0, 65 * kMiB, 64, false, a) == MemoryStatus::OutOfDeviceMemory);
  REQUIRE(memory.allocate(0, UINT64_MAX, 64, false, a) == MemoryStatus::OutOfDeviceMemory);
  REQUIRE(memory.allocate(0, 0, 64, false, a) == MemoryStatus::BadSize);
  REQUIRE(memory.allocate(0, 60 * kMiB, 64, false, a) == MemoryStatus::Ok);
  void* b = nullptr;
  REQUIRE(memory.allocate(1, 60 * kMiB, 64, false, b) == MemoryStatus::OutOfHostMemory);
  REQUIRE(memory.freeBytes(1) == 64 * kMiB);
  REQUIRE(memory.release(a) == MemoryStatus::Ok);
  REQUIRE(memory.freeBytes(0) == memory.totalBytes(0));
  REQUIRE(memory.allocate(1, 60 * kMiB, 64, false, b) == MemoryStatus::Ok);
}

TEST_CASE("freed room is used again, and zeroed memory is zero") {
  DeviceMemory memory(1, 16 * kMiB, 64 * kMiB);
  for (int i = 0; i < 200; ++i) {
    void* a = nullptr;
    void* b = nullptr;
    REQUIRE(memory.allocate(0, 6 * kMiB, 64, i % 2 == 0, a) == MemoryStatus::Ok);
    if (i % 2 == 0) {
      for (std::uint64_t at = 0; at < 6 * kMiB; at += 4096) REQUIRE(static_cast<char*>(a)[at] == 0);
    }
    std::memset(a, 0xff, 6 * kMiB);
    REQUIRE(memory.allocate(0, 8 * kMiB, 64, false, b) == MemoryStatus::Ok);
    REQUIRE(memory.release(a) == MemoryStatus::Ok);
    REQUIRE(memory.release(b) == MemoryStatus::Ok);
  }
}

TEST_CASE("addresses are the same in every memory") {
  void* first = nullptr;
  for (int i = 0; i < 2; ++i) {
    DeviceMemory memory(8, 16 * kMiB, 64 * kMiB);
    void* a = nullptr;
    REQUIRE(memory.allocate(7, 1000, 64, false, a) == MemoryStatus::Ok);
    if (i == 0) first = a;
    REQUIRE(a == first);
  }
}

TEST_CASE("a reader follows the record, and a description names the nearest allocation") {
  DeviceMemory memory(2, 16 * kMiB, 64 * kMiB);
  const auto reader = memory.reader();
  void* a = nullptr;
  REQUIRE(memory.allocate(1, 1024, 64, false, a) == MemoryStatus::Ok);
  auto* bytes = static_cast<char*>(a);
  REQUIRE(reader->check(bytes, 1024) == 1);
  REQUIRE(reader->check(bytes + 1000, 24) == 1);
  REQUIRE(reader->check(bytes + 1000, 25) == -1);
  REQUIRE(reader->check(bytes - 1, 2) == -1);
  REQUIRE(reader->check(&memory, 4) == -1);
  REQUIRE(reader->check(bytes, UINT64_MAX) == -1);
  REQUIRE_THAT(memory.describe(bytes + 1030), Catch::Contains("past the end"));
  REQUIRE(memory.release(a) == MemoryStatus::Ok);
  REQUIRE(reader->check(bytes, 4) == -1);
}
