#include "model/decline_reasons.h"

#include <algorithm>
#include <boost/json/array.hpp>

#include "base/text.h"
#include "model/json.h"
#include "model/json_scanner.h"

namespace nodepool {
namespace {

namespace json = boost::json;

constexpr std::string_view kKey = "decline_reasons";
constexpr std::size_t kMaxReason = 500;
constexpr std::size_t kMaxReasons = 100;

// Calls `member(key, value)` with the text of each; the key has its quotation marks.
template <class F>
void ForEachUnknown(const Foreign& foreign, F&& member) {
  if (foreign.unknown.empty()) return;
  std::string text = "{" + foreign.unknown + "}";
  JsonScanner in(text);
  in.Members([&](std::string_view key) {
    std::string_view value;
    if (!in.Value(value)) return false;
    member(key, value);
    return true;
  });
}

bool IsOurs(std::string_view written_key) { return written_key.substr(1, written_key.size() - 2) == kKey; }

std::vector<std::string> TextsIn(const RawJson& list) {
  std::vector<std::string> texts;
  const json::value value = list.value();
  if (!value.is_array()) return texts;
  for (const json::value& element : value.as_array()) {
    if (element.is_string()) texts.emplace_back(element.as_string());
  }
  return texts;
}

void Replace(Foreign& foreign, const std::vector<std::string>& reasons) {
  Foreign changed;
  ForEachUnknown(foreign, [&](std::string_view key, std::string_view value) {
    if (!IsOurs(key)) changed.AddWritten(key, value);
  });
  json::array list(reasons.begin(), reasons.end());
  changed.Add(kKey, std::move(list));
  foreign.unknown = std::move(changed.unknown);
}

}  // namespace

std::vector<std::string> DeclineReasons(const NodeRequest& request) {
  std::vector<std::string> reasons;
  ForEachUnknown(request.foreign, [&](std::string_view key, std::string_view value) {
    if (IsOurs(key)) reasons = TextsIn(RawJson::OfText(value));
  });
  return reasons;
}

void AddDeclineReason(NodeRequest& request, const std::string& reason) {
  if (reason.empty()) return;
  std::string line = reason;
  std::ranges::replace(line, '\n', ' ');
  line = Excerpt(line, kMaxReason);
  std::vector<std::string> reasons = DeclineReasons(request);
  if (reasons.size() >= kMaxReasons || std::ranges::find(reasons, line) != reasons.end()) return;
  reasons.push_back(std::move(line));
  Replace(request.foreign, reasons);
}

std::string WhyFailed(const NodeRequest& request) {
  std::vector<std::string> reasons = DeclineReasons(request);
  if (!reasons.empty()) return Join(reasons, "; ");
  if (request.declined_by.empty()) return "no launcher offers these labels together";
  return fmt::format("declined by {}", fmt::join(request.declined_by, ", "));
}

}  // namespace nodepool
