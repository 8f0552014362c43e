#include "web/lists/negotiation.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "base/text.h"

namespace nodepool::web {
namespace {

std::string_view Trimmed(std::string_view text) {
  auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool IsToken(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  auto is_token = [&](unsigned char c) {
    return std::isalnum(c) != 0 || kMarks.find(static_cast<char>(c)) != kMarks.npos;
  };
  return !text.empty() && std::ranges::all_of(text, is_token);
}

// One range of media types, e.g. "text/*;q=0.5".
struct Range {
  std::string type;
  std::string subtype;
  bool has_parameters = false;  // besides the quality
  double quality = 1;
};

std::optional<double> ParseQuality(std::string_view text) {
  double quality = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), quality);
  bool is_good = error == std::errc() && end == text.data() + text.size() && quality >= 0 && quality <= 1;
  return is_good ? std::optional(quality) : std::nullopt;
}

std::optional<Range> ParseRange(std::string_view text) {
  std::vector<std::string> parts = Split(text, ';');
  std::string_view media = Trimmed(parts.front());
  std::size_t slash = media.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  Range range{Lower(media.substr(0, slash)), Lower(media.substr(slash + 1))};
  bool is_any_of_some = range.type == "*" && range.subtype != "*";
  if (!IsToken(range.type) || !IsToken(range.subtype) || is_any_of_some) return std::nullopt;
  bool is_quality_known = false;
  for (auto part = parts.begin() + 1; part != parts.end(); ++part) {
    std::string_view parameter = Trimmed(*part);
    std::size_t equals = parameter.find('=');
    if (equals == std::string_view::npos || !IsToken(parameter.substr(0, equals))) return std::nullopt;
    if (is_quality_known) continue;  // what follows belongs to the request, not to the type
    if (Lower(parameter.substr(0, equals)) != "q") {
      range.has_parameters = true;
      continue;
    }
    std::optional<double> quality = ParseQuality(parameter.substr(equals + 1));
    if (!quality) return std::nullopt;
    range.quality = *quality;
    is_quality_known = true;
  }
  return range;
}

// How closely the range names a type without parameters; 0: not at all.
int Closeness(const Range& range, std::string_view type, std::string_view subtype) {
  if (range.has_parameters) return 0;
  if (range.type == "*") return 1;
  if (range.type != type) return 0;
  if (range.subtype == "*") return 2;
  return range.subtype == subtype ? 3 : 0;
}

double QualityOf(const std::vector<Range>& ranges, std::string_view media) {
  std::size_t slash = media.find('/');
  int closest = 0;
  double quality = 0;
  for (const Range& range : ranges) {
    int closeness = Closeness(range, media.substr(0, slash), media.substr(slash + 1));
    if (closeness > closest) {
      closest = closeness;
      quality = range.quality;
    }
  }
  return quality;
}

// Nothing when it cannot be read.
std::optional<std::vector<Range>> ParseRanges(std::string_view accept) {
  std::vector<Range> ranges;
  for (const std::string& part : Split(accept, ',')) {
    if (Trimmed(part).empty()) continue;
    std::optional<Range> range = ParseRange(part);
    if (!range) return std::nullopt;
    ranges.push_back(std::move(*range));
  }
  return ranges;
}

}  // namespace

std::optional<std::string_view> AcceptOf(const net::HttpRequest& request) {
  auto accept = request.headers.find("accept");
  return accept == request.headers.end() ? std::nullopt : std::optional<std::string_view>(accept->second);
}

std::optional<std::string_view> ChooseType(std::optional<std::string_view> accept,
                                           std::span<const std::string_view> offers) {
  if (!accept) return offers.front();
  std::optional<std::vector<Range>> ranges = ParseRanges(*accept);
  if (!ranges) return offers.front();
  auto quality = [&](std::string_view offer) { return QualityOf(*ranges, offer); };
  auto best = std::ranges::max_element(offers, {}, quality);
  return quality(*best) > 0 ? std::optional(*best) : std::nullopt;
}

std::optional<Format> ChooseFormat(std::optional<std::string_view> accept) {
  static constexpr std::string_view kOffers[] = {"text/html", "text/plain", "application/json"};
  std::optional<std::string_view> type = ChooseType(accept, kOffers);
  if (!type) return std::nullopt;
  return *type == kOffers[2] ? Format::kJson : Format::kText;
}

}  // namespace nodepool::web
