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
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}

  // Requires as many cells as the header has.
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  // Ends without a line break.
  std::string ToString() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

// Terminal columns that a text of one line takes: wide characters two, combining
// ones none. Bytes that are not UTF-8 count one each.
std::size_t DisplayWidth(std::string_view text);

}  // namespace nodepool::listing
