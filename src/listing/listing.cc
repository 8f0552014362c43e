#include "listing/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "listing/state_style.h"

namespace nodepool::listing {
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
