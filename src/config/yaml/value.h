#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace nodepool::config {

// A place in a file; line and column count from 1. 0 = unknown.
struct Position {
  int line = 0;
  int column = 0;
};

// Error(kInvalid) whose message begins with the place.
Error ErrorAt(Position position, std::string_view message);

// A piece of a YAML document, resolved by the YAML 1.1 rules of configuration.md 2.2, with its
// place in the file and its source text. Immutable; copies share the content.
class Value {
 public:
  enum class Kind { kNull, kBool, kInt, kFloat, kString, kTimestamp, kList, kMap };
  // In document order; of duplicate keys only the last. Keys are source text.
  using Map = std::vector<std::pair<std::string, Value>>;
  using List = std::vector<Value>;

  Value();  // null, position unknown

  static Value Null(Position position);
  static Value Bool(bool value, std::string text, Position position);
  static Value Int(std::int64_t value, std::string text, Position position);
  static Value Float(double value, std::string text, Position position);
  static Value String(std::string value, Position position);
  static Value Timestamp(std::string text, Position position);
  static Value MakeList(List items, Position position);
  static Value MakeMap(Map entries, Position position);

  Kind kind() const;
  bool is_null() const { return kind() == Kind::kNull; }
  // Neither null nor a list nor a mapping.
  bool is_scalar() const { return !is_null() && kind() != Kind::kList && kind() != Kind::kMap; }
  Position position() const;

  // Each requires the matching kind.
  bool bool_value() const;
  std::int64_t int_value() const;
  double float_value() const;
  const List& list() const;
  const Map& map() const;

  // The scalar as it was written (without quotes); for a string its value. A name that YAML reads
  // as a number or boolean is used by its text (D-51). Requires a scalar.
  const std::string& text() const;

  // The entry of a map, or null when this is not a map or has no such key.
  const Value* Find(std::string_view key) const;

  // "an integer", "a mapping" ... for error messages.
  std::string_view KindName() const;

  // Content as JSON, without positions: for node attributes, metadata, comparisons.
  boost::json::value ToJson() const;

 private:
  struct Data;
  explicit Value(std::shared_ptr<const Data> data);
  std::shared_ptr<const Data> data_;
};

// Resolves a plain (unquoted, untagged) scalar by the YAML 1.1 rules of configuration.md 2.2: `yes`
// is a boolean, `010` is 8, `12:30` is 750, `1e3` is a string. Errors are spellings that begin like
// a number or date and are not one (`0x_`, `2024-13-01`), and `=` and `<<` as values; their
// messages have no position.
Expected<Value> ResolvePlainScalar(const std::string& text, Position position);

// A scalar with an explicit standard tag, e.g. "tag:yaml.org,2002:int".
Expected<Value> ResolveTaggedScalar(std::string_view tag, const std::string& text, Position position);

// The value as the Python implementation writes it as text (configuration.md 7.4): True, 8.1, 20.0,
// 1e+16. Requires a scalar; null gives "".
std::string PythonText(const Value& value);

}  // namespace nodepool::config
