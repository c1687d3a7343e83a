// The subcommands of `vatlas`. Each gives the process's exit code: 0 done (and equal), 1 not equal, 2 bad
// usage or configuration, 3 fault of the emulator, 130 interrupted.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "run_options.h"

namespace vatlas::tools {

inline constexpr int kExitEqual = 0;
inline constexpr int kExitDifferent = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitFault = 3;
inline constexpr int kExitInterrupted = 130;

// The cluster file that a command works with: what it was given, else VATLAS_CLUSTER, else the default.
// Throws runtime::ConfigError when there is none of the name.
std::filesystem::path clusterFile(const std::string& given);

int runCommand(const RunOptions& options);
int validateCommand(const std::vector<std::string>& files);
int infoCommand(const std::string& cluster);
int doctorCommand();
int modelCheckCommand();

bool interrupted() noexcept;  // Ctrl-C has been pressed
void catchInterrupts();

}  // namespace vatlas::tools
