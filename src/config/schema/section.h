#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "config/schema/schema.h"
#include "config/yaml/value.h"
#include "model/breaker.h"

namespace nodepool::config {

// A mapping read in the lenient way of the daemons: a number may be written as text, null means
// absent, text may be a number (its source text is used, D-51), other keys are ignored. Usually settings are
// bound to the members that they are read into (bindings.h), which calls these functions. A key that
// is read must be declared in the schema. Every function throws Error(kInvalid) naming line, column and place
// when the value cannot be used.
class Section {
 public:
  // `place` names the mapping in messages: "labels[2]", "provider x, pools[0]".
  // Throws when `value` is not a mapping; null counts as an empty one.
  Section(const Value& value, const Schema& schema, std::string place);

  const Value& value() const { return value_; }
  const std::string& place() const { return place_; }

  // Present and not null.
  bool Has(std::string_view key) const { return Raw(key) != nullptr; }
  // The same of a declared setting; throws when it is required and absent.
  bool IsGiven(std::string_view key) const;
  // Whether it is a mapping, of a setting that may be something else.
  bool IsMapping(std::string_view key) const;
  // Null when absent or null.
  const Value* Raw(std::string_view key) const;

  // The declared default when absent (0, false, "" without one). A missing
  // required setting is an error, and so is a number beyond the declared bounds.
  std::int64_t Int(std::string_view key) const;
  double Float(std::string_view key) const;
  bool Bool(std::string_view key) const;
  std::string Text(std::string_view key) const;
  Duration Seconds(std::string_view key) const;

  // nullopt when absent, whatever the default.
  std::optional<std::int64_t> OptionalInt(std::string_view key) const;
  std::optional<double> OptionalFloat(std::string_view key) const;
  std::optional<bool> OptionalBool(std::string_view key) const;
  std::optional<std::string> OptionalText(std::string_view key) const;

  // Empty when absent; a single scalar counts as a list of one.
  std::vector<std::string> TextList(std::string_view key) const;
  // The mappings of a list, or the one mapping under the key. Absent: empty.
  std::vector<Section> Sections(std::string_view key) const;
  // The mapping under the key; absent: an empty one. Of a choice of schemas it has that of a mapping.
  Section Sub(std::string_view key) const;
  // A mapping of scalars to text, in document order.
  std::vector<std::pair<std::string, std::string>> TextMap(std::string_view key) const;

  // A mapping or list as it is in the file. Absent: empty.
  boost::json::object Object(std::string_view key) const;
  boost::json::array Array(std::string_view key) const;

  // An error about the key's value, or about the mapping when it is absent.
  Error Fail(std::string_view key, std::string_view message) const;

 private:
  const Setting& Declared(std::string_view key) const;
  const Value* Present(const Setting& setting) const;
  // Throws if the setting's declaration has bounds and the number is beyond them.
  void CheckBounds(const Setting& setting, const Value& found, double number) const;
  std::string Describe(const Setting& setting, const Value& value, std::string_view expected) const;

  Value value_;
  Schema schema_;
  std::string place_;
};

// Numbers as the daemons accept them: also digits in quotes and booleans.
std::optional<std::int64_t> LenientInt(const Value& value);
std::optional<double> LenientFloat(const Value& value);

// Seconds as a duration; numbers too large for one mean its largest value.
Duration SecondsToDuration(double seconds);

template <class Target>
class Bindings;  // schema/bindings.h

// What a provider's section may say whatever its driver is (configuration.md 9.1), beside name and driver.
struct ProviderSettings {
  int max_concurrency = -1;  // launches in progress; ≤ 0 means unlimited (D-20)
  int priority = 100;        // of its pools that have none of their own
  BreakerSettings breaker;   // breaker.md 5
};

// What every driver's section may have.
const Bindings<ProviderSettings>& CommonSettings();

// A driver's provider section together with the common settings, which replace those of the same name. Any()
// remains Any().
Schema WithCommonSettings(const Schema& driver_schema);

}  // namespace nodepool::config
