#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nodepool::listing {

// What is drawn around the cells.
enum class Frame {
  kBars,    // for listings (operations.md 5.3); scripts split its lines at the bars
  kBlanks,  // two blanks between columns and no rules, for screens of several tables
};

// The width of a line, in terminal columns, whose texts take `texts` in `columns` columns.
std::size_t LineWidth(Frame frame, std::size_t texts, std::size_t columns);

// Left-aligned columns as wide as their widest line. A cell with line breaks makes its row taller.
class Table {
 public:
  explicit Table(const std::vector<std::string>& header, Frame frame = Frame::kBars);

  // Begins a row, which needs as many cells as the header.
  void AddRow() { ++rows_; }
  // Adds the row's next cell. A style is the escape sequence that begins it on a terminal.
  void AddCell(std::string_view text, std::string_view style = {});

  // Without a line break at the end. Empty if there are no columns.
  std::string ToString() const;

 private:
  struct Cell {
    std::size_t end;  // the end of its text
    std::string_view style;
  };

  std::string Rule() const;
  // Removes a line from each text.
  void AppendLine(std::string& out, const Cell* cells,
                  std::vector<std::optional<std::string_view>>& rests) const;

  Frame frame_;
  std::size_t rows_ = 0;
  std::vector<std::size_t> widths_;
  std::string texts_;        // of all cells, one after the other
  std::vector<Cell> cells_;  // row by row, the header first
};

}  // namespace nodepool::listing
