#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/yaml/value.h"

namespace nodepool::config {

struct Setting;

// The allowed content of a piece of the configuration. Strict validation (validator.h), lenient reading
// (section.h), warnings about unknown keys and the reference pages are all derived from it;
// it is made from the settings and the members that they are read into (bindings.h). Immutable; copies share.
class Schema {
 public:
  enum class Kind { kAny, kNull, kBool, kInt, kFloat, kString, kList, kMap, kOpenMap, kOneOf };

  static Schema Any();
  static Schema Null();
  static Schema Bool();
  // Strictly an integer or a boolean, as in the Python validator (configuration.md 13).
  static Schema Int();
  // Strictly written with a dot.
  static Schema Float();
  static Schema String();
  // One of these texts.
  static Schema Among(std::vector<std::string> texts);
  // An integer or a float.
  static Schema Number();
  // An integer from 1 to 65535.
  static Schema Port();
  static Schema List(Schema item);
  // Closed: other keys are errors.
  static Schema Map(std::vector<Setting> settings);
  // Any keys, values of one schema.
  static Schema OpenMap(Schema value);
  // Known settings, plus any other key with a value of `others`.
  static Schema MapWithOthers(std::vector<Setting> settings, Schema others);
  static Schema OneOf(std::vector<Schema> choices);

  // A copy of a map in which at least one of the keys must be present; the error
  // names the first. May be called several times.
  Schema RequireOneOf(std::vector<std::string> keys) const;
  // A copy of a map in which at most one of the keys may be present.
  Schema Exclusive(std::vector<std::string> keys) const;
  // A copy of a number, or of a choice of numbers, with bounds, which are inclusive. Strict validation and
  // lenient reading refuse others.
  Schema Between(double min, double max) const;
  Schema AtLeast(double min) const;
  Schema AtMost(double max) const;
  // A copy of a map with more settings; one with the same key is replaced.
  Schema With(std::vector<Setting> settings) const;

  Kind kind() const;
  // Of a map: its settings. Empty for other kinds.
  const std::vector<Setting>& settings() const;
  const Setting* Find(std::string_view key) const;
  // The schema of a list's items, or of the values of an open map or of one with others; otherwise
  // null.
  const Schema* element() const;
  // Of Among: the texts. Empty for others.
  const std::vector<std::string>& texts() const;
  // Of kOneOf; empty for other kinds.
  const std::vector<Schema>& choices() const;
  const std::vector<std::vector<std::string>>& required_groups() const;
  const std::vector<std::vector<std::string>>& exclusive_groups() const;
  std::optional<double> min() const;
  std::optional<double> max() const;
  // What is expected in place of a number that is beyond the bounds; nullopt: it is within.
  std::optional<std::string> OutOfBounds(double number) const;

  // "int", "a list", "a dictionary" ...: what the message says for a value of another type.
  std::string ExpectedName() const;

 private:
  struct Data;
  explicit Schema(std::shared_ptr<const Data> data);
  std::shared_ptr<const Data> data_;
};

// One key of a mapping. Made with the constructor and refined with the chainable
// functions, as in
//   Setting("boot-timeout", Schema::Int(), "Time for the key scan.").Default(60).Unit("seconds")
struct Setting {
  Setting(std::string key, Schema schema, std::string help);
  // Of the usual schema of the member that it is bound to (bindings.h).
  Setting(std::string key, std::string help);

  // Must be present in strict validation and when a daemon reads it.
  Setting Required() &&;
  // Must be present in strict validation only: the daemons can do without it.
  Setting RequiredByValidator() &&;
  Setting Default(boost::json::value value) &&;
  // Without it the value is that of an enclosing section, as the help says: no default is stated.
  Setting Inherited() &&;
  Setting Unit(std::string unit) &&;
  // A change takes effect only after a restart; otherwise at the next reload.
  Setting NeedsRestart() &&;
  // Never quoted in messages or logs.
  Setting Secret() &&;
  // Read by the daemons although the validator rejects it, as the Python one does.
  Setting DaemonOnly() &&;
  // Had a meaning before version 3; rejected, and the message says `instead`.
  Setting Removed(std::string instead) &&;

  std::string key;
  Schema schema;
  std::string help;
  boost::json::value default_value;  // null: none
  std::string unit;
  bool is_required = false;
  bool is_required_by_validator = false;
  bool needs_restart = false;
  bool is_secret = false;
  bool is_daemon_only = false;
  bool is_inherited = false;
  std::string removed;  // what replaced it; empty unless removed
};

// Something that strict validation does not accept.
struct Problem {
  std::string path;       // data['pools'][0]['name'], as the Python validator writes it
  std::size_t depth = 0;  // number of steps in `path`
  std::string message;    // "extra keys not allowed", "expected int for dictionary value" ...
  Position position;      // of the key or value, or of the mapping that lacks something
  std::string detail;     // what was found and what would be right

  // message @ path (line 3, column 7: detail)
  std::string ToString() const;
};

// Every problem of `value`, in the order in which the Python validator would find
// them, so that the first one is the one that it reports.
std::vector<Problem> Validate(const Value& value, const Schema& schema);

// Keys that nothing reads (D-50), each with its line and nearest spelling: for the daemons, which
// accept everything else leniently. `place` names the value, e.g. "providers[0]"; empty at the top.
std::vector<std::string> UnknownKeys(const Value& value, const Schema& schema, const std::string& place);

// A Markdown table of every setting of a mapping, nested ones by their path
// (`pools[].labels[].name`): type, default, when a change takes effect, help.
std::string ToMarkdown(const Schema& schema);

// The schema as JSON Schema (draft 2020-12), for editors.
boost::json::object ToJsonSchema(const Schema& schema);

}  // namespace nodepool::config
