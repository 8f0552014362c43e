#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nodepool::listing {

// What stands around the cells.
enum class Frame {
  kBars,    // of every listing (operations.md 5.3); scripts split its lines at the bars
  kBlanks,  // two blanks between columns, and no rules: for screens of several tables
};

// The columns of a terminal that a line takes whose texts take `texts` in `columns` columns.
std::size_t LineWidth(Frame frame, std::size_t texts, std::size_t columns);

// Left-aligned columns as wide as their widest line. A cell with line breaks makes its row taller.
class Table {
 public:
  explicit Table(const std::vector<std::string>& header, Frame frame = Frame::kBars);

  // Begins a row, which takes as many cells as the header has.
  void AddRow() { ++rows_; }
  // The row's next cell. A style is the escape sequence that begins it on a terminal.
  void AddCell(std::string_view text, std::string_view style = {});

  // Ends without a line break. Empty when there are no columns.
  std::string ToString() const;

 private:
  struct Cell {
    std::size_t end;  // of its text
    std::string_view style;
  };

  std::string Rule() const;
  // Takes a line off each text.
  void AppendLine(std::string& out, const Cell* cells,
                  std::vector<std::optional<std::string_view>>& rests) const;

  Frame frame_;
  std::size_t rows_ = 0;
  std::vector<std::size_t> widths_;
  std::string texts_;        // of all cells, one behind the other
  std::vector<Cell> cells_;  // row by row, the header first
};

}  // namespace nodepool::listing
