#include "listing/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "base/text.h"
#include "listing/state_style.h"
#include "listing/table.h"

namespace nodepool::listing {
namespace {

bool IsTime(const Column& column, const boost::json::value& cell) {
  return (column.kind == Kind::kTime || column.kind == Kind::kAge) && cell.is_number();
}

std::string AgeText(const boost::json::value& cell, WallTime now) {
  return FormatAge(now - FromSeconds(cell.to_number<double>()));
}

std::string Visible(std::string_view text) {
  auto is_control = [](unsigned char c) { return (c < 0x20 && c != '\n') || c == 0x7f; };
  if (std::ranges::none_of(text, is_control)) return std::string(text);
  std::string out;
  for (char c : text) {
    out += is_control(static_cast<unsigned char>(c)) ? fmt::format("\\x{:02x}", static_cast<unsigned char>(c))
                                                     : std::string(1, c);
  }
  return out;
}

}  // namespace

std::string CellText(const boost::json::value& cell) {
  if (cell.is_null()) return "";
  if (cell.is_bool()) return cell.as_bool() ? "True" : "False";
  if (cell.is_string()) return Visible(cell.as_string());
  if (cell.is_array()) {
    std::vector<std::string> parts;
    for (const boost::json::value& item : cell.as_array()) parts.push_back(CellText(item));
    return Join(parts, ",");
  }
  return boost::json::serialize(cell);
}

std::string FormatAge(Duration age) {
  auto seconds = std::chrono::floor<std::chrono::seconds>(age);
  auto days = std::chrono::floor<std::chrono::days>(seconds);
  std::chrono::hh_mm_ss rest(seconds - days);
  return fmt::format("{:02}:{:02}:{:02}:{:02}", days.count(), rest.hours().count(), rest.minutes().count(),
                     rest.seconds().count());
}

std::string ToTable(const Listing& listing, WallTime now, Colors colors) {
  std::vector<std::string> header;
  for (const Column& column : listing.columns) header.push_back(column.title);
  Table table(std::move(header));
  for (const auto& row : listing.rows) {
    std::vector<Cell> cells;
    cells.reserve(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Column& column = listing.columns[i];
      Cell& cell = cells.emplace_back(IsTime(column, row[i]) ? AgeText(row[i], now) : CellText(row[i]));
      if (colors == Colors::kStates && column.kind == Kind::kState) cell.style = StyleOf(cell.text);
    }
    table.AddRow(std::move(cells));
  }
  return table.ToString();
}

boost::json::value JsonCell(const Column& column, const boost::json::value& cell, WallTime now) {
  bool is_age = column.kind == Kind::kAge && IsTime(column, cell);
  return is_age ? boost::json::value(AgeText(cell, now)) : cell;
}

boost::json::array ToJson(const Listing& listing, WallTime now) {
  boost::json::array rows;
  rows.reserve(listing.rows.size());
  for (const auto& row : listing.rows) {
    boost::json::object object;
    object.reserve(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      object[listing.columns[i].key] = JsonCell(listing.columns[i], row[i], now);
    }
    rows.push_back(std::move(object));
  }
  return rows;
}

}  // namespace nodepool::listing
