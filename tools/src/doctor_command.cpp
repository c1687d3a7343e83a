// vatlas doctor: this machine and installation, each finding with what to do about it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/version.hpp>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "acl/acl.h"
#include "commands.h"
#include "vatlas/runtime/config.h"
#include "vatlas/sim/simulation.h"
#include "vatlas/vatlas.h"

namespace vatlas::tools {
namespace {

constexpr std::uint64_t kGib = 1ULL << 30;

class Doctor {
 public:
  void good(const std::string& what) { fmt::print("ok    {}\n", what); }
  // Worth knowing; vatlas runs.
  void note(const std::string& what, const std::string& advice) {
    fmt::print("note  {}\n      {}\n", what, advice);
  }
  void bad(const std::string& what, const std::string& advice) {
    fmt::print("BAD   {}\n      {}\n", what, advice);
    sick_ = true;
  }
  int exitCode() const { return sick_ ? kExitUsage : kExitEqual; }

 private:
  bool sick_ = false;
};

// Installed Debian packages and their versions; empty where there is no package database.
std::map<std::string, std::string> installedPackages() {
  std::map<std::string, std::string> packages;
  std::ifstream file("/var/lib/dpkg/status");
  std::string line, name;
  bool installed = false;
  while (std::getline(file, line)) {
    if (line.rfind("Package: ", 0) == 0) {
      name = line.substr(9);
      installed = false;
    } else if (line.rfind("Status: ", 0) == 0) {
      installed = line.find(" installed") != std::string::npos;
    } else if (line.rfind("Version: ", 0) == 0 && installed) {
      packages[name] = line.substr(9);
    }
  }
  return packages;
}

void checkPackages(Doctor& doctor) {
  const std::map<std::string, std::string> installed = installedPackages();
  if (installed.empty())
    return doctor.note(
        "no Debian package database on this machine",
        "vatlas is built and tested on Debian 12; elsewhere install the libraries of the README yourself");
  std::istringstream wanted(VATLAS_PACKAGES);  // tools/packages.txt, at build time
  std::vector<std::string> present, missing;
  for (std::string name; wanted >> name;) {
    const auto found = installed.find(name);
    if (found == installed.end()) {
      missing.push_back(name);
    } else {
      present.push_back(fmt::format("{} {}", name, found->second));
    }
  }
  std::string text = fmt::format("{} packages for building and testing are installed:", present.size());
  for (std::size_t i = 0; i < present.size(); ++i) text += (i % 4 == 0 ? "\n        " : ", ") + present[i];
  doctor.good(text);
  if (!missing.empty())
    doctor.note(
        fmt::format("packages for building and testing are missing: {}", fmt::join(missing, " ")),
        "run tools/install-packages, or: sudo apt-get install " + fmt::format("{}", fmt::join(missing, " ")));
}

// The number a file begins with; nothing for "max" and for files that are not there.
std::uint64_t numberIn(const char* path, const std::string& after = {}) {
  std::ifstream file(path);
  std::string word;
  while (!after.empty() && file >> word && word != after) {
  }
  std::uint64_t number = 0;
  return file >> number ? number : 0;
}

void checkMemory(Doctor& doctor) {
  const std::uint64_t memory = numberIn("/proc/meminfo", "MemAvailable:") << 10;
  const auto gib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(kGib); };
  const std::string text = fmt::format("{:.1f} GiB of memory available", gib(memory));
  if (memory >= 2 * kGib) {
    doctor.good(text);
  } else {
    doctor.bad(text,
               "memory is taken as it is touched; 16 Mi elements on each of 8 ranks want 1 GiB: close other "
               "programs, or use fewer ranks or smaller shapes");
  }
  const std::uint64_t limit = numberIn("/sys/fs/cgroup/memory.max");
  if (limit > 0 && limit < 2 * kGib)
    doctor.note(fmt::format("this container may use {:.1f} GiB of memory", gib(limit)),
                "give it more, or use fewer ranks or smaller shapes");
  if (const char* ceiling = std::getenv("VATLAS_HOST_MEMORY_MB"))
    doctor.note(fmt::format("VATLAS_HOST_MEMORY_MB={} limits device memory on this host", ceiling),
                "unset it to use what the machine has");
  struct rlimit space {};
  getrlimit(RLIMIT_AS, &space);
  if (space.rlim_cur == RLIM_INFINITY) {
    doctor.good("address space is not limited");
  } else {
    doctor.bad(fmt::format("address space is limited to {:.1f} GiB (ulimit -v)", gib(space.rlim_cur)),
               "device memories are reserved ranges of addresses: run `ulimit -v unlimited` first");
  }
}

void checkConfigs(Doctor& doctor) {
  try {
    const auto clusters = runtime::listShippedClusters();
    for (const std::string& name : clusters) (void)runtime::loadCluster(runtime::findCluster(name));
    (void)runtime::loadSupportMatrix();
    doctor.good(
        fmt::format("configurations in {}: {} clusters", runtime::configRoot().string(), clusters.size()));
  } catch (const std::exception& error) {
    doctor.bad(error.what(), "build or install vatlas again, or set VATLAS_CONFIG_DIR to its configs folder");
  }
}

void checkMachine(Doctor& doctor) {
  if (aclInit(nullptr) == 0) {
    doctor.good(fmt::format("a machine opens ({})", aclrtGetSocName()));
    aclFinalize();
    return;
  }
  const char* why = aclGetRecentErrMsg();
  doctor.bad(why == nullptr ? "no machine opens" : why,
             "follow the message; `vatlas validate` looks at a cluster file");
}

}  // namespace

int doctorCommand() {
  Doctor doctor;
  fmt::print("vatlas {}, compiler GCC {}, Boost {}.{}, fmt {}.{}\n", vatlasVersion(), __VERSION__,
             BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, FMT_VERSION / 10000,
             FMT_VERSION / 100 % 100);
  doctor.good(sim::SystemCShell::description());
  doctor.good(fmt::format("{} processors", sysconf(_SC_NPROCESSORS_ONLN)));
  checkPackages(doctor);
  checkMemory(doctor);
  checkConfigs(doctor);
  checkMachine(doctor);
  return doctor.exitCode();
}

}  // namespace vatlas::tools
