#pragma once

#include <fmt/format.h>

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

namespace nodepool {

// Reads the known keys of a record one by one; what nobody has asked for are the
// unknown ones (D-04). The first fault is kept and the rest read with defaults, so that a
// parser lists its fields and checks error() once, at the end. Text that is no JSON object
// is read as an empty one, which is the fault.
//
// A missing key and a null give the same, unless a `when_missing` is asked for.
class RecordReader {
 public:
  explicit RecordReader(std::string_view json);
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;

  // The key's value, as long as the reader lives; null when it is missing.
  const boost::json::value* Find(std::string_view key);
  // Null also when the value is a null.
  const boost::json::value* FindUnlessNull(std::string_view key);
  // The same as Find() to keep; a null when it is missing.
  boost::json::value Take(std::string_view key);

  // Text. A number or a boolean is taken as its JSON text.
  std::optional<std::string> Text(std::string_view key);
  std::optional<std::string> TextOr(std::string_view key, std::string_view when_missing);
  // A list of texts; null is the empty list. Anything else is a fault.
  std::vector<std::string> Texts(std::string_view key);
  // A number, its fraction cut off.
  std::optional<std::int64_t> Integer(std::string_view key);
  std::optional<WallTime> Time(std::string_view key);
  bool Flag(std::string_view key, bool when_missing);

  template <class Id>
  Id IdText(std::string_view key) {
    return Id(StrictText(key));
  }
  template <class Id>
  std::vector<Id> IdTexts(std::string_view key) {
    std::vector<Id> ids;
    for (std::string& text : Texts(key)) ids.emplace_back(std::move(text));
    return ids;
  }

  // The two base fields (coordination.md 4.2): a state that is present must be one
  // that `parse` knows; a time that is missing or null is `now`.
  template <class Word>
  void State(std::optional<Word>& state, WallTime& state_time, std::optional<Word> (*parse)(std::string_view),
             WallTime now) {
    if (const boost::json::value* value = Find("state")) {
      state = value->is_string() ? parse(value->get_string()) : std::nullopt;
      if (!state) FailState(*value);
    }
    state_time = Time("state_time").value_or(now);
  }

  // Notes a fault with a key; the first one counts.
  void Fail(std::string_view key, std::string_view expected);

  const std::optional<Error>& error() const { return error_; }
  // Those that nobody has asked for, in their order.
  boost::json::object TakeUnknown();

 private:
  std::string StrictText(std::string_view key);
  void FailState(const boost::json::value& value);

  // Most records fit in, so that reading one allocates nothing that it does not keep.
  unsigned char first_memory_[8192];
  boost::json::monotonic_resource memory_{first_memory_, sizeof(first_memory_)};
  boost::json::object object_{&memory_};
  std::vector<bool> is_known_;  // by the place in the object
  std::optional<Error> error_;
};

// The integer nearest to zero of a number of any JSON kind, bounded to the range of
// the type; nullopt for anything but a number.
std::optional<std::int64_t> ToInteger(const boost::json::value& value);

// The counterpart for writing: null when unset.
boost::json::value ToValue(const std::optional<std::string>& text);
boost::json::value ToValue(const std::optional<WallTime>& time);
boost::json::value ToValue(const std::optional<std::int64_t>& number);

// Text of an id, null when it is empty.
template <class Id>
boost::json::value IdOrNull(const Id& id) {
  return id.empty() ? boost::json::value(nullptr) : boost::json::value(id.str());
}

template <class Id>
boost::json::array ToArray(const std::vector<Id>& ids) {
  boost::json::array array;
  for (const Id& id : ids) array.emplace_back(id.str());
  return array;
}

// Adds the unknown keys; a known one of the same name wins.
void AddUnknown(const boost::json::object& unknown, boost::json::object& record);

}  // namespace nodepool
