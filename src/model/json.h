#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "model/cell.h"

namespace nodepool {

// Records longer than this are refused; the server's own limit is about the same.
inline constexpr std::size_t kMaxRecordBytes = 1 << 20;

// The JSON object of a record. Beyond the standard it accepts the bare tokens
// NaN, Infinity and -Infinity that Python may write, and reads them, like numbers
// too large for a double, as null (coordination.md 4.1). Doubles are read exactly.
//
// Error(kInvalid): not JSON, not UTF-8, not an object, longer than kMaxRecordBytes
// or nested deeper than 100 levels. The message never quotes the text, which may
// hold secrets. The object lives in `memory`, which outlives it.
Expected<boost::json::object> ParseJsonObject(std::string_view text, boost::json::storage_ptr memory = {});

// Whether the text stands in JSON as it is: printable ASCII without quotation marks and
// backslashes.
bool IsPlain(std::string_view text);

// How JSON is written: compact as boost::json::serialize() does, or as WriteJson says.
enum class JsonStyle { kCompact, kPython };
constexpr std::string_view CommaOf(JsonStyle style) { return style == JsonStyle::kCompact ? "," : ", "; }
constexpr std::string_view ColonOf(JsonStyle style) { return style == JsonStyle::kCompact ? ":" : ": "; }
void AppendJson(std::string& out, const boost::json::value& value, JsonStyle style);
// Requires that the cell is not shown by its age.
void AppendJson(std::string& out, const Cell& cell, JsonStyle style);

// The text Python's json.dumps would write for the same value: ", " and ": " as
// separators, ASCII only, doubles in their shortest form, members in their order.
// Non-finite numbers become null; bytes that are not UTF-8 become U+FFFD.
std::string WriteJson(const boost::json::value& value);

}  // namespace nodepool
