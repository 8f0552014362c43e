#include "http_messages.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/text.h"

namespace nodepool::net {
namespace {

using Headers = std::multimap<std::string, std::string>;

// Cuts everything up to `end` off; nullopt: it is missing.
std::optional<std::string_view> Take(std::string_view& bytes, std::string_view end) {
  std::size_t at = bytes.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view taken = bytes.substr(0, at);
  bytes.remove_prefix(at + end.size());
  return taken;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::optional<std::size_t> Number(std::string_view text, int base) {
  std::size_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Up to and including the empty line; nullopt: malformed.
std::optional<Headers> TakeHeaders(std::string_view& bytes) {
  Headers headers;
  auto last = headers.end();
  while (std::optional<std::string_view> line = Take(bytes, "\r\n")) {
    if (line->empty()) return headers;
    if (line->find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) return std::nullopt;
    bool is_continued = line->front() == ' ' || line->front() == '\t';
    if (is_continued) {
      if (last == headers.end()) return std::nullopt;
      last->second += " " + std::string(Trimmed(*line));
      continue;
    }
    std::optional<std::string_view> name = Take(*line, ":");
    bool is_name = name && !name->empty() && name->find_first_of(" \t") == std::string_view::npos;
    if (!is_name) return std::nullopt;
    last = headers.emplace(Lower(*name), std::string(Trimmed(*line)));
  }
  return std::nullopt;
}

std::optional<std::string> TakeBytes(std::string_view& bytes, std::size_t count) {
  if (count > bytes.size()) return std::nullopt;
  std::string taken(bytes.substr(0, count));
  bytes.remove_prefix(count);
  return taken;
}

std::optional<std::string> TakeChunks(std::string_view& bytes) {
  std::string body;
  while (std::optional<std::string_view> line = Take(bytes, "\r\n")) {
    std::optional<std::size_t> size = Number(Trimmed(line->substr(0, line->find(';'))), 16);
    if (!size || line->find('\n') != std::string_view::npos) return std::nullopt;
    if (*size == 0) {
      if (!TakeHeaders(bytes)) return std::nullopt;  // the trailer
      return body;
    }
    std::optional<std::string> chunk = TakeBytes(bytes, *size);
    if (!chunk || !bytes.starts_with("\r\n")) return std::nullopt;
    bytes.remove_prefix(2);
    body += *chunk;
  }
  return std::nullopt;
}

// As in RFC 9112, 6.3.
std::optional<std::string> TakeBody(std::string_view& bytes, const Headers& headers) {
  auto [coding, codings_end] = headers.equal_range("transfer-encoding");
  auto [length, lengths_end] = headers.equal_range("content-length");
  if (coding != codings_end) {
    bool is_chunked =
        std::next(coding) == codings_end && length == lengths_end && Lower(coding->second) == "chunked";
    return is_chunked ? TakeChunks(bytes) : std::nullopt;
  }
  if (length == lengths_end) return std::string();
  // Several are no fault while they are the same.
  bool is_clear =
      std::all_of(length, lengths_end, [&](const auto& header) { return header.second == length->second; });
  std::optional<std::size_t> count = is_clear ? Number(length->second, 10) : std::nullopt;
  return count ? TakeBytes(bytes, *count) : std::nullopt;
}

}  // namespace

std::vector<HttpMessage> StrictMessages(std::string_view bytes) {
  std::vector<HttpMessage> messages;
  while (std::optional<std::string_view> line = Take(bytes, "\r\n")) {
    if (line->empty()) continue;  // RFC 9112, 2.2
    std::optional<std::string_view> method = Take(*line, " ");
    std::optional<std::string_view> target = method ? Take(*line, " ") : std::nullopt;
    bool is_request =
        target && !method->empty() && !target->empty() && line->starts_with("HTTP/1.") && line->size() == 8;
    if (!is_request) break;
    std::optional<Headers> headers = TakeHeaders(bytes);
    std::optional<std::string> body = headers ? TakeBody(bytes, *headers) : std::nullopt;
    if (!body) break;
    messages.push_back({std::string(*method), std::string(*target), std::move(*body)});
  }
  return messages;
}

}  // namespace nodepool::net
