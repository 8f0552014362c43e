#pragma once

#include <boost/json/value.hpp>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "model/shared.h"

namespace nodepool {

// A JSON value of another program: stored as it is written, to the byte, and parsed only on demand.
class RawJson {
 public:
  RawJson() = default;  // null
  template <class T>
    requires(!std::same_as<std::remove_cvref_t<T>, RawJson> && std::constructible_from<boost::json::value, T>)
  RawJson(T&& value)
      : RawJson(Tag(), boost::json::value(std::forward<T>(value))) {}  // NOLINT: as a JSON value is made

  // Requires that `valid` is one JSON value without blanks around it.
  static RawJson OfText(std::string_view valid);

  // Valid JSON in the sense of JsonScanner.
  std::string_view text() const { return text_ ? std::string_view(*text_) : "null"; }
  bool is_null() const { return !text_; }
  // As far as Boost's values can hold it (ParseJsonObject).
  boost::json::value value() const;
  // The number, if it is an integer of 64 bits.
  std::optional<std::int64_t> integer() const;

  // Whether both have the same value, however it is written.
  friend bool operator==(const RawJson& a, const RawJson& b) {
    return a.text_ == b.text_ || a.value() == b.value();
  }

 private:
  struct Tag {};
  RawJson(Tag, const boost::json::value& value);

  SharedText text_;  // none: null
};

}  // namespace nodepool
