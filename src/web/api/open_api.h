#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "async/loop.h"
#include "base/clock.h"
#include "listing/shown_text.h"
#include "model/json.h"
#include "web/router.h"

namespace nodepool::web {

// The fields of a resource, each declared once with its type, its description and the source of its value.
// Answers and documents are generated from the table.
template <class T>
class FieldTable {
 public:
  struct Field {
    // `get(entry)` returns a Cell, or what a Cell can be constructed from.
    template <class Get>
    Field(FieldDoc what, Get get)
        : doc(std::move(what)), value([get](const T& entry) -> Cell { return get(entry); }) {}

    FieldDoc doc;
    std::function<Cell(const T&)> value;  // null: an optional field is left out
  };

  explicit FieldTable(std::vector<Field> fields) : fields_(std::move(fields)) {
    for (const Field& field : fields_) beginnings_.push_back('"' + field.doc.key + "\":");
  }

  const std::vector<Field>& fields() const { return fields_; }
  JsonType type() const {
    std::vector<FieldDoc> docs;
    for (const Field& field : fields_) docs.push_back(field.doc);
    return ObjectOf(std::move(docs));
  }

  // The text by which entries are sorted; nullopt: there is none.
  std::optional<std::string> OrderOf(const T& entry) const {
    auto field = std::ranges::find(fields_, true, [](const Field& each) { return each.doc.is_order; });
    if (field == fields_.end()) return std::nullopt;
    return std::string(field->value(entry).text().value());
  }

  // Requires that no field is an age.
  boost::json::object ToJson(const T& entry) const {
    boost::json::object object;
    for (const Field& field : fields_) {
      Cell value = field.value(entry);
      if (!field.doc.is_optional || !value.is_null()) object[field.doc.key] = value.Copy();
    }
    return object;
  }

  // Appends the same as text, without creating the object, and with ages.
  void Append(listing::AgedText& out, const T& entry) const {
    std::string& text = out.text();
    AppendFields(text, entry, [&](std::size_t i, WallTime since) {
      text += beginnings_[i];
      out.AddAge(since, listing::AgedText::Style::kSeconds);
    });
  }

  // The same with times in place of ages, in seconds since the epoch: `state_since` for `state_age`.
  std::string WithTimes(const T& entry) const {
    std::string text;
    AppendFields(text, entry, [&](std::size_t i, WallTime since) {
      const std::string& key = fields_[i].doc.key;
      text += fmt::format("\"{}since\":{:.3f}", key.substr(0, key.size() - std::string_view("age").size()),
                          ToSeconds(since));
    });
    return text;
  }

 private:
  // `append_time(i, since)` appends field i where it is a time.
  template <class AppendTime>
  void AppendFields(std::string& text, const T& entry, AppendTime append_time) const {
    text += '{';
    bool is_first = true;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      Cell value = fields_[i].value(entry);
      if (fields_[i].doc.is_optional && value.is_null()) continue;
      if (!std::exchange(is_first, false)) text += ',';
      if (std::optional<WallTime> since = value.since()) {
        append_time(i, *since);
      } else {
        text += beginnings_[i];
        AppendJson(text, value, JsonStyle::kCompact);
      }
    }
    text += '}';
  }

  std::vector<Field> fields_;
  std::vector<std::string> beginnings_;
};

// The OpenAPI 3.1 document of these endpoints.
boost::json::object OpenApi(const std::vector<Endpoint>& endpoints, const std::string& version);

// GET /api/v1/openapi.json, which describes the given endpoints and itself. The loop outlives it.
Endpoint OpenApiEndpoint(const std::vector<Endpoint>& endpoints, const std::string& version, Loop& loop);

// The endpoints below /api/ in Markdown, for build/docs/reference/api.md.
std::string ApiReference(const std::vector<Endpoint>& endpoints);

}  // namespace nodepool::web
