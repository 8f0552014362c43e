#include "listing/text_columns.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

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

}  // namespace nodepool::listing
