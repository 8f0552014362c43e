#include "listing/listing.h"

#include <fmt/compile.h>

#include <optional>
#include <utility>

#include "listing/state_style.h"
#include "listing/table.h"

namespace nodepool::listing {
namespace {

// How long ago the column's time was; nothing in columns that show no times.
std::optional<std::string> AgeText(const Column& column, const Cell& cell, WallTime now) {
  if ((column.kind != Kind::kTime && column.kind != Kind::kAge) || cell.text() || !cell.value().is_number())
    return std::nullopt;
  return FormatAge(now - FromSeconds(cell.value().to_number<double>()));
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

std::string FormatAge(Duration age) {
  auto seconds = std::chrono::floor<std::chrono::seconds>(age);
  auto days = std::chrono::floor<std::chrono::days>(seconds);
  std::chrono::hh_mm_ss rest(seconds - days);
  return fmt::format(FMT_COMPILE("{:02}:{:02}:{:02}:{:02}"), days.count(), rest.hours().count(),
                     rest.minutes().count(), rest.seconds().count());
}

std::string ToTable(const Listing& listing, WallTime now, Colors colors) {
  std::vector<std::string> header;
  for (const Column& column : listing.columns) header.push_back(column.title);
  Table table(header);
  std::string text;
  for (const std::vector<Cell>& row : listing.rows) {
    table.AddRow();
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Column& column = listing.columns[i];
      text.clear();
      if (std::optional<std::string> age = AgeText(column, row[i], now)) {
        text = std::move(*age);
      } else {
        AppendText(text, row[i]);
      }
      bool is_colored = colors == Colors::kStates && column.kind == Kind::kState;
      table.AddCell(text, is_colored ? StyleOf(text) : std::string_view());
    }
  }
  return table.ToString();
}

void AppendJson(std::string& out, const Listing& listing, WallTime now, JsonStyle style) {
  std::vector<std::string> beginnings;
  for (const Column& column : listing.columns) {
    std::string& beginning = beginnings.emplace_back(beginnings.empty() ? "" : CommaOf(style));
    AppendJson(beginning, Cell::OfText(column.key), style);
    beginning += ColonOf(style);
  }
  out += '[';
  std::string_view separator = "";
  for (const std::vector<Cell>& row : listing.rows) {
    out += std::exchange(separator, CommaOf(style));
    out += '{';
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Column& column = listing.columns[i];
      out += beginnings[i];
      std::optional<std::string> age;
      if (column.kind == Kind::kAge) age = AgeText(column, row[i], now);
      if (age) {
        AppendJson(out, Cell::OfText(*age), style);
      } else {
        AppendJson(out, row[i], style);
      }
    }
    out += '}';
  }
  out += ']';
}

std::string ToJson(const Listing& listing, WallTime now) {
  std::string out;
  AppendJson(out, listing, now, JsonStyle::kCompact);
  return out;
}

}  // namespace nodepool::listing
