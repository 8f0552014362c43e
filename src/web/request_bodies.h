#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "launcher/leases/lease_desk.h"
#include "model/job.h"
#include "operate/actions.h"
#include "web/router.h"

namespace nodepool::web {

// Reads what clients send as JSON, strictly (http-requests.md 3).

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

// The keys of a body that clients send, each declared once with its type, its bounds, its description and
// what it goes into: bodies are read by the table, and documents are generated from it. The sister of
// FieldTable, which answers are written by.
template <class T>
class BodyTable {
 public:
  struct Key {
    FieldDoc doc;  // one that is not optional has to be there
    // Throws Error(kInvalid) for a wrong value.
    std::function<void(const boost::json::value& value, T& body)> take;

    Key Optional() && {
      doc.is_optional = true;
      return std::move(*this);
    }
  };

  // A required key; `into` is a member, or a function that returns one: of a text a string, an id or an
  // optional one.
  template <class Into>
  static Key OfText(std::string key, std::string text, Into into, std::size_t limit = kMaxFieldText) {
    auto take = [key, into, limit](const boost::json::value& value, T& body) {
      Put(std::invoke(into, body), ReadText(key, value, limit));
    };
    return {{key, Text().Within(1, static_cast<std::int64_t>(limit)), std::move(text)}, std::move(take)};
  }
  template <class Into>
  static Key OfWhole(std::string key, std::int64_t least, std::int64_t most, std::string text, Into into) {
    auto take = [key, into, least, most](const boost::json::value& value, T& body) {
      Put(std::invoke(into, body), ReadWhole(key, value, least, most));
    };
    return {{key, Whole().Within(least, most), std::move(text)}, std::move(take)};
  }
  template <class Into>
  static Key OfFlag(std::string key, std::string text, Into into) {
    auto take = [key, into](const boost::json::value& value, T& body) {
      Put(std::invoke(into, body), ReadFlag(key, value));
    };
    return {{key, Flag(), std::move(text)}, std::move(take)};
  }
  explicit BodyTable(std::vector<Key> keys) : keys_(std::move(keys)) {}

  JsonType type() const {
    std::vector<FieldDoc> docs;
    for (const Key& key : keys_) docs.push_back(key.doc);
    return ObjectOf(std::move(docs));
  }

  // Reads the body, which may be left out if no key is required. Throws Error(kInvalid), which names the key,
  // and as ReadMembers does.
  void Take(const Request& request, T& body) const {
    std::set<std::string> seen;
    BodyReaders readers;
    bool is_required = false;
    for (const Key& key : keys_) {
      is_required |= !key.doc.is_optional;
      readers[key.doc.key] = [&](const boost::json::value& value) {
        key.take(value, body);
        seen.insert(key.doc.key);
      };
    }
    is_required ? ReadMembers(request, readers) : ReadOptionalMembers(request, readers);
    for (const Key& key : keys_) {
      if (!key.doc.is_optional && !seen.contains(key.doc.key))
        throw Error(Verdict::kInvalid, key.doc.key + " is required.");
    }
  }

 private:
  template <class Member, class Value>
  static void Put(Member& member, Value value) {
    member = static_cast<Member>(std::move(value));
  }

  std::vector<Key> keys_;
};

// What an operator sends with an action, read strictly (http-actions.md 2): an unknown key, a repeated one, a
// wrong value or a parameter that there is not is an Error(kInvalid) that names it. Every body may be left
// out.

// Of POST /api/v1/nodes/{id}/hold.
Expected<operate::HoldOrder> ReadHoldOrder(const Request& request);
JsonType HoldOrderType();

// Of POST /api/v1/providers/{provider}/pause.
struct PauseOrder {
  std::optional<std::string> reason;
  bool is_drained = false;
};
Expected<PauseOrder> ReadPauseOrder(const Request& request);
JsonType PauseOrderType();

// Of POST /api/v1/jobs, whose body has to be there.
Expected<JobRule> ReadJobRule(const Request& request);
JsonType JobRuleType();

// Of the other actions, which take nothing.
Expected<void> ReadNothing(const Request& request);

// The parameter `force`, true or false.
Expected<bool> ReadForce(const Request& request);

// What a client sends, read strictly (http-requests.md 3): an unknown key, a repeated one, or a wrong value
// is an Error(kInvalid) that names the key.

// Of POST /api/v1/requests. The client, its limits and the idempotency key are not set, and the priority only
// if it is sent.
struct OrderBody {
  launcher::LeaseOrder order;
  std::optional<int> priority;
};
Expected<OrderBody> ReadOrderBody(const Request& request);
JsonType OrderBodyType();

// Of POST /api/v1/requests/{id}/hold.
struct HoldBody {
  NodeId node;
  std::string reason;
  std::optional<std::int64_t> seconds;
};
Expected<HoldBody> ReadHoldBody(const Request& request);
JsonType HoldBodyType();

// The Idempotency-Key header; empty: there is none.
Expected<std::string> ReadIdempotencyKey(const Request& request);
// The parameter `wait`, in seconds.
Expected<Duration> ReadWait(const Request& request);

// Puts what the token decides into the order: client, tenant, priority, requestor, number of nodes. Returns
// why the token does not allow what is asked for; empty: it does.
std::string ApplyToken(const config::WebToken& token, OrderBody& body);

}  // namespace nodepool::web
