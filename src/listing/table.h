#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nodepool::listing {

// A text, and the escape sequence that begins its style on a terminal; none when empty.
struct Cell {
  Cell(std::string content) : text(std::move(content)) {}  // NOLINT: a cell is a text first of all
  Cell(const char* content) : text(content) {}             // NOLINT
  std::string text;
  std::string_view style;
};

// The ASCII tables of every listing (operations.md 5.3): left-aligned columns as wide
// as their widest line, one blank on each side. A cell with line breaks makes its row
// taller. Scripts split these lines at the bars, so the layout is an interface.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(header.begin(), header.end()) {}

  // Requires as many cells as the header has.
  void AddRow(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }

  // Ends without a line break.
  std::string ToString() const;

 private:
  std::vector<Cell> header_;
  std::vector<std::vector<Cell>> rows_;
};

// Terminal columns that a text of one line takes: wide characters two, combining
// ones none. Bytes that are not UTF-8 count one each.
std::size_t DisplayWidth(std::string_view text);

}  // namespace nodepool::listing
