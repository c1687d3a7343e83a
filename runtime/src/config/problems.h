// Collects what is wrong with a document.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "json_document.h"
#include "vatlas/runtime/config.h"

namespace vatlas::runtime::config {

class Problems {
 public:
  explicit Problems(const Document& document) : document_(document) {}

  const Document& document() const { return document_; }
  bool none() const { return errors_.empty(); }

  // `text` is "found ...; allowed ..." with the suggestion, if any.
  void add(ConfigErrorCode code, std::size_t offset, const std::string& path, const std::string& text) {
    if (errors_.size() < kMostErrors) {
      errors_.push_back(makeError(code, offset, path, text));
    }
  }
  ConfigError makeError(ConfigErrorCode code, std::size_t offset, const std::string& path,
                        const std::string& text) const {
    const Place place = document_.place(offset);
    return {code, document_.path.string(), place.line, place.column, path, text};
  }

  void append(std::vector<ConfigError> more) {
    for (ConfigError& error : more) {
      errors_.push_back(std::move(error));
    }
  }
  std::vector<ConfigError> take();  // in the order of their places
  void throwFirst();                // does nothing when there are none

 private:
  static constexpr std::size_t kMostErrors = 100;

  const Document& document_;
  std::vector<ConfigError> errors_;
};

}  // namespace vatlas::runtime::config
