#pragma once

#include <boost/json/value.hpp>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "web/api/json_type.h"
#include "web/json_body.h"

namespace nodepool::web {

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

}  // namespace nodepool::web
