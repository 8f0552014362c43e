#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nodepool::listing {

// The ASCII tables of every listing (operations.md 5.3): left-aligned columns as wide
// as their widest line, one blank on each side. A cell with line breaks makes its row
// taller. Scripts split these lines at the bars, so the layout is an interface.
class Table {
 public:
  explicit Table(const std::vector<std::string>& header);

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

  std::size_t rows_ = 0;
  std::vector<std::size_t> widths_;
  std::string texts_;        // of all cells, one behind the other
  std::vector<Cell> cells_;  // row by row, the header first
};

// Terminal columns that a text of one line takes: wide characters two, combining
// ones none. Bytes that are not UTF-8 count one each.
std::size_t DisplayWidth(std::string_view text);

}  // namespace nodepool::listing
