#include "listing/table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/utf8.h"
#include "listing/display_width.h"

namespace nodepool::listing {
namespace {

constexpr std::string_view kPlainStyle = "\x1b[0m";
// Every line of a table is as wide as its widest cells: one long text would be paid for in each row.
constexpr std::size_t kLongestCell = 512;  // bytes

struct Edges {
  std::string_view begin;    // at the beginning of a line
  std::string_view between;  // between two columns
  std::string_view end;
};

const Edges& EdgesOf(Frame frame) {
  static constexpr Edges kBars{"| ", " | ", " |"}, kBlanks{"", "  ", ""};
  return frame == Frame::kBars ? kBars : kBlanks;
}

// Removes and returns the first line; `rest` is nothing after the last one.
std::string_view TakeLine(std::optional<std::string_view>& rest) {
  if (!rest) return {};
  std::size_t end = rest->find('\n');
  std::string_view line = rest->substr(0, end);
  rest = end == std::string_view::npos ? std::nullopt : std::optional(rest->substr(end + 1));
  return line;
}

void AppendPadded(std::string& out, std::string_view text, std::string_view style, std::size_t width) {
  bool is_styled = !style.empty() && !text.empty();
  if (is_styled) out += style;
  out += text;
  if (is_styled) out += kPlainStyle;
  out.append(width - DisplayWidth(text), ' ');
}

// The beginning of a text that is too long, up to the end of a character.
std::string_view Beginning(std::string_view text) {
  std::size_t end = 0;
  while (true) {
    std::size_t length = FirstCharacter(text.substr(end)).length;
    if (end + length > kLongestCell) return text.substr(0, end);
    end += length;
  }
}

}  // namespace

std::size_t LineWidth(Frame frame, std::size_t texts, std::size_t columns) {
  const Edges& edges = EdgesOf(frame);
  std::size_t between = columns == 0 ? 0 : (columns - 1) * edges.between.size();
  return edges.begin.size() + texts + between + edges.end.size();
}

Table::Table(const std::vector<std::string>& header, Frame frame) : frame_(frame), widths_(header.size()) {
  AddRow();
  for (const std::string& title : header) AddCell(title);
}

void Table::AddCell(std::string_view text, std::string_view style) {
  std::size_t& width = widths_[cells_.size() - (rows_ - 1) * widths_.size()];
  std::size_t begin = texts_.size();
  if (text.size() > kLongestCell) {
    texts_ += Beginning(text);
    texts_ += kCutMark;
  } else {
    texts_ += text;
  }
  cells_.push_back({texts_.size(), style});
  for (std::optional<std::string_view> rest = std::string_view(texts_).substr(begin); rest;)
    width = std::max(width, DisplayWidth(TakeLine(rest)));
}

// Ends with a line break; empty if the frame has no rules.
std::string Table::Rule() const {
  if (frame_ == Frame::kBlanks) return "";
  std::string rule = "+";
  for (std::size_t width : widths_) rule += std::string(width + 2, '-') + '+';
  return rule + '\n';
}

void Table::AppendLine(std::string& out, const Cell* cells,
                       std::vector<std::optional<std::string_view>>& rests) const {
  const Edges& edges = EdgesOf(frame_);
  std::string_view before = edges.begin;
  for (std::size_t i = 0; i < widths_.size(); ++i) {
    out += std::exchange(before, edges.between);
    AppendPadded(out, TakeLine(rests[i]), cells[i].style, widths_[i]);
  }
  out += edges.end;
  if (edges.end.empty()) out.erase(out.find_last_not_of(' ') + 1);
  out += '\n';
}

std::string Table::ToString() const {
  if (widths_.empty()) return "";
  const std::string rule = Rule();
  const std::size_t columns = widths_.size();
  std::string out;
  out.reserve((rule.size() + 1) * (rows_ + 3));
  out += rule;
  std::vector<std::optional<std::string_view>> rests(columns);  // the remaining text of each cell of a row
  std::size_t begin = 0;
  for (std::size_t row = 0; row < rows_; ++row) {
    const Cell* cells = cells_.data() + row * columns;
    for (std::size_t i = 0; i < columns; ++i) {
      std::size_t end = cells[i].end;
      rests[i] = std::string_view(texts_).substr(begin, end - begin);
      begin = end;
    }
    do {
      AppendLine(out, cells, rests);
    } while (std::ranges::any_of(rests, [](const auto& rest) { return rest.has_value(); }));
    if (row == 0) out += rule;
  }
  out += rule;
  out.pop_back();  // the last line break
  return out;
}

}  // namespace nodepool::listing
