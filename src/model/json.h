#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "model/cell.h"
#include "model/json_scanner.h"
#include "model/json_text.h"

namespace nodepool {

// A JSON object from outside, as far as Boost's values can hold it: what JsonScanner takes; NaN,
// Infinity and numbers too large for a double are null, whole numbers beyond 64 bits are doubles,
// halves of surrogate pairs are U+FFFD, and of keys that stand twice the last one counts. Doubles
// are read exactly.
//
// Error(kInvalid): not JSON, not an object or longer than kMaxRecordBytes. The message never quotes
// the text.
Expected<boost::json::object> ParseJsonObject(std::string_view text);

// Likewise any value, which is valid already.
boost::json::value JsonValueOf(std::string_view valid);

void AppendJson(std::string& out, const boost::json::value& value, JsonStyle style);
// Requires that the cell is not shown by its age.
void AppendJson(std::string& out, const Cell& cell, JsonStyle style);

// Shows valid JSON so that every reader takes it: NaN and Infinity as null, halves of surrogate
// pairs as U+FFFD. Numbers stay as they are written.
void AppendValidJson(std::string& out, std::string_view valid, JsonStyle style);

// The text Python's json.dumps() would write for the same value. Non-finite numbers become null;
// bytes that are not UTF-8 become U+FFFD.
std::string WriteJson(const boost::json::value& value);

// An integer, if the number is a whole one that a double holds exactly.
boost::json::value NumberValue(double number);

}  // namespace nodepool
