#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "model/json_scanner.h"
#include "model/node.h"
#include "model/raw_json.h"

namespace nodepool {

// Values of records as listings and the web show them; records themselves are written by the files
// of the record kinds.

// A value of its own, or a reference to one: lists of many nodes copy nothing. The value referred
// to outlives the cell.
class Cell {
 public:
  Cell() = default;  // null
  template <class T>
    requires(!std::same_as<std::remove_cvref_t<T>, Cell> && std::constructible_from<boost::json::value, T>)
  Cell(T&& value)
      : content_(boost::json::value(std::forward<T>(value))) {}  // NOLINT: as a JSON value is made

  static Cell OfText(std::string_view text) { return Cell(Content(text)); }
  static Cell Of(const boost::json::value& value) { return Cell(Content(&value)); }
  static Cell Of(boost::json::value&& value) = delete;
  static Cell Of(const RawJson& json) { return OfWritten(json.text()); }
  static Cell Of(RawJson&& json) = delete;
  // A valid JSON value, shown as it is written.
  static Cell OfWritten(std::string_view json);
  // A time, shown as how long ago it is.
  static Cell Since(WallTime time) { return Cell(Content(time)); }

  // The text, where it is one.
  std::optional<std::string_view> text() const {
    if (const auto* text = std::get_if<std::string_view>(&content_)) return *text;
    if (since() || written()) return std::nullopt;
    const boost::json::value& other = value();
    return other.is_string() ? std::optional<std::string_view>(other.get_string()) : std::nullopt;
  }
  // The JSON of a value that is shown as it is written; neither a text nor null.
  std::optional<std::string_view> written() const {
    const auto* written = std::get_if<Written>(&content_);
    return written != nullptr ? std::optional(written->json) : std::nullopt;
  }
  // The time, where it is shown as an age.
  std::optional<WallTime> since() const {
    const auto* time = std::get_if<WallTime>(&content_);
    return time != nullptr ? std::optional(*time) : std::nullopt;
  }
  // Requires that it is none of them.
  const boost::json::value& value() const {
    const auto* place = std::get_if<const boost::json::value*>(&content_);
    return place != nullptr ? **place : *std::get_if<boost::json::value>(&content_);
  }
  bool is_null() const { return !text() && !written() && !since() && value().is_null(); }

  // Requires that it is not shown by its age.
  boost::json::value Copy() const;

 private:
  struct Written {
    std::string_view json;
  };
  using Content =
      std::variant<boost::json::value, std::string_view, const boost::json::value*, WallTime, Written>;
  explicit Cell(Content content) : content_(std::move(content)) {}

  Content content_;
};

// Null for a text or an id that is missing or empty.
inline Cell TextCell(const std::optional<std::string>& text) { return text ? Cell::OfText(*text) : Cell(); }
Cell TextCell(const std::optional<std::string>&& text) = delete;
inline Cell TextOrNull(const std::string& text) { return text.empty() ? Cell() : Cell::OfText(text); }
Cell TextOrNull(const std::string&& text) = delete;

template <class State>
Cell StateCell(const std::optional<State>& state) {
  return state ? Cell::OfText(ToString(*state)) : Cell();
}

template <class Id>
boost::json::array JsonNames(const std::vector<Id>& ids) {
  boost::json::array names;
  names.reserve(ids.size());
  for (const Id& id : ids) names.emplace_back(id.value);
  return names;
}

// Parses a JSON object from outside as far as Boost's values can hold it. It accepts what
// JsonScanner accepts; NaN, Infinity and numbers too large for a double become null, whole numbers
// beyond 64 bits doubles, halves of surrogate pairs U+FFFD, and of repeated keys the last one
// counts. Doubles are read exactly.
//
// Error(kInvalid): not JSON, not an object or longer than kMaxRecordBytes. The message never quotes
// the text.
Expected<boost::json::object> ParseJsonObject(std::string_view text);

// The same for any value, which is valid JSON already.
boost::json::value JsonValueOf(std::string_view valid);

void AppendJson(std::string& out, const boost::json::value& value, JsonStyle style);
// Requires that the cell is not shown as an age.
void AppendJson(std::string& out, const Cell& cell, JsonStyle style);

// Writes valid JSON so that every reader accepts it: NaN and Infinity as null, halves of surrogate
// pairs as U+FFFD. Numbers are written unchanged.
void AppendValidJson(std::string& out, std::string_view valid, JsonStyle style);

// The text Python's json.dumps() would write for the same value. Non-finite numbers become null;
// bytes that are not UTF-8 become U+FFFD.
std::string WriteJson(const boost::json::value& value);

// An integer, if the number is a whole one that a double holds exactly.
boost::json::value NumberValue(double number);

// Amounts for users and programs, whole ones as integers. Those without a limit are left out.
boost::json::object Amounts(const Resources& resources);

}  // namespace nodepool
