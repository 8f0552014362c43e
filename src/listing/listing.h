#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "listing/aged_text.h"
#include "listing/table.h"
#include "model/json.h"

namespace nodepool::listing {

// What a column contains: decides which filter applies (row_filter.h), and how it is shown.
enum class Kind {
  kPlain,
  kState,
  kLabel,     // one or a list
  kProvider,  // one or a list
  kTime,      // a Unix time; a table shows how long ago it was
  kAge,       // the same; the lists of operations.md 6.3 show it so in JSON, too
};

// How important a column is when a terminal is too narrow for all.
enum class Importance { kAlways, kHigh, kMedium, kLow };

// How a column is shown on a terminal that is too narrow (fit.h).
struct Fit {
  Importance importance = Importance::kMedium;
  std::size_t least = 0;  // width to which its texts may be cut; 0: they are never cut
};

// For names, ids that no command takes, and sentences.
inline constexpr Fit kName{Importance::kHigh, 12}, kLongId{Importance::kLow, 9},
    kSentence{Importance::kHigh, 24};

struct Column {
  std::string key;    // in JSON
  std::string title;  // in the table
  Kind kind = Kind::kPlain;
  std::vector<std::string_view> words = {};  // for a state: all its possible values
  Fit fit = {};
  // Not in the table that scripts read (operations.md 5.4), only on a terminal or when an option selects it.
  bool is_extra = false;
  // Of an age: the key of the time itself, which JSON shows beside it.
  std::string since = {};
};

// The result of a listing command, independent of how it is shown. Cells may refer to the records.
struct Listing {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // as many cells as columns
};

enum class Colors { kNone, kStates };

// A time in whole seconds, for columns of times.
boost::json::value UnixTime(WallTime time);

// A row's texts as tables show them, each terminated by a 0.
void AppendTexts(AgedText& out, const std::vector<Column>& columns, const std::vector<Cell>& row);

// The cells of a list's rows as the table of operations.md 5.3 shows them; states with terminal escape
// sequences if colors are enabled.
class TableCells {
 public:
  // Shows the columns whose keys are in `keys`; all columns if it is empty.
  explicit TableCells(const std::vector<Column>& columns, Colors colors = Colors::kNone,
                      const std::vector<std::string>& keys = {});

  const std::vector<std::string>& titles() const { return titles_; }
  // `row` is made by AppendTexts(); its ages are as of `now`. The cells are valid until the next call.
  std::span<const ShownCell> Of(const AgedText& row, WallTime now);

 private:
  struct Show {
    bool is_shown;
    bool is_colored;
  };
  std::vector<Show> columns_;
  std::vector<std::string> titles_;
  std::string texts_;  // of the current row
  std::vector<ShownCell> cells_;
};

// A table of such cells, with the rows' ages as of `now`.
class TableRows {
 public:
  TableRows(TableCells cells, WallTime now, Frame frame = Frame::kBars)
      : cells_(std::move(cells)), table_(cells_.titles(), frame), now_(now) {}

  void Append(const AgedText& row);
  const Table& table() const { return table_; }

 private:
  TableCells cells_;
  Table table_;
  WallTime now_;
};

// All rows.
std::string ToTable(const Listing& listing, WallTime now, Colors colors = Colors::kNone,
                    Frame frame = Frame::kBars);

// The rows of a list as JSON: one object per row, keys in the order of the columns. Compact: columns with
// Column::since as the age and the time, both in whole seconds; JsonStyle::kPython: as operations.md 6.3
// says.
class JsonRows {
 public:
  JsonRows(const std::vector<Column>& columns, JsonStyle style);

  void Append(AgedText& out, const std::vector<Cell>& row) const;

 private:
  struct Member {
    std::string beginning;  // all text before the value
    std::optional<AgedText::Style> age;
    std::string since;  // all text before the time, which follows the age; empty: there is none
  };
  std::vector<Member> members_;
  JsonStyle style_;
};

// All rows.
void AppendJson(std::string& out, const Listing& listing, WallTime now, JsonStyle style);
std::string ToJson(const Listing& listing, WallTime now);  // compact

// A cell as text: null is empty, lists are joined with a comma, True/False, mappings are compact JSON (D-60).
// Control characters are made visible, because the records come from other programs and the text is written
// to a terminal.
void AppendText(std::string& out, const Cell& cell);

}  // namespace nodepool::listing
