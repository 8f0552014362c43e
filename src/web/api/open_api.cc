#include "web/api/open_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <cctype>
#include <set>

#include "base/text.h"
#include "web/lists/recent_answers.h"

namespace nodepool::web {

namespace {

namespace json = boost::json;

constexpr int kTooLarge = 413;
constexpr const char* kTokenScheme = "token";
constexpr std::string_view kApi = "/api/v1/";
constexpr const char* kErrorReference = "#/components/schemas/Error";

json::object ErrorSchema() {
  return SchemaOf(ObjectOf({{"message", Text(), "for people"},
                            {"code", Text(), "status and reason, \"404 Not Found\""},
                            {"title", Text(), "the reason, \"Not Found\""}}));
}

std::string_view PlaceOf(const ParameterDoc& parameter) {
  switch (parameter.place) {
    case ParameterDoc::Place::kQuery:
      return "query";
    case ParameterDoc::Place::kHeader:
      return "header";
    case ParameterDoc::Place::kPath:
      return "path";
  }
  return "";
}

json::array ParametersSchema(const std::vector<ParameterDoc>& parameters) {
  json::array list;
  for (const ParameterDoc& parameter : parameters) {
    JsonType type = parameter.may_repeat ? ListOf(parameter.type) : parameter.type;
    json::object& entry = list.emplace_back(json::object{{"name", parameter.name},
                                                         {"in", PlaceOf(parameter)},
                                                         {"description", parameter.text},
                                                         {"schema", SchemaOf(type)}})
                              .get_object();
    if (parameter.place == ParameterDoc::Place::kPath) entry["required"] = true;
  }
  return list;
}

json::object ErrorAnswer(int status) {
  json::object as_json{{"schema", {{"$ref", kErrorReference}}}};
  json::object as_text{{"schema", {{"type", "string"}}}};
  json::object content{{"text/plain", as_text}};
  if (status != kTooLarge) {  // which is answered before anything is read
    content["application/json"] = std::move(as_json);
    content["text/html"] = std::move(as_text);
  }
  return {{"description", net::HttpReason(status)}, {"content", std::move(content)}};
}

// Statuses of every endpoint of its kind: refusals where reading needs a token (http-requests.md 2.3), the
// body's size, and the answer that has not changed.
std::vector<int> CommonStatuses(const Endpoint& endpoint) {
  std::vector<int> statuses;
  if (!endpoint.is_open) statuses = {401, 403, 429, 503};
  if (endpoint.doc.body) statuses.push_back(kTooLarge);
  return statuses;
}

bool IsGivenAgain(const Endpoint& endpoint) {
  return endpoint.method == "GET" && endpoint.callers == Endpoint::Callers::kThisHost &&
         !endpoint.doc.answers.contains("text/event-stream");
}

json::object Answers(const Endpoint& endpoint) {
  const EndpointDoc& doc = endpoint.doc;
  json::object content;
  for (const auto& [media, type] : doc.answers) content[media] = json::object{{"schema", SchemaOf(type)}};
  json::object answers;
  for (int status : doc.successes) {
    json::object success{{"description", net::HttpReason(status)}};
    if (!content.empty()) success["content"] = content;
    answers[std::to_string(status)] = std::move(success);
  }
  // The entry may be gone by the time of the answer.
  if (!doc.entry_of.empty()) answers["204"] = json::object{{"description", net::HttpReason(204)}};
  if (IsGivenAgain(endpoint)) answers["304"] = json::object{{"description", net::HttpReason(304)}};
  std::set<int> errors(doc.errors.begin(), doc.errors.end());
  for (int status : CommonStatuses(endpoint)) errors.insert(status);
  for (int status : errors) answers[std::to_string(status)] = ErrorAnswer(status);
  return answers;
}

// "postRequestsByIdRenew": generators name functions by it.
std::string OperationId(const Endpoint& endpoint) {
  std::string path = endpoint.path;
  if (path.starts_with(kApi)) path.erase(0, kApi.size());
  std::string id = Lower(endpoint.method);
  bool begins_word = true;
  for (std::size_t i = 0; i < path.size(); ++i) {
    bool is_letter = std::isalnum(static_cast<unsigned char>(path[i])) != 0;
    if (path[i] == '{') id += "By";
    if (is_letter) id += static_cast<char>(begins_word ? std::toupper(path[i]) : path[i]);
    begins_word = !is_letter;
  }
  return id;
}

// The empty entry says that it may do without.
json::array SecurityOf(const Endpoint& endpoint) {
  json::array schemes;
  if (endpoint.callers != Endpoint::Callers::kTokens) schemes.push_back(json::object());
  if (!endpoint.is_open) schemes.push_back(json::object{{kTokenScheme, json::array()}});
  return schemes;
}

// Else the body may be left out.
bool NeedsMembers(const JsonType& body) {
  return std::ranges::any_of(body.fields, [](const FieldDoc& field) { return !field.is_optional; });
}

// One row for each field; fields of nested objects follow their parent.
void AppendFieldRows(std::string& out, const std::vector<FieldDoc>& fields, const std::string& parent) {
  for (const FieldDoc& field : fields) {
    out += fmt::format("| `{}{}` | {}{} | {} |\n", parent, field.key, DescriptionOf(field.type),
                       field.is_optional ? "; may be missing" : "", field.text);
    bool is_list = field.type.kind == JsonType::Kind::kList;
    const JsonType& inner = is_list ? *field.type.entries : field.type;
    AppendFieldRows(out, inner.fields, parent + field.key + (is_list ? "[]." : "."));
  }
}

void AppendEndpoint(std::string& out, const Endpoint& endpoint) {
  out += fmt::format("## {} {}\n\n{}\n\n", endpoint.method, endpoint.path, endpoint.doc.summary);
  if (!endpoint.doc.parameters.empty()) {
    out += "| parameter | values | |\n|---|---|---|\n";
    for (const ParameterDoc& parameter : endpoint.doc.parameters) {
      out += fmt::format("| `{}` | {} | {}{} |\n", parameter.name, DescriptionOf(parameter.type),
                         parameter.text, parameter.may_repeat ? "; may be repeated" : "");
    }
    out += '\n';
  }
  if (endpoint.doc.body) {
    out += "To be sent:\n\n| field | type | |\n|---|---|---|\n";
    AppendFieldRows(out, endpoint.doc.body->fields, "");
    out += "\nThe answer:\n\n";
  }
  if (!endpoint.doc.entry_of.empty()) {
    out += fmt::format("An entry of {}.\n\n", endpoint.doc.entry_of);
    return;
  }
  auto answer = endpoint.doc.answers.find("application/json");
  if (answer == endpoint.doc.answers.end()) return;
  out += "| field | type | |\n|---|---|---|\n";
  AppendFieldRows(out, answer->second.fields, "");
  out += '\n';
}

}  // namespace

json::object OpenApi(const std::vector<Endpoint>& endpoints, const std::string& version) {
  json::object paths;
  for (const Endpoint& endpoint : endpoints) {
    std::string method = Lower(endpoint.method);
    json::object operation{{"operationId", OperationId(endpoint)},
                           {"summary", endpoint.doc.summary},
                           {"responses", Answers(endpoint)}};
    if (!endpoint.doc.parameters.empty()) operation["parameters"] = ParametersSchema(endpoint.doc.parameters);
    if (endpoint.doc.body) {
      json::object schema{{"schema", SchemaOf(*endpoint.doc.body)}};
      operation["requestBody"] = json::object{{"required", NeedsMembers(*endpoint.doc.body)},
                                              {"content", {{"application/json", std::move(schema)}}}};
    }
    operation["security"] = SecurityOf(endpoint);
    json::value& path = paths[endpoint.path];
    if (!path.is_object()) path.emplace_object();
    path.get_object()[method] = std::move(operation);
  }
  return {{"openapi", "3.1.0"},
          {"info", {{"title", "Nodepool"}, {"version", version}}},
          {"paths", std::move(paths)},
          {"components",
           {{"schemas", {{"Error", ErrorSchema()}}},
            {"securitySchemes", {{kTokenScheme, {{"type", "http"}, {"scheme", "bearer"}}}}}}}};
}

Endpoint OpenApiEndpoint(const std::vector<Endpoint>& endpoints, const std::string& version, Loop& loop) {
  Endpoint own{"GET",
               "/api/v1/openapi.json",
               nullptr,
               {"This document, in the form of OpenAPI.", {}, {{"application/json", MapOf(Any())}}, {}}};
  std::vector<Endpoint> all = endpoints;
  all.push_back(own);
  auto text = std::make_shared<const std::string>(json::serialize(OpenApi(all, version)));
  own.handler = Pure([text, &loop](const Request&) {
    Response response;
    response.content_type = "application/json";
    response.shared_body = text;
    AddCachingHeaders(response, loop.Now());
    return response;
  });
  return own;
}

std::string ApiReference(const std::vector<Endpoint>& endpoints) {
  std::string page;
  for (const Endpoint& endpoint : endpoints) {
    if (endpoint.path.starts_with("/api/") && endpoint.path != "/api/v1/openapi.json")
      AppendEndpoint(page, endpoint);
  }
  return page;
}

}  // namespace nodepool::web
