#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "listing/aged_text.h"
#include "model/json.h"
#include "web/api/json_type.h"

namespace nodepool::web {

// The fields of a resource: each declared once with its type, its words for people and
// where its value comes from. Answers and documents are made from the table.
template <class T>
class FieldTable {
 public:
  struct Field {
    // `get(entry)` makes a Cell, or what one can be made of.
    template <class Get>
    Field(FieldDoc what, Get get)
        : doc(std::move(what)), value([get](const T& entry) -> Cell { return get(entry); }) {}

    FieldDoc doc;
    std::function<Cell(const T&)> value;  // null of an optional field: it is left out
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

  // Requires that no field is an age.
  boost::json::object ToJson(const T& entry) const {
    boost::json::object object;
    for (const Field& field : fields_) {
      Cell value = field.value(entry);
      if (!field.doc.is_optional || !value.is_null()) object[field.doc.key] = value.Copy();
    }
    return object;
  }

  // The text of the same, without making the object, and with ages.
  void Append(listing::AgedText& out, const T& entry) const {
    std::string& text = out.text();
    text += '{';
    bool is_first = true;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      Cell value = fields_[i].value(entry);
      if (fields_[i].doc.is_optional && value.is_null()) continue;
      if (!std::exchange(is_first, false)) text += ',';
      text += beginnings_[i];
      if (std::optional<WallTime> since = value.since()) {
        out.AddAge(*since, listing::AgedText::Style::kSeconds);
      } else {
        AppendJson(text, value, JsonStyle::kCompact);
      }
    }
    text += '}';
  }

 private:
  std::vector<Field> fields_;
  std::vector<std::string> beginnings_;
};

}  // namespace nodepool::web
