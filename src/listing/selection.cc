#include "listing/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "model/json_scanner.h"

namespace nodepool::listing {

const Column* Find(const std::vector<Column>& columns, Kind kind) {
  auto found = std::ranges::find(columns, kind, &Column::kind);
  return found == columns.end() ? nullptr : &*found;
}

std::string_view NameOf(Kind kind) {
  return std::ranges::find(kFilters, kind, [](const auto& filter) { return filter.first; })->second;
}

std::optional<FilterFault> FaultOf(const RowFilter& filter, const std::vector<Column>& columns) {
  for (const auto& [kind, words] : filter) {
    const Column* column = Find(columns, kind);
    if (column->words.empty()) continue;
    for (const std::string& word : words) {
      if (std::ranges::find(column->words, word) != column->words.end()) continue;
      std::vector<std::string> known(column->words.begin(), column->words.end());
      return FilterFault{
          kind, fmt::format("\"{}\" is no {}; there is {}", Excerpt(word), NameOf(kind), Join(known, ", "))};
    }
  }
  return std::nullopt;
}

bool HasOneOf(const Cell& cell, const std::set<std::string>& words) {
  if (std::optional<std::string_view> text = cell.text()) return words.contains(std::string(*text));
  if (cell.written()) return false;
  const boost::json::array* list = cell.value().if_array();
  auto is_one = [&](const boost::json::value& entry) { return HasOneOf(Cell::Of(entry), words); };
  return list != nullptr && std::ranges::any_of(*list, is_one);
}

void Keep(Listing& listing, const RowFilter& filter) {
  for (const auto& [kind, words] : filter) {
    std::ptrdiff_t place = Find(listing.columns, kind) - listing.columns.data();
    std::erase_if(listing.rows, [&](const std::vector<Cell>& row) {
      return !HasOneOf(row[static_cast<std::size_t>(place)], words);
    });
  }
}

namespace {

// Whether a record may have the word without quotation marks: a number that is read as a text.
bool IsJson(std::string_view word) {
  JsonScanner in(word);
  return in.Value() && in.End();
}

// What a record with the word has in its text, unless characters of it are escaped. Empty: they may be
// escaped in many ways.
std::string InJson(const std::string& word) {
  if (!IsPlain(word)) return "";
  return IsJson(word) ? word : '"' + word + '"';
}

// Whether characters that need no escape may be escaped in the text, as \u006e or \/.
bool HasUnusualEscape(std::string_view json) {
  std::size_t at = json.find('\\');
  while (at != json.npos) {
    std::string_view escaped = json.substr(at + 1);
    if (escaped.starts_with('u') || escaped.starts_with('/')) return true;
    at = json.find('\\', at + 2);
  }
  return false;
}

// Several times as fast as std::string_view::find() where the first character is frequent.
bool Contains(std::string_view text, std::string_view part) {
  return ::memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
}

}  // namespace

RecordFilter::RecordFilter(const RowFilter& filter, const std::set<std::string>& also) {
  auto in_json = [](const std::set<std::string>& words) {
    Words written;
    std::ranges::transform(words, std::back_inserter(written), &InJson);
    return written;
  };
  for (const auto& [kind, words] : filter) kinds_.push_back(in_json(words));
  also_ = in_json(also);
}

bool RecordFilter::HasOneOf(std::string_view record, const Words& words) {
  return std::ranges::any_of(words, [&](const std::string& word) { return Contains(record, word); });
}

bool RecordFilter::MayMatch(std::string_view record) const {
  bool has_all = std::ranges::all_of(kinds_, [&](const Words& words) { return HasOneOf(record, words); });
  return has_all || HasOneOf(record, also_) || HasUnusualEscape(record);
}

Expected<std::vector<std::string>> KeysOf(const std::vector<std::string>& names,
                                          const std::vector<Column>& columns) {
  std::vector<std::string> keys;
  for (const std::string& name : names) {
    std::string wanted = Lower(Trim(name));
    auto found = std::ranges::find_if(columns, [&](const Column& column) {
      bool is_time = !column.since.empty() && wanted == column.since;
      return is_time || wanted == Lower(column.key) || wanted == Lower(column.title);
    });
    if (found == columns.end()) {
      std::vector<std::string> known;
      for (const Column& column : columns) known.push_back(column.key);
      return Unexpected(Verdict::kInvalid, fmt::format("there is no column \"{}\"; there is {}",
                                                       Excerpt(name), Join(known, ", ")));
    }
    keys.push_back(found->key);
  }
  return keys;
}

void KeepColumns(Listing& listing, const std::vector<std::string>& keys) {
  std::vector<std::size_t> places;
  Listing kept;
  for (const std::string& key : keys) {
    auto found = std::ranges::find(listing.columns, key, &Column::key);
    places.push_back(static_cast<std::size_t>(found - listing.columns.begin()));
    kept.columns.push_back(*found);
  }
  for (const std::vector<Cell>& row : listing.rows) {
    std::vector<Cell>& cells = kept.rows.emplace_back();
    for (std::size_t place : places) cells.push_back(row[place]);
  }
  listing = std::move(kept);
}

void DropExtraColumns(Listing& listing) {
  if (std::ranges::none_of(listing.columns, &Column::is_extra)) return;
  std::vector<std::string> keys;
  for (const Column& column : listing.columns) {
    if (!column.is_extra) keys.push_back(column.key);
  }
  KeepColumns(listing, keys);
}

}  // namespace nodepool::listing
