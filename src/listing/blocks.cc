#include "listing/blocks.h"

#include <algorithm>

#include "base/text.h"
#include "listing/display_width.h"
#include "listing/state_style.h"
#include "listing/text_columns.h"
#include "listing/wrap.h"

namespace nodepool::listing {
namespace {

constexpr std::string_view kEndOfStyle = "\x1b[0m";

// Broken at blanks, unless a word is wider.
std::string BrokenLine(const std::string& line, std::size_t width) {
  auto fits = [width](const std::string& word) { return DisplayWidth(word) <= width; };
  return std::ranges::all_of(Split(line, ' '), fits) ? Wrap(line, width, 0) : line;
}

// Lines of at most `width`, of which all but the first are indented.
std::string IndentedText(const std::string& text, std::size_t width, std::size_t indent) {
  std::vector<std::string> lines = Split(text, '\n');
  for (std::string& line : lines) line = BrokenLine(line, width - std::min(width, indent));
  return Join(Split(Join(lines, "\n"), '\n'), "\n" + std::string(indent, ' '));
}

std::string Styled(const Column& column, const std::string& text, Colors colors) {
  std::string_view style = colors == Colors::kStates && column.kind == Kind::kState ? StyleOf(text) : "";
  return style.empty() ? text : std::string(style).append(text).append(kEndOfStyle);
}

}  // namespace

std::string ToBlocks(const Listing& listing, WallTime now, Colors colors, std::size_t width) {
  std::vector<TextColumn> columns = TextsOf(listing, now);
  std::erase_if(columns, IsEmpty);
  std::size_t indent = 0;
  for (const TextColumn& column : columns) indent = std::max(indent, DisplayWidth(column.column.title) + 2);
  std::vector<std::string> blocks;
  for (std::size_t row = 0; row < listing.rows.size(); ++row) {
    std::vector<std::string> lines;
    for (const auto& [column, texts] : columns) {
      if (texts[row].empty()) continue;
      std::string line = column.title + ':';
      line.append(indent - DisplayWidth(line), ' ');
      lines.push_back(line + Styled(column, IndentedText(texts[row], width, indent), colors));
    }
    blocks.push_back(Join(lines, "\n"));
  }
  return Join(blocks, "\n\n");
}

}  // namespace nodepool::listing
