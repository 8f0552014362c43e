#include "web/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/host_name.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "web/lists/recent_answers.h"

namespace nodepool::web {

namespace {

namespace json = boost::json;

JsonType Simple(JsonType::Kind kind) {
  JsonType type;
  type.kind = kind;
  return type;
}

JsonType Collection(JsonType::Kind kind, JsonType entries) {
  JsonType type = Simple(kind);
  type.entries = std::make_shared<JsonType>(std::move(entries));
  return type;
}

struct Name {
  JsonType::Kind kind;
  std::string_view in_schema;
  std::string_view readable;
};
constexpr Name kNames[] = {{JsonType::Kind::kText, "string", "text"},
                           {JsonType::Kind::kWhole, "integer", "whole number"},
                           {JsonType::Kind::kNumber, "number", "number"},
                           {JsonType::Kind::kFlag, "boolean", "true or false"},
                           {JsonType::Kind::kAny, "", "any value"},
                           {JsonType::Kind::kList, "array", "list"},
                           {JsonType::Kind::kMap, "object", "object"},
                           {JsonType::Kind::kObject, "object", "object"},
                           {JsonType::Kind::kEither, "", ""}};

const Name& NameOf(JsonType::Kind kind) { return *std::ranges::find(kNames, kind, &Name::kind); }

void DescribeObject(const std::vector<FieldDoc>& fields, json::object& schema) {
  json::object properties;
  json::array required;
  for (const FieldDoc& field : fields) {
    json::object property = SchemaOf(field.type);
    if (!field.text.empty()) property["description"] = field.text;
    properties[field.key] = std::move(property);
    if (!field.is_optional) required.emplace_back(field.key);
  }
  schema["properties"] = std::move(properties);
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
}

}  // namespace

JsonType JsonType::OrNull() const {
  JsonType type = *this;
  type.is_nullable = true;
  return type;
}

JsonType JsonType::Within(std::int64_t smallest, std::int64_t largest) const {
  JsonType type = *this;
  type.least = smallest;
  type.most = largest;
  return type;
}

JsonType Text() { return Simple(JsonType::Kind::kText); }
JsonType OneOf(std::vector<std::string_view> words) {
  JsonType type = Text();
  type.words = std::move(words);
  return type;
}
JsonType Whole() { return Simple(JsonType::Kind::kWhole); }
JsonType Number() { return Simple(JsonType::Kind::kNumber); }
JsonType Flag() { return Simple(JsonType::Kind::kFlag); }
JsonType Any() { return Simple(JsonType::Kind::kAny); }
JsonType ListOf(JsonType entries) { return Collection(JsonType::Kind::kList, std::move(entries)); }
JsonType MapOf(JsonType entries) { return Collection(JsonType::Kind::kMap, std::move(entries)); }
JsonType ObjectOf(std::vector<FieldDoc> fields) {
  JsonType type = Simple(JsonType::Kind::kObject);
  type.fields = std::move(fields);
  return type;
}

JsonType Either(JsonType one, JsonType other) {
  JsonType type = Simple(JsonType::Kind::kEither);
  type.alternatives = {std::move(one), std::move(other)};
  return type;
}

json::object SchemaOf(const JsonType& type) {
  json::object schema;
  if (type.kind == JsonType::Kind::kEither) {
    json::array& schemas = schema["oneOf"].emplace_array();
    for (const JsonType& alternative : type.alternatives) schemas.push_back(SchemaOf(alternative));
    return schema;
  }
  if (type.kind == JsonType::Kind::kAny) return schema;
  std::string_view name = NameOf(type.kind).in_schema;
  schema["type"] = type.is_nullable ? json::value(json::array{name, "null"}) : json::value(name);
  if (!type.words.empty()) {
    json::array words(type.words.begin(), type.words.end());
    if (type.is_nullable) words.emplace_back(nullptr);
    schema["enum"] = std::move(words);
  }
  // A text has no more characters than bytes.
  bool is_text = type.kind == JsonType::Kind::kText;
  if (type.least) schema[is_text ? "minLength" : "minimum"] = *type.least;
  if (type.most) schema[is_text ? "maxLength" : "maximum"] = *type.most;
  if (type.kind == JsonType::Kind::kList) schema["items"] = SchemaOf(*type.entries);
  if (type.kind == JsonType::Kind::kMap) schema["additionalProperties"] = SchemaOf(*type.entries);
  if (type.kind == JsonType::Kind::kObject) DescribeObject(type.fields, schema);
  return schema;
}

std::string DescriptionOf(const JsonType& type) {
  if (type.kind == JsonType::Kind::kEither)
    return DescriptionOf(type.alternatives.front()) + ", or " + DescriptionOf(type.alternatives.back());
  std::string text(NameOf(type.kind).readable);
  if (type.kind == JsonType::Kind::kList) text += " of " + DescriptionOf(*type.entries);
  if (type.kind == JsonType::Kind::kMap) text += " with values: " + DescriptionOf(*type.entries);
  if (type.most && type.kind == JsonType::Kind::kText)
    text += fmt::format(" of at most {} bytes", *type.most);
  if (type.most && type.kind == JsonType::Kind::kWhole)
    text += fmt::format(" from {} to {}", *type.least, *type.most);
  if (!type.words.empty()) text = Join({type.words.begin(), type.words.end()}, ", ");
  return type.is_nullable ? text + " or null" : text;
}

namespace {

bool IsPattern(std::string_view path) { return path.find("/{") != path.npos; }

// What needs a token is refused to pages of other sites as a whole, else what changes something.
bool MayBeOfAnotherSite(const Request& request, const Endpoint& endpoint) {
  if (endpoint.callers == Endpoint::Callers::kTokens) return !IsOfOwnOrigin(request);
  return endpoint.method != "GET" && !IsForThisHost(request);
}

Task<Response> Call(std::function<Response(const Request&)> function, Request request) {
  co_return function(request);
}

Task<Response> AtOnce(Response response) { co_return response; }

std::string HtmlOf(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string Page(const std::string& title, const std::string& message) {
  return fmt::format(
      "<html>\n<head><title>{0}</title></head>\n<body>\n<h1>{0}</h1>\n<p>{1}</p>\n</body>\n</html>\n", title,
      HtmlOf(message));
}

}  // namespace

Endpoint::Handler Pure(std::function<Response(const Request&)> function) {
  return [function = std::move(function)](Request request) { return Call(function, std::move(request)); };
}

std::vector<std::string> ParametersIn(std::string_view path, std::string_view pattern) {
  std::vector<std::string> given = Split(path, '/');
  std::vector<std::string> wanted = Split(pattern, '/');
  if (given.size() != wanted.size()) return {};
  std::vector<std::string> parameters;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (wanted[i].starts_with('{')) {
      if (given[i].empty() || given[i] == "." || given[i] == "..") return {};
      parameters.push_back(std::move(given[i]));
    } else if (given[i] != wanted[i]) {
      return {};
    }
  }
  return parameters;
}

std::string ParameterIn(std::string_view path, std::string_view pattern) {
  std::vector<std::string> parameters = ParametersIn(path, pattern);
  return parameters.empty() ? "" : std::move(parameters.front());
}

Router::Router(std::vector<Endpoint> endpoints) {
  for (Endpoint& endpoint : endpoints) {
    Methods& methods = endpoints_[endpoint.path];
    if (methods.empty() && IsPattern(endpoint.path)) patterns_.push_back(endpoint.path);
    std::string method = endpoint.method;
    methods.emplace(method, std::move(endpoint));
  }
}

// An exact path comes before patterns.
const Router::Methods* Router::Find(const std::string& path) const {
  auto exact = endpoints_.find(path);
  if (exact != endpoints_.end() && !IsPattern(path)) return &exact->second;
  for (const std::string& pattern : patterns_) {
    if (!ParametersIn(path, pattern).empty()) return &endpoints_.at(pattern);
  }
  return nullptr;
}

Task<Response> Router::Answer(Request request) const {
  const Methods* methods = Find(request.path);
  if (methods == nullptr) {
    return AtOnce(ErrorResponse(request, 404, fmt::format("There is nothing at {}.", Excerpt(request.path))));
  }
  auto endpoint = methods->find(request.method == "HEAD" ? "GET" : request.method);
  if (endpoint != methods->end()) {
    if (MayBeOfAnotherSite(request, endpoint->second))
      return AtOnce(ErrorResponse(request, 403, "Web pages of others may change nothing here."));
    return endpoint->second.handler(std::move(request));
  }
  auto any = std::ranges::find_if(*methods, [](const auto& each) { return each.second.takes_any_method; });
  if (any != methods->end()) {
    if (!net::TakeForm(request)) return AtOnce(ErrorResponse(request, 400, "The form is malformed."));
    return any->second.handler(std::move(request));
  }
  std::vector<std::string> allowed;
  for (const auto& [method, found] : *methods) {
    allowed.push_back(method);
    if (method == "GET") allowed.push_back("HEAD");
  }
  Response response =
      ErrorResponse(request, 405, fmt::format("{} takes {}.", request.path, Join(allowed, ", ")));
  response.headers.emplace_back("Allow", Join(allowed, ", "));
  return AtOnce(std::move(response));
}

Response ErrorResponse(const Request& request, int status, std::string message) {
  Response response;
  response.status = status;
  std::string title = fmt::format("{} {}", status, net::HttpReason(status));
  static constexpr std::string_view kOffers[] = {"text/plain", "text/html", "application/json"};
  std::string_view type = ChooseType(AcceptOf(request), kOffers).value_or(kOffers[0]);
  if (type == "application/json") {
    response.content_type = type;
    boost::json::object body{{"message", message}, {"code", title}, {"title", net::HttpReason(status)}};
    response.body = boost::json::serialize(body);
  } else if (type == "text/html") {
    response.content_type = "text/html; charset=UTF-8";
    response.body = Page(title, message);
  } else {
    response.body = fmt::format("{}\n\n{}\n", title, message);
  }
  return response;
}

namespace {

bool IsAddress(const std::string& name) {
  boost::system::error_code failed;
  boost::asio::ip::make_address(name, failed);
  return !failed;
}

// In lower case; of "name", "name:8005", "[::1]:8005". nullopt: it is none of these.
std::optional<std::string> HostNameIn(std::string_view host) {
  bool is_bracketed = host.starts_with('[');
  std::size_t end = host.find(is_bracketed ? ']' : ':');
  if (is_bracketed && end == host.npos) return std::nullopt;
  std::string name = Lower(is_bracketed ? host.substr(1, end - 1) : host.substr(0, end));
  std::string_view port = host.substr(std::min(host.size(), is_bracketed ? end + 1 : end));
  bool is_port =
      port.empty() || (port.starts_with(':') && port.find_first_not_of("0123456789", 1) == port.npos);
  if (!is_port || (is_bracketed && !IsAddress(name))) return std::nullopt;
  return name;
}

bool IsOwnName(const std::string& name) {
  boost::system::error_code failed;
  std::string own = Lower(boost::asio::ip::host_name(failed));
  return name == own || name == own.substr(0, own.find('.'));
}

bool HasOwnHost(const net::HttpRequest& request) {
  const std::string& host = request.Header("host");
  if (host.empty()) return true;
  std::optional<std::string> name = HostNameIn(host);
  return name && (*name == "localhost" || IsAddress(*name) || IsOwnName(*name));
}

}  // namespace

bool IsForThisHost(const net::HttpRequest& request) {
  return request.Header("origin").empty() && HasOwnHost(request);
}

bool IsOfOwnOrigin(const net::HttpRequest& request) {
  const std::string& origin = request.Header("origin");
  const std::string& host = request.Header("host");
  bool is_own =
      origin.empty() || (!host.empty() && (origin == "http://" + host || origin == "https://" + host));
  return is_own && (!request.is_from_this_host || HasOwnHost(request));
}

}  // namespace nodepool::web
