#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "web/router.h"

// Reads what clients send as JSON, strictly (http-requests.md 3).
namespace nodepool::web {

inline constexpr std::size_t kMaxFieldText = 255;
inline constexpr std::int64_t kMaxHoldSeconds = 365 * 86'400;

// Error(kInvalid): "<key> is <expected>."
Error WrongValue(std::string_view key, std::string_view expected);

// The value of a key; each throws Error(kInvalid) for another one.
std::string ReadText(std::string_view key, const boost::json::value& value,
                     std::size_t limit = kMaxFieldText);
std::int64_t ReadWhole(std::string_view key, const boost::json::value& value, std::int64_t least,
                       std::int64_t most);
bool ReadFlag(std::string_view key, const boost::json::value& value);

// Takes the value of each key that there may be; throws Error(kInvalid) for a wrong one.
using BodyReaders = std::map<std::string_view, std::function<void(const boost::json::value&)>>;

// Calls the reader of each key of the body. Throws Error(kInvalid) for a body that is no object, an unknown
// key and a repeated one, and Error(kConflict) for another Content-Type than JSON's.
void ReadMembers(const Request& request, const BodyReaders& readers);

// The same for an endpoint whose body may be left out altogether.
void ReadOptionalMembers(const Request& request, const BodyReaders& readers);

// The body that `read` fills, or the error that it throws.
template <class Body>
Expected<Body> ReadBody(const std::function<void(Body&)>& read) {
  try {
    Body body{};
    read(body);
    return body;
  } catch (const Error& error) {
    return std::unexpected(error);
  }
}

// The answer to a body that could not be read: 415 for its type, else 400.
Response RefuseBody(const Request& request, const Error& error);

// An answer in JSON that no cache keeps.
Response UncachedJson(int status, std::string body);

}  // namespace nodepool::web
