#include "web/json_body.h"

#include <fmt/format.h>

#include "base/text.h"
#include "model/json.h"
#include "model/json_scanner.h"

namespace nodepool::web {
namespace {

namespace json = boost::json;

void RequireJson(const Request& request) {
  std::string type = Lower(request.Header("content-type"));
  if (Trim(type.substr(0, type.find(';'))) != "application/json")
    throw Error(Verdict::kConflict, "The body is to be sent as application/json.");
}

}  // namespace

Error WrongValue(std::string_view key, std::string_view expected) {
  return Error(Verdict::kInvalid, fmt::format("{} is {}.", key, expected));
}

std::string ReadText(std::string_view key, const json::value& value, std::size_t limit) {
  bool is_good = value.is_string() && !value.as_string().empty() && value.as_string().size() <= limit;
  if (!is_good) throw WrongValue(key, fmt::format("a text of 1 to {} bytes", limit));
  return std::string(value.as_string());
}

std::int64_t ReadWhole(std::string_view key, const json::value& value, std::int64_t least,
                       std::int64_t most) {
  const std::int64_t* number = value.if_int64();
  if (number == nullptr || *number < least || *number > most)
    throw WrongValue(key, fmt::format("a whole number from {} to {}", least, most));
  return *number;
}

bool ReadFlag(std::string_view key, const json::value& value) {
  const bool* flag = value.if_bool();
  if (flag == nullptr) throw WrongValue(key, "true or false");
  return *flag;
}

void ReadMembers(const Request& request, const BodyReaders& readers) {
  RequireJson(request);
  JsonScanner in(request.body);
  std::map<std::string, std::string_view> members;
  auto take = [&](std::string_view written_key) {
    std::string key = DecodeJsonText(written_key);
    if (!readers.contains(key)) {
      throw Error(Verdict::kInvalid, fmt::format("There is no key \"{}\" here.", Excerpt(key)));
    }
    auto [member, is_new] = members.try_emplace(key);
    if (!is_new) throw Error(Verdict::kInvalid, fmt::format("{} is there twice.", key));
    return in.Value(member->second);
  };
  if (in.Next() != '{') throw Error(Verdict::kInvalid, "The body is not a JSON object.");
  if (!in.Members(take) || !in.End()) throw in.error().In("The body");
  for (const auto& [key, written] : members) readers.at(key)(JsonValueOf(written));
}

void ReadOptionalMembers(const Request& request, const BodyReaders& readers) {
  if (!request.body.empty()) ReadMembers(request, readers);
}

Response RefuseBody(const Request& request, const Error& error) {
  return ErrorResponse(request, error.verdict() == Verdict::kConflict ? 415 : 400, error.message());
}

Response UncachedJson(int status, std::string body) {
  Response response;
  response.status = status;
  response.content_type = "application/json";
  response.headers.emplace_back("Cache-Control", "no-store");
  response.body = std::move(body);
  return response;
}

}  // namespace nodepool::web
