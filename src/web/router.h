#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/task.h"
#include "listing/listing.h"
#include "net/http/http.h"

namespace nodepool::web {

using Request = net::HttpRequest;
using Response = net::HttpResponse;

struct FieldDoc;

// The type of a field of the API, as documented.
struct JsonType {
  enum class Kind { kText, kWhole, kNumber, kFlag, kAny, kList, kMap, kObject, kEither };

  Kind kind = Kind::kAny;
  bool is_nullable = false;
  std::vector<std::string_view> words = {};           // of a text: all its possible values
  std::shared_ptr<const JsonType> entries = nullptr;  // of lists, and of maps from texts
  std::vector<FieldDoc> fields;                       // of objects
  std::vector<JsonType> alternatives = {};            // of kEither
  // Of a whole number its bounds, of a text those of its length in bytes; none: not stated.
  std::optional<std::int64_t> least = std::nullopt;
  std::optional<std::int64_t> most = std::nullopt;

  JsonType OrNull() const;
  JsonType Within(std::int64_t least, std::int64_t most) const;
};

// A field of an object, without where its value comes from.
struct FieldDoc {
  std::string key;
  JsonType type;
  std::string text;          // description, one line
  bool is_optional = false;  // left out if there is no value
  // How queries filter by it: as state, label or provider.
  listing::Kind asked_as = listing::Kind::kPlain;
  bool is_order = false;  // entries are sorted by this text, and a query can begin after one
};

JsonType Text();
JsonType OneOf(std::vector<std::string_view> words);
JsonType Whole();
JsonType Number();
JsonType Flag();
JsonType Any();  // also null
JsonType ListOf(JsonType entries);
JsonType MapOf(JsonType entries);
JsonType ObjectOf(std::vector<FieldDoc> fields);
JsonType Either(JsonType one, JsonType other);

// As JSON Schema, in the form of OpenAPI 3.1.
boost::json::object SchemaOf(const JsonType& type);

// A readable description: "text or null", "list of objects".
std::string DescriptionOf(const JsonType& type);

// An endpoint's documentation (open_api.h).
struct ParameterDoc {
  std::string name;
  std::string text;
  JsonType type;
  bool may_repeat = false;
  enum class Place { kQuery, kHeader, kPath } place = Place::kQuery;
};
struct EndpointDoc {
  std::string summary;  // one sentence
  std::vector<ParameterDoc> parameters;
  // Types of successful answers, by media type.
  std::map<std::string, JsonType> answers;
  // Statuses other than those of success, 304 and those of every endpoint.
  std::vector<int> errors;
  std::optional<JsonType> body = std::nullopt;  // the request's body, as JSON
  std::vector<int> successes = {200};           // with the same types of answers
  // The list whose entry the answer is; 204 where the entry is gone by then. Empty: none.
  std::string entry_of = {};
};

// A path that the web server serves. Handlers that do not wait for anything are plain functions, wrapped with
// Pure().
struct Endpoint {
  using Handler = std::function<Task<Response>(Request)>;
  std::string method;
  std::string path;  // exact (operations.md 6), but for segments such as "{id}", which stand for any text
  Handler handler;
  EndpointDoc doc = {};
  bool takes_any_method = false;  // answered like `method` (operations.md 6.6)
  bool is_open = false;           // to everybody, also where reading needs a token
  // Who may change something by it, or at all where it needs a token. Web pages of other sites may not in
  // either case.
  enum class Callers {
    kThisHost,  // reached under one of this host's own names
    kTokens,  // the handler asks for a token; the host may have any name, except over the loopback interface
  } callers = Callers::kThisHost;
};

// What is in the places of a pattern's segments in braces, in their order; empty if the path does not match
// the pattern. None of them is empty, "." or "..", or contains a slash.
std::vector<std::string> ParametersIn(std::string_view path, std::string_view pattern);
// The first of them; empty if there is none.
std::string ParameterIn(std::string_view path, std::string_view pattern);

Endpoint::Handler Pure(std::function<Response(const Request&)> function);

// Finds the endpoint of a request. HEAD is answered by the handler of GET.
class Router {
 public:
  explicit Router(std::vector<Endpoint> endpoints);

  // 404 for an unknown path; 405, with the path's methods, for a known one.
  Task<Response> Answer(Request request) const;

 private:
  using Methods = std::map<std::string, Endpoint>;

  const Methods* Find(const std::string& path) const;

  std::map<std::string, Methods> endpoints_;  // by path and method
  std::vector<std::string> patterns_;         // those of the paths that have a parameter
};

// An error in the format that the request accepts (operations.md 6.6): text, a page for clients that prefer
// HTML, or {"code", "title", "message"} for clients that prefer JSON; text if none is acceptable.
Response ErrorResponse(const Request& request, int status, std::string message);

// False if a web page of another site may have made the request: it has an Origin, or its Host is a name that
// anybody can point at this host. Addresses, localhost, this host's name and requests without Host are fine.
bool IsForThisHost(const net::HttpRequest& request);

// For requests that carry a token, under whatever name the server is reached: false if a web page of another
// site has made the request, by its Origin. Over the loopback interface the Host has to be this host's, too.
bool IsOfOwnOrigin(const net::HttpRequest& request);

}  // namespace nodepool::web
