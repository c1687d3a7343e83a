// Checks a document against one of the shipped JSON Schema files.
#pragma once

#include <string>

#include "problems.h"

namespace vatlas::runtime::config {

// Adds to `problems` whatever the schema ("cluster", "product", "support_matrix") forbids, each with its
// place and in words of our own; what those words do not cover is caught by a full validator afterwards.
// Throws ConfigError with Installation when the schema file is missing or damaged.
void checkSchema(const std::string& schemaName, Problems& problems);

// The full validator alone: the places and reasons it gives, empty when it accepts.
std::vector<std::pair<std::string, std::string>> validateWithSchema(const Document& schema,
                                                                    const Document& document);

}  // namespace vatlas::runtime::config
