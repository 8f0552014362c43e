#include "listing/fit.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/text.h"
#include "listing/shown_text.h"

namespace nodepool::listing {

namespace {

// Amounts of resources in readable form: "cores 2, instances 1".
std::optional<std::string> AmountsText(const Cell& cell) {
  if (cell.text() || cell.written() || cell.since() || !cell.value().is_object()) return std::nullopt;
  std::vector<std::string> amounts;
  for (const auto& [resource, amount] : cell.value().get_object()) {
    if (!amount.is_number()) return std::nullopt;
    std::string text(resource);
    text += ' ';
    AppendText(text, Cell::Of(amount));
    amounts.push_back(std::move(text));
  }
  return Join(amounts, ", ");
}

std::vector<Cell> RowForPeople(std::vector<Cell> row) {
  for (Cell& cell : row) {
    if (std::optional<std::string> text = AmountsText(cell)) cell = Cell(std::move(*text));
  }
  return row;
}

}  // namespace

std::vector<TextColumn> TextsOf(const Listing& listing, WallTime now) {
  std::vector<TextColumn> columns;
  for (const Column& column : listing.columns) columns.push_back({column, {}});
  AgedText aged;
  for (const std::vector<Cell>& row : listing.rows) {
    aged.Clear();
    AppendTexts(aged, listing.columns, RowForPeople(row));
    std::string texts;
    aged.AppendTo(texts, now);
    std::size_t begin = 0;
    for (TextColumn& column : columns) {
      std::size_t end = texts.find('\0', begin);
      column.texts.push_back(texts.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return columns;
}

Listing ForPeople(Listing listing) {
  for (std::vector<Cell>& row : listing.rows) row = RowForPeople(std::move(row));
  return listing;
}

bool IsEmpty(const TextColumn& column) {
  return !column.texts.empty() && column.column.fit.importance != Importance::kAlways &&
         std::ranges::all_of(column.texts, &std::string::empty);
}

namespace {

std::size_t WidestLine(std::string_view text) {
  std::size_t width = 0;
  for (const std::string& line : Split(text, '\n')) width = std::max(width, DisplayWidth(line));
  return width;
}

Extent ExtentOf(const TextColumn& column) {
  std::size_t title = DisplayWidth(column.column.title);
  std::size_t width = title;
  for (const std::string& text : column.texts) width = std::max(width, WidestLine(text));
  return {column.column.fit, width, title};
}

std::vector<Extent> ExtentsOf(const std::vector<TextColumn>& columns) {
  std::vector<Extent> extents;
  for (const TextColumn& column : columns) extents.push_back(ExtentOf(column));
  return extents;
}

bool FitsWhole(const std::vector<Extent>& extents, std::size_t width, Frame frame) {
  std::size_t texts = 0;
  for (const Extent& extent : extents) texts += extent.width;
  return LineWidth(frame, texts, extents.size()) <= width;
}

void ShortenUuidsOf(std::vector<TextColumn>& columns) {
  for (TextColumn& column : columns) {
    if (column.column.fit.least == 0) continue;
    for (std::string& text : column.texts) text = ShortenUuids(text);
  }
}

std::string CutLines(std::string_view text, std::size_t width) {
  std::vector<std::string> lines = Split(text, '\n');
  for (std::string& line : lines) line = CutToWidth(line, width);
  return Join(lines, "\n");
}

std::string TableOf(const std::vector<TextColumn>& columns,
                    const std::vector<std::optional<std::size_t>>& widths, std::size_t rows, Colors colors,
                    Frame frame) {
  std::vector<std::string> titles;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (widths[i]) titles.push_back(columns[i].column.title);
  }
  Table table(titles, frame);
  for (std::size_t row = 0; row < rows; ++row) {
    table.AddRow();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (!widths[i]) continue;
      std::string text = CutLines(columns[i].texts[row], *widths[i]);
      bool is_colored = colors == Colors::kStates && columns[i].column.kind == Kind::kState;
      table.AddCell(text, is_colored ? StyleOf(text) : std::string_view());
    }
  }
  return table.ToString();
}

std::vector<std::string> LeftOut(const std::vector<TextColumn>& columns,
                                 const std::vector<std::optional<std::size_t>>& widths) {
  std::vector<std::string> titles;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!widths[i]) titles.push_back(columns[i].column.title);
  }
  return titles;
}

std::size_t LeastWidth(const Extent& column) {
  if (column.fit.least == 0) return column.width;
  return std::min(column.width, std::max(column.fit.least, column.title));
}

std::vector<std::size_t> ByImportance(const std::vector<Extent>& columns) {
  std::vector<std::size_t> order(columns.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return columns[i].fit.importance; });
  return order;
}

}  // namespace

std::vector<std::optional<std::size_t>> FitColumns(const std::vector<Extent>& columns, std::size_t width,
                                                   Frame frame) {
  std::vector<std::optional<std::size_t>> shown(columns.size());
  std::size_t texts = 0, count = 0;
  for (std::size_t i : ByImportance(columns)) {
    std::size_t least = LeastWidth(columns[i]);
    bool has_room = LineWidth(frame, texts + least, count + 1) <= width;
    if (!has_room && columns[i].fit.importance != Importance::kAlways) continue;
    shown[i] = least;
    texts += least;
    ++count;
  }
  for (std::size_t used = LineWidth(frame, texts, count); used < width; ++used) {
    std::optional<std::size_t>* narrowest = nullptr;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      bool is_cut = shown[i] && *shown[i] < columns[i].width;
      if (is_cut && (narrowest == nullptr || *shown[i] < **narrowest)) narrowest = &shown[i];
    }
    if (narrowest == nullptr) break;
    ++**narrowest;
  }
  return shown;
}

FittedTable FitTable(const Listing& listing, WallTime now, Colors colors, std::size_t width, Frame frame) {
  std::vector<TextColumn> columns = TextsOf(listing, now);
  std::erase_if(columns, IsEmpty);
  bool is_whole = FitsWhole(ExtentsOf(columns), width, frame);
  if (!is_whole) ShortenUuidsOf(columns);
  std::vector<std::optional<std::size_t>> widths = FitColumns(ExtentsOf(columns), width, frame);
  return {TableOf(columns, widths, listing.rows.size(), colors, frame), LeftOut(columns, widths), is_whole};
}

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
