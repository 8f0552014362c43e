#include "listing/listing.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "base/text.h"
#include "listing/table.h"

namespace nodepool::listing {
namespace {

std::string Visible(std::string_view text) {
  std::string out;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    bool is_control = (byte < 0x20 && c != '\n') || byte == 0x7f;
    out += is_control ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
  }
  return out;
}

bool IsAge(const std::string& key) { return key == "age" || key.ends_with("_age"); }

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

std::string ToTable(const Listing& listing, WallTime now) {
  std::vector<std::string> header;
  for (const Column& column : listing.columns) header.push_back(column.title);
  Table table(std::move(header));
  for (const auto& row : listing.rows) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < row.size(); ++i) {
      bool is_time = IsAge(listing.columns[i].key) && row[i].is_number();
      cells.push_back(is_time ? FormatAge(now - FromSeconds(row[i].to_number<double>())) : CellText(row[i]));
    }
    table.AddRow(std::move(cells));
  }
  return table.ToString();
}

boost::json::array ToJson(const Listing& listing) {
  boost::json::array rows;
  for (const auto& row : listing.rows) {
    boost::json::object object;
    for (std::size_t i = 0; i < row.size(); ++i) object[listing.columns[i].key] = row[i];
    rows.push_back(std::move(object));
  }
  return rows;
}

}  // namespace nodepool::listing
