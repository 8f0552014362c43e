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

}  // namespace nodepool
