#include "schema.h"

#include <algorithm>
#include <exception>
#include <iterator>

#include "text.h"

namespace vatlas::runtime::config {
namespace {

using Kind = Node::Kind;

// Walks a schema and a value side by side. Knows the keywords that decide nearly everything in our schemas:
// $ref, type, enum, properties, required, additionalProperties (false), items, and the limits of numbers,
// texts and lists.
class Walker {
 public:
  Walker(const Document& schema, Problems& problems) : schema_(schema), problems_(problems) {}

  void check(const Node& schemaNode, const Node& value, const std::string& path);

 private:
  const Node& resolve(const Node& schemaNode) const;
  bool checkType(const Node& rule, const Node& value, const std::string& path);
  void checkEnum(const Node& rule, const Node& value, const std::string& path);
  void checkNumber(const Node& rule, const Node& value, const std::string& path);
  void checkObject(const Node& rule, const Node& value, const std::string& path);
  void checkArray(const Node& rule, const Node& value, const std::string& path);
  void checkLength(std::size_t length, const Node* least, const Node* most, const char* what,
                   const Node& value, const std::string& path);

  const Document& schema_;
  Problems& problems_;
};

const Node& Walker::resolve(const Node& schemaNode) const {
  const Node* reference = schemaNode.find("$ref");
  if (reference == nullptr) {
    return schemaNode;
  }
  // Only "#/definitions/NAME".
  const std::string& text = reference->text;
  const Node* definitions = schema_.root.find("definitions");
  const Node* target = definitions == nullptr ? nullptr : definitions->find(text.substr(text.rfind('/') + 1));
  if (target == nullptr) {
    throw ConfigError(
        ConfigErrorCode::Installation, schema_.path.string(), 0, 0, "",
        fmt::format("found a reference to {}, which is not there; allowed a whole schema", inQuotes(text)));
  }
  return *target;
}

const char* typeWords(std::string_view type) {
  if (type == "object") return "an object";
  if (type == "array") return "a list";
  if (type == "string") return "a text";
  if (type == "integer") return "a whole number";
  if (type == "number") return "a number";
  return type == "boolean" ? "true or false" : "null";
}

bool hasType(const Node& value, std::string_view type) {
  if (type == "object") return value.kind == Kind::Object;
  if (type == "array") return value.kind == Kind::Array;
  if (type == "string") return value.kind == Kind::String;
  if (type == "integer") return value.kind == Kind::Integer;
  if (type == "number") return value.isNumber();
  return type == "boolean" ? value.kind == Kind::Boolean : value.kind == Kind::Null;
}

bool Walker::checkType(const Node& rule, const Node& value, const std::string& path) {
  const Node* type = rule.find("type");
  if (type == nullptr || hasType(value, type->text)) {
    return true;
  }
  problems_.add(ConfigErrorCode::WrongType, value.offset, path,
                fmt::format("found {}; allowed {}", describe(value), typeWords(type->text)));
  return false;
}

std::string enumWord(const Node& node) {
  return node.kind == Kind::String ? inQuotes(node.text) : fmt::format("{:.17g}", node.number);
}

void Walker::checkEnum(const Node& rule, const Node& value, const std::string& path) {
  const Node* allowed = rule.find("enum");
  if (allowed == nullptr || allowed->items.empty()) {
    return;
  }
  std::vector<std::string> words;
  std::vector<std::string> texts;
  for (const Node& item : allowed->items) {
    if (item.kind == value.kind &&
        (item.kind == Kind::String ? item.text == value.text : item.number == value.number)) {
      return;
    }
    words.push_back(enumWord(item));
    texts.push_back(item.text);
  }
  const bool sameKind = allowed->items.front().kind == value.kind;
  problems_.add(sameKind ? ConfigErrorCode::BadValue : ConfigErrorCode::WrongType, value.offset, path,
                fmt::format("found {}; allowed {}{}", describe(value), listOf(words, "or"),
                            sameKind ? suggestion(value.text, texts) : ""));
}

void Walker::checkNumber(const Node& rule, const Node& value, const std::string& path) {
  if (!value.isNumber()) {
    return;
  }
  const Node* least = rule.find("minimum");
  const Node* above = rule.find("exclusiveMinimum");
  const Node* most = rule.find("maximum");
  const bool bad = (least != nullptr && value.number < least->number) ||
                   (above != nullptr && value.number <= above->number) ||
                   (most != nullptr && value.number > most->number);
  if (!bad) {
    return;
  }
  std::vector<std::string> limits;
  if (least != nullptr) limits.push_back(fmt::format("at least {}", least->number));
  if (above != nullptr) limits.push_back(fmt::format("more than {}", above->number));
  if (most != nullptr) limits.push_back(fmt::format("at most {}", most->number));
  problems_.add(ConfigErrorCode::OutOfRange, value.offset, path,
                fmt::format("found {}; allowed {}", describe(value), listOf(limits, "and")));
}

void Walker::checkLength(std::size_t length, const Node* least, const Node* most, const char* what,
                         const Node& value, const std::string& path) {
  if ((least != nullptr && static_cast<double>(length) < least->number) ||
      (most != nullptr && static_cast<double>(length) > most->number)) {
    std::vector<std::string> limits;
    if (least != nullptr) limits.push_back(fmt::format("at least {}", least->number));
    if (most != nullptr) limits.push_back(fmt::format("at most {}", most->number));
    problems_.add(ConfigErrorCode::OutOfRange, value.offset, path,
                  fmt::format("found {} {}; allowed {}", length, what, listOf(limits, "and")));
  }
}

void Walker::checkObject(const Node& rule, const Node& value, const std::string& path) {
  const Node* properties = rule.find("properties");
  std::vector<std::string> known;
  if (properties != nullptr) {
    for (const Node::Member& member : properties->members) {
      known.push_back(member.key);
    }
  }
  for (const Node::Member& member : value.members) {
    const Node* memberRule = properties == nullptr ? nullptr : properties->find(member.key);
    const std::string memberPath = childPath(path, member.key);
    if (memberRule != nullptr) {
      check(*memberRule, member.value, memberPath);
      continue;
    }
    std::vector<std::string> open;  // keys that could have been meant: those not there yet
    std::copy_if(known.begin(), known.end(), std::back_inserter(open),
                 [&](const std::string& key) { return value.find(key) == nullptr; });
    problems_.add(ConfigErrorCode::UnknownKey, member.keyOffset, memberPath,
                  fmt::format("found an unknown key {}; allowed {}{}", inQuotes(member.key),
                              listOf(known, "and"), suggestion(member.key, open)));
  }
  if (const Node* required = rule.find("required"); required != nullptr) {
    for (const Node& key : required->items) {
      if (value.find(key.text) == nullptr) {
        problems_.add(ConfigErrorCode::MissingKey, value.offset, path,
                      fmt::format("found no key {}; allowed only with it", inQuotes(key.text)));
      }
    }
  }
}

void Walker::checkArray(const Node& rule, const Node& value, const std::string& path) {
  checkLength(value.items.size(), rule.find("minItems"), rule.find("maxItems"), "entries", value, path);
  if (const Node* itemRule = rule.find("items"); itemRule != nullptr) {
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      check(*itemRule, value.items[i], childPath(path, i));
    }
  }
}

// Characters, not bytes, as JSON Schema counts.
std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

void Walker::check(const Node& schemaNode, const Node& value, const std::string& path) {
  const Node& rule = resolve(schemaNode);
  if (!checkType(rule, value, path)) {
    return;
  }
  checkEnum(rule, value, path);
  checkNumber(rule, value, path);
  switch (value.kind) {
    case Kind::Object:
      checkObject(rule, value, path);
      break;
    case Kind::Array:
      checkArray(rule, value, path);
      break;
    case Kind::String:
      checkLength(characters(value.text), rule.find("minLength"), rule.find("maxLength"), "characters", value,
                  path);
      break;
    default:
      break;
  }
}

Document loadSchema(const std::string& name) {
  const std::filesystem::path path = configRoot() / "schema" / (name + ".schema.json");
  try {
    return loadDocument(path);
  } catch (const ConfigError& error) {
    throw ConfigError(ConfigErrorCode::Installation, error.file, error.line, error.column, error.jsonPath,
                      "found no usable schema file; allowed the shipped one (see VATLAS_CONFIG_DIR)");
  }
}

}  // namespace

void checkSchema(const std::string& schemaName, Problems& problems) {
  const Document schema = loadSchema(schemaName);
  Walker(schema, problems).check(schema.root, problems.document().root, "$");
  if (!problems.none()) {
    return;
  }
  std::vector<std::pair<std::string, std::string>> reasons;
  try {
    reasons = validateWithSchema(schema, problems.document());
  } catch (const std::exception& error) {  // the validator throws on a schema that makes no sense
    throw ConfigError(ConfigErrorCode::Installation, schema.path.string(), 0, 0, "",
                      fmt::format("found no usable schema ({}); allowed the shipped one", error.what()));
  }
  for (const auto& [path, reason] : reasons) {
    problems.add(ConfigErrorCode::SchemaMismatch, 0, "$",
                 fmt::format("found a value at {} that the schema refuses ({}); allowed what {} describes",
                             path, reason, schema.path.filename().string()));
  }
}

}  // namespace vatlas::runtime::config
