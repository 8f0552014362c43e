#include "listing/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <forward_list>
#include <numeric>
#include <optional>
#include <utility>

#include "base/text.h"
#include "listing/shown_text.h"

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
  out.append(width - std::min(width, DisplayWidth(text)), ' ');
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

// What is shown of a text; `cut` is where it is made if it is not the whole text.
std::string_view ShownPart(std::string_view text, std::string& cut) {
  if (text.size() <= kLongestCell) return text;
  cut = Beginning(text);
  return cut += kCutMark;
}

}  // namespace

std::size_t LineWidth(Frame frame, std::size_t texts, std::size_t columns) {
  const Edges& edges = EdgesOf(frame);
  std::size_t between = columns == 0 ? 0 : (columns - 1) * edges.between.size();
  return edges.begin.size() + texts + between + edges.end.size();
}

TableLines::TableLines(std::vector<std::string> header, Frame frame)
    : header_(std::move(header)), frame_(frame), widths_(header_.size()) {
  for (std::size_t i = 0; i < header_.size(); ++i) Measure(i, header_[i]);
}

void TableLines::Measure(std::size_t column, std::string_view text) {
  std::string cut;
  for (std::optional<std::string_view> rest = ShownPart(text, cut); rest;)
    widths_[column] = std::max(widths_[column], DisplayWidth(TakeLine(rest)));
}

void TableLines::Measure(Row row) {
  for (std::size_t i = 0; i < row.size(); ++i) Measure(i, row[i].text);
}

std::size_t TableLines::line_size() const {
  return LineWidth(frame_, std::accumulate(widths_.begin(), widths_.end(), std::size_t(0)), widths_.size()) +
         1;
}

// Ends with a line break; empty if the frame has no rules.
std::string TableLines::Rule() const {
  if (frame_ == Frame::kBlanks) return "";
  std::string rule = "+";
  for (std::size_t width : widths_) rule += std::string(width + 2, '-') + '+';
  return rule + '\n';
}

void TableLines::AppendLine(std::string& out, Row row,
                            std::vector<std::optional<std::string_view>>& rests) const {
  const Edges& edges = EdgesOf(frame_);
  std::string_view before = edges.begin;
  for (std::size_t i = 0; i < widths_.size(); ++i) {
    out += std::exchange(before, edges.between);
    AppendPadded(out, TakeLine(rests[i]), row[i].style, widths_[i]);
  }
  out += edges.end;
  if (edges.end.empty()) out.erase(out.find_last_not_of(' ') + 1);
  out += '\n';
}

void TableLines::AppendHead(std::string& out) const {
  if (widths_.empty()) return;
  std::string rule = Rule();
  out += rule;
  std::vector<ShownCell> titles;
  for (const std::string& title : header_) titles.push_back({title});
  AppendRow(out, titles);
  out += rule;
}

void TableLines::AppendRow(std::string& out, Row row) const {
  if (widths_.empty()) return;
  std::vector<std::optional<std::string_view>> rests(row.size());  // the remaining text of each cell
  std::forward_list<std::string> cuts;
  for (std::size_t i = 0; i < row.size(); ++i) {
    bool is_long = row[i].text.size() > kLongestCell;
    rests[i] = is_long ? ShownPart(row[i].text, cuts.emplace_front()) : row[i].text;
  }
  do {
    AppendLine(out, row, rests);
  } while (std::ranges::any_of(rests, [](const auto& rest) { return rest.has_value(); }));
}

void TableLines::AppendEnd(std::string& out) const {
  if (widths_.empty()) return;
  out += Rule();
  out.pop_back();  // the last line break
}

Table::Table(std::vector<std::string> header, Frame frame) : lines_(std::move(header), frame) {}

void Table::AddCell(std::string_view text, std::string_view style) {
  std::string cut;
  std::string_view shown = ShownPart(text, cut);
  lines_.Measure(cells_.size() % lines_.columns(), shown);
  texts_ += shown;
  cells_.push_back({texts_.size(), style});
}

std::vector<ShownCell> Table::RowAt(std::size_t row) const {
  std::vector<ShownCell> shown;
  std::size_t first = row * lines_.columns();
  std::size_t begin = first == 0 ? 0 : cells_[first - 1].end;
  for (const Cell& cell : std::span(cells_).subspan(first, lines_.columns())) {
    shown.push_back({std::string_view(texts_).substr(begin, cell.end - begin), cell.style});
    begin = cell.end;
  }
  return shown;
}

std::string Table::ToString() const {
  std::string out;
  out.reserve(lines_.line_size() * (rows_ + 4));
  lines_.AppendHead(out);
  for (std::size_t row = 0; row < rows_; ++row) lines_.AppendRow(out, RowAt(row));
  lines_.AppendEnd(out);
  return out;
}

Task<> Table::AppendTo(std::string& out, Pace& pace) const {
  out.reserve(out.size() + lines_.line_size() * (rows_ + 4));
  lines_.AppendHead(out);
  for (std::size_t row = 0; row < rows_; ++row) {
    lines_.AppendRow(out, RowAt(row));
    if (pace.is_due(lines_.line_size())) co_await pace.Pause();
  }
  lines_.AppendEnd(out);
}

namespace {

// The time in a cell of a column of times.
std::optional<WallTime> TimeOf(const Cell& cell) {
  if (cell.text() || cell.written() || !cell.value().is_number()) return std::nullopt;
  return FromSeconds(cell.value().to_number<double>());
}

void AppendWritten(std::string& out, std::string_view json) {
  if (json == "true" || json == "false") {
    out += json == "true" ? "True" : "False";
  } else if (json.starts_with('[')) {
    JsonScanner in(json);
    std::string_view separator = "";
    in.Elements([&] {
      std::string_view element;
      out += std::exchange(separator, ",");
      in.Value(element);
      AppendText(out, Cell::OfWritten(element));
      return true;
    });
  } else {
    AppendValidJson(out, json, JsonStyle::kCompact);
  }
}

// A table shows less of a cell.
constexpr std::size_t kLongestText = 1024;

bool IsShown(const Column& column, const std::vector<std::string>& keys) {
  return keys.empty() || std::ranges::find(keys, column.key) != keys.end();
}

}  // namespace

boost::json::value UnixTime(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

void AppendText(std::string& out, const Cell& cell) {
  if (std::optional<std::string_view> text = cell.text()) {
    out += IsPlain(*text) ? *text : Visible(*text, "\n");
    return;
  }
  if (std::optional<std::string_view> json = cell.written()) return AppendWritten(out, *json);
  const boost::json::value& value = cell.value();
  if (value.is_null()) return;
  if (value.is_bool()) {
    out += value.get_bool() ? "True" : "False";
  } else if (value.is_array()) {
    std::string_view separator = "";
    for (const boost::json::value& item : value.get_array()) {
      out += std::exchange(separator, ",");
      AppendText(out, Cell::Of(item));
    }
  } else {
    AppendJson(out, value, JsonStyle::kCompact);
  }
}

void AppendTexts(AgedText& out, const std::vector<Column>& columns, const std::vector<Cell>& row) {
  std::string& text = out.text();
  for (std::size_t i = 0; i < row.size(); ++i) {
    bool is_age = columns[i].kind == Kind::kTime || columns[i].kind == Kind::kAge;
    if (std::optional<WallTime> time = is_age ? TimeOf(row[i]) : std::nullopt) {
      out.AddAge(*time, AgedText::Style::kClock);
    } else {
      std::size_t begin = text.size();
      AppendText(text, row[i]);
      text.resize(std::min(text.size(), begin + kLongestText));
    }
    text += '\0';
  }
}

TableCells::TableCells(const std::vector<Column>& columns, Colors colors,
                       const std::vector<std::string>& keys) {
  for (const Column& column : columns) {
    columns_.push_back({IsShown(column, keys), colors == Colors::kStates && column.kind == Kind::kState});
    if (columns_.back().is_shown) titles_.push_back(column.title);
  }
}

std::span<const ShownCell> TableCells::Of(const AgedText& row, WallTime now) {
  texts_.clear();
  cells_.clear();
  row.AppendTo(texts_, now);
  std::string_view rest = texts_;
  for (const Show& column : columns_) {
    std::string_view text = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(text.size() + 1);
    if (column.is_shown) cells_.push_back({text, column.is_colored ? StyleOf(text) : std::string_view()});
  }
  return cells_;
}

void TableRows::Append(const AgedText& row) {
  table_.AddRow();
  for (const ShownCell& cell : cells_.Of(row, now_)) table_.AddCell(cell.text, cell.style);
}

std::string ToTable(const Listing& listing, WallTime now, Colors colors, Frame frame) {
  TableRows table(TableCells(listing.columns, colors), now, frame);
  AgedText texts;
  for (const std::vector<Cell>& row : listing.rows) {
    texts.Clear();
    AppendTexts(texts, listing.columns, row);
    table.Append(texts);
  }
  return table.table().ToString();
}

JsonRows::JsonRows(const std::vector<Column>& columns, JsonStyle style) : style_(style) {
  auto before = [style](const std::string& key) {
    std::string text;
    AppendJson(text, Cell::OfText(key), style);
    return text.append(ColonOf(style));
  };
  for (const Column& column : columns) {
    Member& member = members_.emplace_back();
    if (members_.size() > 1) member.beginning = CommaOf(style);
    member.beginning += before(column.key);
    if (style == JsonStyle::kPython) {
      if (column.kind == Kind::kAge) member.age = AgedText::Style::kClock;
    } else if (!column.since.empty()) {
      member.age = AgedText::Style::kSeconds;
      member.since = std::string(CommaOf(style)) + before(column.since);
    }
  }
}

void JsonRows::Append(AgedText& out, const std::vector<Cell>& row) const {
  std::string& text = out.text();
  text += '{';
  for (std::size_t i = 0; i < row.size(); ++i) {
    const auto& [beginning, age, since] = members_[i];
    text += beginning;
    std::optional<WallTime> time = age ? TimeOf(row[i]) : std::nullopt;
    if (time) {
      std::string_view quote = *age == AgedText::Style::kClock ? "\"" : "";
      text += quote;
      out.AddAge(*time, *age);
      text += quote;
    } else {
      AppendJson(text, row[i], style_);
    }
    if (since.empty()) continue;
    text += since;
    AppendJson(text, time ? Cell(UnixTime(*time)) : Cell(), style_);
  }
  text += '}';
}

void AppendJson(std::string& out, const Listing& listing, WallTime now, JsonStyle style) {
  JsonRows rows(listing.columns, style);
  AgedText text;
  out += '[';
  std::string_view separator = "";
  for (const std::vector<Cell>& row : listing.rows) {
    out += std::exchange(separator, CommaOf(style));
    text.Clear();
    rows.Append(text, row);
    text.AppendTo(out, now);
  }
  out += ']';
}

std::string ToJson(const Listing& listing, WallTime now) {
  std::string out;
  AppendJson(out, listing, now, JsonStyle::kCompact);
  return out;
}

}  // namespace nodepool::listing
