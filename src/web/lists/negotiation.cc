#include "web/lists/negotiation.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "base/text.h"

namespace nodepool::web {
namespace {

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
  bool has_parameters = false;  // other than the quality
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
  std::string_view media = Trim(parts.front());
  std::size_t slash = media.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  Range range{Lower(media.substr(0, slash)), Lower(media.substr(slash + 1))};
  bool is_any_of_some = range.type == "*" && range.subtype != "*";
  if (!IsToken(range.type) || !IsToken(range.subtype) || is_any_of_some) return std::nullopt;
  bool is_quality_known = false;
  for (auto part = parts.begin() + 1; part != parts.end(); ++part) {
    std::string_view parameter = Trim(*part);
    std::size_t equals = parameter.find('=');
    if (equals == std::string_view::npos || !IsToken(parameter.substr(0, equals))) return std::nullopt;
    if (is_quality_known) continue;  // parameters after the quality do not belong to the type
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

// How specifically the range matches a type without parameters; 0: not at all.
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

// nullopt: it cannot be parsed.
std::optional<std::vector<Range>> ParseRanges(std::string_view accept) {
  std::vector<Range> ranges;
  for (const std::string& part : Split(accept, ',')) {
    if (Trim(part).empty()) continue;
    std::optional<Range> range = ParseRange(part);
    if (!range) return std::nullopt;
    ranges.push_back(std::move(*range));
  }
  return ranges;
}

struct Coding {
  std::string name;
  double quality = 1;
};

std::optional<Coding> ParseCoding(std::string_view text) {
  std::size_t end = std::min(text.find(';'), text.size());
  Coding coding{Lower(Trim(text.substr(0, end)))};
  if (!IsToken(coding.name)) return std::nullopt;
  if (end == text.size()) return coding;
  std::string parameter = Lower(Trim(text.substr(end + 1)));
  std::optional<double> quality =
      parameter.starts_with("q=") ? ParseQuality(std::string_view(parameter).substr(2)) : std::nullopt;
  if (!quality) return std::nullopt;
  coding.quality = *quality;
  return coding;
}

}  // namespace

bool PrefersGzip(std::string_view accept_encoding) {
  std::optional<double> gzip, identity, any;
  for (const std::string& part : Split(accept_encoding, ',')) {
    if (Trim(part).empty()) continue;
    std::optional<Coding> coding = ParseCoding(part);
    if (!coding) return false;
    if (coding->name == "gzip" || coding->name == "x-gzip") gzip = coding->quality;
    if (coding->name == "identity") identity = coding->quality;
    if (coding->name == "*") any = coding->quality;
  }
  double quality = gzip.value_or(any.value_or(0));
  return quality > 0 && quality >= identity.value_or(0);
}

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
