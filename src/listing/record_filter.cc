#include "listing/record_filter.h"

#include <algorithm>
#include <cstring>

#include "model/json_scanner.h"
#include "model/json_text.h"

namespace nodepool::listing {
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

}  // namespace nodepool::listing
