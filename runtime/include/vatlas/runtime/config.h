// Products, clusters and the support matrix, read from JSON files into the plain structs of sim/config.h.
//
// Every function here either returns a complete, checked value or throws ConfigError; none keeps state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "vatlas/sim/config.h"

namespace vatlas::runtime {

enum class ConfigErrorCode : std::uint8_t {
  NotFound,    // no such file, or no shipped cluster of that name
  NotAFile,    // a directory, a pipe, a device
  Unreadable,  // it exists but cannot be read
  TooLarge,    // more than 16 MiB, or more than 200,000 values
  Empty,
  NotUtf8,
  Syntax,
  Truncated,    // the file ends too early
  TooDeep,      // more than 64 levels
  UnknownKind,  // well-formed, but neither a cluster nor a product nor a support matrix
  DuplicateKey,
  UnknownKey,
  MissingKey,
  WrongType,
  BadValue,    // not one of the allowed values
  OutOfRange,  // a number too small or too large, a text or list too short or too long
  UnknownProduct,
  BadVersion,
  BadLink,         // a link to a card that does not exist, or to itself
  Duplicate,       // a link, card, rank count or product listed twice
  Disconnected,    // some cards cannot reach each other
  TooManyPorts,    // more than the product has
  SchemaMismatch,  // refused by the JSON Schema for a reason without a text of its own
  Installation,    // the shipped configuration files are missing or damaged
};

// The text reads FILE:LINE: JSON-PATH: found ...; allowed ...; did you mean "..."?
struct ConfigError : std::runtime_error {
  ConfigError(ConfigErrorCode errorCode, std::string filePath, int lineNumber, int columnNumber,
              std::string path, const std::string& text);

  ConfigErrorCode code;
  std::string file;
  int line;              // from 1; 0 when the error has no place within the file
  int column;            // from 1, in bytes
  std::string jsonPath;  // "$.topology.links[0].cards"; empty with line 0
};

// Where a number of a product comes from.
struct ParameterNote {
  std::string name;  // "core.mte_issue"
  double value = 0;
  std::string unit;
  std::string confidence;  // "official", "measured", "derived", "estimate" or "assumed"
  std::string source;
};

enum class Support : std::uint8_t { No, Yes, Conditions };

struct SupportMatrix {
  struct Family {
    std::string displayName;
    std::vector<std::string> products;  // names of the products that run here; empty for families that do not
  };
  struct Rule {
    Support support = Support::No;
    std::vector<std::string> subproducts;  // with Conditions: the only ones that have the feature
  };
  struct Feature {
    std::string displayName;
    std::string source;
    bool needsUnifiedBus = false;       // between every pair of ranks, over any number of links
    std::vector<int> ranks;             // numbers of ranks it accepts
    std::map<std::string, Rule> rules;  // by family
  };
  std::map<std::string, Family> families;
  std::map<std::string, Feature> features;

  // Why `feature` ("quant_all_reduce", "quant_reduce_scatter", "grad_split") is not available on all cards of
  // the cluster, or nothing when it is. The text names the product, the number of ranks, or the first pair of
  // cards that no chain of UnifiedBus links joins. Throws std::out_of_range for a feature that the matrix
  // does not have.
  std::optional<std::string> check(std::string_view feature, const sim::ClusterConfig& cluster) const;
  // The same for a communicator over some of the cards; links through other cards count.
  std::optional<std::string> check(std::string_view feature, const sim::ClusterConfig& cluster,
                                   std::span<const int> cards) const;
  // The product alone; `subproduct` is the name of a concrete machine of the family, if known.
  std::optional<std::string> checkProduct(std::string_view feature, const std::string& family,
                                          std::string_view subproduct = {}) const;
};

sim::ClusterConfig loadCluster(const std::filesystem::path& path);
sim::ProductConfig loadProduct(const std::filesystem::path& path);
SupportMatrix loadSupportMatrix(const std::filesystem::path& path);
SupportMatrix loadSupportMatrix();  // the shipped one

// Folder with products/, clusters/, schema/ and support_matrix.json: VATLAS_CONFIG_DIR if set, else
// ../share/vatlas/configs or ../../../configs as seen from the folder of the library.
std::filesystem::path configRoot();
// A path (it has a slash or ends in .json, or is no shipped name but a file), or the name of a shipped
// cluster.
std::filesystem::path findCluster(std::string_view nameOrPath);
std::filesystem::path findProduct(std::string_view name);
std::filesystem::path defaultCluster();          // ascend950dt_8p
std::vector<std::string> listShippedClusters();  // names, sorted
std::vector<std::string> listShippedProducts();

// Every number of a product with its source, in the order of the file.
std::vector<ParameterNote> parameterNotes(const std::filesystem::path& product);

// The cluster as a cluster file with every default written out and, unless it has a switch, every link
// listed. Loading that file gives the same links, versions and switches.
std::string canonicalJson(const sim::ClusterConfig& cluster);

enum class FileKind : std::uint8_t { Unknown, Cluster, Product, SupportMatrix, RankTable, TopologyFile };

// By the keys of the outermost object. Throws ConfigError when the file is not JSON.
FileKind detectKind(const std::filesystem::path& path);

// The vendor's rank tables and topology files are read elsewhere; whoever can check them passes a function
// here.
using ForeignValidator = std::function<std::vector<ConfigError>(const std::filesystem::path&, FileKind)>;

// All errors of a file, in the order of their places (at most 100); empty when it is good. Errors that hide
// others (syntax, keys and types before meaning) are reported alone. Without `foreign`, rank tables and
// topology files answer UnknownKind.
std::vector<ConfigError> validateFile(const std::filesystem::path& path,
                                      const ForeignValidator& foreign = {});

}  // namespace vatlas::runtime
