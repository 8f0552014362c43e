#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "async/backoff.h"
#include "base/clock.h"
#include "listing/shown_text.h"
#include "model/json.h"

namespace nodepool::listing {

// What is drawn around the cells.
enum class Frame {
  kBars,    // for listings (operations.md 5.3); scripts split its lines at the bars
  kBlanks,  // two blanks between columns and no rules, for screens of several tables
};

// The width of a line, in terminal columns, whose texts take `texts` in `columns` columns.
std::size_t LineWidth(Frame frame, std::size_t texts, std::size_t columns);

// A cell as it is shown. A style is the escape sequence that begins it on a terminal.
struct ShownCell {
  std::string_view text;
  std::string_view style = {};
};

// The lines of a table whose rows are not kept: all are measured first, and then written. Left-aligned
// columns as wide as their widest line; a cell with line breaks makes its row taller, one that has become
// wider since it was measured shifts the rest of its line, and of a very long one only the beginning is
// shown. Rows have as many cells as the header. Nothing is written if there are no columns.
class TableLines {
 public:
  TableLines(std::vector<std::string> header, Frame frame);

  using Row = std::span<const ShownCell>;
  void Measure(Row row);
  void Measure(std::size_t column, std::string_view text);

  // Each line ends with a line break, but for the last one of the end.
  void AppendHead(std::string& out) const;
  void AppendRow(std::string& out, Row row) const;
  void AppendEnd(std::string& out) const;

  std::size_t columns() const { return widths_.size(); }
  std::size_t line_size() const;  // in bytes, of texts in ASCII

 private:
  std::string Rule() const;
  // Removes a line from each text.
  void AppendLine(std::string& out, Row row, std::vector<std::optional<std::string_view>>& rests) const;

  std::vector<std::string> header_;
  Frame frame_;
  std::vector<std::size_t> widths_;
};

// A table whose rows are kept.
class Table {
 public:
  explicit Table(std::vector<std::string> header, Frame frame = Frame::kBars);

  // Begins a row, which needs as many cells as the header.
  void AddRow() { ++rows_; }
  // Adds the row's next cell.
  void AddCell(std::string_view text, std::string_view style = {});

  // Without a line break at the end. Empty if there are no columns.
  std::string ToString() const;
  // The same, pausing whenever `pace` is due.
  Task<> AppendTo(std::string& out, Pace& pace) const;

 private:
  struct Cell {
    std::size_t end;  // the end of its text
    std::string_view style;
  };

  std::vector<ShownCell> RowAt(std::size_t row) const;

  TableLines lines_;
  std::size_t rows_ = 0;
  std::string texts_;        // of all cells, one after the other
  std::vector<Cell> cells_;  // row by row
};

// What a column contains: decides which filter applies (selection.h), and how it is shown.
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
