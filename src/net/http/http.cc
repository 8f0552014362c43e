#include "net/http/http.h"

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace nodepool::net {
namespace {

std::optional<std::string> Decoded(std::string_view text, bool plus_is_blank) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_blank) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      unsigned value = 0;
      const char* begin = text.data() + i + 1;
      if (i + 2 >= text.size()) return std::nullopt;
      auto [end, error] = std::from_chars(begin, begin + 2, value, 16);
      if (error != std::errc() || end != begin + 2) return std::nullopt;
      out += static_cast<char>(value);
      i += 2;
    }
  }
  return out;
}

// Of a target in absolute form the host takes the place of the header's, and what follows it stays.
bool TakeAuthority(std::string_view& target, HttpRequest& request) {
  for (std::string_view scheme : {"http://", "https://"}) {
    if (Lower(target.substr(0, scheme.size())) != scheme) continue;
    std::string_view rest = target.substr(scheme.size());
    std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
    if (end == 0) return false;
    request.headers["host"] = std::string(rest.substr(0, end));
    target = rest.substr(end);
    return true;
  }
  return false;
}

using Parameters = std::vector<std::pair<std::string, std::string>>;

std::optional<Parameters> ParseParameters(std::string_view all) {
  Parameters parameters;
  for (const std::string& part : Split(all, '&')) {
    if (part.empty()) continue;
    std::string_view text = part;
    std::size_t equals = std::min(text.find('='), text.size());
    std::optional<std::string> name = Decoded(text.substr(0, equals), true);
    std::optional<std::string> value = Decoded(text.substr(std::min(equals + 1, text.size())), true);
    if (!name || !value) return std::nullopt;
    parameters.emplace_back(std::move(*name), std::move(*value));
  }
  return parameters;
}

}  // namespace

const std::string& HttpRequest::Header(const std::string& lower_case_name) const {
  return FindOrEmpty(headers, lower_case_name);
}

const std::string& HttpRequest::Parameter(const std::string& name) const {
  static const std::string missing;
  auto last =
      std::find_if(query.rbegin(), query.rend(), [&](const auto& entry) { return entry.first == name; });
  return last == query.rend() ? missing : last->second;
}

std::string_view HttpReason(int status) {
  namespace http = boost::beast::http;
  http::status known = http::int_to_status(static_cast<unsigned>(status));
  return known == http::status::unknown ? std::string_view() : std::string_view(http::obsolete_reason(known));
}

HttpResponse PlainResponse(int status, std::string text) {
  HttpResponse response;
  response.status = status;
  response.body = text.empty() ? std::string(HttpReason(status)) : std::move(text);
  return response;
}

bool ParseTarget(std::string_view target, HttpRequest& request) {
  bool is_absolute = TakeAuthority(target, request);
  std::string_view path = target.substr(0, target.find('?'));
  bool is_root = is_absolute && path.empty();
  if (!is_root && !path.starts_with('/')) return false;
  std::optional<std::string> decoded = Decoded(path, false);
  if (!decoded) return false;
  request.path = is_root ? "/" : std::move(*decoded);
  if (path.size() == target.size()) return true;
  std::optional<Parameters> parameters = ParseParameters(target.substr(path.size() + 1));
  if (parameters) request.query = std::move(*parameters);
  return parameters.has_value();
}

bool TakeForm(HttpRequest& request) {
  std::string_view type = request.Header("content-type");
  if (type.substr(0, type.find(';')) != "application/x-www-form-urlencoded") return true;
  std::optional<Parameters> parameters = ParseParameters(request.body);
  if (parameters) request.query.insert(request.query.begin(), parameters->begin(), parameters->end());
  return parameters.has_value();
}

}  // namespace nodepool::net
