#pragma once

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "base/clock.h"

namespace nodepool::listing {

struct Column {
  std::string key;    // in JSON
  std::string title;  // in the table
};

// What a listing command found, before anybody decided how to show it.
struct Listing {
  std::vector<Column> columns;
  std::vector<boost::json::array> rows;  // as many cells as columns
};

// "DD:HH:MM:SS" in whole seconds, each part at least two digits; a negative duration
// borrows from the days (operations.md 5.3).
std::string FormatAge(Duration age);

// The table of operations.md 5.3. A number in a column whose key is "age" or ends in
// "_age" is a Unix time and shown as its age at `now`.
std::string ToTable(const Listing& listing, WallTime now);

// One object per row, keys in the order of the columns.
boost::json::array ToJson(const Listing& listing);

// A cell as text: null empty, lists joined with a comma, True/False, mappings as
// compact JSON (D-60). Control characters are made visible, since the records come
// from other programs and the text goes to a terminal.
std::string CellText(const boost::json::value& cell);

}  // namespace nodepool::listing
