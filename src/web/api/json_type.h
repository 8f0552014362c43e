#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "listing/listing.h"

namespace nodepool::web {

struct FieldDoc;

// The type of a field of the API, as documented.
struct JsonType {
  enum class Kind { kText, kWhole, kNumber, kFlag, kAny, kList, kMap, kObject, kEither };

  Kind kind = Kind::kAny;
  bool is_nullable = false;
  std::vector<std::string_view> words = {};           // of a text: all its possible values
  std::shared_ptr<const JsonType> entries = nullptr;  // of lists, and of maps from texts
  std::vector<FieldDoc> fields;                       // of objects
  std::vector<JsonType> alternatives = {};            // of kEither
  // Of a whole number its bounds, of a text those of its length in bytes; none: not stated.
  std::optional<std::int64_t> least = std::nullopt;
  std::optional<std::int64_t> most = std::nullopt;

  JsonType OrNull() const;
  JsonType Within(std::int64_t least, std::int64_t most) const;
};

// A field of an object, without where its value comes from.
struct FieldDoc {
  std::string key;
  JsonType type;
  std::string text;          // description, one line
  bool is_optional = false;  // left out if there is no value
  // How queries filter by it: as state, label or provider.
  listing::Kind asked_as = listing::Kind::kPlain;
  bool is_order = false;  // entries are sorted by this text, and a query can begin after one
};

JsonType Text();
JsonType OneOf(std::vector<std::string_view> words);
JsonType Whole();
JsonType Number();
JsonType Flag();
JsonType Any();  // also null
JsonType ListOf(JsonType entries);
JsonType MapOf(JsonType entries);
JsonType ObjectOf(std::vector<FieldDoc> fields);
JsonType Either(JsonType one, JsonType other);

// As JSON Schema, in the form of OpenAPI 3.1.
boost::json::object SchemaOf(const JsonType& type);

// A readable description: "text or null", "list of objects".
std::string DescriptionOf(const JsonType& type);

}  // namespace nodepool::web
