#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "async/pace.h"

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

}  // namespace nodepool::listing
