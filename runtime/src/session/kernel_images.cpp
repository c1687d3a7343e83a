#include "session/kernel_images.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

namespace vatlas::runtime {
namespace {

struct LoadedImage {
  const VatlasImage* table = nullptr;
  std::string error;
};

std::vector<std::string> searchFolders() {
  std::vector<std::string> folders;
  if (const char* path = std::getenv("VATLAS_KERNEL_PATH")) {
    std::string_view rest = path;
    while (!rest.empty()) {
      const std::size_t colon = rest.find(':');
      if (colon != 0) folders.emplace_back(rest.substr(0, colon));
      if (colon == std::string_view::npos) break;
      rest.remove_prefix(colon + 1);
    }
  }
  const std::string own = libraryFolder();
  if (!own.empty()) folders.push_back(own + "/vatlas/kernels");
  return folders;
}

std::string checkTable(const std::string& file, const VatlasImage* table) {
  if (table == nullptr) return fmt::format("{} gives no kernel table", file);
  if (table->magic != kVatlasImageMagic)
    return fmt::format("{} is not a device image (magic {:#x})", file, table->magic);
  if (table->version != kVatlasImageVersion) {
    return fmt::format("{} has image version {}, this runtime reads version {}: compile it again", file,
                       table->version, kVatlasImageVersion);
  }
  if (table->kernelCount != 0 && table->kernels == nullptr) {
    return fmt::format("{} counts {} kernels and lists none", file, table->kernelCount);
  }
  for (std::uint32_t i = 0; i < table->kernelCount; ++i) {
    const VatlasKernelDesc& kernel = table->kernels[i];
    if (kernel.name == nullptr || kernel.entry == nullptr) {
      return fmt::format("{}: kernel {} of its table has no {}", file, i,
                         kernel.name == nullptr ? "name" : "code");
    }
    if (kernel.type > 2)
      return fmt::format("{}: kernel {} has the unknown type {}", file, kernel.name, kernel.type);
  }
  return {};
}

LoadedImage loadFile(const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return {nullptr, fmt::format("{} cannot be loaded: {}", file, why == nullptr ? "no reason given" : why)};
  }
  const auto get = reinterpret_cast<VatlasImageFn>(dlsym(library, "vatlas_image"));
  if (get == nullptr) {
    dlclose(library);
    return {nullptr, fmt::format("{} does not export vatlas_image, so it is no device image", file)};
  }
  const VatlasImage* table = get();
  std::string error = checkTable(file, table);
  if (!error.empty()) {
    dlclose(library);
    return {nullptr, std::move(error)};
  }
  return {table, {}};
}

LoadedImage loadImage(const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos || name.find("..") != std::string::npos) {
    return {nullptr, fmt::format("\"{}\" is no name of a device image", name)};
  }
  std::string looked;
  for (const std::string& folder : searchFolders()) {
    const std::string file = folder + "/" + name + ".so";
    std::error_code ignored;
    if (std::filesystem::is_regular_file(file, ignored)) return loadFile(file);
    looked += (looked.empty() ? "" : ", ") + folder;
  }
  return {nullptr, fmt::format("there is no device image {}.so in {}", name, looked)};
}

// Images stay loaded: kernels of a closed session may still be on the way out. Leaked, as it may be used at
// exit.
struct ImageCache {
  std::mutex mutex;
  std::map<std::string, LoadedImage, std::less<>> images;
};
ImageCache& cache() {
  static auto* instance = new ImageCache;
  return *instance;
}

}  // namespace

std::string libraryFolder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&libraryFolder), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::string{} : file.parent_path().string();
}

KernelEntry findKernel(const std::string& image, const std::string& kernel) {
  LoadedImage loaded;
  {
    ImageCache& known = cache();
    const std::lock_guard lock(known.mutex);
    auto found = known.images.find(image);
    if (found == known.images.end()) {
      loaded = loadImage(image);
      // A failure is not kept: the file may be there the next time.
      if (loaded.table != nullptr) known.images.emplace(image, loaded);
    } else {
      loaded = found->second;
    }
  }
  KernelEntry entry;
  if (loaded.table == nullptr) {
    entry.error = loaded.error;
    return entry;
  }
  std::string names;
  for (std::uint32_t i = 0; i < loaded.table->kernelCount; ++i) {
    const VatlasKernelDesc& desc = loaded.table->kernels[i];
    if (kernel == desc.name) {
      entry.entry = desc.entry;
      entry.type = desc.type;
      entry.argsBytes = desc.argsBytes;
      return entry;
    }
    names += (names.empty() ? "" : ", ") + std::string(desc.name);
  }
  entry.error = fmt::format("the device image {} has no kernel {}; it has: {}", image, kernel,
                            names.empty() ? "none" : names);
  return entry;
}

}  // namespace vatlas::runtime
