// The full JSON Schema validator, behind a plain interface.
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "schema.h"

namespace vatlas::runtime::config {

std::vector<std::pair<std::string, std::string>> validateWithSchema(const Document& schema,
                                                                    const Document& document) {
  const nlohmann::json schemaJson = nlohmann::json::parse(schema.text);
  const nlohmann::json targetJson = nlohmann::json::parse(document.text);

  valijson::Schema compiled;
  valijson::SchemaParser parser;
  const valijson::adapters::NlohmannJsonAdapter schemaAdapter(schemaJson);
  parser.populateSchema(schemaAdapter, compiled);

  valijson::Validator validator;
  valijson::ValidationResults results;
  const valijson::adapters::NlohmannJsonAdapter targetAdapter(targetJson);
  std::vector<std::pair<std::string, std::string>> reasons;
  if (validator.validate(compiled, targetAdapter, &results)) {
    return reasons;
  }
  for (const auto& error : results) {
    std::string path = "$";
    for (std::size_t i = 1; i < error.context.size(); ++i) {
      path += error.context[i];
    }
    reasons.emplace_back(std::move(path), error.description);
  }
  return reasons;
}

}  // namespace vatlas::runtime::config
