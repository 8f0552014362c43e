#include "listing/listing.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "listing/state_style.h"

namespace nodepool::listing {
namespace {

// Since when a cell of a column of times is.
std::optional<WallTime> TimeOf(const Cell& cell) {
  if (cell.text() || !cell.value().is_number()) return std::nullopt;
  return FromSeconds(cell.value().to_number<double>());
}

void AppendVisible(std::string& out, std::string_view text) {
  if (IsPlain(text)) {
    out += text;
    return;
  }
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    bool is_control = (byte < 0x20 && c != '\n') || byte == 0x7f;
    if (is_control) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
}

std::vector<std::string> TitlesOf(const std::vector<Column>& columns) {
  std::vector<std::string> titles;
  for (const Column& column : columns) titles.push_back(column.title);
  return titles;
}

}  // namespace

void AppendText(std::string& out, const Cell& cell) {
  if (std::optional<std::string_view> text = cell.text()) return AppendVisible(out, *text);
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

TableRows::TableRows(const std::vector<Column>& columns, WallTime now, Colors colors)
    : table_(TitlesOf(columns)), now_(now) {
  for (const Column& column : columns) {
    bool is_age = column.kind == Kind::kTime || column.kind == Kind::kAge;
    styles_.push_back({is_age, colors == Colors::kStates && column.kind == Kind::kState});
  }
}

void TableRows::Append(const std::vector<Cell>& row) {
  table_.AddRow();
  for (std::size_t i = 0; i < row.size(); ++i) {
    text_.clear();
    if (std::optional<WallTime> time = styles_[i].is_age ? TimeOf(row[i]) : std::nullopt) {
      text_ = FormatAge(now_ - *time);
    } else {
      AppendText(text_, row[i]);
    }
    table_.AddCell(text_, styles_[i].is_colored ? StyleOf(text_) : std::string_view());
  }
}

std::string ToTable(const Listing& listing, WallTime now, Colors colors) {
  TableRows table(listing.columns, now, colors);
  for (const std::vector<Cell>& row : listing.rows) table.Append(row);
  return table.ToString();
}

JsonRows::JsonRows(const std::vector<Column>& columns, JsonStyle style) : style_(style) {
  for (const Column& column : columns) {
    std::string beginning(members_.empty() ? "" : CommaOf(style));
    AppendJson(beginning, Cell::OfText(column.key), style);
    beginning += ColonOf(style);
    members_.push_back({std::move(beginning), column.kind == Kind::kAge});
  }
}

void JsonRows::Append(AgedText& out, const std::vector<Cell>& row) const {
  std::string& text = out.text();
  text += '{';
  for (std::size_t i = 0; i < row.size(); ++i) {
    text += members_[i].beginning;
    if (std::optional<WallTime> time = members_[i].is_age ? TimeOf(row[i]) : std::nullopt) {
      text += '"';
      out.AddAge(*time, AgedText::Style::kClock);
      text += '"';
    } else {
      AppendJson(text, row[i], style_);
    }
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
