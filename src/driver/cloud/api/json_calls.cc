#include "driver/cloud/api/json_calls.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "base/text.h"
#include "driver/cloud/api/url_text.h"
#include "model/json.h"

namespace nodepool::driver::cloud::api {

namespace json = boost::json;

namespace {

std::string NextOf(std::string_view header) {
  std::size_t relation = header.find("rel=\"next\"");
  if (relation == std::string_view::npos) relation = header.find("rel=next");
  if (relation == std::string_view::npos) return "";
  std::size_t open = header.rfind('<', relation);
  std::size_t close = header.find('>', open);
  if (open == std::string_view::npos || close == std::string_view::npos) return "";
  return std::string(header.substr(open + 1, close - open - 1));
}

}  // namespace

std::string NextLink(const net::HttpHeaders& headers) {
  for (const auto& [name, value] : headers) {
    if (name != "link") continue;
    std::string next = NextOf(value);
    if (!next.empty()) return next;
  }
  return "";
}

namespace {

json::object TakeObject(ApiReply& reply, const std::string& action) {
  if (!reply.body.is_object()) throw Error(Verdict::kRetry, action + " was answered without an object");
  return std::move(reply.body.get_object());
}

std::string NextPageOf(const json::object& answer, const ListFormat& format) {
  const json::object* link = ObjectIn(answer, format.next);
  return link == nullptr ? TextIn(answer, format.next) : TextIn(*link, "href");
}

}  // namespace

Task<json::object> CallForObject(ApiClient& client, ApiRequest request) {
  std::string action = request.name;
  ApiReply reply = co_await client.CallJson(std::move(request));
  co_return TakeObject(reply, action);
}

void SetBody(const json::object& body, net::HttpCall& call) {
  call.headers.emplace_back("Content-Type", "application/json");
  call.body = json::serialize(body);
}

Task<ListPage> CallForPage(ApiClient& client, ApiRequest request, ListFormat format, std::string next) {
  std::string action = request.name;
  std::string& url = request.call.url;
  bool is_url = *format.parameter == '\0';
  if (!next.empty() && is_url) url = next;
  if (!next.empty() && !is_url)
    url += (QueryOf(url).empty() ? "?" : "&") + std::string(format.parameter) + "=" + PercentEncoded(next);
  ApiReply reply = co_await client.CallJson(std::move(request));
  ListPage page{TakeObject(reply, action), "", reply.bytes};
  std::string fault = format.fault == nullptr ? "" : format.fault(page.answer);
  if (!fault.empty()) throw Error(Verdict::kRetry, action + ": " + fault);
  page.next = NextPageOf(page.answer, format);
  co_return page;
}

namespace {

json::value OrNull(const std::optional<std::string>& text) {
  return text ? json::value(*text) : json::value(nullptr);
}

json::object Fields(const RequestId& id, const NodeRequest& request) {
  json::array labels;
  for (const LabelName& label : request.node_types) labels.emplace_back(label.value);
  json::object fields;
  fields["id"] = id.value;
  fields["labels"] = std::move(labels);
  fields["requestor"] = OrNull(request.requestor);
  fields["requestor_data"] = request.requestor_data.value();
  fields["relative_priority"] = NumberValue(request.relative_priority);
  fields["event_id"] = OrNull(request.event_id);
  fields["created_time"] = request.created_time ? json::value(ToSeconds(*request.created_time)) : nullptr;
  fields["tenant_name"] = OrNull(request.tenant_name);
  return fields;
}

// Formatted like Python's repr(); with `is_outer`, texts like str(), without quotes.
std::string PythonText(const json::value& value, bool is_outer) {
  if (value.is_null()) return "None";
  if (value.is_bool()) return value.as_bool() ? "True" : "False";
  if (value.is_number()) return WriteJson(value);
  if (value.is_string()) {
    std::string text(value.as_string());
    if (is_outer) return text;
    const char* quote =
        text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? "\"" : "'";
    std::string escaped;
    for (char c : text) {
      if (c == '\\' || c == *quote) escaped += '\\';
      escaped += c;
    }
    return quote + escaped + quote;
  }
  std::vector<std::string> parts;
  if (value.is_array()) {
    for (const json::value& item : value.as_array()) parts.push_back(PythonText(item, false));
    return "[" + Join(parts, ", ") + "]";
  }
  for (const auto& [key, member] : value.as_object()) {
    parts.push_back(PythonText(json::value(key), false) + ": " + PythonText(member, false));
  }
  return "{" + Join(parts, ", ") + "}";
}

[[noreturn]] void Fail(const std::string& what) { throw Error(Verdict::kInvalid, what); }

const json::value& Item(const json::value& of, const std::string& key) {
  if (of.is_object()) {
    if (const json::value* member = of.as_object().if_contains(key)) return *member;
  }
  if (of.is_array()) {
    std::size_t index = 0;
    auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
    bool is_index = error == std::errc() && end == key.data() + key.size();
    if (is_index && index < of.as_array().size()) return of.as_array()[index];
  }
  Fail("there is no " + Excerpt(key));
}

// "request.requestor_data[key][other]"
std::string Resolve(const std::string& field, const json::object& fields) {
  constexpr std::string_view kObject = "request.";
  if (!field.starts_with(kObject)) Fail("only {request...} can be used, not {" + Excerpt(field) + "}");
  std::string name = field.substr(kObject.size(), field.find('[') - kObject.size());
  const json::value* value = fields.if_contains(name);
  if (value == nullptr) Fail("a request has no " + Excerpt(name));
  std::size_t at = kObject.size() + name.size();
  while (at < field.size()) {
    std::size_t close = field.find(']', at);
    if (field[at] != '[' || close == std::string::npos) Fail("{" + Excerpt(field) + "} is malformed");
    value = &Item(*value, field.substr(at + 1, close - at - 1));
    at = close + 1;
  }
  return PythonText(*value, true);
}

}  // namespace

std::string FillTemplate(const std::string& text, const RequestId& id, const NodeRequest& request) {
  json::object fields = Fields(id, request);
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    bool is_double = at + 1 < text.size() && text[at + 1] == c;
    if ((c == '{' || c == '}') && is_double) {
      result += c;
      ++at;
    } else if (c == '{') {
      std::size_t close = text.find('}', at);
      if (close == std::string::npos) Fail("a brace is not closed");
      result += Resolve(text.substr(at + 1, close - at - 1), fields);
      at = close;
    } else if (c == '}') {
      Fail("a brace was not opened");
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace nodepool::driver::cloud::api
