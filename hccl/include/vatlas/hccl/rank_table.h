// The vendor's rank table for the 950 (JSON, version "2.0"): which rank runs on which device.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "vatlas/runtime/config.h"

namespace vatlas::hccl {

struct RankTable {
  struct Rank {
    int localId = 0;
    int deviceId = 0;
  };
  std::vector<Rank> ranks;  // by rank id
  std::string identity;     // the same for tables of the same text
};

// Throws runtime::ConfigError: BadVersion, MissingKey, WrongType, OutOfRange, Duplicate, Syntax, NotFound,
// ...
RankTable readRankTable(const std::filesystem::path& path);

// All that is wrong with a rank table, for `vatlas validate`; empty when it is good.
std::vector<runtime::ConfigError> validateRankTable(const std::filesystem::path& path);

}  // namespace vatlas::hccl
